"""Which method reaches an accuracy with the least work?"""

from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.gradient_cost import nice_ticks
from app.figures.modes import drawn_errors, error_axis, looks
from app.figures.style import empty_figure, even, new_figure, rgba
from app.frames import floats, where
from app.theme import Theme

TITLES: Final = {
    "end_error": "error at the end, relative",
    "trajectory_error": "largest error along the way, relative",
    "gradient_error": "error of the gradient, relative",
    "n_f_evals": "evaluations of a row",
    "n_steps": "attempts of a row",
    "n_rejected": "refused attempts of a row",
    "n_jac_evals": "Jacobians of a row",
    "seconds": "time of the batch  [s]",
    "peak_bytes": "peak memory of the solve  [MiB]",
    "graph_bytes": "kept for the gradient  [MiB]",
}
ERRORS: Final = ("end_error", "trajectory_error", "gradient_error")
CLOUD: Final = 1_500


def work_precision_figure(
    table: pd.DataFrame,
    colours: Theme,
    *,
    x: str,
    y: str,
    spread: bool = True,
    cloud: pd.DataFrame | None = None,
    front: pd.DataFrame | None = None,
    doubt: float = float("nan"),
) -> go.Figure:
    """Draw one measure against another, a line a method, on log axes: best is bottom left.

    Args:
        table: `method, setting, solve, failed` (hollow where rows failed) and, for x and y, the
            median over rows and the ends of its spread as `<name>, <name>_low, <name>_high`.
        x, y: names in `TITLES`.
        spread: whether bars from the least to the most of all rows are drawn.
        cloud: `method, setting, instance` with both measures: a small point for every row.
        front: lines of `table` that no other beats in both, by rising x; joined by a pale line.
        doubt: of the reference: errors below it say nothing.
    """
    if len(table):
        table = where(table, (drawn(table, x) > 0) & (drawn(table, y) > 0))
    if table.empty:
        return empty_figure(colours, "Nothing has been measured in both of these yet.", height=420)
    names = list(dict.fromkeys(table["method"]))
    styles = looks(names, colours)
    figure = new_figure(colours, TITLES[x], TITLES[y], log_x=True, log_y=True)
    figure.update_layout(height=390 + 20 * -(-len(names) // 6))
    if front is not None and len(front) > 1:
        figure.add_scatter(
            x=drawn(front, x), y=drawn(front, y), mode="lines", name="best of all",
            line={"color": colours.ghost, "width": 9}, opacity=0.35, hoverinfo="skip",
        )  # fmt: skip
    for name in names:
        look = styles[name]
        if cloud is not None and {x, y} <= set(cloud):
            own = where(cloud, (cloud["method"] == name).to_numpy())
            own = own.iloc[even(len(own), CLOUD // len(names))]
            figure.add_scatter(
                x=drawn(own, x), y=drawn(own, y), mode="markers", name=name, showlegend=False,
                marker={"color": look.colour, "symbol": look.symbol, "size": 3.5}, opacity=0.4,
                customdata=np.stack([own["setting"], own["instance"]], axis=-1),
                hovertemplate="%{customdata[0]}, row %{customdata[1]}"
                f"<extra>{name}</extra>",
            )  # fmt: skip
        part = where(table, (table["method"] == name).to_numpy())
        figure.add_scatter(
            x=drawn(part, x), y=drawn(part, y), mode="lines+markers", name=name,
            line={"color": look.colour, "width": 1.6, "dash": look.dash},
            marker={
                "color": look.colour,
                "symbol": [f"{look.symbol}{'-open' if n else ''}" for n in floats(part, "failed")],
                "size": 9,
            },
            error_x=bars(part, x, look.colour) if spread else None,
            error_y=bars(part, y, look.colour) if spread else None,
            customdata=np.stack([part["setting"], part["solve"]], axis=-1),
            hovertemplate=f"%{{customdata[0]}}<br>{TITLES[x]}: %{{x:.4~g}}"
            f"<br>{TITLES[y]}: %{{y:.2~g}}<extra>{name}</extra>",
        )  # fmt: skip
    finish(figure, "x", table, x, doubt, colours)
    finish(figure, "y", table, y, doubt, colours)
    return figure


def finish(
    figure: go.Figure, axis: str, table: pd.DataFrame, name: str, doubt: float, colours: Theme
) -> None:
    """Set an axis's ends and ticks, and mark where the reference itself is in doubt."""
    ends = [drawn(table, f"{name}{end}") for end in ("", "_low", "_high")]
    values = np.concatenate(ends)
    values = values[np.isfinite(values) & (values > 0)]
    update = figure.update_xaxes if axis == "x" else figure.update_yaxes
    if name in ERRORS:
        update(**error_axis(values))
        if doubt > 0 and values.min() < doubt * 3:
            line = figure.add_vline if axis == "x" else figure.add_hline
            line(
                doubt, line={"color": colours.muted, "dash": "dot", "width": 1.2},
                annotation={"text": "the reference's own error", "font": {"color": colours.muted}},
            )  # fmt: skip
        return
    low, high = np.log10(values.min()), np.log10(values.max())
    room = max(0.06 * (high - low), 0.08)
    update(range=[low - room, high + room], **nice_ticks(10**low, 10**high))


def drawn(table: pd.DataFrame, name: str) -> np.ndarray:
    """Return a measure as it is drawn: errors of 0 at the floor, bytes as MiB."""
    if name not in table:
        return np.full(len(table), np.nan)
    values = floats(table, name)
    if name.startswith(ERRORS):
        return drawn_errors(values)
    return values * 2.0**-20 if "bytes" in name else values


def bars(part: pd.DataFrame, name: str, colour: str) -> dict[str, object]:
    """Return the bars from least to most of all rows around the median."""
    middle = drawn(part, name)
    return {
        "type": "data",
        "symmetric": False,
        "array": np.nan_to_num(drawn(part, f"{name}_high") - middle),
        "arrayminus": np.nan_to_num(middle - drawn(part, f"{name}_low")),
        "color": rgba(colour, 0.45),
        "thickness": 1,
        "width": 2,
    }
