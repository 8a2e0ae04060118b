"""How did the cost of a solve change over the run?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import empty_figure, even, new_figure
from app.theme import Theme

MOST = 1_000


def solve_costs_figure(
    solves: pd.DataFrame, colours: Theme, *, selected: int | None = None
) -> go.Figure:
    """Draw the attempts of every solve in order; solves with failed rows are crossed.

    Args:
        solves: `solve`, `n_attempts`, `n_failed`, as the run's `solve_table` gives.
        selected: solve that is marked by a vertical line.
    """
    if solves.empty:
        return empty_figure(colours, "No solve has begun yet.")
    figure = new_figure(colours, "solve", "attempts of the solve", height=220)
    shown = solves.iloc[even(len(solves), MOST)]
    few = len(shown) <= 200
    figure.add_scatter(
        x=shown["solve"].to_numpy(),
        y=shown["n_attempts"].to_numpy(dtype=np.float64),
        mode="lines+markers" if few else "lines",
        name="attempts",
        line={"color": colours.accepted, "width": 1.6},
        marker={"color": colours.accepted, "size": 5},
        hovertemplate="solve %{x}<br>%{y:,} attempts<extra></extra>",
    )
    failed = solves[solves["n_failed"].fillna(0) > 0]
    if len(failed):
        drawn = failed.iloc[even(len(failed), MOST // 2)]
        figure.add_scatter(
            x=drawn["solve"].to_numpy(),
            y=drawn["n_attempts"].to_numpy(dtype=np.float64),
            mode="markers",
            name=f"with failed rows ({len(failed):,})",
            marker={
                "symbol": "x-thin",
                "size": 9,
                "color": colours.refused,
                "line": {"color": colours.refused, "width": 2},
            },
            customdata=drawn["n_failed"].to_numpy(),
            hovertemplate="solve %{x}<br>%{customdata} rows failed<extra></extra>",
        )
    if selected is not None:
        figure.add_vline(x=selected, line={"color": colours.muted, "width": 1.4, "dash": "dash"})
    figure.update_yaxes(rangemode="tozero")
    if len(solves) <= 10:
        figure.update_xaxes(dtick=1)
    return figure
