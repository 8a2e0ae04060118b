"""Training: what does the solver cost while a model learns?"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, frame, kinds, session, theme
from app.cached import ask
from app.components import run_header, training_parts, training_setup
from app.components.chart import code, draw, pair, plain
from app.figures.training_memory import training_memory_figure
from app.figures.training_optimizer import training_optimizer_figure
from app.figures.training_overview import training_overview_figure
from app.figures.training_seconds import training_seconds_figure
from app.frames import floats, only, where
from app.live import notices
from app.live.state import look
from app.training_words import alerts, merged

if TYPE_CHECKING:
    from inspector.run import Run

SNIPPET = """\
with Inspector("runs/my-run") as insp:
    insp.watch(model, optimizer)
    for step in range(1000):
        with insp.iteration(step, sample_ids=ids):
            ys = solve_ivp(f, y0, t_eval, hooks=[insp]).ys
            ...
            insp.log(loss=loss)
"""
LOOKS = {
    "error": (st.error, ":material/error:"),
    "warning": (st.warning, ":material/warning:"),
    "info": (st.info, ":material/info:"),
}


def page() -> None:
    """Draw the page; it follows a run that still grows."""
    workers = frame.workers()
    shown = look(session.current_run(), workers)
    spec = None
    if not session.read_only():
        with st.sidebar:
            spec = training_setup.panel(frame.described())
    if shown.run is None:
        st.title("Training", anchor=False)
        if spec is not None:
            training_setup.bar(shown, spec, workers)
        if shown.id is not None and shown.live:
            training_setup.waiting(shown.id, workers)
            return
    if shown.word in ("died", "queued"):
        notices.notice(shown, workers)
    run = run_header.opened()
    run_header.follow(run)
    place = run_header.draw_header(run)
    if spec is not None:
        training_setup.bar(shown, spec, workers)
    table = ask(type(run).iterations, run)
    if table.empty:
        no_training(run)
        if not run.live:
            another()
    else:
        training(run, table)
    run_header.banners(run, place)


def no_training(run: "Run") -> None:
    """The designed state of a run without iterations."""
    with st.container(border=True):
        st.subheader("This run is no training")
        st.write(
            "It holds solves, and nothing was logged beside them. In a training, tell which "
            "iteration comes next and what it came to:"
        )
        st.code(SNIPPET, language="python")
        st.write(
            "Or press **Train**: it trains the problem chosen on the left. On the command line, "
            "`stepscope train neural_spiral`."
        )
        if run.n_solves:
            st.page_link("views/run.py", label="Look at its solves", icon=":material/monitoring:")


def another() -> None:
    """Draw the newest training there is, where the run shown is none."""
    name = kinds.newest("training")
    run = session.open_run(name)
    if run is None:
        return
    table = ask(type(run).iterations, run)
    if not table.empty:
        what = "Recorded example of a training" if session.is_example(name) else "Newest training"
        st.caption(f"{what}, {code(str(name))}:")
        training(run, table)


def training(run: "Run", table: pd.DataFrame) -> None:
    """Draw a training from above to below: in sum, in time, one solve, samples, processes."""
    ranks = ask(type(run).ranks, run)
    current = where(table, table["current"])
    lines = merged(current)
    for alert in alerts(lines)[:4]:
        say, icon = LOOKS[alert.level]
        say(plain(alert.text), icon=icon)
    training_parts.tiles(lines, ranks)
    overview(run, table, lines, training_parts.sessions(ranks, table))
    training_parts.one_solve(run)
    st.header("Costs", anchor=False)
    costs(lines)
    st.header("Optimizer", anchor=False)
    colours = theme.current()
    names = [str(n) for n in lines.columns if str(n).startswith(("grad_norm", "lr", "optim_"))]
    draw(
        training_optimizer_figure(lines, colours),
        key="optimizer",
        question="How does the optimizer step?",
        unit=optimizer_of(run),
        alt="Norm of the gradient, learning rate and update over the iterations.",
        data=lambda: only(lines, "iteration", *names, "param_norm", "update_ratio"),
    )
    training_parts.samples(run)
    training_parts.ranks_part(ranks, current)
    kept = run.thinned
    if kept["rows"]:
        st.caption(
            f":material/compress: The steps of {explain.count(kept['solves'])} solves were let go, "
            f"{explain.count(kept['rows'])} in all, as `every` or a budget asked for. Counts, "
            "times and logged numbers are of all iterations."
        )


def overview(run: "Run", table: pd.DataFrame, lines: pd.DataFrame, resumed: list[float]) -> None:
    """Draw the loss above what the solver costs, with another training behind it."""
    other = other_training(run)
    ghost = None
    if other is not None:
        theirs = ask(type(other).iterations, other)
        ghost = merged(where(theirs, theirs["current"]))
    replaced = merged(where(table, ~table["current"].to_numpy(bool)))
    selected = None
    picked = session.get("solve")
    if isinstance(picked, int) and 0 < picked < run.n_solves:
        at = run.settings(picked).get("iteration")
        selected = float(at) if isinstance(at, int) else None
    draw(
        training_overview_figure(
            lines,
            theme.current(),
            replaced=replaced,
            ghost=ghost,
            ghost_name="" if other is None else other.id,
            resumed=resumed,
            selected=selected,
        ),
        key="overview",
        question="How does the loss fall, and what does the solver cost meanwhile?",
        unit="click an iteration to see its solve",
        alt=overview_alt(lines),
        data=lines,
        help="Of the rows of each solve: median, 25 to 75 % and 5 to 95 %, and the slowest. "
        "Of several solves in an iteration the spreads are added.",
        on_pick=training_parts.take_point,
    )


def other_training(run: "Run") -> "Run | None":
    """Draw the picker of a second training and return it."""
    others = [name for name in session.run_ids() if name != run.id]
    if not others:
        return None
    if session.default("cmp", "") not in ("", *others):
        session.put("cmp", "")
    second = st.selectbox(
        f"Compare {code(run.id)} with",
        ["", *others],
        format_func=lambda name: name or "no other training",
        width=420,
        **session.keep("cmp", "url"),
    )
    other = session.open_run(second) if second else None
    if other is not None and ask(type(other).iterations, other).empty:
        st.caption(f"{code(other.id)} is no training.")
        return None
    return other


def costs(lines: pd.DataFrame) -> None:
    """Draw where time and memory go."""
    colours = theme.current()
    left, right = pair("costs")
    with left:
        draw(
            training_seconds_figure(lines, colours),
            key="seconds",
            question="Where does the time go?",
            unit="seconds of an iteration",
            alt="Seconds of each iteration in the vector field, the solver, backward and the rest.",
            data=only(
                lines, "iteration", "seconds", "forward_seconds", "f_seconds", "backward_seconds"
            ),
            help="Forward: in solves; backward: from the last solve to the optimizer's step.",
        )
    with right:
        draw(
            training_memory_figure(lines, colours),
            key="memory",
            question="How much memory does a gradient take?",
            unit="kept from forward to backward",
            alt="Memory of checkpoints, graphs and gradients in each iteration.",
            data=only(
                lines, "iteration", "checkpoint_bytes", "graph_bytes", "gradient_bytes",
                "allocated_bytes", "memory_bytes",
            ),
        )  # fmt: skip


def optimizer_of(run: "Run") -> str:
    """Return the names of the optimizers that were watched."""
    events = ask(type(run).events, run)
    names = [str(n) for n in events.loc[events["kind"] == "optimizer", "text"]]
    return ", ".join(dict.fromkeys(names))


def overview_alt(lines: pd.DataFrame) -> str:
    """Say in one sentence how the training went."""
    loss = floats(lines, "loss")
    loss = loss[np.isfinite(loss)]
    text = f"{len(lines)} iterations"
    if len(loss):
        text += f"; the loss went from {loss[0]:.3g} to {loss[-1]:.3g}"
    if "forward_nfe_median" in lines:
        nfe = floats(lines, "forward_nfe_median")
        nfe = nfe[np.isfinite(nfe)]
        if len(nfe):
            text += f", evaluations of a row from {nfe[0]:.0f} to {nfe[-1]:.0f}"
    return text + "."


page()
