"""What a comparison of gradient modes found: numbers, table, charts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, session, theme
from app.components.chart import draw, heading, pair
from app.controls.numbers import short
from app.figures.gradient_cost import gradient_cost_figure
from app.figures.gradient_errors import group_errors_figure, row_errors_figure
from app.figures.gradient_sweep import gradient_sweep_figure
from app.figures.memory_timeline import memory_timeline_figure
from app.frames import floats, where

if TYPE_CHECKING:
    from inspector.adjoints import Comparison

ROUNDING = {"float32": 1e-4, "float64": 1e-9}  # largest error of an exact mode
SWEPT = {"rtol": "rtol", "steps": "steps"}
Y_CHOICES = {
    "error": "error, same steps",
    "error_exact": "error, to the exact gradient",
    "peak_bytes": "peak memory",
    "seconds": "time",
}
ERROR_HELP = (
    "Of the group of parameters where it is largest, relative. The reference is backpropagation in "
    "float64 over steps at the same tolerances: an exact mode meets it to rounding."
)


def show(found: "Comparison", dtype: str) -> None:
    """Draw everything there is so far."""
    place = place_picker(found)
    table = found.table(place)
    failed = where(table, table["failure"] != "")
    good = where(table, table["failure"] == "")
    for _, row in failed.iterrows():
        st.warning(f"**{row['mode']}** gave no gradient: {row['failure']}", icon=":material/block:")
    if len(good):
        tiles(good, dtype)
    numbers(table)
    costs(good)
    left, right = pair("adjoint_errors")
    groups = found.groups(place)
    with left:
        draw(
            group_errors_figure(groups, theme.current(), modes=found.modes),
            key="group_errors",
            question="Which parameters have a wrong gradient?",
            unit="relative error",
            alt=f"Error of the gradient by group of parameters, for {listed(good)}.",
            data=groups,
            help=ERROR_HELP,
        )
    rows = found.rows(place)
    with right:
        draw(
            row_errors_figure(rows, theme.current(), modes=found.modes),
            key="row_errors",
            question="Which rows have a wrong gradient?",
            unit="relative to the largest row",
            alt=f"Error of the gradient by each row's start, for {listed(good)}.",
            data=rows,
            help="The gradient by the initial state of each row.",
        )
    memory_of(found, place)
    if found.sweep in SWEPT and len(found.values) > 1:
        sweep(found, place)


def place_picker(found: "Comparison") -> int | None:
    """Draw the picker of the value shown if several were compared; None if there is one."""
    there = [i for i in range(len(found.values)) if found.entries(i)]
    if len(there) < 2:
        return there[0] if there else None
    key = "adj.place"
    session.check(key, lambda held: held in there, there[-1])
    chosen = st.segmented_control(
        f"Shown at {SWEPT.get(found.sweep, found.sweep)}",
        there,
        default=there[-1],
        format_func=lambda i: short(found.values[i]),
        **session.keep(key),
    )
    return there[-1] if chosen is None else int(chosen)


def tiles(table: pd.DataFrame, dtype: str) -> None:
    """Draw the numbers that say most."""
    cells: list[tuple[str, str, str, str | None]] = []
    peak = memory_column(table)
    modes, costs = table["mode"].tolist(), floats(table, peak)
    if has(table, peak):
        least = int(np.nanargmin(costs))
        note = None
        if "backprop" in modes and modes[least] != "backprop":
            ratio = costs[modes.index("backprop")] / costs[least]
            note = f"{explain.times(ratio)} less than backprop"
        cells.append(("Least memory", modes[least], f"{mebibytes(costs[least])} MiB", note))
    seconds, errors = floats(table, "seconds"), floats(table, "error")
    fastest = int(np.nanargmin(seconds))
    cells.append(("Fastest", modes[fastest], explain.duration(seconds[fastest]), None))
    if np.isfinite(errors).any():
        worst = int(np.nanargmax(errors))
        cells.append(("Largest error", modes[worst], f"{errors[worst]:.1e}", ERROR_HELP))
        limit = ROUNDING.get(dtype, ROUNDING["float64"])
        note = f"Error below {limit:g}."
        exact = errors < limit
        cells.append(("Exact to rounding", f"{exact.sum()} of {len(table)}", "modes", note))
    with st.container(horizontal=True):
        for title, value, more, note in cells:
            st.metric(
                title, value, more, delta_color="off", delta_arrow="off", help=note, border=True
            )


def memory_column(table: pd.DataFrame) -> str:
    """Return the column of memory that was measured."""
    return "peak_bytes" if has(table, "peak_bytes") else "kept_bytes"


def has(table: pd.DataFrame, column: str) -> bool:
    """Whether a column has a number."""
    return len(table) > 0 and bool(table[column].notna().any())


def mebibytes(size: float) -> str:
    """Return bytes as mebibytes with three digits."""
    return f"{size / 2**20:.3g}"


def numbers(table: pd.DataFrame) -> None:
    """Draw the table of all modes."""
    heading("What does each gradient cost, and how right is it?", data=table, key="adjoint_table")
    shown = pd.DataFrame({"mode": table["mode"], "error": table["error"]})
    shown["to exact"] = table["error_exact"]
    for name, column in (("peak", "peak"), ("kept", "kept"), ("graph", "graph"),
                         ("law", "predicted")):  # fmt: skip
        shown[f"{name} MiB"] = floats(table, f"{column}_bytes") / 2**20
    for name in ("forward", "backward"):
        shown[f"{name} ms"] = 1e3 * floats(table, f"seconds_{name}")
    for title, name in (("f forward", "n_f_forward"), ("f backward", "n_f_backward"),
                        ("vjps", "n_vjps")):  # fmt: skip
        shown[title] = table[name]
    number = st.column_config.NumberColumn
    helps = {
        "error": ERROR_HELP,
        "to exact": "The same, against a gradient at a tight tolerance.",
        "peak MiB": "Of the allocator, over what there was before the solve.",
        "kept MiB": "What waits for the backward pass: graphs and checkpoints.",
        "graph MiB": "Most that autograd's graphs hold at once during backward.",
        "law MiB": "What the mode's law says of checkpoints, graphs and gradients.",
        "f forward": "Evaluations of the vector field, each for the whole batch.",
        "f backward": "Evaluations of the vector field during the backward pass.",
        "vjps": "Products with the Jacobian of the vector field.",
    }
    formats = {"error": "%.1e", "to exact": "%.1e"}
    config: Any = {
        name: number(format=formats.get(name, "%.3f" if "MiB" in name else "%.1f" if "ms" in name
                                        else "%d"), help=helps.get(name))
        for name in shown.columns[1:]
    }  # fmt: skip
    st.dataframe(
        shown,
        hide_index=True,
        column_config=config,
        key="adjoint_numbers",
        alt="Error, memory, time and evaluations of each gradient mode.",
    )


def costs(table: pd.DataFrame) -> None:
    """Draw error against memory and error against time."""
    left, right = pair("adjoint_costs")
    memory = memory_column(table)
    for column, x, question in (
        (left, memory, "How much memory does an exact gradient take?"),
        (right, "seconds", "How much time does an exact gradient take?"),
    ):
        with column:
            draw(
                gradient_cost_figure(table, theme.current(), x=x),
                key=f"cost_{x}",
                question=question,
                unit="best is bottom left",
                alt=f"Error of the gradient against {Y_CHOICES.get(x, 'memory kept')}, for "
                f"{listed(table)}.",
                data=table,
                help=ERROR_HELP + " An error of 0 is the reference itself.",
            )


def memory_of(found: "Comparison", place: int | None) -> None:
    """Draw memory in the course of forward and backward."""
    memory = found.memory(place)
    peaks = {} if memory.empty else memory.groupby("mode")["bytes"].max().to_dict()
    said = ", ".join(f"{mode} {mebibytes(peak)} MiB" for mode, peak in peaks.items())
    draw(
        memory_timeline_figure(memory, theme.current(), modes=found.modes),
        key="memory_timeline",
        question="Where in forward and backward is the memory needed?",
        unit="MiB over what there was before",
        alt=f"Memory allocated during forward and backward; peaks: {said or 'not measured'}.",
        data=memory,
        help="As the allocator saw it, workspaces and gradients included. Each phase is stretched "
        "to the same width.",
    )


def sweep(found: "Comparison", place: int | None) -> None:
    """Draw what changes over the values compared."""
    table = found.table()
    table = where(table, table["failure"] == "")
    chosen = found.values[place] if place is not None else None
    question = {
        "rtol": "What does a looser tolerance do to each gradient?",
        "steps": "What do more steps do to each gradient?",
    }[found.sweep]
    heading(question, data=table, key="sweep")
    choices = [y for y in Y_CHOICES if has(table, y)]
    for start in range(0, len(choices), 2):
        for column, y in zip(pair(f"sweep_{start}"), choices[start : start + 2], strict=False):
            with column:
                draw(
                    gradient_sweep_figure(table, theme.current(), sweep=found.sweep, y=y,
                                          modes=found.modes, selected=chosen),
                    key=f"sweep_{y}",
                    question=Y_CHOICES[y][0].upper() + Y_CHOICES[y][1:],
                    unit="",
                    alt=f"{Y_CHOICES[y]} over {SWEPT[found.sweep]}, for {listed(table)}.",
                    data=table[["value", "mode", y]],
                )  # fmt: skip


def listed(table: pd.DataFrame) -> str:
    """Return the modes of a table in words."""
    return ", ".join(dict.fromkeys(table["mode"])) or "no mode"


def spec_in_words(spec: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """Return a comparison's spec in one line."""
    given = {"method": about.get("method"), "rtol": about.get("rtol"), "batch": about.get("batch")}
    given |= {key: value for key, value in spec.items() if value is not None}
    parts = [str(given.get("method") or ""), f"rtol {short(given.get('rtol'))}"]
    parts += [f"{given.get('batch')} rows", str(given.get("dtype") or "float64")]
    if given.get("trained"):
        parts.append(f"trained {given['trained']} iterations")
    parts.append(f"seed {given.get('seed', 0)}")
    return " \u00b7 ".join(part for part in parts if part)
