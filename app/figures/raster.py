"""The raster as a picture that stands alone: every row over its attempts, coloured by a value."""

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from app.figures.style import empty_figure, new_figure
from app.theme import SCALES, Theme

if TYPE_CHECKING:
    from inspector.queries import Raster

TICKS = 6


def raster_figure(found: "Raster", colours: Theme, *, title: str, height: int = 340) -> go.Figure:
    """Draw a raster; cells without an attempt stay empty.

    Args:
        found: values `(r, c)`, drawn by their logarithm where it says so.
        title: of the colour bar, with its unit.
    """
    values = found.values
    if not values.size or not np.isfinite(values).any():
        return empty_figure(colours, "No step is recorded.", height=height)
    if found.log:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log10(np.where(values > 0, values, np.nan))
    figure = new_figure(colours, "attempt", "row", height=height)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    ticks = np.linspace(low, high, 4) if high > low else np.array([low])
    labels = [f"{10**tick:.2g}" if found.log else f"{tick:.3g}" for tick in ticks]
    places = np.unique(np.linspace(0, len(found.instances) - 1, TICKS).round().astype(int))
    figure.add_trace(
        go.Heatmap(
            name=title,
            z=values.astype(np.float32),
            x=found.attempt_edges.astype(np.int32),
            y=np.arange(len(found.instances) + 1, dtype=np.int32),
            colorscale=list(SCALES["cividis"]),
            hovertemplate="attempt %{x}<br>%{z:.3g}<extra></extra>",
            hoverongaps=False,
            colorbar={
                "title": {"text": title, "side": "right", "font": {"color": colours.muted}},
                "tickvals": ticks.tolist(),
                "ticktext": labels,
                "tickfont": {"color": colours.muted, "size": 12},
                "thickness": 12,
                "outlinewidth": 0,
            },
        )
    )
    figure.update_yaxes(
        tickvals=(places + 0.5).tolist(),
        ticktext=[str(int(found.instances[place])) for place in places],
        autorange="reversed",
        showgrid=False,
    )
    figure.update_xaxes(showgrid=False)
    if found.attempt_edges[-1] <= 10:  # no half attempts
        figure.update_xaxes(dtick=1)
    return figure
