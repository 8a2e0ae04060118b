"""Which parameters and which rows have a wrong gradient?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.modes import drawn_errors, error_axis, height_for, looks
from app.figures.style import MOST_MARKERS, empty_figure, even, new_figure
from app.frames import floats, where
from app.theme import Theme

MOST_GROUPS = 24


def group_errors_figure(
    groups: pd.DataFrame, colours: Theme, *, column: str = "error", modes: list[str] | None = None
) -> go.Figure:
    """Draw the error of each group of parameters, a marker for each mode.

    Args:
        groups: `mode`, `group`, `error`, `error_exact`, as a comparison's `groups` gives.
        column: which of the two errors.
        modes: all modes in order, so that each keeps its look; None for those in `groups`.
    """
    if groups.empty:
        return empty_figure(colours, "No mode has been measured yet.")
    names = list(dict.fromkeys(groups["group"]))[:MOST_GROUPS]
    found = list(dict.fromkeys(groups["mode"]))
    figure = new_figure(
        colours, "parameters", "relative error", log_y=True, height=height_for(len(found))
    )
    styles, all_errors = looks(modes or found, colours), []
    place = {name: i for i, name in enumerate(names)}
    for i, mode in enumerate(found):
        part = where(groups, (groups["mode"] == mode) & groups["group"].isin(names))
        raw = floats(part, column)
        errors = drawn_errors(raw)
        all_errors.append(errors)
        look = styles[mode]
        figure.add_scatter(
            x=np.array([place[group] for group in part["group"]]) + beside(i, len(found)),
            y=errors,
            mode="markers",
            name=mode,
            marker={"color": look.colour, "symbol": look.symbol, "size": 8},
            customdata=list(zip(part["group"], raw, strict=True)),
            hovertemplate="%{customdata[0]}<br>error %{customdata[1]:.2~g}<extra>"
            + mode
            + "</extra>",
        )
    figure.update_yaxes(**error_axis(*all_errors))
    figure.update_xaxes(
        tickvals=list(place.values()),
        ticktext=names,
        showgrid=False,
        range=[-0.6, len(names) - 0.4],
    )
    return figure


def beside(i: int, count: int) -> float:
    """Return how far to the side the i-th of `count` markers stands, so that none hides another."""
    return (i - (count - 1) / 2) * 0.7 / max(count, 4)


def row_errors_figure(
    rows: pd.DataFrame, colours: Theme, *, modes: list[str] | None = None
) -> go.Figure:
    """Draw the error of each row's gradient by its start, rows in order of the worst mode's error.

    Args:
        rows: `mode`, `instance`, `error`, as a comparison's `rows` gives.
        modes: all modes in order, so that each keeps its look; None for those in `rows`.
    """
    if rows.empty:
        return empty_figure(colours, "No mode has been measured yet.")
    found = list(dict.fromkeys(rows["mode"]))
    worst = rows.groupby("instance")["error"].max().sort_values(ascending=False)
    place = {instance: i for i, instance in enumerate(worst.index)}
    height = height_for(len(found))
    figure = new_figure(
        colours, "rows, the worst first", "relative error", log_y=True, height=height
    )
    styles, all_errors = looks(modes or found, colours), []
    most = MOST_MARKERS // max(1, len(found))
    for mode in found:
        part = where(rows, rows["mode"] == mode)
        part = part.assign(place=[place[instance] for instance in part["instance"]])
        part = part.sort_values("place").iloc[even(len(part), most)]
        raw = floats(part, "error")
        errors = drawn_errors(raw)
        all_errors.append(errors)
        look = styles[mode]
        figure.add_scatter(
            x=part["place"].to_numpy(),
            y=errors,
            mode="markers",
            name=mode,
            marker={"color": look.colour, "symbol": look.symbol, "size": 5, "opacity": 0.85},
            customdata=np.stack([part["instance"].to_numpy(dtype=np.float64), raw], axis=-1),
            hovertemplate="row %{customdata[0]}<br>error %{customdata[1]:.2~g}<extra>"
            + mode
            + "</extra>",
        )
    figure.update_yaxes(**error_axis(*all_errors))
    return figure
