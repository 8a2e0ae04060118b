"""What does each gradient mode cost, and how right is it?"""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.modes import drawn_errors, error_axis, height_for, looks
from app.figures.style import empty_figure, new_figure
from app.frames import floats, where
from app.theme import Theme

TITLES = {
    "peak_bytes": "peak memory  [MiB]",
    "kept_bytes": "kept from forward to backward  [MiB]",
    "seconds": "forward and backward  [ms]",
}
SCALE = {"peak_bytes": 2.0**-20, "kept_bytes": 2.0**-20, "seconds": 1e3}


def gradient_cost_figure(table: pd.DataFrame, colours: Theme, *, x: str) -> go.Figure:
    """Draw the error of each mode against what it costs, both on log axes: best is bottom left.

    Args:
        table: `mode`, `error` [1], and the cost, as a comparison's `table` gives; one line a mode.
        x: `"peak_bytes"`, `"kept_bytes"` or `"seconds"`.
    """
    if len(table):
        table = where(table, np.isfinite(floats(table, "error")) & (floats(table, x) > 0))
    if table.empty:
        return empty_figure(colours, "No mode has been measured yet.")
    cost, raw = floats(table, x) * SCALE[x], floats(table, "error")
    error = drawn_errors(raw)
    figure = new_figure(
        colours,
        TITLES[x],
        "relative error",
        log_x=True,
        log_y=True,
        height=height_for(len(table)),
    )
    styles = looks(table["mode"], colours)
    for i, mode in enumerate(table["mode"]):
        look = styles[mode]
        figure.add_scatter(
            x=[cost[i]],
            y=[error[i]],
            mode="markers",
            name=mode,
            marker={"color": look.colour, "symbol": look.symbol, "size": 12},
            customdata=[raw[i]],
            hovertemplate=f"{TITLES[x]}: %{{x:.3~g}}<br>error %{{customdata:.2~g}}"
            f"<extra>{mode}</extra>",
        )
    figure.update_yaxes(**error_axis(error))
    low, high = np.log10(cost.min()), np.log10(cost.max())
    room = max(0.08 * (high - low), 0.12)
    figure.update_xaxes(range=[low - room, high + room], **nice_ticks(10**low, 10**high))
    return figure


def nice_ticks(low: float, high: float) -> dict[str, Any]:
    """Return ticks of a log axis at 1, 2, 5 of each decade, or at powers of ten if those crowd."""
    decades = range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 1)
    fine = [
        m * 10.0**d for d in decades for m in (1, 2, 5) if low / 1.3 <= m * 10.0**d <= high * 1.3
    ]
    ticks = fine if len(fine) <= 7 else [10.0**d for d in decades if low / 2 <= 10.0**d <= high * 2]
    if len(ticks) < 2:  # all values lie close together
        ticks = sorted({float(f"{low:.2g}"), float(f"{high:.2g}")})
    return {"tickmode": "array", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
