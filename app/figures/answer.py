"""What does the answer to a query look like?"""

from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from app.figures.style import MOST_MARKERS, MOST_POINTS, empty_figure, even, new_figure, thin
from app.frames import floats, where
from app.theme import Theme

KINDS: Final = {"line": "lines", "points": "points", "bars": "bars"}
MOST_GROUPS: Final = 6
MOST_BARS: Final = 200


def answer_figure(
    table: pd.DataFrame, colours: Theme, *, x: str, y: str, kind: str = "line", group: str = ""
) -> go.Figure:
    """Draw one column of a table over another, a colour for each value of a third.

    Args:
        table: any.
        x, y: names of columns; y holds numbers, and x does unless bars are drawn.
        kind: a name in `KINDS`.
        group: name of a column; of its values the six that come most often are drawn.
    """
    if table.empty or x not in table or y not in table:
        return empty_figure(colours, "There is nothing to draw.", height=360)
    figure = new_figure(colours, x, y, height=360)
    if not group:
        parts = {y: table}
    else:
        names = list(table[group].value_counts().index[:MOST_GROUPS])
        parts = {f"{group} {n}": where(table, (table[group] == n).to_numpy()) for n in names}
    each = len(parts)
    for i, (name, part) in enumerate(parts.items()):
        colour = colours.highlights[i % 6] if group else colours.accepted
        values = floats(part, y)
        if kind == "bars":
            kept = np.arange(min(len(part), MOST_BARS // each))
        elif kind == "points":
            kept = even(len(part), MOST_MARKERS // each)
        else:
            kept = thin(values, MOST_POINTS // each)
        across = floats(part, x) if numeric(part[x]) else part[x].astype(str).to_numpy()
        if kind == "bars":
            figure.add_bar(x=across[kept], y=values[kept], name=name, marker={"color": colour})
            continue
        figure.add_scatter(
            x=across[kept], y=values[kept], name=name,
            mode="lines" if kind == "line" else "markers",
            line={"color": colour, "width": 1.6}, marker={"color": colour, "size": 6},
        )  # fmt: skip
    figure.update_layout(showlegend=bool(group))
    return figure


def numeric(values: pd.Series) -> bool:
    """Whether a column holds numbers."""
    return is_numeric_dtype(values) and not is_bool_dtype(values)
