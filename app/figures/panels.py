"""Several panels below each other on one x axis, and the iterations that are drawn in them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from app.figures.style import axis, even, new_figure, thin
from app.theme import Theme

GAP = 0.07  # between two panels, of the height


class Panel(NamedTuple):
    """One panel of a figure."""

    title: str  # of its y axis, with the unit
    share: float  # of the height
    log: bool = False


def panels(colours: Theme, x: str, parts: Sequence[Panel], *, height: int) -> go.Figure:
    """Return a figure with panels from top to bottom; traces choose theirs by `yaxis="y2"`, ..."""
    figure = new_figure(colours, x, parts[0].title, log_y=parts[0].log, height=height)
    whole = sum(part.share for part in parts)
    room = 1 - GAP * (len(parts) - 1)
    top = 1.0
    for number, part in enumerate(parts, 1):
        low = max(0.0, top - room * part.share / whole)
        name = "yaxis" if number == 1 else f"yaxis{number}"
        settings = axis(colours, part.title, log=part.log) | {"domain": [low, top], "anchor": "x"}
        if part.share < 0.6:
            settings["nticks"] = 3
        figure.update_layout({name: settings})
        top = low - GAP
    figure.update_xaxes(anchor="y" if len(parts) == 1 else f"y{len(parts)}")
    return figure


def drawn(most: int, *columns: ArrayLike) -> NDArray[np.intp]:
    """Return at most about `most` positions, sorted: evenly spaced, and the extremes of columns."""
    count = len(np.asarray(columns[0]))
    if count <= most:
        return np.arange(count)
    each = most // (2 * len(columns))
    picked = [thin(column, each) for column in columns]
    return np.unique(np.concatenate([even(count, most // 2), *picked]))


def numbers(table: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """Return a column as float64 `(n,)`; NaN where it, or a value of it, is missing."""
    if name not in table:
        return np.full(len(table), np.nan)
    return pd.Series(table[name]).to_numpy(dtype="f8", na_value=np.nan)


def known(table: pd.DataFrame, name: str) -> bool:
    """Whether a column has any number."""
    return bool(np.isfinite(numbers(table, name)).any())


def band(
    figure: go.Figure,
    x: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    *,
    colour: str,
    name: str,
    yaxis: str,
) -> None:
    """Add a filled band; where an edge is missing there is none."""
    edge = np.concatenate([low, high[::-1]])
    around = np.concatenate([x, x[::-1]])
    whole = np.isfinite(edge)
    figure.add_scatter(
        x=around[whole], y=edge[whole], yaxis=yaxis, fill="toself", fillcolor=colour,
        line={"width": 0}, mode="lines", name=name, hoverinfo="skip",
    )  # fmt: skip


def between(figure: go.Figure, x: NDArray[np.float64]) -> None:
    """Let the x axis reach from the first to the last of its values, with a little room."""
    if len(x):
        room = max(0.5, 0.01 * float(x.max() - x.min()))
        figure.update_xaxes(range=[float(x.min()) - room, float(x.max()) + room])
