"""The pictures of one row, all over the same x axis."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from app import explain, run_facts, session
from app.cached import ask
from app.components import row_picker
from app.components.chart import draw
from app.components.run_header import described
from app.figures.controller_shares import controller_shares_figure
from app.figures.error_ratio import error_ratio_figure
from app.figures.limiter import limiter_ribbon_figure
from app.figures.step_size import X, step_size_figure
from app.figures.trajectories import components_figure
from app.figures.worst_component import worst_component_figure
from app.frames import floats, ints, only, where
from app.theme import current

if TYPE_CHECKING:
    from inspector.run import Run

AXES: dict[str, str] = {"t": "time", "attempt": "attempt"}


def draw_all(
    run: "Run",
    solve: int,
    row: int,
    steps: pd.DataFrame,
    instances: pd.DataFrame,
    *,
    labels: Mapping[int, str],
    names: Sequence[str],
) -> None:
    """Draw step size, error ratio, controller shares, limiter, worst component and solution.

    Args:
        steps: every attempt of the row; not empty.
        instances: of the solve, most attempts first.
        labels: code -> word of the limiter statistic.
        names: of the components.
    """
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with right:
        session.accept("xaxis", AXES)
        if session.default("xaxis", "t") not in AXES:
            session.put("xaxis", "t")
        chosen: Any = st.segmented_control(
            "Over",
            list(AXES),
            format_func=lambda name: str(AXES.get(name)),
            required=True,
            **session.keep("xaxis", "url"),
        )
    x: X = "attempt" if chosen == "attempt" else "t"
    first_attempt = int(ints(steps, "attempt")[0])
    with left:
        low, high = row_picker.window(len(steps))
    steps = steps.iloc[low : high + 1]
    span = span_of(steps, x)
    colours = current()
    said = f"row {row}, attempts {first_attempt + low} to {first_attempt + high}"
    refused = int((ints(steps, "accepted") == 0).sum())
    middle = int(ints(instances, "instance")[len(instances) // 2])
    ghost = None
    if middle != row:
        ghost = ask(type(run).steps, run, solve, middle)
    draw(
        step_size_figure(
            steps, colours, x=x, x_range=span, ghost=ghost, ghost_name=f"row {middle}, the median"
        ),
        key="row_dt",
        question="How large were its steps, and where was one refused?",
        unit="|dt|, time",
        alt=f"Step sizes of {said}: {len(steps)} attempts, {refused} refused.",
        data=steps,
    )
    steady = run_facts.steady_ratio(run.settings(solve), described())
    draw(
        error_ratio_figure(steps, colours, x=x, x_range=span, steady=steady),
        key="row_ratio",
        question="How close to the tolerance was it?",
        unit="error / tolerance; above 1 is refused",
        alt=f"Error ratio of {said}.",
        data=only(steps, "attempt", "t", "error_ratio", "accepted"),
        help="Dashed: the ratio at which the controller leaves the step as it is.",
    )
    if "limiter" in steps:
        draw(
            limiter_ribbon_figure(steps, colours, labels, x=x, x_range=span),
            key="row_limiter",
            question="What limited its steps?",
            unit="% of attempts",
            alt=limiter_alt(steps, labels),
            data=only(steps, "attempt", "t", "dt", "limiter"),
        )
    shares = [c for c in ("share_p", "share_i", "share_d", "factor", "clamped") if c in steps]
    if shares:
        draw(
            controller_shares_figure(steps, colours, x=x, x_range=span),
            key="row_pid",
            question="What did the controller ask for?",
            unit="log10 of each part of the factor; above 0 asks for a larger step",
            alt=f"P, I and D part of the step-size factor of {said}.",
            data=only(steps, "attempt", "t", *shares),
            help="Triangles: the factor was cut by the smallest or largest one allowed.",
        )
    if "limiting_component" in steps:
        draw(
            worst_component_figure(steps, colours, x=x, x_range=span, names=names),
            key="row_component",
            question="Which component made the error?",
            unit="component with the largest share",
            alt=f"Component with the largest share of the error, {said}.",
            data=only(steps, "attempt", "t", "limiting_component"),
        )
    missing = [name for name in ("limiter", "limiting_component") if name not in steps]
    missing += [] if shares else ["share_p", "share_i", "share_d"]
    if missing:
        st.info(
            "This run did not record what limited the steps: "
            f'`{", ".join(missing)}`. `Inspector(..., statistics="all")` records everything.',
            icon=":material/visibility_off:",
        )
    solution(run, solve, row, steps, span if x == "t" else None, names)


def solution(
    run: "Run",
    solve: int,
    row: int,
    steps: pd.DataFrame,
    span: tuple[float, float] | None,
    names: Sequence[str],
) -> None:
    """Draw the recorded states of the row over time, if there are any."""
    states = ask(type(run).states, run, solve, row)
    if states.empty:
        st.caption(
            "The solution of this row was not recorded. `Inspector(..., states=n)` keeps n rows; "
            "Live keeps those it shows."
        )
        return
    t = floats(states, "t")
    ends = floats(steps, "t")[0], (floats(steps, "t") + floats(steps, "dt"))[-1]
    shown = where(states, (t >= min(ends)) & (t <= max(ends)))
    draw(
        components_figure(shown, current(), names=names, x_range=span),
        key="row_solution",
        question="What was the solution doing?",
        unit="state over time",
        alt=f"Components of row {row} over time.",
        data=only(shown, *(str(name) for name in shown if name not in ("solve", "instance"))),
    )


def span_of(steps: pd.DataFrame, x: X) -> tuple[float, float]:
    """Return both ends of the shared x axis, a little beyond the first and last attempt."""
    if x == "attempt":
        attempt = floats(steps, "attempt")
        return float(attempt[0]) - 0.5, float(attempt[-1]) + 0.5
    t = floats(steps, "t")
    begin, end = float(t[0]), float(t[-1] + floats(steps, "dt")[-1])
    room = 0.01 * abs(end - begin) or 1e-12
    low, high = min(begin, end), max(begin, end)
    return low - room, high + room


def limiter_alt(steps: pd.DataFrame, labels: Mapping[int, str]) -> str:
    """Say in one sentence what limited the steps of a row."""
    shares = explain.limiter_counts(steps, labels)
    if not shares:
        return "What limited the steps was not recorded."
    said = [f"{explain.LIMITS.get(c, c)} {explain.percent(share)}" for c, share in shares.items()]
    return "Attempts were limited by " + ", ".join(said) + "."
