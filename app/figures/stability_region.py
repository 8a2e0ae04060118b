"""Where is the method stable, and where were the steps?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import DASHES, HIGHLIGHTED, empty_figure, even, new_figure, rgba
from app.frames import by_instance, floats, where
from app.theme import Theme
from inspector.stability import Rational, amplification, limit

GRID = 160  # points along each axis
MOST_POINTS = 1_500
SYMBOLS = ("circle", "diamond", "square", "cross", "triangle-up", "star")


def stability_region_figure(
    function: Rational | None,
    steps: pd.DataFrame,
    colours: Theme,
    *,
    spectrum: pd.DataFrame | None = None,
) -> go.Figure:
    """Draw the region |R(z)| <= 1 with the z = h lambda of accepted steps, coloured by time.

    Args:
        function: stability function, numerator and denominator by rising powers; None if the method
            has none.
        steps: `instance`, `t`, `stiffness`, `stiffness_real`, `accepted`.
        spectrum: exact eigenvalues times h, `t, real, imaginary`, drawn as rings.
    """
    if function is None:
        return empty_figure(
            colours, "This method has no stability function of one step, or it was not recorded."
        )
    if steps.empty:
        return empty_figure(colours, "No step of these rows is recorded.")
    x, y, time, row = points(steps)
    span = window(function, x, y, spectrum)
    real = np.linspace(*span[:2], GRID)
    imaginary = np.linspace(*span[2:], GRID)
    size = amplification(function, real[None, :] + 1j * imaginary[:, None])
    figure = new_figure(colours, "Re(h λ)", "Im(h λ)", height=440)
    with np.errstate(divide="ignore"):
        level = np.clip(np.nan_to_num(np.log(size), nan=3.0), -3, 3).astype("f4")
    # A constraint is drawn where it does not hold.
    figure.add_contour(
        x=real.astype("f4"), y=imaginary.astype("f4"), z=level, showscale=False, hoverinfo="skip",
        contours={"type": "constraint", "operation": ">", "value": 0},
        fillcolor=rgba(colours.accepted, 0.2), line={"color": colours.accepted, "width": 1.5},
        name="stable: |R(z)| ≤ 1", showlegend=True,
    )  # fmt: skip
    rows = np.unique(row).astype(int)[:HIGHLIGHTED]
    bounds = {"cmin": float(np.nanmin(time)), "cmax": float(np.nanmax(time))} if len(time) else {}
    for i, one in enumerate(rows):
        mine = np.flatnonzero(row == one)
        kept = mine[even(len(mine), MOST_POINTS // max(len(rows), 1))]
        figure.add_scatter(
            x=x[kept], y=y[kept], mode="markers", name=f"row {one}",
            marker={
                "symbol": SYMBOLS[i], "size": 7, "color": time[kept], "colorscale": "Cividis",
                "line": {"width": 0.6, "color": colours.text}, "showscale": i == 0,
                "colorbar": {"title": {"text": "time t"}, "thickness": 10, "len": 0.9}, **bounds,
            },
            customdata=np.stack([time[kept], np.hypot(x[kept], y[kept])], axis=-1),
            hovertemplate="t %{customdata[0]:.5g}<br>|h λ| %{customdata[1]:.3g}"
            f"<extra>row {one}</extra>",
        )  # fmt: skip
    if spectrum is not None and not spectrum.empty:
        figure.add_scatter(
            x=floats(spectrum, "real"), y=floats(spectrum, "imaginary"), mode="markers",
            name="exact spectrum", customdata=floats(spectrum, "t"),
            marker={"symbol": "circle-open", "size": 11, "color": colours.refused,
                    "line": {"width": 1.8}},
            hovertemplate="exact, t %{customdata:.5g}<br>%{x:.4g} + %{y:.4g} i<extra></extra>",
        )  # fmt: skip
    figure.add_vline(x=0, line={"color": colours.grid, "width": 1})
    figure.add_hline(y=0, line={"color": colours.grid, "width": 1})
    figure.update_xaxes(range=list(span[:2]), showgrid=False)
    figure.update_yaxes(range=list(span[2:]), showgrid=False)
    return figure


def points(steps: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return real and imaginary part of h lambda, time and row of accepted steps that are known."""
    if steps.empty or "stiffness" not in steps or "stiffness_real" not in steps:
        none = np.zeros(0)
        return none, none, none, none
    taken = where(steps, floats(steps, "accepted") != 0)
    size, real = floats(taken, "stiffness"), floats(taken, "stiffness_real")
    known = np.isfinite(size) & np.isfinite(real)
    imaginary = np.sqrt(np.clip(size**2 - real**2, 0, None))
    imaginary = np.where(imaginary < 0.02 * size, 0.0, imaginary)
    found = (real, imaginary, floats(taken, "t"), floats(taken, "instance"))
    return tuple(part[known] for part in found)  # pyright: ignore[reportReturnType]


