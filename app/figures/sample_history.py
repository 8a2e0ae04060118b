"""Which samples are hard to solve, and do they stay so?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.panels import numbers
from app.figures.style import DASHES, HIGHLIGHTED, empty_figure, even, new_figure
from app.theme import Theme

MOST = 80  # visits drawn of each sample
MOST_BEHIND = 40  # other samples, as one faint line


def sample_history_figure(
    visits: pd.DataFrame, colours: Theme, *, chosen: list[object]
) -> go.Figure:
    """Draw the attempts of the hardest samples, visit by visit, before the other samples.

    Args:
        visits: `sample, visit, n_steps`, as `inspector.samples.visits` gives.
        chosen: the samples drawn by name, hardest first.
    """
    if visits.empty:
        return empty_figure(
            colours, "No samples are known: inspector.iteration(step, sample_ids=...)."
        )
    figure = new_figure(colours, "visit of the sample (epoch)", "attempts")
    first = [*chosen][:HIGHLIGHTED]
    others = [one for one in visits["sample"].unique() if one not in set(first)]
    others = [others[i] for i in even(len(others), MOST_BEHIND)]
    x: list[np.ndarray] = []
    y: list[np.ndarray] = []
    for one in others:
        mine = visits[visits["sample"] == one]
        mine = mine.iloc[even(len(mine), MOST)]
        x += [numbers(mine, "visit"), np.full(1, np.nan)]
        y += [numbers(mine, "n_steps"), np.full(1, np.nan)]
    if x:
        figure.add_scatter(
            x=np.concatenate(x), y=np.concatenate(y), mode="lines", connectgaps=False,
            name="other samples", line={"color": colours.band_inner, "width": 0.8},
            hoverinfo="skip",
        )  # fmt: skip
    for place, one in enumerate(first):
        mine = visits[visits["sample"] == one]
        mine = mine.iloc[even(len(mine), MOST)]
        figure.add_scatter(
            x=numbers(mine, "visit"), y=numbers(mine, "n_steps"),
            mode="lines+markers" if len(mine) <= 30 else "lines", marker={"size": 5},
            name=f"sample {one}",
            line={"color": colours.highlights[place], "width": 2, "dash": DASHES[place]},
            hovertemplate=f"sample {one}<br>visit %{{x}}<br>%{{y}} attempts<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(rangemode="tozero")
    return figure
