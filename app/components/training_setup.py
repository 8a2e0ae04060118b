"""What to train: the settings of a training, and its buttons."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import session
from app.controls import setting as one
from app.controls.numbers import power_stops, short
from app.controls.spec import by_name, choose, names, nearest
from app.live.state import Shown
from app.workers import Workers

START = "neural_spiral"
SCHEDULES = {"constant": "stays as it is", "cosine": "falls to 0 along half a cosine"}
MOST_ITERATIONS, MOST_BATCH = 1_000_000, 4096


def panel(described: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the settings into the current container and return the spec they add up to."""
    problems = [problem for problem in described["problems"] if problem.get("loss")]
    problem = by_name(problems, choose("Problem", "tr.problem", names(problems), START))
    learns, key = problem["loss"], f"tr.{problem['name']}"
    spec: dict[str, Any] = {
        "kind": "training",
        "problem": problem.get("spec_name", problem["name"]),
        "keep_running": True,  # a training goes on when nobody looks
    }
    optimizers = {name: name for name in described.get("optimizers") or [learns["optimizer"]]}
    spec["optimizer"] = choose("Optimizer", f"{key}.optimizer", optimizers, learns["optimizer"])
    left, right = st.columns(2)
    spec["iterations"] = int(
        left.number_input(
            "Iterations", 1, MOST_ITERATIONS, int(learns["iterations"]),
            **session.keep(f"{key}.iterations"),
        )
    )  # fmt: skip
    spec["batch"] = int(
        right.number_input(
            "Rows (batch)", 1, MOST_BATCH, int(problem["batch"]), **session.keep(f"{key}.batch")
        )
    )
    spec["learning_rate"] = st.number_input(
        "Learning rate",
        1e-8,
        10.0,
        None,
        format="%.2e",
        placeholder=f"{short(learns['learning_rate'])} for Adam, scaled for others",
        **session.keep(f"{key}.rate"),
    )
    adjoints = names(described["adjoints"])
    start = "backprop" if spec["optimizer"] == "adahessian" else learns["adjoint"]
    spec["adjoint"] = choose("Gradient", f"{key}.adjoint.{start}", adjoints, start)
    spec["method"] = choose(
        "Method", f"{key}.method", names(described["methods"]), problem["method"]
    )
    controllers = names([c for c in described["controllers"] if c["adaptive"]])
    controllers = {"": "the solver's own"} | controllers
    spec["controller"] = choose("Controller", f"{key}.controller", controllers, "") or None
    for column, name, low in zip(st.columns(2), ("rtol", "atol"), (1e-13, 1e-15), strict=True):
        held = nearest(float(problem[name]), low=low)
        stops = sorted({*power_stops(low, 0.1), held}, reverse=True)
        spec[name] = column.selectbox(
            name, stops, stops.index(held), format_func=short, **session.keep(f"{key}.{name}")
        )
    return spec | details(problem, described["limits"], key)


def details(problem: Mapping[str, Any], limits: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Draw what is rarely changed."""
    learns, found = problem["loss"], {}
    with st.expander("Schedule, number type, seed"):
        found["schedule"] = choose(
            "Learning rate over time", f"{key}.schedule", SCHEDULES, learns["schedule"]
        )
        dtypes = {name: name for name in limits["dtypes"]}
        found["dtype"] = choose("Number type", f"{key}.dtype", dtypes, learns["dtype"])
        low, high = limits["seed"]
        found["seed"] = int(st.number_input("Seed", low, high, 0, **session.keep(f"{key}.seed")))
        found["every"] = int(
            st.number_input(
                "Keep the steps of every n-th iteration", 1, 1000, 1,
                help="Counts and times of all of them are kept.",
                **session.keep(f"{key}.every"),
            )
        )  # fmt: skip
    parameters = [p for p in problem["parameters"] if p["name"] != "speed"]
    if parameters:
        with st.expander("Parameters"):
            found["parameters"] = {
                p["name"]: one.draw(p, f"{key}.parameter.{p['name']}") for p in parameters
            }
    return found


def bar(shown: Shown, spec: dict[str, Any], workers: Workers) -> None:
    """Draw the buttons."""
    ours = shown.spec.get("kind") == "training"
    active = ours and shown.live and shown.id is not None and workers.obeys(shown.id)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        train = st.button(
            "Train",
            type="primary",
            icon=":material/play_arrow:",
            key="do_train",
            shortcut="Ctrl+Enter",
            help="Train with the settings on the left. Every solve is recorded, and the run kept.",
        )
        st.button(
            "Cancel",
            icon=":material/stop:",
            key="do_cancel_training",
            disabled=not active or shown.word == "cancelling",
            on_click=workers.cancel,
            args=(shown.id or "",),
        )
    if train:
        session.show_run(workers.start(spec, session.session_id()))
        st.rerun()


@st.fragment(run_every=0.5)
def waiting(run_id: str, workers: Workers) -> None:
    """Draw the page again as soon as a training that was asked for has begun, or will not."""
    from app.live.state import look

    now = look(run_id, workers)
    if now.run is not None or not now.live:
        st.rerun()
    ahead = workers.place(run_id) if now.word == "queued" else None
    st.info(
        f"Waiting for a free worker; {ahead or 'none'} before it."
        if now.word == "queued"
        else "The training starts: its process loads the solver and draws the data.",
        icon=":material/hourglass_top:",
    )
    st.skeleton(height=420)
