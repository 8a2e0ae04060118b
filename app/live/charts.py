"""Charts of the Live page: data frame in, picture for the canvas out."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from app.components.plot import Plot, themed
from app.theme import THEMES

if TYPE_CHECKING:
    import pandas as pd

DASHES: tuple[list[int] | None, ...] = (None, [7, 3], [2, 3], [9, 3, 2, 3], [12, 4], [4, 2])
"""One for each picked row, so that lines differ without colour."""


def step_sizes(
    quantiles: "pd.DataFrame",
    ghost: "pd.DataFrame | None" = None,
    picked: "Mapping[int, pd.DataFrame] | None" = None,
    x_max: int | None = None,
) -> Plot:
    """How large the steps are: bands of `|dt|` over the rows, by attempt.

    Args:
        quantiles: `attempt, q05, q25, q50, q75, q95`.
        ghost: the same of the run compared with; only its median is drawn.
        picked: row -> its trace (`attempt, dt`).
        x_max: right end of the attempt axis.
    """
    plot = Plot(
        "attempt", "step size |dt|", log_y=True, whole_x=True, x_range=_reach(quantiles, x_max)
    )
    x = quantiles["attempt"].to_numpy()
    plot.band(x, quantiles["q05"], quantiles["q95"], themed("band_outer"), "5 to 95 %")
    plot.band(x, quantiles["q25"], quantiles["q75"], themed("band_inner"), "25 to 75 %")
    plot.line(x, quantiles["q50"], themed("median"), "median", width=2, read="median")
    if ghost is not None and len(ghost):
        plot.line(
            ghost["attempt"], ghost["q50"], themed("text"), "median before", dash=[4, 3]
        )  # fmt: skip
    for k, (row, trace) in enumerate((picked or {}).items()):
        colour = themed("highlights", k)
        plot.line(
            trace["attempt"],
            np.abs(trace["dt"]),
            colour,
            f"row {row}",
            dash=DASHES[k % 6],
            width=1.2,
        )
    return plot


def shares(trace: "pd.DataFrame", x_max: int | None = None) -> Plot:
    """What the controller did in one row: log10 of the P, I and D part of the step factor.

    Args:
        trace: `attempt, share_p, share_i, share_d, accepted`.
        x_max: right end of the attempt axis.
    """
    plot = Plot("attempt", "log10 of the factor's part", whole_x=True, x_range=_reach(trace, x_max))
    x = trace["attempt"].to_numpy()
    plot.level(0.0, themed("muted"), dash=[2, 3])
    for k, (name, word) in enumerate((("share_p", "P"), ("share_i", "I"), ("share_d", "D"))):
        if name in trace:
            colour = themed(name[-1])
            plot.line(x, trace[name], colour, word, dash=DASHES[k], width=1.5, read=word)
    refused = trace[trace["accepted"] == 0]
    if len(refused) and "share_i" in trace:
        plot.points(refused["attempt"], refused["share_i"], themed("refused"), "cross", "refused")
    return plot


def limiters(parts: "pd.DataFrame", labels: Sequence[str], x_max: int | None = None) -> Plot:
    """What set the step sizes: share of the running rows by reason.

    Args:
        parts: `attempt` (middle of each bin) and one column a label, shares that add up to 1.
        labels: columns to stack, from below.
        x_max: right end of the attempt axis.
    """
    reach = _reach(parts, x_max)
    plot = Plot(
        "attempt",
        "share of running rows",
        percent=True,
        whole_x=True,
        x_range=reach,
        y_range=(0, 1),
    )
    middle = parts["attempt"].to_numpy(dtype=float)
    edges = np.zeros(1)
    if len(middle):
        half = (middle[-1] - middle[-2]) / 2 if len(middle) > 1 else middle[0] + 0.5
        edges = np.concatenate([[0.0], (middle[:-1] + middle[1:]) / 2, [middle[-1] + half]])
    below = np.zeros(len(parts))
    for k, label in enumerate(labels):
        share = parts[label].to_numpy(dtype=float)
        if np.nansum(share) == 0:
            continue
        plot.bars(edges, below, below + share, limiter_colour(label, k), label.replace("_", " "))
        below = below + share
    return plot


def limiter_colour(label: str, position: int) -> dict[str, str]:
    """Return the colour of a reason, by theme."""
    return {
        mode: theme.limiters.get(label, theme.highlights[position % 6])
        for mode, theme in THEMES.items()
    }


def phase(
    paths: "Mapping[int, pd.DataFrame]", axes: tuple[str, str], names: tuple[str, str]
) -> Plot:
    """Phase portrait of picked rows.

    Args:
        paths: row -> its states, ordered in time.
        axes: the columns on x and y; names: what they are called.
    """
    plot = Plot(names[0], names[1])
    for k, (row, path) in enumerate(paths.items()):
        x, y = path[axes[0]].to_numpy(), path[axes[1]].to_numpy()
        colour = themed("highlights", k)
        plot.line(x, y, colour, f"row {row}", dash=DASHES[k % 6], width=1.4)
        if len(x):
            plot.points(x[-1:], y[-1:], colour, "dot")
    if plot.xs:
        room = 0.04 * (max(plot.xs) - min(plot.xs) or 1.0)
        plot.x_range = (min(plot.xs) - room, max(plot.xs) + room)
    return plot


def trajectories(paths: "Mapping[int, pd.DataFrame]", column: str, name: str) -> Plot:
    """One component of picked rows over time (arguments as in `phase`)."""
    plot = Plot("t", name)
    for k, (row, path) in enumerate(paths.items()):
        plot.line(
            path["t"], path[column], themed("highlights", k), f"row {row}", dash=DASHES[k % 6],
            read=f"row {row}",
        )  # fmt: skip
    return plot


def _reach(frame: "pd.DataFrame", x_max: int | None) -> tuple[float, float]:
    last = float(frame["attempt"].max()) + 1 if len(frame) else 1.0
    return 0.0, max(last, float(x_max or 0))


def colour_codes(labels: Mapping[int, str], column: str) -> list[dict[str, Any]]:
    """Return what the raster needs to draw the codes `0, 1, ...` of a labelled column."""
    described = []
    for place, code in enumerate(sorted(labels)):
        word = labels[code]
        if column == "accepted":
            colour = themed("accepted" if code else "refused")
        elif column == "limiter":
            colour = limiter_colour(word, place)
        else:
            colour = themed("highlights", place)
        described.append({"label": word.replace("_", " "), "color": colour})
    return described
