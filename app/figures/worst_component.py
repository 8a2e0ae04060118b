"""Which component of the state made the error of this row's steps?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.step_size import X_TITLES, X
from app.figures.style import MOST_MARKERS, empty_figure, even, new_figure, share_text
from app.theme import Theme


def worst_component_figure(
    steps: pd.DataFrame,
    colours: Theme,
    *,
    x: X = "t",
    x_range: Sequence[float] | None = None,
    names: Sequence[str] = (),
) -> go.Figure:
    """Mark, for each attempt of a row, the component with the largest share of the error.

    Args:
        steps: attempts of one row in order: `attempt`, `t`, `accepted` and
            `limiting_component` [index].
        names: what the components are called; their index where the list is shorter.
    """
    if steps.empty or "limiting_component" not in steps:
        return empty_figure(
            colours, "The worst component was not recorded (statistic limiting_component)."
        )
    component = steps["limiting_component"].to_numpy(dtype=np.int64)
    figure = new_figure(colours, X_TITLES[x], "component", x_range=x_range, height=170)
    accepted = steps["accepted"].to_numpy().astype(bool)
    for on, label, symbol, colour, size in (
        (accepted, "accepted", "circle", colours.accepted, 5),
        (~accepted, "refused", "x-thin", colours.refused, 7),
    ):
        at = np.flatnonzero(on & (component >= 0))
        if not len(at):
            continue
        at = at[even(len(at), MOST_MARKERS // 2)]
        figure.add_scatter(
            x=steps[x].to_numpy()[at],
            y=component[at],
            mode="markers",
            name=label,
            marker={
                "symbol": symbol,
                "size": size,
                "color": colour,
                "opacity": 0.8,
                "line": {"color": colour, "width": 1.6 if symbol == "x-thin" else 0},
            },
            customdata=steps["attempt"].to_numpy()[at],
            hovertemplate="attempt %{customdata}<br>component %{y}<extra></extra>",
        )
    low, high = int(component.min(initial=0)), int(component.max(initial=0))
    low = max(low, 0)
    if high - low <= 12:
        ticks = list(range(low, high + 1))
        share = {tick: np.mean(component == tick) for tick in ticks}
        figure.update_yaxes(
            tickvals=ticks,
            ticktext=[
                f"{names[tick] if tick < len(names) else tick}  {share_text(float(share[tick]))}"
                for tick in ticks
            ],
        )
    figure.update_yaxes(range=[low - 0.6, high + 0.6], zeroline=False)
    return figure
