"""Parts of the Compare page: which runs, what differs between them, and where."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, run_facts, run_list, session, theme
from app.cached import ask
from app.components import run_compare
from app.components.chart import draw, heading, pair, plain
from app.components.run_header import described
from app.controls.numbers import short
from app.controls.spec import choose
from app.equations import about as equations
from app.explore import partners
from app.figures.comparison import comparison_scatter_figure
from app.figures.runs_compared import (
    path_difference_figure,
    paths_figure,
    trainings_figure,
    work_difference_figure,
    work_over_time_figure,
)
from app.figures.trajectories import is_component
from app.frames import floats, where
from inspector import comparing

if TYPE_CHECKING:
    from inspector.run import Run

MOST = 6
BINS = 120
PER_CELL = 4  # attempts of a row in a cell of the raster, on average
GROUPS = {"method": "method", "controller": "controller", "status": "how they ended"}
FOUND_IN = ("run", "problem", "method", "controller", "note")
HELP_FEWER = run_compare.FEWER_IS_BETTER


def pick(baseline: str) -> list[str]:
    """Draw the pickers of the runs compared with the baseline; return their ids."""
    runs = run_list.listed()
    left, right = st.columns([1, 2], vertical_alignment="bottom")
    with left:
        text = st.text_input(
            "Find runs",
            placeholder="name, problem, method, note, tag",
            icon=":material/search:",
            **session.keep("cmp_find", "url"),
        )
    known = [str(run) for run in runs["run"] if run != baseline]
    fitting = [run for run in filtered(runs, text or "") if run != baseline]
    start = session.get("cmp") or session.param("cmp")
    if session.get("with") is None and session.param("with") is None and start in known:
        session.put("with", [start])
    elif session.get("with") is None and session.param("with") is None:
        session.put("with", partners.of(baseline, runs)[:1])
    held = session.get("with") or []
    kept = [run for run in held if run in known]
    if held != kept:
        session.put("with", kept)
    options = list(dict.fromkeys([*kept, *fitting]))
    with right:
        st.multiselect(
            f"Compared with {baseline}",
            options,
            max_selections=MOST,
            placeholder="up to six runs",
            help="The run shown is the baseline; pick another one in the sidebar.",
            **session.keep("with", "url"),
        )
    return [run for run in session.get("with") or [] if run in known][:MOST]


def groups(baseline: str) -> None:
    """Draw all runs of the baseline's problem that fit the query, grouped by a setting."""
    runs = run_list.listed()
    ours = where(runs, (runs["run"] == baseline).to_numpy())
    if ours.empty:
        return
    fitting = set(filtered(runs, str(session.get("cmp_find") or "")))
    same = (runs["problem"] == ours["problem"].iloc[0]).to_numpy()
    runs = where(runs, same & runs["run"].isin(list(fitting)).to_numpy())
    with st.expander(f"All {len(runs)} runs of this problem, grouped", icon=":material/stacks:"):
        if runs.empty:
            st.caption("No run fits the query.")
            return
        by = choose("Group by", "cmp_group", GROUPS, "method", width=220)
        table = (
            runs.groupby(by, dropna=False)
            .agg(
                runs=("run", "count"),
                fewest=("rows", "min"),
                median=("rows", "median"),
                most=("rows", "max"),
                seconds=("seconds", "median"),
                newest=("run", "first"),
            )
            .reset_index()
            .sort_values("median", kind="stable")
        )
        count = st.column_config.NumberColumn(format="localized", help="attempts of all rows")
        config: Any = dict.fromkeys(("fewest", "median", "most"), count)
        config["seconds"] = st.column_config.NumberColumn(format="%.2f", help="median")
        st.dataframe(table, hide_index=True, key="cmp_groups", column_config=config,
                     alt="Runs of this problem, grouped.")  # fmt: skip


def filtered(runs: pd.DataFrame, text: str) -> list[str]:
    """Return the runs that fit a free query; `name:word` asks one column."""
    found = []
    words = text.lower().split()
    for line in runs.to_dict("records"):
        every = " ".join(str(line[name]) for name in FOUND_IN) + " " + tags_of(line)
        if all(fits(word, line, every.lower()) for word in words):
            found.append(str(line["run"]))
    return found


def fits(word: str, line: Mapping[Any, Any], every: str) -> bool:
    """Whether a line of the list has a word, in the column that it names or in any."""
    column, colon, rest = word.partition(":")
    if colon and column in line:
        return rest in str(line[column]).lower()
    return word in every


def tags_of(line: Mapping[Any, Any]) -> str:
    """Return the tags of a run, as far as the list knows them."""
    tags = line.get("tags")
    return " ".join(map(str, tags)) if isinstance(tags, list | tuple) else ""


def nothing(baseline: str) -> None:
    """The designed state of a comparison with nothing."""
    st.info(
        f"Pick runs above to compare them with `{baseline}`: settings that differ, attempts row by "
        "row, where in time the work went, and the trajectories. On page Runs, selecting several "
        "does the same.",
        icon=":material/compare_arrows:",
    )
    for one, other in partners.offers(baseline):
        named = "the recorded examples" if session.is_example(one) else f"{one} with {other}"
        st.page_link(
            "views/compare.py",
            label=f"Compare {plain(named)}",
            icon=":material/compare_arrows:",
            query_params=[("run", one), ("with", other)],
        )


