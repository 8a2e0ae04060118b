"""Parts of the Run page about one solve: settings, tiles, raster, failed rows, trajectories."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, run_facts, session, theme
from app.cached import ask
from app.components.chart import data_below, draw, heading, pair, plain
from app.components.raster import Pick, raster
from app.components.run_header import described
from app.controls.numbers import short
from app.controls.setting import title
from app.figures.phase_portrait import phase_portrait_figure
from app.figures.trajectories import is_component, trajectories_figure
from app.frames import only

if TYPE_CHECKING:
    from inspector.run import Run

VALUES = {
    "dt": "step size",
    "error_ratio": "error ratio",
    "accepted": "accepted or refused",
}
ORDERS = {"index": "row number", "attempts": "attempts", "finish": "end"}
MOST_ROWS, MOST_COLUMNS = 512, 1_000
MOST_STATE_ROWS = 60  # rows whose trajectories are read at once
DIVERGING = ("factor", "share_p", "share_i", "share_d", "clamped")


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
    st.button(
        "Run again with other gains",
        icon=":material/replay:",
        key="again",
        on_click=send_to_live,
        args=(run.id, run.spec),
        help="Opens Live with these settings; this run stays beside the new one.",
    )
    if session.get("go_live"):
        session.drop("go_live")
        st.switch_page("views/live.py")


def send_to_live(run_id: str, spec: Mapping[str, Any]) -> None:
    """Set Live's widgets to the settings of a run, and this run as the one to compare with."""
    from app.controls.spec import put_spec

    problem = run_facts.member(described(), "problems", spec.get("problem"))
    if problem:
        session.put("problem", problem["name"])
        put_spec(problem, spec)
    session.put("cmp", run_id)
    session.put("go_live", True)


def tiles(values: Mapping[str, Any], instances: pd.DataFrame) -> None:
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
        ("Failed rows", f"{explain.count(values.get('failed'))} of {len(instances)}", None),
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


def failures(run: "Run", solve: int) -> pd.DataFrame:
    """Return the rows that failed, with `status_name, t_reached, component, n_steps, message`."""
    from inspector import tables

    known = tables.per_instance(run, solve)
    at = np.flatnonzero(known["status"] > 0)
    return pd.DataFrame(
        {
            "instance": at,
            "status_name": tables.status_names(known["status"][at].astype("i4")),
            **{name: known[name][at] for name in ("t_reached", "component", "n_steps", "message")},
        }
    )


def failed_rows(run: "Run", solve: int) -> None:
    """List the rows that did not reach their end: which, when, why."""
    rows = ask(failures, run, solve)
    if rows.empty:
        return
    with st.container(border=True, key="failed_rows"):
        heading(
            "Which rows failed, when, and why?",
            f"{len(rows)} row{'' if len(rows) == 1 else 's'}",
        )
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
                "message": st.column_config.TextColumn("what to do", width="large"),
            },
            alt="Rows that failed, with time, cause and message.",
        )
        picked = list(event["selection"]["rows"])
        row = int(table["instance"].iloc[picked[0] if picked else 0])
        why_link(run, solve, row)


def why_link(run: "Run", solve: int, row: int) -> None:
    """Link to the page that explains one row."""
    st.page_link(
        "views/instances.py",
        label=f"Why did row {row} do this?",
        icon=":material/troubleshoot:",
        query_params={"run": run.id, "solve": str(solve), "inst": str(row)},
    )