def window(
    function: Rational, x: np.ndarray, y: np.ndarray, spectrum: pd.DataFrame | None
) -> tuple[float, float, float, float]:
    """Return what of the plane to draw: the region if it is bounded, and most of the points."""
    reach = min(limit(function), 30.0) or 1.0
    if spectrum is not None and not spectrum.empty:
        x, y = np.r_[x, floats(spectrum, "real")], np.r_[y, floats(spectrum, "imaginary")]
    if len(x):
        left, right = np.quantile(x, [0.02, 0.98])
        high = float(np.quantile(np.abs(y), 0.98))
    else:
        left, right, high = -reach, 0.0, 0.0
    unbounded = not np.isfinite(limit(function))
    width = max(abs(float(left)), abs(float(right)), 1.0)
    far = max(width * 1.2, 4.0) if unbounded else max(reach * 1.3, abs(float(left)) * 1.1)
    tall = max(high * 1.2, far * 0.6 if unbounded else reach * 1.25)
    return -far, max(float(right) * 1.2, 0.25 * far), -tall, tall


def stiffness_figure(
    steps: pd.DataFrame, colours: Theme, *, reach: float, rows: Sequence[int]
) -> go.Figure:
    """Draw |h lambda| over time with the method's limit as a line.

    Args:
        steps: `instance`, `t`, `stiffness`, `accepted`.
        reach: how far the method is stable along the negative real axis; inf for no line.
        rows: instances, at most six are drawn.
    """
    if steps.empty or "stiffness" not in steps or np.isnan(floats(steps, "stiffness")).all():
        return empty_figure(colours, "The stiffness was not recorded (statistic stiffness).")
    figure = new_figure(colours, "time t", "|h λ|  [1]", log_y=True, height=300)
    groups = by_instance(where(steps, floats(steps, "accepted") != 0))
    for i, row in enumerate([row for row in rows if row in groups][:HIGHLIGHTED]):
        part = groups[row]
        kept = even(len(part), MOST_POINTS)
        values = floats(part, "stiffness")[kept]
        figure.add_scatter(
            x=floats(part, "t")[kept], y=np.where(values > 0, values, np.nan), mode="lines",
            name=f"row {row}",
            line={"width": 1.6, "color": colours.highlights[i], "dash": DASHES[i]},
            hovertemplate=f"t %{{x:.5g}}<br>|h λ| %{{y:.3g}}<extra>row {row}</extra>",
        )  # fmt: skip
    ends = floats(steps, "t")
    if np.isfinite(reach):
        figure.add_scatter(
            x=[float(np.nanmin(ends)), float(np.nanmax(ends))], y=[reach, reach], mode="lines",
            name=f"stable up to {reach:.3g}", hoverinfo="skip",
            line={"color": colours.refused, "dash": "dash", "width": 1.5},
        )  # fmt: skip
    values = floats(steps, "stiffness")
    known = values[np.isfinite(values) & (values > 0)]
    if len(known):  # single attempts may be far off
        low, high = np.quantile(known, [0.01, 0.99])
        figure.update_yaxes(range=ends_of(low, max(high, reach if np.isfinite(reach) else high)))
    return figure


def ends_of(low: float, high: float) -> list[float]:
    """Return both ends of a logarithmic axis, at least a decade apart and a little beyond."""
    first, last = np.log10(low), np.log10(high)
    missing = max(0.0, 1.0 - (last - first)) / 2
    return [float(first - missing - 0.1), float(last + missing + 0.1)]
