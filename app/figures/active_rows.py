"""How many rows were still being solved, and what did the finished ones cost?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import empty_figure, even, new_figure, rgba
from app.theme import Theme

MOST = 800


def active_rows_figure(
    active: pd.DataFrame,
    colours: Theme,
    *,
    batch: int,
    ghost: pd.DataFrame | None = None,
    ghost_name: str = "other run",
) -> go.Figure:
    """Draw the rows that took part in each attempt against the size of the batch.

    Args:
        active: `attempt`, `active` [rows], in order.
        batch: rows of the solve; what lies between the curve and this line was evaluated in vain.
        ghost: the same of another run, as a dashed line.
    """
    if active.empty or batch < 1:
        return empty_figure(colours, "No step is recorded yet.")
    figure = new_figure(colours, "attempt number", "rows still solving")
    shown = active.iloc[even(len(active), MOST)]
    attempt, rows = shown["attempt"].to_numpy(), shown["active"].to_numpy()
    figure.add_scatter(
        x=attempt,
        y=rows,
        mode="lines",
        name="solving",
        line={"color": colours.accepted, "width": 1.8, "shape": "hv"},
        fill="tozeroy",
        fillcolor=rgba(colours.accepted, 0.25),
        hovertemplate="attempt %{x}<br>%{y} rows solving<extra></extra>",
    )
    figure.add_scatter(
        x=attempt,
        y=np.full(len(shown), batch),
        mode="lines",
        name="finished, evaluated along",
        line={"color": colours.ghost, "width": 1, "dash": "dot"},
        fill="tonexty",
        fillcolor=rgba(colours.refused, 0.14),
        hoverinfo="skip",
    )
    if ghost is not None and not ghost.empty:
        behind = ghost.iloc[even(len(ghost), MOST)]
        figure.add_scatter(
            x=behind["attempt"].to_numpy(),
            y=behind["active"].to_numpy(),
            mode="lines",
            name=ghost_name,
            line={"color": colours.ghost, "width": 1.6, "dash": "dash", "shape": "hv"},
            hovertemplate="attempt %{x}<br>%{y} rows<extra></extra>",
        )
    figure.update_yaxes(range=[0, batch * 1.04], tickformat="d")
    if batch <= 5:
        figure.update_yaxes(dtick=1)
    return figure
