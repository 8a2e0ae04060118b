"""Two runs side by side: what changed in sum, row by row, and attempt by attempt."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, run_facts, session
from app.cached import ask
from app.components.chart import code, draw, heading, pair, plain
from app.components.run_header import described
from app.controls.numbers import short
from app.figures.comparison import comparison_bars_figure, comparison_scatter_figure
from app.figures.dt_quantiles import dt_quantiles_figure
from app.frames import floats, where
from app.theme import current

if TYPE_CHECKING:
    from inspector.run import Run

FEWER_IS_BETTER = "Fewer attempts, refusals and evaluations for the same tolerance are better."
QUANTITIES = (
    *("attempts", "refused", "evaluations", "attempts of the slowest", "attempts of the batch"),
    *("failed instances", "seconds"),
)

GROUPS = ("parameters.", "spread.")
TILES = QUANTITIES[:4]


def compare(runs: pd.DataFrame) -> None:
    """Draw the picker of the second run and the difference to the run shown."""
    first = session.current_run()
    others = [str(run) for run in runs["run"] if run != first]
    if not others:
        return
    if session.default("cmp", "") not in ("", *others):
        session.put("cmp", "")
    second = st.selectbox(
        f"Compare {code(str(first))} with",
        ["", *others],
        format_func=lambda run: run or "no run",
        width=420,
        **session.keep("cmp", "url"),
    )
    if second:
        st.page_link(
            "views/compare.py", label="Compare them in full, with others beside",
            icon=":material/compare_arrows:", query_params={"run": str(first), "with": str(second)},
        )  # fmt: skip
    a, b = session.open_run(first), session.open_run(second)
    if a is None or b is None:
        return
    if not a.n_solves or not b.n_solves:
        st.info("One of these runs holds no solve yet.", icon=":material/hourglass_empty:")
        return
    solve = 0
    most = min(a.n_solves, b.n_solves)
    if most > 1:
        solve = int(
            st.number_input(
                f"Solve (0 to {most - 1})", 0, most - 1, 0, width=220, **session.keep("cmp_solve")
            )
        )
    difference(a, b, solve)


def difference(a: "Run", b: "Run", solve: int) -> None:
    """Draw numbers, settings that differ, and pictures of two runs."""
    from inspector import queries

    table = queries.compare(a, b, solve)
    numbers(table, a, b)
    settings(a, b, solve)
    colours = current()
    left, right = pair("compared")
    with left:
        wanted = where(table, [name in QUANTITIES for name in table["quantity"]])
        draw(
            comparison_bars_figure(wanted, colours, a=a.id, b=b.id),
            key="cmp_bars",
            question="What changed?",
            unit=f"% of {a.id}",
            alt=f"Change from {a.id} to {b.id} in percent.",
            data=table,
            help=FEWER_IS_BETTER,
        )
    pairs = paired(a, b, solve)
    with right:
        draw(
            comparison_scatter_figure(pairs, colours, a=a.id, b=b.id),
            key="cmp_rows",
            question="For which rows?",
            unit="attempts of each row",
            alt=f"Attempts of {len(pairs)} rows in both runs.",
            data=pairs,
            help="Rows below the diagonal need fewer attempts in the second run.",
        )
    ribbon = ask(queries.dt_quantiles, b, solve)
    draw(
        dt_quantiles_figure(
            ribbon, colours, ghost=ask(queries.dt_quantiles, a, solve), ghost_name=a.id
        ),
        key="cmp_dt",
        question="Where did the steps differ?",
        unit="|dt| of the rows still solving, time",
        alt=f"Step sizes of {b.id}, those of {a.id} dashed.",
        data=ribbon,
    )


def numbers(table: pd.DataFrame, a: "Run", b: "Run") -> None:
    """Write the numbers that matter most as tiles, the change below."""
    before, after, percent = (floats(table, name) for name in ("a", "b", "percent"))
    with st.container(horizontal=True):
        for at, name in enumerate(table["quantity"]):
            if name not in TILES:
                continue
            change = float(percent[at])
            said = f"{change:+.1f} %" if change else "the same"
            st.metric(
                str(name).capitalize(),
                f"{explain.count(before[at])} \u2192 {explain.count(after[at])}",
                delta=said if np.isfinite(change) else None,
                delta_color="inverse" if change else "off",
                delta_arrow="auto" if change else "off",
                border=True,
                help=f"{a.id}, then {b.id}.",
            )


def settings(a: "Run", b: "Run", solve: int) -> None:
    """List the settings in which two runs differ, and warn where they solve different problems."""
    sides = [side(run, solve) for run in (a, b)]
    names = [name for name in dict.fromkeys([*sides[0], *sides[1]]) if comparable(name, sides)]
    lines = [
        (name, *(short(side[name]) if name in side else explain.NOTHING for side in sides))
        for name in names
        if sides[0].get(name) != sides[1].get(name)
    ]
    problems = [side.get("problem") for side in sides]
    if all(problems) and problems[0] != problems[1]:
        titles = [run_facts.title_of(described(), "", problem) for problem in problems]
        st.warning(
            f"These runs solve different problems: {plain(titles[0])} and {plain(titles[1])}.",
            icon=":material/compare_arrows:",
        )
    with st.container(key="cmp_settings", gap="xsmall"):
        shown = pd.DataFrame(lines, columns=["setting", f"{a.id} ", b.id])  # ids may be equal
        note = "" if lines else "none: same settings, same seed"
        heading("Which settings differ?", note, data=shown if lines else None, key="cmp_settings")
        if lines:
            st.dataframe(shown, key="cmp_settings_table", hide_index=True)


def side(run: "Run", solve: int) -> dict[str, Any]:
    """Return the settings of a run's solve, flat: of the problem, its parameters, the solver."""
    own = run_facts.settings_of(run.settings(solve), run.spec)
    spec = run.spec or {}
    own.setdefault("batch", run.settings(solve).get("batch"))
    asked = {k: spec.get(k) for k in ("problem", "batch", "seed", "t1") if k in spec}
    for group in ("parameters", "spread"):
        inner = spec.get(group)
        if isinstance(inner, dict):
            asked |= {f"{group}.{k}": v for k, v in inner.items()}
    return asked | own


def comparable(name: str, sides: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a setting is known of both runs, or belongs to the controller of one."""
    return all(name in side for side in sides) or ("." in name and not name.startswith(GROUPS))


def paired(a: "Run", b: "Run", solve: int) -> pd.DataFrame:
    """Return `instance, a, b` with the attempts of every row that both runs hold."""
    sides = []
    for run, name in ((a, "a"), (b, "b")):
        rows = ask(type(run).instances, run, solve)
        sides.append(pd.DataFrame({"instance": rows["instance"], name: rows["n_steps"]}))
    return sides[0].merge(sides[1], on="instance").sort_values("instance", ignore_index=True)
