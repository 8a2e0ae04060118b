"""How do the step sizes of the whole batch spread, attempt by attempt?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import empty_figure, even, new_figure, positive
from app.theme import Theme

MOST = 400  # attempts drawn; each has five values, twice with a ghost


def dt_quantiles_figure(
    quantiles: pd.DataFrame,
    colours: Theme,
    *,
    ghost: pd.DataFrame | None = None,
    ghost_name: str = "other run",
) -> go.Figure:
    """Draw the median step size with the 25-75 % and 5-95 % bands of the active rows.

    Args:
        quantiles: `attempt`, `q05 q25 q50 q75 q95` [time, |dt|], as the run's `dt_quantiles` gives.
        ghost: the same of another run, its median and outer band as dashed lines behind.
    """
    if quantiles.empty:
        return empty_figure(colours, "No step is recorded yet.")
    figure = new_figure(colours, "attempt number", "step size |dt|  [time]", log_y=True)
    shown = quantiles.iloc[even(len(quantiles), MOST)]
    attempt = shown["attempt"].to_numpy()
    around = np.concatenate([attempt, attempt[::-1]])
    for low, high, fill, name in (
        ("q05", "q95", colours.band_outer, "5 to 95 % of rows"),
        ("q25", "q75", colours.band_inner, "25 to 75 %"),
    ):
        edge = np.concatenate([positive(shown[low]), positive(shown[high])[::-1]])
        whole = np.isfinite(edge)
        figure.add_scatter(
            x=around[whole],
            y=edge[whole],
            fill="toself",
            fillcolor=fill,
            line={"width": 0},
            mode="lines",
            name=name,
            hoverinfo="skip",
        )
    if ghost is not None and not ghost.empty:
        behind = ghost.iloc[even(len(ghost), MOST)]
        for column, dash in (("q05", "dot"), ("q50", "dash"), ("q95", "dot")):
            figure.add_scatter(
                x=behind["attempt"].to_numpy(),
                y=positive(behind[column]),
                mode="lines",
                name=f"{ghost_name}, median and 5/95 %",
                legendgroup="ghost",
                showlegend=column == "q50",
                line={"color": colours.ghost, "width": 1.4, "dash": dash},
                hovertemplate=f"attempt %{{x}}<br>dt %{{y:.3g}}<extra>{column[1:]} %</extra>",
            )
    figure.add_scatter(
        x=attempt,
        y=positive(shown["q50"]),
        mode="lines",
        name="median",
        line={"color": colours.median, "width": 2.2},
        customdata=np.stack([shown["q05"], shown["q95"]], axis=-1),
        hovertemplate="attempt %{x}<br>median %{y:.3g}"
        "<br>5 to 95 %: %{customdata[0]:.3g} to %{customdata[1]:.3g}<extra></extra>",
    )
    return figure
