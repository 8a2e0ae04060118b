"""Everything that moves on the Live page: tiles, raster, charts; drawn again while a run grows."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from app import session
from app.components.raster import Pick
from app.live import charts, picture
from app.live.compare import count, data
from app.live.state import Shown

if TYPE_CHECKING:
    import pandas as pd

    from inspector.run import Run

MOST_PICKED = 6
CHART_HEIGHT = 250


def tiles(run: "Run", solve: int, shown: Shown) -> dict[str, Any]:
    """Draw the five numbers and return all that are known."""
    from inspector import queries

    known = queries.tiles(run, solve)
    rows = int(run.solve_table().iloc[solve]["batch"])
    share, speed = known["accept_share"], known["evals_per_second"]
    slowest = known["slowest"]
    table = run.solves()
    own = table[(table["solve"] == solve) & (table["instance"] == slowest)]
    steps = f" ({count(float(own['n_steps'].iloc[0]))})" if len(own) else ""
    wasted = known["wasted_share"]
    figures = [
        ("Attempts", count(known["attempts"]), "Steps tried so far, counted once for the batch."),
        (
            "Accepted",
            f"{100 * share:.1f} %" if share == share else "–",
            f"{count(known['refused'])} attempts of single rows were refused.",
        ),
        ("Active rows", f"{known['active']} of {rows}", "Rows still on their way to the end."),
        (
            "Evaluations/s",
            count(float(f"{speed:.3g}")) if speed == speed else "–",
            "Rows of the vector field evaluated per second."
            + (f" {100 * wasted:.0f} % were for rows that were done." if wasted == wasted else ""),
        ),
        (
            "Slowest row",
            f"{slowest}{steps}" if slowest >= 0 else "–",
            "The row with the most attempts, and how many.",
        ),
    ]
    for column, (title, value, text) in zip(st.columns(5, gap="small"), figures, strict=True):
        column.metric(title, value, help=text, border=True)
    return known


def picks(rows: list[int]) -> list[int]:
    """Return the rows picked in this tab, those that exist, latest last."""
    held = session.get("picked")
    if held is None:
        linked = session.param("inst")
        held = [int(linked)] if linked and linked.isdigit() else []
    return [row for row in held if row in rows][-MOST_PICKED:]


def pick_row(row: int) -> None:
    """Add a row to the picked ones, or take it away if it is there."""
    held = list(session.get("picked") or [])
    held = [r for r in held if r != row] if row in held else [*held, row][-MOST_PICKED:]
    session.put("picked", held)
    session.put_param("inst", str(held[-1]) if held else None)


def on_cell() -> None:
    """Take up a pick on the raster; a callback, so that it is drawn in the same run."""
    event = (session.get("live_raster") or {}).get("pick")
    if event:
        pick_row(int(event["instance"]))


def on_number() -> None:
    """Take up a row number that was typed."""
    row = session.get("row_number")
    if row is not None:
        if row not in (session.get("picked") or []):
            pick_row(int(row))
        session.put("row_number", None)


def row_tools(rows: list[int], picked: list[int], slowest: int) -> None:
    """Draw the keyboard's way to a row: a number, the slowest, none."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.number_input(
            "Pick row", min_value=min(rows), max_value=max(rows), value=None, step=1,
            placeholder=f"{min(rows)} to {max(rows)}", key="row_number", on_change=on_number, width=130,
        )  # fmt: skip
        st.button(
            "Slowest", key="pick_slowest", disabled=slowest in picked or slowest < 0,
            on_click=pick_row, args=(slowest,), icon=":material/hourglass_bottom:",
        )  # fmt: skip
        st.button(
            "Clear", key="pick_none", disabled=not picked, on_click=clear, icon=":material/clear:"
        )


def clear() -> None:
    """Forget the picked rows."""
    session.put("picked", [])
    session.put_param("inst", None)


def draw(shown: Shown, other: "tuple[str, Run] | None", problem: dict[str, Any]) -> None:
    """Draw tiles, raster and charts of one solve."""
    from inspector import queries

    run, solve = shown.run, shown.solve
    assert run is not None
    known = tiles(run, solve, shown)
    rows = [int(r) for r in run.solves().query("solve == @solve")["instance"]]
    picked = picks(rows)
    left, right = st.columns([1, 1], vertical_alignment="bottom")
    with left:
        value, order = picture.pickers(run)
    with right:
        row_tools(rows or [0], picked, known["slowest"])
    st.subheader(picture.question(value), anchor=False)
    quantiles = queries.dt_quantiles(run, solve)
    ghost = None
    if other is not None and other[1].n_solves > solve:
        ghost = queries.dt_quantiles(other[1], solve)
    x_max = axis_end(int(known["attempts"]), shown.live, ghost)
    picture.show(run, solve, value, order, picked, ghost=ghost, x_max=x_max, on_pick=on_cell)
    focus = picked[-1] if picked else known["slowest"]
    traces = {row: queries.trace(run, solve, row, points=1500) for row in picked}
    left, right = st.columns(2, gap="medium")
    with left:
        step_sizes(quantiles, ghost, traces, x_max)
        controller(run, solve, focus, traces.get(focus), x_max)
    with right:
        paths(run, solve, picked or ([focus] if focus >= 0 else []), problem)
        limiter(run, solve, x_max)


