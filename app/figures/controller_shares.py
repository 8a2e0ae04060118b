"""What did the P, I and D part of the controller ask for, and where was its answer cut?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.grouping import group_attempts
from app.figures.step_size import X_TITLES, X
from app.figures.style import MOST_MARKERS, empty_figure, even, hatched, new_figure
from app.frames import floats, ints
from app.theme import Theme

MOST_BARS = 240
PARTS = (("share_p", "P", ""), ("share_i", "I", "/"), ("share_d", "D", "x"))


def controller_shares_figure(
    steps: pd.DataFrame,
    colours: Theme,
    *,
    x: X = "t",
    x_range: Sequence[float] | None = None,
) -> go.Figure:
    """Stack the log10 of the three parts of each step-size factor; above 0 asks for larger steps.

    Args:
        steps: attempts of one row in order: `attempt`, `t`, `dt`, `accepted`, `share_p`, `share_i`,
            `share_d` [log10], and `factor` [1] and `clamped` [-1, 0 or 1] where recorded.
    """
    parts = [part for part in PARTS if part[0] in steps]
    if steps.empty or not parts:
        return empty_figure(
            colours,
            "The controller's shares were not recorded<br>(statistics share_p, share_i, share_d).",
        )
    figure = new_figure(
        colours, X_TITLES[x], "part of log10 factor  [1]", x_range=x_range, height=220
    )
    groups = group_attempts(steps, x, MOST_BARS)
    colour = {"P": colours.p, "I": colours.i, "D": colours.d}
    up, down = np.zeros(len(groups.left)), np.zeros(len(groups.left))
    for column, letter, pattern in parts:
        mean = groups.mean(floats(steps, column))
        if not np.nan_to_num(mean).any():
            continue
        up += np.clip(np.nan_to_num(mean), 0, None)
        down += np.clip(np.nan_to_num(mean), None, 0)
        figure.add_bar(
            x=groups.middle,
            y=mean,
            width=groups.width,
            name=letter,
            marker=hatched(colour[letter], pattern, colours),
            customdata=np.stack([groups.first, groups.last], axis=-1),
            hovertemplate=f"{letter} %{{y:.3f}}<br>attempts %{{customdata[0]}}"
            " to %{customdata[1]}<extra></extra>",
        )
    top, bottom = reach_of(up), reach_of(-down)
    if "clamped" in steps:
        clamped = floats(steps, "clamped")
        for sign, symbol, label, place in (
            (1, "triangle-down", "growth cut", 1.15 * top),
            (-1, "triangle-up", "shrinking cut", -1.15 * bottom),
        ):
            at = np.flatnonzero(clamped == sign)
            if not len(at):
                continue
            total = len(at)
            at = at[even(total, MOST_MARKERS // 4)]
            figure.add_scatter(
                x=floats(steps, x)[at],
                y=np.full(len(at), place),
                mode="markers",
                name=f"{label} ({total:,})",
                marker={"symbol": symbol, "size": 7, "color": colours.refused},
                customdata=ints(steps, "attempt")[at],
                hovertemplate=f"attempt %{{customdata}}: {label} by the limit<extra></extra>",
            )
    figure.update_layout(barmode="relative", bargap=0)
    figure.update_yaxes(range=[-1.3 * bottom, 1.3 * top], zeroline=True, zerolinewidth=1.4)
    figure.update_yaxes(zerolinecolor=colours.muted)
    return figure


def reach_of(heights: np.ndarray) -> float:
    """Return how far the axis reaches: to the highest bar, unless it towers over all others."""
    highest = float(heights.max(initial=0.0))
    usual = float(np.quantile(heights, 0.97)) if len(heights) else 0.0
    return max(highest if highest < 4 * usual else 1.5 * usual, 0.02)
