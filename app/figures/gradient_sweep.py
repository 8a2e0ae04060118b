"""How do error, memory and time of each gradient mode change with tolerance or steps?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.gradient_cost import SCALE, TITLES, nice_ticks
from app.figures.modes import drawn_errors, error_axis, height_for, looks
from app.figures.style import empty_figure, new_figure
from app.frames import floats, where
from app.theme import Theme

X_TITLES = {"rtol": "relative tolerance, looser to the right", "steps": "steps of each row"}
Y_TITLES = TITLES | {
    "error": "relative error",
    "error_exact": "relative error",
}


def gradient_sweep_figure(
    table: pd.DataFrame,
    colours: Theme,
    *,
    sweep: str,
    y: str,
    modes: list[str] | None = None,
    selected: float | None = None,
) -> go.Figure:
    """Draw one line a mode over what was varied, on log axes.

    Args:
        table: `value`, `mode` and `y`, as a comparison's `table` gives.
        sweep: `"rtol"` or `"steps"`.
        y: `"error"`, `"error_exact"`, `"peak_bytes"`, `"kept_bytes"` or `"seconds"`.
        modes: all modes in order, so that each keeps its look; None for those in `table`.
        selected: value that is marked by a vertical line.
    """
    is_error = y.startswith("error")
    if len(table):
        raw = floats(table, y)
        table = where(table, np.isfinite(raw) & ((raw >= 0) if is_error else (raw > 0)))
    if table.empty:
        return empty_figure(colours, "No mode has been measured yet.", height=280)
    found = list(dict.fromkeys(table["mode"]))
    height = height_for(len(found), 210)
    figure = new_figure(
        colours, X_TITLES[sweep], Y_TITLES[y], log_x=True, log_y=True, height=height
    )
    styles, all_values = looks(modes or found, colours), []
    for mode in found:
        part = where(table, table["mode"] == mode).sort_values("value")
        raw = floats(part, y)
        values = drawn_errors(raw) if is_error else raw * SCALE[y]
        all_values.append(values)
        look = styles[mode]
        figure.add_scatter(
            x=floats(part, "value"),
            y=values,
            mode="lines+markers",
            name=mode,
            line={"color": look.colour, "width": 1.7, "dash": look.dash},
            marker={"color": look.colour, "symbol": look.symbol, "size": 8},
            customdata=raw if is_error else values,
            hovertemplate="at %{x:.3~g}: %{customdata:.3~g}<extra>" + mode + "</extra>",
        )
    x = floats(table, "value")
    figure.update_xaxes(nice_ticks(x.min(), x.max()) if sweep == "steps" else {"dtick": 1})
    if is_error:
        figure.update_yaxes(**error_axis(*all_values))
    else:
        whole = np.concatenate(all_values)
        figure.update_yaxes(**nice_ticks(float(whole.min()), float(whole.max())))
    if selected is not None:
        figure.add_vline(x=selected, line={"color": colours.muted, "width": 1.2, "dash": "dot"})
    return figure
