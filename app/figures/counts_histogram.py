"""How are the attempts spread over the rows?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import empty_figure, new_figure
from app.theme import Theme


def counts_histogram_figure(
    instances: pd.DataFrame,
    colours: Theme,
    *,
    column: str = "n_steps",
    title: str = "attempts of a row",
    bins: int = 30,
) -> go.Figure:
    """Count rows by a whole number each of them has; the median is a dashed line.

    Args:
        instances: one line a row, with `column`.
        title: of the x axis, with its unit.
    """
    if instances.empty:
        return empty_figure(colours, "No row has taken a step yet.")
    values = instances[column].to_numpy(dtype=np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return empty_figure(colours, "No row has a count.")
    figure = new_figure(colours, title, "number of rows")
    low, high = values.min(), values.max()
    width = max(1.0, np.ceil((high - low + 1) / bins))
    edges = np.arange(low - 0.5, high + width, width)
    counts, edges = np.histogram(values, edges)
    figure.add_bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts,
        width=width,
        name="rows",
        marker={"color": colours.accepted, "line": {"color": colours.background, "width": 1}},
        customdata=np.stack([np.ceil(edges[:-1]), np.floor(edges[1:])], axis=-1),
        hovertemplate="%{y} rows<br>%{customdata[0]:,} to %{customdata[1]:,}<extra></extra>",
        showlegend=False,
    )
    if counts.max() <= 8:
        figure.update_yaxes(dtick=1)
    if len(edges) < 6:
        figure.update_xaxes(range=[low - 5, high + 5])
    median = float(np.median(values))
    figure.add_shape(
        type="line",
        x0=median,
        x1=median,
        y0=0,
        y1=1,
        yref="paper",
        line={"color": colours.muted, "width": 1.4, "dash": "dash"},
    )
    figure.add_annotation(
        x=median,
        y=1,
        yref="paper",
        text=f"median {median:,.0f}",
        showarrow=False,
        xanchor="left",
        yanchor="bottom",
        font={"color": colours.muted, "size": 11},
    )
    return figure