def raster_of(run: "Run", solve: int) -> Pick | None:
    """Draw every row against its attempts; a pick names the row and links to its page."""
    from inspector import queries

    names = [name for name in run.columns if name not in ("solve", "attempt", "instance", "t")]
    options = [*VALUES, *(name for name in names if name not in VALUES)]
    with st.container(border=True, key="raster_card"):
        head, value_at, order_at = st.columns([3, 1.2, 1.2], vertical_alignment="bottom")
        with head:
            heading("What did every row do?", "rows by attempts")
        if session.default("metric", "dt") not in options:
            session.put("metric", "dt")
        value = value_at.selectbox(
            "Colour",
            options,
            format_func=value_word,
            **session.keep("metric", "url"),
        )
        if session.default("order", "index") not in ORDERS:
            session.put("order", "index")
        order = order_at.selectbox(
            "Rows ordered by",
            list(ORDERS),
            format_func=lambda name: str(ORDERS.get(name)),
            **session.keep("order", "url"),
        )
        found = ask(
            queries.raster, run, solve, value, rows=MOST_ROWS, cols=MOST_COLUMNS, order=order
        )
        about = run.columns.get(value, {})
        refused = None
        if value != "accepted":
            taken = ask(
                queries.raster,
                run,
                solve,
                "accepted",
                rows=MOST_ROWS,
                cols=MOST_COLUMNS,
                order=order,
            )
            if taken.values.shape == found.values.shape and not taken.pooled:
                refused = taken.values == 0
        pick = raster(
            found.values,
            key="run_raster",
            rows=found.instances,
            edges=found.attempt_edges,
            refused=refused,
            label=value_word(value),
            unit=found.unit,
            log=found.log,
            scale="puor" if value in DIVERGING or value == "error_ratio" else "cividis",
            categories=categories(value, about.get("labels") or {}),
            picked=[session.get("inst")] if isinstance(session.get("inst"), int) else (),
            height=raster_height(len(found.instances)),
            alt=f"{value_word(value)} of {len(found.instances)} rows over "
            f"{int(found.attempt_edges[-1]) if len(found.attempt_edges) else 0} attempts.",
        )
        if pick is not None:
            session.put("picked_row", (run.id, solve, pick.instance))
        if found.pooled:
            st.caption(
                "Several rows or attempts share a cell; it shows the most extreme of them. "
                "Instances shows every attempt of a row."
            )
        held = session.get("picked_row")
        if held and held[:2] == (run.id, solve):
            why_link(run, solve, held[2])
        data_below(
            lambda: pd.DataFrame(
                found.values,
                index=pd.Index(found.instances, name="row"),
                columns=[f"attempt {int(edge)}" for edge in found.attempt_edges[:-1]],
            ).reset_index(),
            key="raster",
            title="What did every row do?",
        )
    return pick


def value_word(name: str) -> str:
    """Return what a column of the steps is called."""
    return VALUES.get(name) or name.replace("_", " ")


def raster_height(rows: int) -> int:
    """Return a height [px] that gives few rows thick lines and many rows room."""
    return int(np.clip(110 + 6 * rows, 180, 460))


def categories(value: str, labels: Mapping[int, str]) -> list[dict[str, Any]] | None:
    """Return word and colours of each code of a column of codes; None for plain numbers."""
    if value == "accepted":
        return [
            {"label": "refused", "color": {m: t.refused for m, t in theme.THEMES.items()}},
            {"label": "accepted", "color": {m: t.accepted for m, t in theme.THEMES.items()}},
        ]
    if value != "limiter" or not labels:
        return None
    return [
        {
            "label": explain.LIMITS.get(labels.get(code, ""), labels.get(code, f"code {code}")),
            "color": {
                m: t.limiters.get(labels.get(code, ""), t.ghost) for m, t in theme.THEMES.items()
            },
        }
        for code in range(max(labels) + 1)
    ]


def trajectories(run: "Run", solve: int, pick: Pick | None, instances: pd.DataFrame) -> None:
    """Draw sampled states, if there are any: one component over time, and a phase portrait."""
    ranked = [int(row) for row in instances["instance"]]
    spaced = np.unique(np.linspace(0, len(ranked) - 1, MOST_STATE_ROWS).astype(int))
    rows = tuple(sorted({ranked[i] for i in spaced} | ({pick.instance} if pick else set())))
    states = ask(type(run).states, run, solve, rows)
    columns = [column for column in states.columns if is_component(column)]
    if states.empty or not columns:
        return
    names = run_facts.component_names(
        described(), (run.spec or {}).get("problem") or summary_problem(run), len(columns)
    )
    with_states = set(states["instance"].astype(int))
    held = session.get("picked_row")
    chosen = [held[2]] if held and held[:2] == (run.id, solve) else []
    drawn = [row for row in ranked if row in with_states]
    chosen += [drawn[0], drawn[len(drawn) // 2], drawn[-1]]
    chosen = [row for row in dict.fromkeys(chosen) if row in with_states][:6]
    index = 0
    if len(columns) > 1:
        if session.default("run_component", columns[0]) not in columns:
            session.put("run_component", columns[0])
        picked: Any = st.selectbox(
            "Component",
            columns,
            format_func=lambda column: names[columns.index(column)],
            width=220,
            **session.keep("run_component"),
        )
        index = columns.index(picked)
    left, right = pair("states")
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
    pair = run_facts.member(described(), "problems", (run.spec or {}).get("problem")).get("phase")
    if isinstance(pair, list) and len(pair) == 2 and max(pair) < dim:
        return int(pair[0]), int(pair[1])
    return 0, 1


def summary_problem(run: "Run") -> Any:
    """Return the name of the problem a run says it solved, if it does."""
    return ask(type(run).summary, run).get("problem")
