"""Where in forward and backward is the memory needed?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from app.figures.modes import looks
from app.figures.style import MOST_POINTS, empty_figure, even, new_figure
from app.frames import floats, where
from app.theme import Theme

PHASES = ("forward", "backward")


def memory_timeline_figure(
    memory: pd.DataFrame, colours: Theme, *, modes: list[str] | None = None
) -> go.Figure:
    """Draw what each mode has allocated; each of its phases is stretched to the same width.

    Args:
        memory: `mode`, `seconds`, `bytes`, `phase`, as a comparison's `memory` gives.
        modes: all modes in order, so that each keeps its look; None for those in `memory`.
    """
    if memory.empty:
        return empty_figure(
            colours,
            "Memory in the course of time was not measured.<br>"
            "Switch it on and compare, with fewer steps if there are thousands.",
        )
    figure = new_figure(colours, "course of each phase", "allocated  [MiB]", height=320)
    found = list(dict.fromkeys(memory["mode"]))
    styles = looks(modes or found, colours)
    most = MOST_POINTS // max(1, len(found)) - 2
    for mode in found:
        part = where(memory, memory["mode"] == mode)
        x = progress(part)
        part = part.assign(x=x)
        part = where(part, np.isfinite(x))
        part = part.iloc[even(len(part), most)]
        look = styles[mode]
        figure.add_scatter(
            x=part["x"].to_numpy(),
            y=floats(part, "bytes") / 2**20,
            mode="lines",
            name=mode,
            line={"color": look.colour, "width": 1.7, "dash": look.dash, "shape": "hv"},
            customdata=floats(part, "seconds"),
            hovertemplate="%{y:.3~g} MiB<extra>" + mode + "</extra>",
        )
    figure.add_vline(x=1, line={"color": colours.muted, "width": 1.2, "dash": "dot"})
    figure.update_xaxes(
        range=[0, 2], tickvals=[0.5, 1.5], ticktext=list(PHASES), showgrid=False, ticks=""
    )
    figure.update_yaxes(rangemode="tozero")
    return figure


def progress(part: pd.DataFrame) -> NDArray[np.float64]:
    """Return where in its phases one mode is, `(n,)`: 0 to 1 forward, 1 to 2 backward, else NaN."""
    seconds, phase = floats(part, "seconds"), part["phase"].to_numpy()
    x = np.full(len(part), np.nan)
    starts = [seconds[phase == name].min() if (phase == name).any() else np.nan for name in PHASES]
    ends = [starts[1], seconds.max() if len(seconds) else np.nan]
    for i, name in enumerate(PHASES):
        on = phase == name
        width = ends[i] - starts[i]
        if on.any() and width > 0:
            x[on] = i + (seconds[on] - starts[i]) / width
    return x
