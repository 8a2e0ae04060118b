"""Where does the time of an iteration go?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.panels import drawn, known, numbers
from app.figures.style import empty_figure, new_figure
from app.theme import Theme

MOST = 600
# name -> how it is found, from below to above
PARTS = ("vector field, forward", "solver, forward", "backward", "everything else")


def training_seconds_figure(table: pd.DataFrame, colours: Theme) -> go.Figure:
    """Stack the seconds of each iteration: field and solver forward, backward, the rest.

    Args:
        table: `iteration, seconds, forward_seconds, f_seconds, backward_seconds` [s], one line for
            each iteration, as `Run.iterations` gives.
    """
    if table.empty or not known(table, "seconds"):
        return empty_figure(colours, "The times of iterations were not recorded.")
    figure = new_figure(colours, "iteration", "seconds of an iteration")
    kept = drawn(MOST, numbers(table, "seconds"))
    part = table.iloc[kept]
    forward = np.nan_to_num(numbers(part, "forward_seconds"))
    field = np.minimum(np.nan_to_num(numbers(part, "f_seconds")), forward)
    backward = np.nan_to_num(numbers(part, "backward_seconds"))
    whole = np.nan_to_num(numbers(part, "seconds"))
    rest = np.maximum(whole - forward - backward, 0)
    fills = (colours.median, colours.band_inner, colours.highlights[0], colours.band_outer)
    total = max(float(whole.sum()), 1e-300)
    for name, values, fill in zip(
        PARTS, (field, forward - field, backward, rest), fills, strict=True
    ):
        if not values.any():
            continue
        figure.add_scatter(
            x=numbers(part, "iteration"), y=values, stackgroup="one", mode="lines",
            line={"width": 0.5, "color": colours.background}, fillcolor=fill,
            name=f"{name} ({values.sum() / total:.0%})",
            hovertemplate=f"iteration %{{x}}<br>{name} %{{y:.3g}} s<extra></extra>",
        )  # fmt: skip
    return figure
