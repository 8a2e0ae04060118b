"""Parts of the Run page about one solve: settings, tiles, raster, failed rows, trajectories."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, run_facts, session, theme
from app.cached import ask
from app.components.chart import draw, heading, pair, plain
from app.components.run_header import described
from app.controls.numbers import short
from app.controls.setting import title
from app.figures.phase_portrait import phase_portrait_figure
from app.figures.trajectories import is_component, trajectories_figure
from app.frames import ints, only
from app.live import picture

if TYPE_CHECKING:
    from inspector.run import Run

MOST_STATE_ROWS = 60  # rows whose trajectories are read at once


def settings(run: "Run", solve: int) -> None:
    """Write the settings of a solve as badges, those changed from their default first."""
    start = run.settings(solve)
    changed, same = run_facts.changed_first(run_facts.settings_of(start, run.spec), described())

    def badges(values: Mapping[str, Any], colour: str) -> str:
        return " ".join(
            f":{colour}-badge[{plain(label(name))} = {plain(short(value))}]"
            for name, value in values.items()
        )

    def label(name: str) -> str:
        return name if "." in name or name.islower() else title(name)

    told = f"Changed from the default: {badges(changed, 'blue')} " if changed else ""
    st.markdown(f"{told}At their default: {badges(same, 'gray')}" if same else told)


def again(run: "Run") -> None:
    """Offer to run the same once more in Live, with other gains and this run beside it."""
    if not run.spec or session.read_only():
        return
    st.page_link(
        "views/live.py",
        label="Run again with other gains",
        icon=":material/replay:",
        query_params={"again": run.id, "cmp": run.id},
        help="Opens Live with these settings; this run stays beside the new one.",
    )


def tiles(values: Mapping[str, Any], batch: int) -> None:
    """Draw the numbers that say most about a solve."""
    slowest, share = values.get("slowest", -1), values.get("accept_share")
    refused = None if share is None else 1 - share
    cells = [
        (
            "Attempts",
            explain.count(values.get("attempts")),
            "of the batch: until its last row ended",
        ),
        ("Refused", explain.percent(refused), "of all attempts of all rows"),
        ("Failed rows", f"{explain.count(values.get('failed'))} of {batch}", None),
        (
            "Wasted",
            explain.percent(values.get("wasted_share")),
            "share of evaluated rows that had ended and were carried along with the batch",
        ),
        ("Evaluations/s", explain.count(values.get("evals_per_second")), "rows of f evaluated"),
        ("Slowest row", explain.NOTHING if slowest < 0 else f"{slowest}", "by attempts"),
    ]
    with st.container(horizontal=True):
        for name, value, note in cells:
            st.metric(name, value, help=note, border=True)


def failed_rows(run: "Run", solve: int) -> None:
    """List the rows that did not reach their end: which, when, why."""
    from inspector import queries

    rows = ask(queries.failed_rows, run, solve)
    if rows.empty:
        return
    with st.container(key="failed_rows"):
        count = f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
        heading("Which rows failed, when, and why?", count, data=rows, key="failed")
        table = rows.assign(
            status_name=[explain.STATUSES.get(name, name) for name in rows["status_name"]],
            component=rows["component"].where(rows["component"] >= 0),
        )
        event: Any = st.dataframe(
            table.head(1_000),
            key="failed_table",
            hide_index=True,
            height=min(38 + 35 * len(table), 280),
            on_select="rerun",
            selection_mode="single-row",
            column_config={
                "instance": st.column_config.NumberColumn("row", width="small"),
                "status_name": st.column_config.TextColumn("why"),
                "t_reached": st.column_config.NumberColumn("ended at t", format="%.6g"),
                "component": st.column_config.NumberColumn("component", width="small"),
                "n_steps": st.column_config.NumberColumn("attempts", format="localized"),
                "message": st.column_config.TextColumn("what the solver said", width="large"),
            },
            alt="Rows that failed, with time, cause and message.",
        )
        at = (
            session.line_picked("failed", table["instance"].tolist(), event["selection"]["rows"])
            or 0
        )
        st.caption(plain(str(table["message"].tolist()[at])))
        row = int(ints(table, "instance")[at])
        why_link(run, solve, row, f"Look into row {row}")


def why_link(run: "Run", solve: int, row: int, label: str) -> None:
    """Link to the page that explains one row."""
    st.page_link(
        "views/instances.py",
        label=label,
        icon=":material/troubleshoot:",
        query_params={"solve": str(solve), "inst": str(row)},
    )


def raster_of(run: "Run", solve: int, instances: pd.DataFrame) -> int:
    """Draw every row against its attempts; return the row picked, else the slowest.

    A row is picked on the raster, by mouse or keyboard; the link of the page then names it.
    """
    rows = [int(row) for row in ints(instances, "instance")]
    held = session.get("inst", session.param("inst"))
    row = int(held) if str(held).isdigit() and int(str(held)) in rows else None
    session.put_param("inst", None if row is None else str(row))
    with st.container(key="raster_card", gap="xsmall"):
        value, order = picture.pickers(run, solves=False)
        heading(
            picture.question(value),
            "rows by attempts",
            data=lambda: picture.table(run, solve, value, order),
            key="raster",
            picture="raster_card",
        )
        picture.show(
            run, solve, value, order, [] if row is None else [row], on_pick=take_picked_cell
        )
        shown = rows[0] if row is None else row
        attempts = ints(instances, "n_steps")[rows.index(shown)]
        why_link(run, solve, shown, f"Why did row {shown} take {explain.count(attempts)} attempts?")
    return shown


def take_picked_cell() -> None:
    """Take up a pick on the raster."""
    event = (session.get("live_raster") or {}).get("pick")
    if event:
        session.put("inst", int(event["instance"]))


def trajectories(run: "Run", solve: int, row: int, instances: pd.DataFrame) -> None:
    """Draw sampled states, if there are any: one component over time, and a phase portrait."""
    ranked = [int(other) for other in ints(instances, "instance")]
    spaced = np.unique(np.linspace(0, len(ranked) - 1, MOST_STATE_ROWS).astype(int))
    rows = tuple(sorted({ranked[i] for i in spaced} | {row}))
    states = ask(type(run).states, run, solve, rows)
    columns = [column for column in states.columns if is_component(column)]
    if states.empty or not columns:
        return
    names = run_facts.component_names(
        described(), (run.spec or {}).get("problem") or summary_problem(run), len(columns)
    )
    with_states = set(states["instance"].astype(int))
    drawn = [other for other in ranked if other in with_states]
    chosen = [row, drawn[0], drawn[len(drawn) // 2], drawn[-1]]
    chosen = [other for other in dict.fromkeys(chosen) if other in with_states][:6]
    index = 0
    if len(columns) > 1:
        session.check("run_component", lambda held: held in columns, columns[0])
        picked: Any = st.selectbox(
            "Component",
            columns,
            format_func=lambda column: names[columns.index(column)],
            width=220,
            **session.keep("run_component"),
        )
        index = columns.index(picked)
    left, right = pair("states") if len(columns) > 1 else (st.container(), st.container())
    colours = theme.current()
    with left:
        draw(
            trajectories_figure(
                states, colours, component=columns[index], rows=chosen, name=names[index]
            ),
            key="trajectories",
            question="Where did the solution go?",
            unit=f"{names[index]} over time",
            alt=f"{names[index]} over time for {len(with_states)} rows, rows {chosen} by name.",
            data=only(states, "instance", "t", columns[index]),
            help="Named rows: the one picked, the slowest, the one in the middle, the fastest.",
        )
    if len(columns) > 1:
        first, second = phase_pair(run, len(columns))
        with right:
            draw(
                phase_portrait_figure(
                    states,
                    colours,
                    components=(columns[first], columns[second]),
                    names=(names[first], names[second]),
                    rows=chosen,
                ),
                key="phase",
                question="Which path did it take?",
                unit=f"{names[second]} over {names[first]}",
                alt=f"Phase portrait of {len(with_states)} rows.",
                data=only(states, "instance", "t", columns[first], columns[second]),
            )


def phase_pair(run: "Run", dim: int) -> tuple[int, int]:
    """Return which two components make the phase portrait: the problem's choice, else 0 and 1."""
    two = run_facts.member(described(), "problems", (run.spec or {}).get("problem")).get("phase")
    if isinstance(two, list) and len(two) == 2 and max(two) < dim:
        return int(two[0]), int(two[1])
    return 0, 1


def summary_problem(run: "Run") -> Any:
    """Return the name of the problem a run says it solved, if it does."""
    return ask(type(run).summary, run).get("problem")
