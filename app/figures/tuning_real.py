"""What did the tried controllers really take and reach, and was the estimate right?"""

from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.gradient_cost import nice_ticks
from app.figures.modes import drawn_errors, error_axis
from app.figures.style import empty_figure, new_figure
from app.frames import floats, where
from app.theme import Theme

COSTS: Final = {
    "attempts": "attempts of all rows",
    "evaluations": "evaluations of all rows",
    "refused": "refused attempts of all rows",
    "seconds": "time of the batch  [s]",
}
KINDS: Final = {
    "recorded": ("as recorded", "x"),
    "preset": ("presets", "circle"),
    "grid": ("of the grid", "diamond"),
    "search": ("found by search", "star"),
}


def tuning_pareto_figure(
    table: pd.DataFrame, front: pd.DataFrame, colours: Theme, *, cost: str, picked: str = ""
) -> go.Figure:
    """Draw the error of each real solve against its cost: best is bottom left.

    Args:
        table: `source, title, method, rtol, end_error, label` and the cost of real solves.
        front: lines of it that no other beats in both, by rising cost.
        cost: a name in `COSTS`.
        picked: label of a line to mark.
    """
    if len(table):
        table = where(table, np.isfinite(floats(table, "end_error")) & (floats(table, cost) > 0))
    if table.empty:
        return empty_figure(colours, "No controller has been solved for real yet.", height=430)
    values = floats(table, cost)
    wide = bool(values.max() > 5 * values.min())
    figure = new_figure(colours, COSTS[cost], "error at the end, relative", log_x=wide, log_y=True,
                        height=430)  # fmt: skip
    if len(front) > 1:
        figure.add_scatter(
            x=floats(front, cost), y=drawn_errors(floats(front, "end_error")), mode="lines",
            name="best of all", line={"color": colours.ghost, "width": 9}, opacity=0.35,
            hoverinfo="skip",
        )  # fmt: skip
    for i, (source, (name, symbol)) in enumerate(KINDS.items()):
        part = where(table, (table["source"] == source).to_numpy())
        if part.empty:
            continue
        figure.add_scatter(
            x=floats(part, cost), y=drawn_errors(floats(part, "end_error")), mode="markers",
            name=name,
            marker={"symbol": symbol, "size": 10, "color": colours.highlights[i]},
            customdata=np.stack([part["title"], part["method"], floats(part, "rtol")], axis=-1),
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}, rtol %{customdata[2]:.2~g}<br>"
            f"{COSTS[cost]}: %{{x:,.4~g}}<br>error %{{y:.2~g}}<extra>{name}</extra>",
        )  # fmt: skip
    chosen = where(table, (table["label"] == picked).to_numpy())
    if len(chosen):
        figure.add_scatter(
            x=floats(chosen, cost), y=drawn_errors(floats(chosen, "end_error")), mode="markers",
            name="chosen", hoverinfo="skip",
            marker={"symbol": "circle-open", "size": 19, "color": colours.text,
                    "line": {"width": 2}},
        )  # fmt: skip
    figure.update_yaxes(**error_axis(drawn_errors(floats(table, "end_error"))))
    if wide:
        low, high = np.log10(values.min()), np.log10(values.max())
        room = 0.08 * (high - low)
        figure.update_xaxes(range=[low - room, high + room], **nice_ticks(10**low, 10**high))
    return figure


def replay_check_figure(table: pd.DataFrame, colours: Theme) -> go.Figure:
    """Draw replay's attempts against the real ones, with 10 % to both sides.

    Args:
        table: `title, estimate, attempts` of real solves.
    """
    if len(table):
        table = where(table, (floats(table, "estimate") > 0) & (floats(table, "attempts") > 0))
    if table.empty:
        return empty_figure(colours, "No estimate has been checked yet.", height=360)
    x, y = floats(table, "attempts"), floats(table, "estimate")
    figure = new_figure(colours, "attempts of a real solve", "attempts by replay", height=360)
    low, high = 0.95 * min(x.min(), y.min()), 1.05 * max(x.max(), y.max())
    ends = np.array([low, high])
    figure.add_scatter(
        x=np.concatenate([ends, ends[::-1]]), y=np.concatenate([0.9 * ends, 1.1 * ends[::-1]]),
        mode="lines", fill="toself", name="within 10 %", line={"width": 0},
        fillcolor=colours.grid, hoverinfo="skip",
    )  # fmt: skip
    figure.add_scatter(x=ends, y=ends, mode="lines", name="equal", hoverinfo="skip",
                       line={"color": colours.ghost, "dash": "dash", "width": 1.4})  # fmt: skip
    off = np.abs(y / x - 1)
    for on, name, symbol, colour in (
        (off <= 0.1, "estimate within 10 %", "circle", colours.accepted),
        (off > 0.1, "further off", "diamond-open", colours.refused),
    ):
        if on.any():
            figure.add_scatter(
                x=x[on], y=y[on], mode="markers", name=name,
                marker={"symbol": symbol, "size": 9, "color": colour},
                customdata=np.stack([table["title"].to_numpy()[on], 100 * (y / x - 1)[on]], -1),
                hovertemplate="%{customdata[0]}<br>real %{x:,}<br>replay %{y:,.0f}"
                " (%{customdata[1]:+.1f} %)<extra></extra>",
            )  # fmt: skip
    figure.update_xaxes(range=[low, high])
    figure.update_yaxes(range=[low, high])
    return figure
