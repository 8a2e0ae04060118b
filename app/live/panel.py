"""Everything that moves on the Live page: tiles, raster, charts; drawn again while a run grows."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import explain, session
from app.cached import ask
from app.components import diagnosis
from app.components.chart import pair
from app.live import charts, picture
from app.live.data import count, heading
from app.live.state import Shown

if TYPE_CHECKING:
    import pandas as pd

    from inspector.run import Run

PARTS = {"checkpoint": "of checkpoints", "graph": "of graphs", "gradient": "of gradients"}
MOST_PICKED = 6
CHART_HEIGHT = 250
PATH_POINTS = 3000


def tiles(
    run: "Run", solve: int, shown: Shown, evals_per_attempt: float = float("nan")
) -> dict[str, Any]:
    """Draw the numbers that say most and return all that are known."""
    from inspector import queries

    known = queries.tiles(run, solve)
    about = run.solve_table().iloc[solve]
    rows = int(about["batch"])
    share, speed = known["accept_share"], known["evals_per_second"]
    live = shown.live and speed != speed
    if live:  # counted by the solver at the end; until then from attempts and stages
        seconds = time.time() - float(about["started"])
        speed = known["attempts"] * rows * evals_per_attempt / seconds if seconds > 0 else speed
    slowest = known["slowest"]
    table = run.solves()
    own = table[(table["solve"] == solve) & (table["instance"] == slowest)]
    most = int(own["n_steps"].iloc[0]) if len(own) else 0
    known["attempts"] = max(known["attempts"], most)  # a solve that was broken off has no total
    steps = f" ({count(most)})" if len(own) else ""
    wasted = known["wasted_share"]
    figures = [
        ("Attempts", count(known["attempts"]), "Steps tried so far, counted once for the batch."),
        (
            "Accepted",
            f"{100 * share:.1f} %" if share == share else "-",
            f"{count(known['refused'])} attempts of single rows were refused.",
        ),
        ("Active rows", f"{known['active']} of {rows}", "Rows still on their way to the end."),
        (
            "Evaluations/s",
            ("≈ " if live else "") + (count(float(f"{speed:.3g}")) if speed == speed else "-"),
            "Rows of the vector field evaluated per second."
            + (f" {100 * wasted:.0f} % were for rows that were done." if wasted == wasted else ""),
        ),
        (
            "Slowest row",
            f"{slowest}{steps}" if slowest >= 0 else "-",
            "The row with the most attempts, and how many.",
        ),
    ]
    if (shown.spec or {}).get("gradient"):
        figures.append(memory_tile(run, solve))
    columns = st.columns(len(figures), gap="small")
    for column, (title, value, text) in zip(columns, figures, strict=True):
        column.metric(title, value, help=text, border=True)
    return known


def memory_tile(run: "Run", solve: int) -> tuple[str, str, str]:
    """Return title, value and help of what the gradient of a solve kept in memory."""
    title = "Gradient memory"
    passes = run.solve_state(solve).backward
    if not passes:
        return title, "\u2013", "Known when the backward pass through this solve is over."
    last = passes[-1]
    parts = {name: float(last.get(f"{name}_bytes") or 0) for name in PARTS}
    law = last.get("predicted_bytes")
    text = ", ".join(f"{explain.size(size)} {PARTS[name]}" for name, size in parts.items())
    text += f"; the law of the mode says {explain.size(float(law))}" if law else ""
    took = explain.duration(float(last.get("seconds") or 0))
    return title, explain.size(sum(parts.values())), f"{text}. The backward pass took {took}."


def picks(rows: list[int]) -> list[int]:
    """Return the rows picked in this tab, those that exist, latest last."""
    held = list(session.get("picked") or [])
    if session.get("picked") is None:
        named = (session.param("rows") or "").split(",")
        held = [int(row) for row in named[:MOST_PICKED] if row.isdigit() and len(row) < 10]
        session.put("picked", held)
    linked = session.get("inst", session.param("inst"))
    if linked is not None and str(linked).isdigit() and int(linked) not in held:
        held.append(int(linked))  # picked on another page, or named by the link
        session.put("picked", held)
    return [row for row in held if row in rows][-MOST_PICKED:]


def pick_row(row: int) -> None:
    """Add a row to the picked ones, or take it away if it is there."""
    held = list(session.get("picked") or [])
    hold([r for r in held if r != row] if row in held else [*held, row][-MOST_PICKED:])


def hold(rows: list[int]) -> None:
    """Keep the picked rows; the last one is the one other pages show, and the link names."""
    session.put("picked", rows)
    if rows:
        session.put("inst", rows[-1])
    else:
        session.drop("inst")
    session.put_param("inst", str(rows[-1]) if rows else None)
    session.put_param("rows", ",".join(map(str, rows)) if len(rows) > 1 else None)


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
            placeholder=f"{min(rows)} to {max(rows)}", key="row_number",
            on_change=on_number, width=130,
        )  # fmt: skip
        st.button(
            "Slowest", key="pick_slowest", disabled=slowest in picked or slowest < 0,
            on_click=pick_row, args=(slowest,), icon=":material/hourglass_bottom:", shortcut="W",
        )  # fmt: skip
        st.button(
            "Clear",
            key="pick_none",
            disabled=not picked,
            on_click=hold,
            args=([],),
            icon=":material/clear:",
        )


def draw(
    shown: Shown,
    other: "tuple[str, Run] | None",
    problem: dict[str, Any],
    evals_per_attempt: float = float("nan"),
    *,
    below: Callable[[], None] = lambda: None,
) -> None:
    """Draw tiles, raster and charts of one solve.

    Args:
        other: the run compared with, id and run.
        problem: its description, empty if unknown.
        evals_per_attempt: of the method, for the speed while it runs.
        below: draws what stands between raster and charts.
    """
    from inspector import queries

    run, solve = shown.run, shown.solve
    assert run is not None
    known = tiles(run, solve, shown, evals_per_attempt)
    if not shown.live:
        diagnosis.verdict(run, solve, known["slowest"])
    rows = [int(r) for r in run.solves().query("solve == @solve")["instance"]]
    picked = picks(rows)
    left, right = st.columns([1, 1], vertical_alignment="bottom")
    with left:
        value, order = picture.pickers(run)
    with right:
        row_tools(rows or [0], picked, known["slowest"])
    heading(
        picture.question(value),
        table=lambda: picture.table(run, solve, value, order),
        name="raster",
        picture="live_raster",
    )
    quantiles = queries.dt_quantiles(run, solve)
    ghost = None
    if other is not None and other[1].n_solves > solve:
        ghost = queries.dt_quantiles(other[1], solve)
    x_max = axis_end(int(known["attempts"]), shown.live, ghost)
    picture.show(run, solve, value, order, picked, ghost=ghost, x_max=x_max, on_pick=on_cell)
    below()
    focus = picked[-1] if picked else known["slowest"]
    traces = {row: queries.trace(run, solve, row, points=1500) for row in picked}
    left, right = pair("live")
    with left:
        step_sizes(quantiles, ghost, traces, x_max)
        controller(run, solve, focus, traces.get(focus), x_max)
    with right:
        paths(run, solve, picked or ([focus] if focus >= 0 else []), problem)
        limiter(run, solve, x_max, live=shown.live)
    footer(run, solve)


def footer(run: "Run", solve: int) -> None:
    """Say how much was recorded, and what was not."""
    lost = run.lost
    rows = sum(batch.rows for _, batches in run.places(solve) for batch in batches)
    parts = [f"{count(rows)} attempts of rows recorded"]
    if lost["rows_dropped"]:
        parts.append(f"{count(lost['rows_dropped'])} dropped: the disk was too slow")
    if lost["rows_lost"] or lost["errors"]:
        parts.append(f"{count(lost['rows_lost'])} lost in {lost['errors']} errors of the disk")
    parts += [f"`{run.path}`", f"schema {run.meta.get('schema', '?')}"]
    versions = run.meta.get("versions") or {}
    parts += [f"{name} {versions[name]}" for name in ("torch", "python") if name in versions]
    st.caption(" · ".join(parts))


def axis_end(attempts: int, live: bool, ghost: "pd.DataFrame | None") -> int:
    """Return where the attempt axis ends: a round number while it grows, so it seldom moves."""
    end = attempts
    if live:
        room = 50
        while room < attempts * 1.02:
            room *= 2
        end = room
    if ghost is not None and len(ghost):
        end = max(end, int(ghost["attempt"].max()) + 1)
    return max(end, 1)


def step_sizes(
    quantiles: "pd.DataFrame",
    ghost: "pd.DataFrame | None",
    traces: "dict[int, pd.DataFrame]",
    x_max: int,
) -> None:
    """Draw the ribbon of step sizes."""
    heading(
        "How large are the steps?",
        "Quantiles of |dt| over the rows that were running.",
        quantiles,
        "step-sizes",
        "live_dt",
    )
    plot = charts.step_sizes(quantiles, ghost, traces, x_max)
    plot.show(
        key="live_dt", height=CHART_HEIGHT,
        alt="Quantiles of the step size over the running rows, by attempt, logarithmic.",
    )  # fmt: skip


def controller(run: "Run", solve: int, row: int, trace: "pd.DataFrame | None", x_max: int) -> None:
    """Draw the P, I and D parts of one row."""
    from inspector import queries

    title = f"What did the controller do in row {row}?"
    note = (
        "log10 of each part of the factor by which the step is multiplied: above 0 it lengthens, "
        "below 0 it shortens. Pick a row to see it; otherwise the slowest one is shown."
    )
    if row < 0 or "share_i" not in run.columns:
        heading("What did the controller do?", note)
        empty("This run recorded no P, I and D shares.")
        return
    trace = queries.trace(run, solve, row, points=1500) if trace is None else trace
    names = [n for n in ("attempt", "share_p", "share_i", "share_d", "accepted") if n in trace]
    heading(title, note, trace[names], "controller", "live_shares")
    charts.shares(trace, None).show(
        key="live_shares",
        height=CHART_HEIGHT,
        alt=f"log10 of the P, I and D part of the step factor of row {row}, by attempt.",
    )


def paths(run: "Run", solve: int, rows: list[int], problem: dict[str, Any]) -> None:
    """Draw where the picked rows went: phase portrait or trajectories."""
    names = list(problem.get("components") or [])
    pair = problem.get("phase")
    picked = bool(picks(rows))
    note = "Recorded states, one point for each accepted step."
    states = run.states(solve, rows) if rows else None
    if (states is None or states.empty) and not picked:  # the slowest was not among those recorded
        every_row = run.states(solve)
        rows = [int(every_row["instance"].max())] if len(every_row) else []
        states = every_row[every_row["instance"].isin(rows)]
    title = (
        "Where did the picked rows go?" if picked or not rows else f"Where did row {rows[0]} go?"
    )
    if states is None or states.empty:
        heading(title, note)
        some = " of the rows picked" if picked and not run.states(solve).empty else ""
        empty(f"This run recorded no states{some}.")
        return
    heading(title, note, states, "states", "live_paths")
    columns = [c for c in states.columns if c.startswith("y")]
    names = names if len(names) == len(columns) else columns
    by_row = {row: every(states[states["instance"] == row], PATH_POINTS) for row in rows}
    if pair and max(pair) < len(columns):
        plot = charts.phase(
            by_row, (columns[pair[0]], columns[pair[1]]), (names[pair[0]], names[pair[1]])
        )
        text = f"Phase portrait, {names[pair[1]]} over {names[pair[0]]}"
    else:
        plot, text = charts.trajectories(by_row, columns[0], names[0]), f"{names[0]} over time"
    listed = ", ".join(map(str, rows))
    plot.show(key="live_paths", height=CHART_HEIGHT, alt=f"{text}, rows {listed}.")


def every(frame: "pd.DataFrame", most: int) -> "pd.DataFrame":
    """Return at most `most` lines, evenly spaced, the last one among them."""
    stride = -(-len(frame) // most)
    return frame.iloc[::-1].iloc[:: max(1, stride)].iloc[::-1]


def limiter(run: "Run", solve: int, x_max: int, *, live: bool) -> None:
    """Draw what set the step sizes; stability is told from accuracy when the run has ended."""
    from inspector import queries, stiffness

    title = "What limited the steps?"
    note = (
        "accuracy: the error estimate. end of span: the step was cut to land on the end. first "
        "step: the starting step. non-finite: the field gave NaN or infinity. stability: the step "
        "stays where an explicit method is about to become unstable; known when the run has ended."
    )
    parts = (
        queries.limiter_shares(run, solve) if live else ask(stiffness.limited_shares, run, solve)
    )
    labels = [name for name in parts.columns if name != "attempt"]
    if not labels:
        heading(title, note)
        empty("This run did not record what limited the steps.")
        return
    heading(title, note, parts, "limiters", "live_limiter")
    charts.limiters(parts, labels, x_max).show(
        key="live_limiter",
        height=CHART_HEIGHT,
        alt="Share of the running rows by what set their step size, by attempt.",
    )


def empty(text: str) -> None:
    """Draw the place of a chart that has nothing to show, and why."""
    with st.container(
        border=True, height=CHART_HEIGHT, vertical_alignment="center", horizontal_alignment="center"
    ):
        st.caption(text)
