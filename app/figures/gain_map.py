"""Which gains need the fewest attempts, as replay estimates it?"""

from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.style import empty_figure, new_figure
from app.frames import floats, where
from app.theme import SCALES, Theme

MARK: Final = "#ffffff"  # seen on every cell and, by its edge, on both backgrounds
INK: Final = "#1c2330"
VALUES: Final = {
    "attempts": "attempts of all rows, estimated",
    "refused": "refused attempts, estimated",
    "roughness": "roughness: mean of |ln factor|, estimated",
}


def gain_map_figure(
    table: pd.DataFrame, colours: Theme, *, value: str = "attempts", picked: str = ""
) -> go.Figure:
    """Draw an estimate over P and I gain as colours, presets and what was found as markers.

    Args:
        table: `phase, source, title, kp, ki, kd` and the value, as `tuning_table` gives; the
            lines of phase `"replay"` are drawn.
        value: a name in `VALUES`.
        picked: title of a line to mark.
    """
    if len(table):
        table = where(table, (table["phase"] == "replay").to_numpy())
    grid = where(table, (table["source"] == "grid").to_numpy()) if len(table) else table
    if grid.empty:
        return empty_figure(colours, "No gains have been replayed yet.", height=430)
    kp, ki = (np.unique(floats(grid, name)) for name in ("kp", "ki"))
    cells = np.full((len(ki), len(kp)), np.nan)
    places = np.searchsorted(ki, floats(grid, "ki")), np.searchsorted(kp, floats(grid, "kp"))
    cells[places] = floats(grid, value)
    figure = new_figure(colours, "P gain  kp", "I gain  ki", height=430)
    known = cells[np.isfinite(cells)]
    low = float(known.min()) if len(known) else 0.0
    high = float(np.quantile(known, 0.9)) if len(known) else 1.0  # a few bad corners say little
    figure.add_heatmap(
        x=kp, y=ki, z=cells.astype("f4"), name=VALUES[value], zmin=low, zmax=max(high, low + 1e-9),
        colorscale=[[i / (len(SCALES["cividis"]) - 1), c] for i, c in enumerate(SCALES["cividis"])],
        reversescale=True, xgap=1, ygap=1, hoverongaps=False,
        colorbar={"title": {"text": VALUES[value].split(",")[0].split(":")[0], "side": "right"},
                  "thickness": 12, "outlinewidth": 0, "tickfont": {"color": colours.muted}},
        hovertemplate=f"kp %{{x:.3g}}, ki %{{y:.3g}}<br>{VALUES[value]}: %{{z:,.4~g}}"
        "<extra></extra>",
    )  # fmt: skip
    best = where(table, (table["source"] == "grid").to_numpy())
    best = best.iloc[[int(np.nanargmin(floats(best, value)))]] if len(known) else best.head(0)
    kinds = (
        ("preset", "presets", "circle", 9),
        ("search", "found by search", "diamond", 10),
        ("recorded", "as recorded", "x", 11),
    )
    for source, name, symbol, size in kinds:
        marked(figure, where(table, (table["source"] == source).to_numpy()), value, name, symbol,
               size)  # fmt: skip
    marked(figure, best, value, "best of the grid", "star", 15)
    marked(figure, where(table, (table["title"] == picked).to_numpy()), value, "chosen",
           "square-open", 19)  # fmt: skip
    return figure


def marked(
    figure: go.Figure,
    part: pd.DataFrame,
    value: str,
    name: str,
    symbol: str,
    size: int,
) -> None:
    """Mark lines of the table that have gains and lie in or near the grid."""
    part = where(part, np.isfinite(floats(part, "kp")) & np.isfinite(floats(part, "ki")))
    if part.empty:
        return
    figure.add_scatter(
        x=floats(part, "kp"), y=floats(part, "ki"), mode="markers", name=name,
        marker={"symbol": symbol, "size": size, "color": INK if "open" in symbol else MARK,
                "line": {"width": 1.6, "color": INK}},
        customdata=np.stack([part["title"], floats(part, "kd"), floats(part, value)], axis=-1),
        hovertemplate="%{customdata[0]}: kp %{x:.3g}, ki %{y:.3g}, kd %{customdata[1]:.3g}<br>"
        f"{VALUES[value]}: %{{customdata[2]:,.4~g}}<extra></extra>",
    )  # fmt: skip
