"""What to compare: the settings of a comparison of gradient modes, and its buttons."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import session
from app.controls import setting as one
from app.controls.numbers import power_stops, short
from app.controls.spec import by_name, choose, names, nearest
from app.live.state import Shown
from app.workers import Workers

START = "flow_two_moons"
START_MODES = ("backprop", "aca", "symplectic", "continuous", "joint")
VARIANTS = ("symplectic:keep=graphs", "symplectic:keep=values")  # offered beside the plain modes
SWEEPS = {"": "nothing", "rtol": "the tolerance", "steps": "the number of steps"}
RTOLS = [float(f"1e-{n}") for n in range(1, 12)]
STEPS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
MOST_BATCH = 512
TRAINED = [0, 20, 50, 100, 200, 500]


def panel(described: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the settings into the current container and return the spec they add up to."""
    problems = sorted(described["problems"], key=lambda p: p.get("loss") is None)
    problem = by_name(problems, choose("Problem", "adj.problem", names(problems), START))
    learns = problem.get("loss") is not None
    st.caption("Loss of a network on its data." if learns else "Mean square of the end states.")
    offered = [mode["name"] for mode in described["adjoints"]] + list(VARIANTS)
    session.check("adj.modes", lambda held: set(held or ()) <= set(offered), list(START_MODES))
    modes = st.multiselect(
        "Gradient modes",
        offered,
        [mode for mode in START_MODES if mode in offered],
        placeholder="pick at least one",
        **session.keep("adj.modes"),
    )
    spec: dict[str, Any] = {"kind": "adjoints", "modes": modes}
    spec["problem"] = problem.get("spec_name", problem["name"])
    methods = described["methods"]
    spec["method"] = choose("Method", "adj.method", names(methods), problem["method"])
    spec |= tolerance(problem) | sweep_section()
    spec["batch"] = int(
        st.number_input(
            "Rows (batch)",
            1,
            MOST_BATCH,
            min(int(problem["batch"]), 32),
            **session.keep("adj.batch"),
        )
    )
    spec["trained"] = 0
    if learns:
        spec["trained"] = st.select_slider(
            "Trained before, iterations",
            TRAINED,
            0,
            help="A network that has learnt is often harder to solve than a fresh one.",
            **session.keep("adj.trained"),
        )
    if problem["parameters"]:
        with st.expander("Parameters"):
            key = problem["name"]
            spec["parameters"] = {
                p["name"]: one.draw(p, f"{key}.{p['name']}") for p in problem["parameters"]
            }
    return spec | details(described["limits"])


def tolerance(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Draw relative and absolute tolerance."""
    values = {}
    for column, key, low in zip(st.columns(2), ("rtol", "atol"), (1e-13, 1e-15), strict=True):
        start = nearest(float(problem[key]), low=low)
        stops = sorted({*power_stops(low, 0.1), start}, reverse=True)
        held = f"adj.{problem['name']}.{key}"
        values[key] = column.selectbox(
            key, stops, stops.index(start), format_func=short, **session.keep(held)
        )
    return values


def sweep_section() -> dict[str, Any]:
    """Draw what is varied, and its values."""
    sweep = choose("Vary", "adj.sweep", SWEEPS, "")
    if not sweep:
        return {"sweep": "", "values": []}
    if sweep == "rtol":
        ends = st.select_slider(
            "Tolerances from, to",
            RTOLS,
            (1e-2, 1e-6),
            format_func=short,
            help="The absolute tolerance changes in proportion.",
            **session.keep("adj.rtols"),
        )
        return {"sweep": sweep, "values": [v for v in RTOLS if ends[1] <= v <= ends[0]]}
    ends = st.select_slider(
        "Steps from, to",
        STEPS,
        (4, 64),
        help="Steps of equal size in place of the controller.",
        **session.keep("adj.steps"),
    )
    return {"sweep": sweep, "values": [v for v in STEPS if ends[0] <= v <= ends[1]]}


def details(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Draw what is rarely changed."""
    with st.expander("Number type, timing, seed"):
        dtypes: dict[str, str] = {name: name for name in limits["dtypes"]}
        dtype = choose("Number type", "adj.dtype", dtypes, "float64")
        rounds = st.number_input(
            "Rounds of timing", 1, 20, 3, help="Medians are shown.", **session.keep("adj.rounds")
        )
        allocator = st.toggle(
            "Measure memory in the course of time",
            True,
            help="Every allocation is written down, so this takes about ten times a solve.",
            **session.keep("adj.allocator"),
        )
        low, high = limits["seed"]
        seed = st.number_input("Seed", low, high, 0, **session.keep("adj.seed"))
    return {"dtype": dtype, "rounds": int(rounds), "allocator": bool(allocator), "seed": int(seed)}


def bar(shown: Shown, spec: dict[str, Any], workers: Workers) -> None:
    """Draw the buttons."""
    active = shown.live and shown.id is not None and workers.obeys(shown.id)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        compare = st.button(
            "Compare",
            type="primary",
            icon=":material/play_arrow:",
            key="do_compare",
            shortcut="Ctrl+Enter",
            disabled=not spec["modes"],
            help="Measure the gradient modes on the left. The result is kept as a run.",
        )
        st.button(
            "Cancel",
            icon=":material/stop:",
            key="do_cancel_comparison",
            disabled=not active or shown.word == "cancelling",
            on_click=workers.cancel,
            args=(shown.id or "",),
        )
    if compare:
        session.show_run(workers.start(spec, session.session_id()))
        st.rerun()
