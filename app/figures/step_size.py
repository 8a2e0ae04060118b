"""How large were the steps of one row, and where were they refused?"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import (
    MOST_MARKERS,
    MOST_POINTS,
    empty_figure,
    even,
    new_figure,
    positive,
    thin,
)
from app.frames import floats, ints, where
from app.theme import Theme

X = Literal["t", "attempt"]
X_TITLES: dict[str, str] = {"t": "time t", "attempt": "attempt number"}


def step_size_figure(
    steps: pd.DataFrame,
    colours: Theme,
    *,
    x: X = "t",
    x_range: Sequence[float] | None = None,
    ghost: pd.DataFrame | None = None,
    ghost_name: str = "other run",
) -> go.Figure:
    """Draw |dt| over time (or attempts) on a log axis, refused attempts as crosses.

    Args:
        steps: attempts of one row in order: `attempt`, `t`, `dt` [time], `accepted` [0 or 1].
        x: what runs along the x axis.
        x_range: both ends of the x axis; None lets the data decide.
        ghost: the same row of another run, drawn behind as a thin line.
    """
    if steps.empty:
        return empty_figure(colours, "No step of this row is recorded.")
    figure = new_figure(colours, X_TITLES[x], "step size |dt|  [time]", log_y=True, x_range=x_range)
    if ghost is not None and not ghost.empty:
        taken = where(ghost, ghost["accepted"])
        size = positive(floats(taken, "dt"))
        kept = thin(size, MOST_POINTS // 4)
        figure.add_scatter(
            x=floats(taken, x)[kept],
            y=size[kept],
            mode="lines",
            name=ghost_name,
            line={"color": colours.ghost, "width": 2, "dash": "dot"},
            hoverinfo="skip",
        )
    accepted = ints(steps, "accepted") != 0
    taken, refused = where(steps, accepted), where(steps, ~accepted)
    size = positive(floats(taken, "dt"))
    kept = thin(size, MOST_POINTS // 2)
    few = len(kept) <= 300
    figure.add_scatter(
        x=floats(taken, x)[kept],
        y=size[kept],
        mode="lines+markers" if few else "lines",
        name=f"accepted ({len(taken):,})",
        line={"color": colours.accepted, "width": 1.6},
        marker={"color": colours.accepted, "size": 4},
        customdata=ints(taken, "attempt")[kept],
        hovertemplate="attempt %{customdata}<br>t %{x:.5g}<br>dt %{y:.3g}<extra>accepted</extra>"
        if x == "t"
        else "attempt %{x}<br>dt %{y:.3g}<extra>accepted</extra>",
    )
    if len(refused):
        size = positive(floats(refused, "dt"))
        kept = even(len(refused), min(MOST_MARKERS, MOST_POINTS // 4))
        shown = "" if len(kept) == len(refused) else f", {len(kept):,} drawn"
        figure.add_scatter(
            x=floats(refused, x)[kept],
            y=size[kept],
            mode="markers",
            name=f"refused ({len(refused):,}{shown})",
            marker={
                "symbol": "x-thin",
                "size": 8,
                "line": {"color": colours.refused, "width": 1.8},
                "color": colours.refused,
            },
            customdata=ints(refused, "attempt")[kept],
            hovertemplate="attempt %{customdata}<br>dt %{y:.3g}<extra>refused</extra>",
        )
    everything = positive(floats(steps, "dt"))
    if ghost is not None and not ghost.empty:
        everything = np.concatenate([everything, positive(floats(ghost, "dt"))])
    if np.isfinite(everything).any():
        widen_log(figure, everything)
    return figure


def widen_log(figure: go.Figure, values: np.ndarray) -> None:
    """Give a log y axis at least one decade, so that a constant does not look like a storm."""
    low, high = np.log10(np.nanmin(values)), np.log10(np.nanmax(values))
    if high - low < 1:
        middle = (low + high) / 2
        figure.update_yaxes(range=[middle - 0.55, middle + 0.55])
