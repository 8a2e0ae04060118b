"""How every figure looks: colours of both themes, axes, the designed empty figure, and thinning."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from app.theme import Theme

MOST_POINTS: Final = 5_000  # SVG points of one figure
MOST_MARKERS: Final = 2_000
MOST_TRACES: Final = 32
HIGHLIGHTED: Final = 6  # rows or components drawn by name; the rest share one background trace
HEIGHT: Final = 260  # px, of a chart that spans one column

FONT: Final = '"Source Sans", "Source Sans 3", "Source Sans Pro", sans-serif'


DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def rgba(colour: str, alpha: float) -> str:
    """Return `#rrggbb` as a CSS colour with opacity `alpha` in [0, 1]."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


def hatched(colour: str, shape: str, colours: Theme, *, size: int = 6) -> dict[str, Any]:
    """Return a bar's marker in `colour`, hatched in the background's colour; `""` is plain."""
    return {
        "color": colour,
        "line": {"width": 0},
        "pattern": {
            "shape": shape,
            "bgcolor": colour,
            "fgcolor": colours.background,
            "size": size,
            "solidity": 0.22,
        },
    }


def axis(colours: Theme, title: str, *, log: bool = False, **extra: Any) -> dict[str, Any]:
    """Return an axis with its title (unit included), quiet grid and readable ticks."""
    settings: dict[str, Any] = {
        "title": {"text": title, "font": {"color": colours.muted, "size": 13}, "standoff": 8},
        "tickfont": {"color": colours.muted, "size": 12},
        "gridcolor": colours.grid,
        "zeroline": False,
        "linecolor": colours.grid,
        "showline": True,
        "exponentformat": "power",
        "automargin": True,
    }
    if log:
        settings |= {"type": "log", "nticks": 4, "minor": {"showgrid": False, "ticks": ""}}
    return settings | extra


def new_figure(
    colours: Theme,
    x: str,
    y: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    height: int = HEIGHT,
    x_range: Sequence[float] | None = None,
) -> go.Figure:
    """Return a figure with axes titled `x` and `y` and no trace yet.

    Args:
        x, y: axis titles, each with its unit.
        x_range: both ends of the x axis in data units; None lets the data decide.
    """
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 68, "r": 12, "t": 28, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": FONT, "color": colours.text, "size": 13},
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.01,
            "xanchor": "left",
            "yanchor": "bottom",
            "font": {"color": colours.text, "size": 12},
            "bgcolor": "rgba(0,0,0,0)",
            "traceorder": "normal",
        },
        hoverlabel={
            "bgcolor": colours.background,
            "bordercolor": colours.ghost,
            "font": {"family": FONT, "color": colours.text, "size": 13},
        },
        hovermode="closest",
        dragmode="zoom",
        uirevision="stay",
        xaxis=axis(colours, x, log=log_x),
        yaxis=axis(colours, y, log=log_y),
    )
    if x_range is not None:
        low, high = (float(end) for end in x_range)
        figure.update_xaxes(range=[np.log10(low), np.log10(high)] if log_x else [low, high])
    return figure


def empty_figure(colours: Theme, message: str, *, height: int = HEIGHT) -> go.Figure:
    """Return the designed empty figure: no axes, one sentence that says what is missing and why."""
    figure = new_figure(colours, "", "", height=height)
    figure.update_layout(margin={"l": 8, "r": 8, "t": 8, "b": 8})
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.add_annotation(
        text=message,
        x=0.5,
        y=0.5,
        xref="paper",
        yref="paper",
        showarrow=False,
        font={"color": colours.muted, "size": 14},
    )
    figure.add_shape(
        type="rect",
        xref="paper",
        yref="paper",
        x0=0,
        x1=1,
        y0=0,
        y1=1,
        line={"color": colours.grid, "width": 1, "dash": "dot"},
    )
    return figure


def thin(y: ArrayLike, most: int) -> NDArray[np.intp]:
    """Return at most `most` sorted positions of `y (n,)`: each bucket's smallest and largest value.

    The first and last position stay; a bucket without a finite value keeps its first position, so
    that a gap stays a gap.
    """
    values = np.asarray(y, dtype=np.float64)
    n = len(values)
    if n <= most:
        return np.arange(n)
    buckets = max(1, (most - 2) // 2)
    size = -(-n // buckets)
    padded = np.full(buckets * size, np.nan)
    padded[:n] = np.where(np.isfinite(values), values, np.nan)
    table = padded.reshape(buckets, size)
    hole = np.isnan(table)
    low = np.where(hole, np.inf, table).argmin(axis=1)
    high = np.where(hole, -np.inf, table).argmax(axis=1)
    start = np.arange(buckets) * size
    kept = np.unique(np.concatenate([[0, n - 1], start + low, start + high]))
    return kept[kept < n]


def even(n: int, most: int) -> NDArray[np.intp]:
    """Return at most `most` evenly spaced positions of `range(n)`, both ends among them."""
    if n <= most:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, most).round().astype(np.intp))


def positive(values: ArrayLike) -> NDArray[np.float64]:
    """Return `|values|` with NaN where a log axis has no place: zero and whatever is not finite."""
    size = np.abs(np.asarray(values, dtype=np.float64))
    return np.where(np.isfinite(size) & (size > 0), size, np.nan)


def share_text(share: float) -> str:
    """Return a share in [0, 1] in whole percent, where small ones do not read as none."""
    return "<1%" if 0 < share < 0.0095 else f"{share:.0%}"
