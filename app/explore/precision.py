"""Parts of the Work-precision page: what is tried, and what came of it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from app import explain, session, theme
from app.components.chart import draw, heading, plain
from app.controls.numbers import short
from app.controls.spec import choose, names
from app.explore.studies import Described, problem_section
from app.figures.work_precision import ERRORS, TITLES, drawn, work_precision_figure
from app.frames import floats, where
from app.live.state import Shown
from inspector.studies import MEASURES, Study, pareto, precision_rows, precision_table

RTOLS = [float(f"1e-{n}") for n in range(1, 14)]
STEPS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]
METHODS = ("bosh3", "dopri5", "tsit5", "vern7", "dopri8")
STIFF_METHODS = ("trbdf2", "kvaerno5", "rodas5p", "radau5", "bdf")
SHORT = {
    "end_error": "end error",
    "trajectory_error": "error along the way",
    "gradient_error": "gradient error",
    "n_rejected": "refused",
    "seconds": "s",
    "peak_bytes": "peak MiB",
    "graph_bytes": "gradient MiB",
}
ERROR_HELP = (
    "Of the component where it is largest, over the largest component that the row has anywhere. "
    "The reference is the exact solution where one is known, else a solve of high order at a "
    "tolerance near rounding, checked by another method."
)


def setup(described: Described, shown: Shown) -> dict[str, Any]:
    """Draw the settings into the current container and return the spec they add up to."""
    spec: dict[str, Any] = {"kind": "work_precision"}
    spec |= problem_section(described, "wp", shown)
    about = spec.pop("about")
    for key in ("method", "rtol", "atol"):
        spec.pop(key, None)  # those are what is tried
    stiff = about["method"] in STIFF_METHODS
    offered = [m["name"] for m in described["methods"]]
    start = [m for m in (STIFF_METHODS if stiff else METHODS) if m in offered]
    key = "wp.methods_stiff" if stiff else "wp.methods"
    session.check(key, lambda held: set(held or ()) <= set(offered), start)
    spec["methods"] = st.multiselect(
        "Methods", offered, start, placeholder="pick at least one", **session.keep(key)
    )
    loose, tight = st.select_slider(
        "Tolerances from, to", RTOLS, (1e-3, 1e-9), format_func=short, **session.keep("wp.rtols")
    )
    spec["rtols"] = [value for value in RTOLS if tight <= value <= loose]
    adaptive = {m["name"] for m in described["methods"] if m["adaptive"]}
    if not set(spec["methods"]) <= adaptive:
        few, many = st.select_slider(
            "Equal steps from, to",
            STEPS,
            (32, 2048),
            help="Of the methods without an error estimate, in place of a tolerance.",
            **session.keep("wp.steps"),
        )
        spec["steps"] = [value for value in STEPS if few <= value <= many]
    controllers = {"": "the solver's own"} | names(
        [c for c in described["controllers"] if c["adaptive"]]
    )
    controller = choose("Controller", "wp.controller", controllers, "")
    if controller:
        spec["controller"] = {"name": controller}
    spec |= details()
    if not spec["methods"]:
        spec["refused"] = "Pick at least one method."
    return spec


def details() -> dict[str, Any]:
    """Draw what is rarely changed."""
    with st.expander("Timing, memory, gradient"):
        rounds = st.number_input(
            "Rounds of timing", 1, 20, 3, help="Medians are shown.", **session.keep("wp.rounds")
        )
        memory = st.toggle(
            "Measure memory",
            help="Peak of the allocator in a solve without gradient.",
            **session.keep("wp.memory"),
        )
        gradient = st.toggle(
            "Measure the gradient",
            help="Of the mean square at the end by the start, by backpropagation: its error, and "
            "the memory kept for it. Takes several times as long.",
            **session.keep("wp.gradient"),
        )
    return {"rounds": int(rounds), "memory": bool(memory), "gradient": bool(gradient)}


def in_words(spec: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """Return a study's spec in one line."""
    parts = [f"{len(spec.get('methods') or METHODS)} methods"]
    rtols = spec.get("rtols")
    if rtols:
        parts.append(f"rtol {short(max(rtols))} to {short(min(rtols))}")
    controller = (spec.get("controller") or {}).get("name")
    parts += [str(controller)] if controller else []
    parts += [f"{spec.get('batch') or about.get('batch', '?')} rows", f"seed {spec.get('seed', 0)}"]
    return " \u00b7 ".join(parts)


def show(study: Study, run: str) -> None:
    """Draw everything there is so far."""
    entries = study.entries()
    reference = next((e for e in entries if e.get("phase") == "reference"), {})
    table = precision_table(e for e in entries if e.get("phase") != "reference")
    if table.empty:
        st.skeleton(height=420)
        return
    doubt = reference.get("doubt")
    doubt = float(doubt) if isinstance(doubt, int | float) else float("nan")
    good = where(table, (table["failure"] == "").to_numpy())
    x, y, spread, cloud = axes(good)
    whole = where(good, floats(good, "failed") == 0)  # medians of survivors would flatter
    best = whole.iloc[pareto(floats(whole, x), floats(whole, y))]
    tiles(whole, x, y)
    rows = precision_rows(e for e in entries if e.get("measured")) if cloud else None
    draw(
        work_precision_figure(
            good, theme.current(), x=x, y=y, spread=spread, cloud=rows, front=best, doubt=doubt
        ),
        key="work_precision",
        question="Which method reaches an accuracy with the least work?",
        unit="best is bottom left",
        alt=f"{TITLES[y]} against {TITLES[x]} for {', '.join(dict.fromkeys(table['method']))}; "
        "a line a method, a point a tolerance; hollow points lost rows.",
        data=good,
        help=f"Medians over rows; bars from the least to the most of them. {ERROR_HELP}",
        on_pick=picked,
    )
    said = [f"Reference: {reference.get('how') or reference.get('reference', 'unknown')}"]
    if doubt > 0:
        said.append(f"in doubt by {doubt:.0e}")
    st.caption(", ".join(said) + ". A click on a point shows its solve; so does the list below.")
    failures(table)
    to_the_run(good, run)
    numbers(table)