def sides_of(runs: Mapping[str, "Run"], solve: int) -> dict[str, dict[str, Any]]:
    """Return the flat settings of each run."""
    return {name: run_compare.side(run, solve) for name, run in runs.items()}


def settings(runs: Mapping[str, "Run"], solve: int) -> None:
    """List the settings that are not the same everywhere."""
    sides = sides_of(runs, solve)
    every = list(sides.values())
    names = list(dict.fromkeys(n for side in every for n in side))
    lines = []
    for name in names:
        values = [side.get(name) for side in every]
        known = run_compare.comparable(name, every)
        if known and any(value != values[0] for value in values):
            shown = [short(side[name]) if name in side else explain.NOTHING for side in every]
            lines.append((name, *shown))
    if len({str(side.get("problem")) for side in every}) > 1:
        problems = {equations.title_of(side.get("problem")) for side in every}
        st.warning(
            "These runs solve different problems: " + plain(", ".join(sorted(problems))) + ".",
            icon=":material/compare_arrows:",
        )
    table = pd.DataFrame(lines, columns=["setting", *sides])
    note = "" if lines else "none: same settings, same seed"
    heading("Which settings differ?", note, data=table if lines else None, key="cmp_settings")
    if lines:
        st.dataframe(table, key="compare_settings", hide_index=True,
                     alt="Settings that differ, one column a run.")  # fmt: skip


def numbers(runs: Mapping[str, "Run"], solve: int) -> pd.DataFrame:
    """Draw what each run took, and how far that is from the baseline."""
    table = comparing.numbers_of(runs, solve)
    heading("What did each of them take?", data=table, key="cmp_numbers")
    shown = pd.DataFrame({"run": table["run"]})
    config: dict[str, Any] = {}
    for name in comparing.NUMBERS:
        shown[name] = table[name]
        shown[f"{name} %"] = table[f"{name} %"]
        style = "%.3f" if name == "seconds" else "%d"
        config[name] = st.column_config.NumberColumn(format=style)
        config[f"{name} %"] = st.column_config.NumberColumn("\u0394 %", format="%+.1f")
    st.dataframe(
        shown, key="compare_numbers", hide_index=True, column_config=config, placeholder="",
        alt="Attempts, refusals, evaluations and seconds of each run, and the change in percent.",
    )  # fmt: skip
    return table


def tiles(table: pd.DataFrame, focus: str) -> None:
    """Draw the numbers of one run with their change from the baseline."""
    line = table.loc[table["run"] == focus].iloc[0]
    with st.container(horizontal=True):
        for name in ("attempts", "refused", "evaluations", "attempts of the slowest", "seconds"):
            value, change = float(line[name]), float(line[f"{name} %"])
            moved = bool(np.isfinite(change) and change)
            st.metric(
                name.capitalize(),
                explain.count(value) if name != "seconds" else f"{value:.3g}",
                f"{change:+.1f} %" if moved else "the same" if np.isfinite(change) else None,
                delta_color="inverse" if moved else "off",
                delta_arrow="auto" if moved else "off",
                border=True,
            )


def pictures(runs: dict[str, "Run"], focus: str, solve: int) -> None:
    """Draw where two runs differ: row by row, and over time."""
    colours = theme.current()
    base = next(iter(runs))
    a, b = runs[base], runs[focus]
    left, right = pair("compare_rows")
    pairs = run_compare.paired(a, b, solve)
    with left:
        draw(
            comparison_scatter_figure(pairs, colours, a=base, b=focus),
            key="compare_scatter",
            question="For which rows?",
            unit="attempts of each row",
            alt=f"Attempts of {len(pairs)} rows in {base} against those in {focus}.",
            data=pairs,
            help=HELP_FEWER + " A click picks the row whose path is drawn below.",
            on_pick=take_row,
        )
    edges: Any = ask(comparing.time_edges, a, solve, BINS)
    each = float(floats(pairs, "a").mean()) if len(pairs) else 0.0
    coarse: Any = ask(comparing.time_edges, a, solve, int(min(max(each / PER_CELL, 12), BINS)))
    instances, ratio = comparing.work_difference(a, b, solve, coarse)
    with right:
        draw(
            work_difference_figure(coarse, instances, ratio, colours, a=base, b=focus),
            key="compare_raster",
            question="Where in time?",
            unit=f"attempts, {focus} over {base}",
            alt=f"Rows over time, coloured by attempts of {focus} over those of {base}.",
            data=lambda: raster_table(coarse, instances, ratio),
        )
    work, rows = {}, {}
    for name, run in runs.items():
        own, counts = comparing.work_over_time(run, solve, edges)
        work[name], rows[name] = counts.sum(axis=0), len(own)
    draw(
        work_over_time_figure(edges, work, colours, rows=rows),
        key="compare_work",
        question="When did each of them work?",
        unit="attempts of a row per unit of time",
        alt=f"Attempts of an average row per unit of time in {', '.join(runs)}.",
        data=lambda: pd.DataFrame({"t": edges[:-1], **work}),
    )


