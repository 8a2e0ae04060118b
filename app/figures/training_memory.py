"""How much memory does a gradient take?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.panels import drawn, known, numbers
from app.figures.style import empty_figure, new_figure
from app.theme import Theme

MOST = 500
UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0))
NAMES = {
    "checkpoint_bytes": "checkpoints",
    "graph_bytes": "graphs, at most",
    "gradient_bytes": "gradients",
    "allocated_bytes": "allocated in all",
}


def training_memory_figure(table: pd.DataFrame, colours: Theme) -> go.Figure:
    """Draw what backward passes kept, on a log axis.

    Args:
        table: `iteration` and `checkpoint_bytes, graph_bytes, gradient_bytes, allocated_bytes`
            [bytes], as `Run.iterations` gives; what is missing is left out.
    """
    there = [name for name in NAMES if known(table, name) and (numbers(table, name) > 0).any()]
    if table.empty or not there:
        return empty_figure(colours, "No backward pass has told what it kept.")
    most = max(float(np.nanmax(numbers(table, name))) for name in there)
    unit, scale = next((u, s) for u, s in UNITS if most >= s or s == 1.0)
    figure = new_figure(colours, "iteration", f"memory  [{unit}]", log_y=True)
    dashes = ("solid", "dash", "dot", "dashdot")
    shades = (colours.accepted, colours.refused, colours.highlights[0], colours.muted)
    for name, dash, shade in zip(NAMES, dashes, shades, strict=True):
        if name not in there:
            continue
        told = table[numbers(table, name) > 0]  # graphs are measured now and then
        part = told.iloc[drawn(MOST, numbers(told, name))]
        values = numbers(part, name) / scale
        figure.add_scatter(
            x=numbers(part, "iteration"), y=values, name=NAMES[name],
            mode="lines+markers" if len(part) <= 40 else "lines", marker={"size": 4},
            line={"color": shade, "width": 1.8, "dash": dash},
            hovertemplate=f"iteration %{{x}}<br>{NAMES[name]} %{{y:.3g}} {unit}<extra></extra>",
        )  # fmt: skip
    return figure