def axes(table: pd.DataFrame) -> tuple[str, str, bool, bool]:
    """Draw the pickers of both axes; returns x, y, whether bars and whether every row are drawn."""
    known = {n: TITLES[n].split("  [")[0] for n in MEASURES if (floats(table, n) > 0).any()}
    known = known or {"n_f_evals": "evaluations of a row", "end_error": "error at the end"}
    columns = st.columns([3, 3, 2, 2], vertical_alignment="bottom")
    with columns[0]:
        x = choose("Across", "wp_x", known, "n_f_evals")
    with columns[1]:
        y = choose("Up", "wp_y", known, "end_error")
    with columns[2]:
        spread = st.toggle("Spread over rows", True, **session.keep("wp_spread", "url"))
    with columns[3]:
        cloud = st.toggle(
            "Every row",
            help="A small point for each row at each tolerance.",
            **session.keep("wp_cloud", "url"),
        )
    return x, y, bool(spread), bool(cloud)


def picked(point: dict[str, Any]) -> None:
    """Show the solve of a clicked point from now on."""
    about = point.get("customdata") or []
    if len(about) == 2 and isinstance(about[1], int | float) and about[1] >= 0:
        session.put("wp_solve", int(about[1]))


def tiles(good: pd.DataFrame, x: str, y: str) -> None:
    """Draw which method wins at three accuracies."""
    if y not in ERRORS or x in ERRORS or good.empty:
        return
    errors = floats(good, y)
    cells = []
    for goal in (1e-3, 1e-6, 1e-9):
        reached = where(good, errors <= goal)
        if len(reached):
            line = reached.iloc[int(floats(reached, x).argmin())]
            cells.append((f"Error below {goal:g}", line))
    with st.container(horizontal=True):
        for title, line in cells:
            cost = float(drawn(pd.DataFrame([line]), x)[0])
            st.metric(
                title,
                str(line["method"]),
                f"{explain.count(cost) if cost >= 10 else short(cost)} {unit_of(x)}",
                delta_color="off",
                delta_arrow="off",
                help=f"The least {TITLES[x].split('  [')[0]}, at {line['setting']}.",
                border=True,
            )


def unit_of(name: str) -> str:
    """Return the unit of a measure, to stand behind its number."""
    units = {"seconds": "s", "peak_bytes": "MiB", "graph_bytes": "MiB"}
    return units.get(name) or TITLES[name].removesuffix(" of a row")


def failures(table: pd.DataFrame) -> None:
    """List what failed, and why."""
    failed = where(table, ((table["failure"] != "") | (floats(table, "failed") > 0)).to_numpy())
    if failed.empty:
        return
    whole = int((failed["failure"] != "").sum())
    words = f"{whole} of {len(table)} settings failed" if whole else ""
    part = len(failed) - whole
    words += (", " if words and part else "") + (f"{part} lost some rows" if part else "")
    with st.expander(words, icon=":material/block:"):
        for _, line in failed.iterrows():
            why = line["failure"] or f"{line['failed']} of {line['rows']} rows failed"
            st.markdown(f"- **{line['method']}** at {line['setting']}: {plain(why)}")


def to_the_run(good: pd.DataFrame, run: str) -> None:
    """Draw the way from a setting to its recorded solve."""
    recorded = where(good, floats(good, "solve") >= 0)
    if recorded.empty:
        return
    titles = {
        int(s): f"{m}, {words}"
        for s, m, words in zip(
            recorded["solve"], recorded["method"], recorded["setting"], strict=True
        )
    }
    session.check("wp_solve", lambda held: held in titles, next(iter(titles)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        solve = st.selectbox(
            "Solve behind a point",
            list(titles),
            format_func=lambda s: titles.get(s, str(s)),
            width=320,
            **session.keep("wp_solve", "url"),
        )
        st.page_link(
            "views/run.py",
            label="Show it",
            icon=":material/monitoring:",
            query_params={"run": run, "solve": str(solve)},
        )


def numbers(table: pd.DataFrame) -> None:
    """Draw the table of all settings."""
    heading("What did each setting take and reach?", data=table, key="precision_table")
    shown = table[["method", "setting"]].copy()
    config: dict[str, Any] = {}
    for name in MEASURES:
        values = drawn(table, name)
        if not (values > 0).any():
            continue
        title = SHORT.get(name, TITLES[name].removesuffix(" of a row"))
        shown[title] = values
        style = "%.1e" if name in ERRORS else "%.4g"
        config[title] = st.column_config.NumberColumn(format=style)
    shown["failed"] = table["failed"]
    st.dataframe(
        shown,
        hide_index=True,
        column_config=config,
        key="precision_numbers",
        alt="Errors, evaluations, attempts and seconds of each method at each tolerance.",
    )
