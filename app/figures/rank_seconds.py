"""Which rank do the others wait for?"""

import pandas as pd
import plotly.graph_objects as go

from app.figures.panels import drawn, known, numbers
from app.figures.style import DASHES, empty_figure, new_figure
from app.theme import Theme

MOST_RANKS = 12
MOST = 3_600  # points of all ranks


def rank_seconds_figure(table: pd.DataFrame, colours: Theme) -> go.Figure:
    """Draw the seconds each rank spent in its forward solves.

    Args:
        table: `iteration, rank, forward_seconds` [s], as `Run.iterations` gives.
    """
    if table.empty or not known(table, "forward_seconds"):
        return empty_figure(colours, "The times of the ranks were not recorded.")
    figure = new_figure(colours, "iteration", "seconds in forward solves")
    ranks = sorted(table["rank"].unique())[:MOST_RANKS]
    for place, rank in enumerate(ranks):
        mine = table[table["rank"] == rank]
        mine = mine.iloc[drawn(MOST // len(ranks), numbers(mine, "forward_seconds"))]
        figure.add_scatter(
            x=numbers(mine, "iteration"), y=numbers(mine, "forward_seconds"), name=f"rank {rank}",
            mode="lines+markers" if len(mine) <= 40 else "lines", marker={"size": 4},
            line={
                "color": colours.highlights[place % 6], "width": 1.6, "dash": DASHES[place // 6],
            },
            hovertemplate=f"rank {rank}<br>iteration %{{x}}<br>%{{y:.3g}} s<extra></extra>",
        )  # fmt: skip
    figure.update_yaxes(rangemode="tozero")
    return figure
