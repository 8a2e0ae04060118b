"""How does the solution of the chosen rows run over time?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import (
    DASHES,
    HIGHLIGHTED,
    MOST_POINTS,
    empty_figure,
    even,
    new_figure,
    thin,
)
from app.frames import by_instance, floats
from app.theme import Theme


def trajectories_figure(
    states: pd.DataFrame,
    colours: Theme,
    *,
    component: str = "y0",
    rows: Sequence[int] = (),
    name: str | None = None,
    x_range: Sequence[float] | None = None,
) -> go.Figure:
    """Draw one component over time: up to six rows by name, all others in one grey trace.

    Args:
        states: `instance`, `t` [time] and the component's column, rows in order of time.
        component: column that is drawn.
        rows: instances to highlight, the first six of them; none highlights nothing.
        name: what the component is called on the axis; its column name if None.
    """
    if states.empty or component not in states:
        return empty_figure(colours, "This run recorded no states.")
    figure = new_figure(colours, "time t", name or component, x_range=x_range)
    chosen = [int(row) for row in dict.fromkeys(rows)][:HIGHLIGHTED]
    groups = by_instance(states)
    chosen = [row for row in chosen if row in groups]
    others = [row for row in groups if row not in chosen]
    behind = [groups[others[i]] for i in even(len(others), 200)] if others else []
    if behind:
        x, y = with_gaps(
            [(floats(part, "t"), floats(part, component)) for part in behind],
            MOST_POINTS // 2,
        )
        label = f"{len(others)} other rows" if chosen else f"{len(others)} rows"
        if len(others) == 1:
            label = f"row {others[0]}"
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            name=label if len(behind) == len(others) else f"{label}, {len(behind)} drawn",
            line={"color": colours.ghost if chosen else colours.accepted, "width": 1},
            opacity=0.7 if chosen or len(others) > 1 else 1.0,
            hoverinfo="skip",
        )
    for i, row in enumerate(chosen):
        part = groups[row]
        kept = thin(floats(part, component), MOST_POINTS // 2 // max(1, len(chosen)))
        figure.add_scatter(
            x=floats(part, "t")[kept],
            y=gaps(part, component)[kept],
            mode="lines",
            name=f"row {row}",
            line={"color": colours.highlights[i], "width": 2, "dash": DASHES[i]},
            hovertemplate=f"row {row}<br>t %{{x:.4g}}<br>%{{y:.4g}}<extra></extra>",
        )
    figure.update_layout(showlegend=True)
    return figure


def components_figure(
    states: pd.DataFrame,
    colours: Theme,
    *,
    names: Sequence[str] = (),
    x_range: Sequence[float] | None = None,
) -> go.Figure:
    """Draw every component of one row over time: the first six by name, the rest behind in grey.

    Args:
        states: of one instance: `t` [time] and columns `y0, y1, ...`.
        names: what the components are called; `y0, y1, ...` where the list is shorter.
    """
    columns = [column for column in states.columns if is_component(column)]
    if states.empty or not columns:
        return empty_figure(colours, "This run recorded no states of this row.")
    figure = new_figure(colours, "time t", "state", x_range=x_range)
    t = floats(states, "t")
    front = columns if len(columns) <= HIGHLIGHTED else []
    if not front:
        drawn = [columns[i] for i in even(len(columns), 60)]
        x, y = with_gaps([(t, floats(states, column)) for column in drawn], MOST_POINTS // 2)
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            name=f"{len(drawn)} of {len(columns)} components",
            line={"color": colours.ghost, "width": 1},
            hoverinfo="skip",
        )
        front = [columns[i] for i in even(len(columns), HIGHLIGHTED)]
    for i, column in enumerate(front):
        number = int(column[1:])
        label = names[number] if number < len(names) else column
        kept = thin(floats(states, column), MOST_POINTS // 2 // len(front))
        figure.add_scatter(
            x=t[kept],
            y=gaps(states, column)[kept],
            mode="lines",
            name=label,
            line={"color": colours.highlights[i], "width": 2, "dash": DASHES[i]},
            hovertemplate=f"{label}<br>t %{{x:.4g}}<br>%{{y:.4g}}<extra></extra>",
        )
    figure.update_layout(showlegend=True)
    return figure


def is_component(column: str) -> bool:
    """Whether a column of a state table is a component: `y0`, `y1`, ..."""
    return column[:1] == "y" and column[1:].isdigit()


def gaps(table: pd.DataFrame, column: str) -> np.ndarray:
    """Return a column with NaN wherever it is not finite, so that a line breaks there."""
    array = floats(table, column)
    return np.where(np.isfinite(array), array, np.nan)


def with_gaps(
    curves: Sequence[tuple[np.ndarray, np.ndarray]], most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Join curves `(x (n,), y (n,))` into one, a NaN between them, at most `most` points in all."""
    each = max(2, most // max(1, len(curves)) - 1)
    xs, ys = [], []
    for x, y in curves:
        values = np.asarray(y, dtype=np.float64)
        kept = thin(values, each) if each >= 6 else even(len(values), each)
        xs += [np.asarray(x, dtype=np.float64)[kept], [np.nan]]
        ys += [np.where(np.isfinite(values), values, np.nan)[kept], [np.nan]]
    return np.concatenate(xs), np.concatenate(ys)
