"""Which rows cost most?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import empty_figure, even, hatched, new_figure, rgba
from app.theme import Theme

MOST_BARS = 64
MOST = 800


def instance_ranking_figure(
    instances: pd.DataFrame, colours: Theme, *, selected: int | None = None
) -> go.Figure:
    """Draw attempts of every row, most first, refused ones on top of accepted ones.

    Up to 64 rows are bars named by row; more are two filled curves over the rank.

    Args:
        instances: `instance`, `n_accepted`, `n_rejected`, as the run's `instances` gives.
        selected: row that is marked by an arrow and its name.
    """
    if instances.empty:
        return empty_figure(colours, "No row has taken a step yet.")
    ranked = instances.sort_values("n_steps", ascending=False, kind="stable").reset_index(drop=True)
    row = ranked["instance"].to_numpy(dtype=np.int64)
    accepted = ranked["n_accepted"].to_numpy(dtype=np.float64)
    refused = ranked["n_rejected"].to_numpy(dtype=np.float64)
    bars = len(ranked) <= MOST_BARS
    figure = new_figure(
        colours, "row, most expensive first" if bars else "rank of the row", "attempts of the row"
    )
    if bars:
        rank = np.arange(len(ranked))
        for values, name, colour, pattern in (
            (accepted, "accepted", colours.accepted, ""),
            (refused, "refused", colours.refused, "/"),
        ):
            figure.add_bar(
                x=rank,
                y=values,
                name=name,
                customdata=row,
                marker=hatched(colour, pattern, colours),
                hovertemplate=f"row %{{customdata}}<br>%{{y:,}} {name}<extra></extra>",
            )
        ticks = even(len(ranked), 24)
        figure.update_xaxes(
            tickvals=rank[ticks], ticktext=[str(row[i]) for i in ticks], showgrid=False
        )
        figure.update_layout(barmode="stack", bargap=0.15)
    else:
        kept = even(len(ranked), MOST)
        for values, name, colour, alpha in (
            (accepted, "accepted", colours.accepted, 0.35),
            (refused, "refused", colours.refused, 0.45),
        ):
            figure.add_scatter(
                x=kept + 1,
                y=values[kept],
                mode="lines",
                name=name,
                stackgroup="attempts",
                line={
                    "color": colour,
                    "width": 1.4,
                    "dash": "dot" if name == "refused" else "solid",
                },
                fillcolor=rgba(colour, alpha),
                customdata=row[kept],
                hovertemplate=f"row %{{customdata}}, rank %{{x}}<br>%{{y:,}} {name}<extra></extra>",
            )
    if selected is not None and selected in row:
        at = int(np.flatnonzero(row == selected)[0])
        figure.add_annotation(
            x=at if bars else at + 1,
            y=accepted[at] + refused[at],
            text=f"row {selected}",
            showarrow=True,
            arrowhead=2,
            arrowcolor=colours.text,
            ax=0,
            ay=-24,
            font={"color": colours.text, "size": 12},
        )
        figure.update_yaxes(range=[0, float((accepted + refused).max()) * 1.22 or 1])
    return figure
