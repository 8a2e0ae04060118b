"""How did a logged number run, and where was it not a number?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import MOST_MARKERS, MOST_POINTS, empty_figure, even, new_figure, thin
from app.theme import Theme


def scalars_figure(
    scalars: pd.DataFrame, colours: Theme, *, name: str, log: bool = False
) -> go.Figure:
    """Draw one logged number over the iteration; NaN and infinity break the line and are marked.

    Args:
        scalars: `iteration`, `value` of this name.
        log: a log axis; values at or below zero are then gaps too.
    """
    if scalars.empty:
        return empty_figure(colours, "Nothing was logged under this name.")
    figure = new_figure(colours, "iteration", name, log_y=log, height=220)
    raw = scalars["value"].to_numpy(dtype=np.float64)
    iteration = scalars["iteration"].to_numpy()
    drawable = np.isfinite(raw) & ((raw > 0) | (not log))
    value = np.where(drawable, raw, np.nan)
    kept = thin(value, MOST_POINTS // 2)
    few = len(kept) <= 60
    figure.add_scatter(
        x=iteration[kept],
        y=value[kept],
        mode="lines+markers" if few or isolated(value) else "lines",
        name=name,
        line={"color": colours.accepted, "width": 1.8},
        marker={"color": colours.accepted, "size": 5 if few else 3},
        connectgaps=False,
        showlegend=False,
        hovertemplate="iteration %{x}<br>%{y:.6g}<extra></extra>",
    )
    for on, label, symbol, place in (
        (np.isnan(raw), "NaN", "x-thin", 0.02),
        (np.isposinf(raw), "+inf", "triangle-up", 0.98),
        (np.isneginf(raw), "-inf", "triangle-down", 0.02),
    ):
        at = np.flatnonzero(on)
        if not len(at):
            continue
        drawn = at[even(len(at), MOST_MARKERS // 6)]
        figure.add_scatter(
            x=iteration[drawn],
            y=np.full(len(drawn), place),
            yaxis="y2",
            mode="markers",
            name=f"{label} ({len(at):,})",
            marker={
                "symbol": symbol,
                "size": 9,
                "color": colours.refused,
                "line": {"color": colours.refused, "width": 1.8},
            },
            hovertemplate=f"iteration %{{x}}<br>{label}<extra></extra>",
        )
    figure.update_layout(
        yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
        showlegend=bool((~np.isfinite(raw)).any()),
    )
    return figure


def isolated(value: np.ndarray) -> bool:
    """Whether some finite value stands between two gaps, where a line alone would not show it."""
    hole = np.isnan(np.concatenate([[np.nan], value, [np.nan]]))
    return bool((hole[:-2] & ~hole[1:-1] & hole[2:]).any())