def take_row(point: dict[str, Any]) -> None:
    """Pick the row of a clicked point."""
    row = point.get("customdata")
    row = row[0] if isinstance(row, list) and row else row
    if isinstance(row, int | float):
        session.put("inst", int(row))


def raster_table(edges: Any, instances: Any, ratio: Any) -> pd.DataFrame:
    """Return the raster as a table, one line a cell."""
    bins = len(edges) - 1
    return pd.DataFrame(
        {
            "instance": np.repeat(instances, bins),
            "t": np.tile(edges[:-1], len(instances)),
            "log2_ratio": ratio.ravel(),
        }
    )


def paths(runs: Mapping[str, "Run"], solve: int) -> None:
    """Draw the trajectories of one row in all runs, and how far they are apart."""
    base = next(iter(runs))
    recorded = {name: ask(type(run).states, run, solve) for name, run in runs.items()}
    there = sorted({int(r) for table in recorded.values() if len(table)
                    for r in table["instance"].unique()})  # fmt: skip
    if not there:
        heading("Do they come to the same?")
        st.caption("None of these runs recorded states. `Inspector(..., states=n)` keeps n rows.")
        return
    dim = max(sum(is_component(str(c)) for c in table) for table in recorded.values())
    about = run_compare.side(runs[base], solve)
    names: Any = run_facts.component_names(described(), about.get("problem"), dim)
    titles = {f"y{i}": str(name) for i, name in enumerate(names)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        session.check("inst", lambda held: held in there, there[0])
        row = st.selectbox("Row", there, width=120, **session.keep("inst", "url"))
        column = choose("Component", "cmp_component", titles, "y0", width=220)
    curves: dict[str, tuple[Any, Any]] = {}
    for name, table in recorded.items():
        if len(table) and column in table:
            own = where(table, (table["instance"] == row).to_numpy())
            if len(own):
                curves[name] = floats(own, "t"), floats(own, column)
    apart = {}
    if base in curves:
        t, y = curves[base]
        for name in list(curves)[1:]:
            apart[name] = t, comparing.state_at(*curves[name], t) - y
    left, right = pair("compare_paths")
    with left:
        draw(
            paths_figure(curves, theme.current(), name=titles[column]),
            key="compare_paths",
            question=f"Where did row {row} go?",
            unit=titles[column],
            alt=f"{titles[column]} of row {row} over time in {', '.join(curves)}.",
            data=lambda: curve_table(curves),
        )
    with right:
        draw(
            path_difference_figure(apart, theme.current(), name=titles[column], baseline=base),
            key="compare_apart",
            question="How far are they apart?",
            unit=f"from {base}",
            alt=f"Difference of {titles[column]} of row {row} from that of {base}.",
            data=lambda: curve_table(apart),
            help="States are recorded at accepted steps; in between they are read off a cubic "
            "through the four nearest, so small differences tell of that too.",
        )


def curve_table(curves: Mapping[str, tuple[Any, Any]]) -> pd.DataFrame:
    """Return curves as one table."""
    parts = [pd.DataFrame({"run": name, "t": t, "value": y}) for name, (t, y) in curves.items()]
    return pd.concat(parts) if parts else pd.DataFrame(columns=["run", "t", "value"])


def trainings(runs: Mapping[str, "Run"]) -> bool:
    """Draw loss, attempts and seconds of trainings; returns whether there are at least two."""
    tables = {}
    for name, run in runs.items():
        table = run.iterations()
        if len(table):
            tables[name] = where(table, (table["current"]).to_numpy(dtype=bool))
    if len(tables) < 2:
        return False
    tables = {n: tables[n] for n in runs if n in tables}
    offered = (
        ("loss", "loss", True),
        ("forward_steps_median", "attempts of the median row", False),
        ("seconds", "seconds of an iteration", False),
        ("grad_norm", "norm of the gradient", True),
    )
    columns = [o for o in offered
               if any(o[0] in t and t[o[0]].notna().any() for t in tables.values())]  # fmt: skip
    for start in range(0, len(columns), 2):
        for place, (column, title, log) in zip(
            pair(f"compare_trainings_{start}"), columns[start : start + 2], strict=False
        ):
            with place:
                draw(
                    trainings_figure(tables, theme.current(), column=column, title=title, log=log),
                    key=f"compare_{column}",
                    question=f"How did the {title} go?",
                    unit="over iterations",
                    alt=f"{title} over iterations in {', '.join(tables)}.",
                    data=lambda column=column: iteration_table(tables, column),
                )
    return True


def iteration_table(tables: Mapping[str, pd.DataFrame], column: str) -> pd.DataFrame:
    """Return one number of all trainings as one table."""
    parts = [
        table[["iteration", column]].assign(run=name)
        for name, table in tables.items()
        if column in table
    ]
    return pd.concat(parts) if parts else pd.DataFrame(columns=["iteration", column, "run"])
