"""What changed between two runs, in sum and row by row?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import HEIGHT, MOST_MARKERS, empty_figure, even, hatched, new_figure
from app.frames import floats, where
from app.theme import Theme


def comparison_bars_figure(
    differences: pd.DataFrame, colours: Theme, *, a: str = "A", b: str = "B"
) -> go.Figure:
    """Draw by how many percent each quantity of run B is above (or below) run A.

    Args:
        differences: `quantity`, `a`, `b`, `percent`, as `compare` gives.
            Lines without a finite percentage are left out.
        a, b: what the runs are called.
    """
    shown = differences
    if len(shown):
        shown = where(shown, np.isfinite(floats(shown, "percent")))
    if shown.empty:
        return empty_figure(colours, "These runs share no quantity that can be compared.")
    figure = new_figure(
        colours, f"change from {a} to {b}  [%]", "", height=max(HEIGHT, 80 + 34 * len(shown))
    )
    percent = floats(shown, "percent")
    said = [f"{value:+.1f} %" if abs(value) >= 0.05 else "the same" for value in percent]
    label = np.array([f"{q}  {t}" for q, t in zip(shown["quantity"], said, strict=True)])
    for on, name, colour, pattern in (
        (percent <= 0, "less or the same", colours.accepted, ""),
        (percent > 0, "more", colours.refused, "/"),
    ):
        if not on.any():
            continue
        part = where(shown, on)
        figure.add_bar(
            orientation="h",
            y=label[on].tolist(),
            x=percent[on],
            name=name,
            marker=hatched(colour, pattern, colours),
            customdata=np.stack([floats(part, "a"), floats(part, "b")], axis=-1),
            hovertemplate=f"%{{y}}<br>{a}: %{{customdata[0]:,.6~g}}"
            f"<br>{b}: %{{customdata[1]:,.6~g}}<extra></extra>",
        )
    low, high = min(percent.min(), 0.0), max(percent.max(), 0.0)
    room = 0.05 * max(high - low, 1.0)
    figure.update_xaxes(range=[low - room, high + room])
    figure.update_xaxes(zeroline=True, zerolinecolor=colours.muted, zerolinewidth=1.4)
    figure.update_yaxes(categoryorder="array", categoryarray=label[::-1].tolist(), showgrid=False)
    figure.update_layout(barmode="overlay", bargap=0.25)
    return figure


def comparison_scatter_figure(
    paired: pd.DataFrame, colours: Theme, *, a: str = "A", b: str = "B"
) -> go.Figure:
    """Draw a point a row: its attempts in run A against those in run B, equal ones on the diagonal.

    Args:
        paired: `instance`, `a`, `b` [attempts].
    """
    whole = paired
    if len(whole):
        whole = where(whole, (floats(whole, "a") > 0) & (floats(whole, "b") > 0))
    if whole.empty:
        return empty_figure(colours, "These runs share no row.")
    shown = whole.iloc[even(len(whole), MOST_MARKERS)]
    x, y = floats(shown, "a"), floats(shown, "b")
    figure = new_figure(
        colours, f"attempts in {a}", f"attempts in {b}", log_x=True, log_y=True, height=318
    )
    low, high = min(x.min(), y.min()) / 1.15, max(x.max(), y.max()) * 1.15
    figure.add_scatter(
        x=[low, high],
        y=[low, high],
        mode="lines",
        name="equal",
        line={"color": colours.ghost, "width": 1.4, "dash": "dash"},
        hoverinfo="skip",
    )
    for on, name, symbol, colour in (
        (y <= x, f"{b} needs no more", "circle", colours.accepted),
        (y > x, f"{b} needs more", "diamond-open", colours.refused),
    ):
        if not on.any():
            continue
        figure.add_scatter(
            x=x[on],
            y=y[on],
            mode="markers",
            name=f"{name} ({int(on.sum()):,} rows)",
            marker={"symbol": symbol, "size": 7, "color": colour, "opacity": 0.85},
            customdata=shown["instance"].to_numpy()[on],
            hovertemplate=f"row %{{customdata}}<br>{a}: %{{x:,}}<br>{b}: %{{y:,}}<extra></extra>",
        )
    ends = [np.log10(low), np.log10(high)]
    figure.update_xaxes(range=ends)
    figure.update_yaxes(range=ends)
    return figure
