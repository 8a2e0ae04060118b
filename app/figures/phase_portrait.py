"""Which path do the chosen rows take through state space?"""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from app.figures.style import (
    DASHES,
    HIGHLIGHTED,
    MOST_POINTS,
    empty_figure,
    even,
    new_figure,
)
from app.figures.trajectories import gaps, with_gaps
from app.frames import by_instance, floats
from app.theme import Theme


def phase_portrait_figure(
    states: pd.DataFrame,
    colours: Theme,
    *,
    components: tuple[str, str] = ("y0", "y1"),
    names: tuple[str, str] | None = None,
    rows: Sequence[int] = (),
) -> go.Figure:
    """Draw one component against another, a dot where each highlighted row starts.

    Args:
        states: `instance` and the two components' columns, rows in order of time.
        components: columns on the x and the y axis.
        names: what they are called on the axes; their column names if None.
        rows: instances to highlight, the first six of them.
    """
    first, second = components
    if states.empty or first not in states or second not in states:
        return empty_figure(colours, "Two recorded components are needed for a phase portrait.")
    figure = new_figure(colours, *(names or components))
    groups = by_instance(states)
    chosen = [int(row) for row in dict.fromkeys(rows) if int(row) in groups][:HIGHLIGHTED]
    others = [row for row in groups if row not in chosen]
    if others:
        drawn = [groups[others[i]] for i in even(len(others), 100)]
        x, y = with_gaps(
            [(gaps(part, first), floats(part, second)) for part in drawn], MOST_POINTS // 2
        )
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            name=f"{len(others)} other rows" if chosen else f"{len(others)} rows",
            line={"color": colours.ghost if chosen else colours.accepted, "width": 1},
            opacity=0.7,
            hoverinfo="skip",
        )
    for i, row in enumerate(chosen):
        part = groups[row]
        kept = even(len(part), MOST_POINTS // 2 // len(chosen))
        x, y = gaps(part, first)[kept], gaps(part, second)[kept]
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            name=f"row {row}",
            legendgroup=f"row {row}",
            line={"color": colours.highlights[i], "width": 1.8, "dash": DASHES[i]},
            customdata=floats(part, "t")[kept],
            hovertemplate=f"row {row}<br>t %{{customdata:.4g}}<br>(%{{x:.3g}}, %{{y:.3g}})"
            "<extra></extra>",
        )
        figure.add_scatter(
            x=x[:1],
            y=y[:1],
            mode="markers",
            legendgroup=f"row {row}",
            showlegend=False,
            name=f"start of row {row}",
            marker={
                "color": colours.background,
                "size": 8,
                "line": {"color": colours.highlights[i], "width": 2},
            },
            hovertemplate=f"row {row} starts here<extra></extra>",
        )
    figure.update_layout(showlegend=True)
    return figure
