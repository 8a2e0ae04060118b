"""How close to the tolerance did each attempt of one row come?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.step_size import X_TITLES, X
from app.figures.style import (
    MOST_MARKERS,
    MOST_POINTS,
    empty_figure,
    even,
    new_figure,
    positive,
    rgba,
    thin,
)
from app.frames import floats, ints
from app.theme import Theme


def error_ratio_figure(
    steps: pd.DataFrame,
    colours: Theme,
    *,
    x: X = "t",
    x_range: Sequence[float] | None = None,
    steady: float | None = None,
) -> go.Figure:
    """Draw the error ratio on a log axis: 1 is the tolerance, above it an attempt is refused.

    Args:
        steps: attempts of one row in order: `attempt`, `t` [time], `error_ratio` [1], `accepted`.
        steady: the ratio at which the controller would leave the step size as it is; None hides it.
    """
    if steps.empty:
        return empty_figure(colours, "No step of this row is recorded.")
    raw = floats(steps, "error_ratio")
    ratio = positive(raw)
    broken = ~np.isfinite(raw)
    if not np.isfinite(ratio).any() and not broken.any():
        return empty_figure(colours, "This method takes fixed steps: it has no error estimate.")
    figure = new_figure(
        colours, X_TITLES[x], "error ratio  [1]", log_y=True, x_range=x_range, height=220
    )
    accepted = ints(steps, "accepted") != 0
    where = floats(steps, x)
    attempt = ints(steps, "attempt")
    kept = np.flatnonzero(accepted)
    kept = kept[thin(ratio[kept], MOST_POINTS // 2)]
    figure.add_scatter(
        x=where[kept],
        y=ratio[kept],
        mode="lines+markers" if len(kept) <= 300 else "lines",
        name="accepted",
        line={"color": colours.accepted, "width": 1.4},
        marker={"color": colours.accepted, "size": 4},
        customdata=attempt[kept],
        hovertemplate="attempt %{customdata}<br>ratio %{y:.3g}<extra>accepted</extra>",
    )
    refused = np.flatnonzero(~accepted & ~broken)
    if len(refused):
        refused = refused[even(len(refused), MOST_MARKERS // 2)]
        figure.add_scatter(
            x=where[refused],
            y=ratio[refused],
            mode="markers",
            name="refused",
            marker={
                "symbol": "x-thin",
                "size": 8,
                "color": colours.refused,
                "line": {"color": colours.refused, "width": 1.8},
            },
            customdata=attempt[refused],
            hovertemplate="attempt %{customdata}<br>ratio %{y:.3g}<extra>refused</extra>",
        )
    visible = ratio[np.isfinite(ratio)]
    usual = (
        float(np.quantile(visible, 0.03)) if len(visible) else 1.0
    )  # the first guess may be tiny
    low = min(usual, steady or 1.0, 0.3)
    high = max(visible.max(initial=1.0), 3.0)
    if broken.any():
        at = np.flatnonzero(broken)
        at = at[even(len(at), MOST_MARKERS // 4)]
        high *= 2
        figure.add_scatter(
            x=where[at],
            y=np.full(len(at), high),
            mode="markers",
            name=f"not finite ({int(broken.sum()):,})",
            marker={"symbol": "triangle-up", "size": 9, "color": colours.refused},
            customdata=attempt[at],
            hovertemplate="attempt %{customdata}<br>NaN or infinite<extra>not finite</extra>",
        )
    reference_line(figure, colours, 1.0, "tolerance", dash="solid")
    if steady is not None and 0 < steady < 1:
        reference_line(figure, colours, steady, f"steady {steady:.2g}", dash="dash")
    figure.update_yaxes(range=[np.log10(low) - 0.15, np.log10(high) + 0.2])
    return figure


def reference_line(figure: go.Figure, colours: Theme, y: float, label: str, *, dash: str) -> None:
    """Add a horizontal line across the plot at `y` (a log axis), named at its right end."""
    figure.add_shape(
        type="line",
        xref="paper",
        x0=0,
        x1=1,
        y0=y,
        y1=y,
        line={"color": colours.ghost, "width": 1.4, "dash": dash},
        layer="below",
    )
    figure.add_annotation(
        xref="paper",
        x=1,
        y=np.log10(y),
        text=label,
        showarrow=False,
        xanchor="right",
        yanchor="bottom" if y >= 1 else "top",
        font={"color": colours.muted, "size": 11},
        bgcolor=rgba(colours.background, 0.75),
    )