def axis_end(attempts: int, live: bool, ghost: "pd.DataFrame | None") -> int:
    """Return where the attempt axis ends: while it grows at a round number, so that it seldom moves."""
    end = attempts
    if live:
        room = 50
        while room < attempts * 1.02:
            room *= 2
        end = room
    if ghost is not None and len(ghost):
        end = max(end, int(ghost["attempt"].max()) + 1)
    return max(end, 1)


def heading(text: str, note: str = "") -> None:
    """Draw a chart's question."""
    st.markdown(f"### {text}", help=note or None, anchors=False)


def step_sizes(
    quantiles: "pd.DataFrame",
    ghost: "pd.DataFrame | None",
    traces: "dict[int, pd.DataFrame]",
    x_max: int,
) -> None:
    """Draw the ribbon of step sizes."""
    heading("How large are the steps?", "Quantiles of |dt| over the rows that were running.")
    plot = charts.step_sizes(quantiles, ghost, traces, x_max)
    plot.show(
        key="live_dt", height=CHART_HEIGHT,
        alt="Quantiles of the step size over the running rows, by attempt, logarithmic.",
    )  # fmt: skip
    data(quantiles, "step-sizes")


def controller(
    run: "Run", solve: int, row: int, trace: "pd.DataFrame | None", x_max: int
) -> None:
    """Draw the P, I and D parts of one row."""
    from inspector import queries

    heading(
        f"What did the controller do in row {row}?" if row >= 0 else "What did the controller do?",
        "log10 of each part of the factor by which the step is multiplied: above 0 it lengthens, below 0 "
        "it shortens. Pick a row to see it; otherwise the slowest one is shown.",
    )
    if row < 0 or "share_i" not in run.columns:
        empty("This run recorded no P, I and D shares.")
        return
    trace = queries.trace(run, solve, row, points=1500) if trace is None else trace
    charts.shares(trace, None).show(
        key="live_shares", height=CHART_HEIGHT,
        alt=f"log10 of the P, I and D part of the step factor of row {row}, by attempt.",
    )  # fmt: skip
    names = [n for n in ("attempt", "share_p", "share_i", "share_d", "accepted") if n in trace]
    data(trace[names], f"controller-row-{row}")


def paths(run: "Run", solve: int, rows: list[int], problem: dict[str, Any]) -> None:
    """Draw where the picked rows went: phase portrait or trajectories."""
    names = list(problem.get("components") or [])
    pair = problem.get("phase")
    heading(
        "Where did the picked rows go?" if session.get("picked") else "Where did the slowest row go?",
        "Recorded states, one point an accepted step or fewer.",
    )
    states = run.states(solve, rows) if rows else None
    if states is None or states.empty:
        empty("This run recorded no states.")
        return
    columns = [c for c in states.columns if c.startswith("y")]
    names = names if len(names) == len(columns) else columns
    by_row = {row: states[states["instance"] == row] for row in rows}
    if pair and max(pair) < len(columns):
        plot = charts.phase(
            by_row, (columns[pair[0]], columns[pair[1]]), (names[pair[0]], names[pair[1]])
        )
        text = f"Phase portrait, {names[pair[1]]} over {names[pair[0]]}"
    else:
        plot, text = charts.trajectories(by_row, columns[0], names[0]), f"{names[0]} over time"
    plot.show(key="live_paths", height=CHART_HEIGHT, alt=f"{text}, rows {', '.join(map(str, rows))}.")
    data(states, "states")


def limiter(run: "Run", solve: int, x_max: int) -> None:
    """Draw what set the step sizes."""
    from inspector import queries

    heading(
        "What limited the steps?",
        "accuracy: the error estimate; span: the end was reached; first: the starting step; "
        "non finite: the field gave NaN or infinity.",
    )
    parts = queries.limiter_shares(run, solve)
    labels = [name for name in parts.columns if name != "attempt"]
    if not labels:
        empty("This run did not record what limited the steps.")
        return
    charts.limiters(parts, labels, x_max).show(
        key="live_limiter", height=CHART_HEIGHT,
        alt="Share of the running rows by what set their step size, by attempt.",
    )  # fmt: skip
    data(parts, "limiters")


def empty(text: str) -> None:
    """Draw the place of a chart that has nothing to show, and why."""
    with st.container(border=True, height=CHART_HEIGHT, vertical_alignment="center", horizontal_alignment="center"):
        st.caption(text)
