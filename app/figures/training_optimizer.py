"""How does the optimizer step?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.panels import Panel, between, drawn, known, numbers, panels
from app.figures.style import DASHES, empty_figure
from app.theme import Theme

MOST = 300
MOST_LINES = 4  # of parts of a model, and of an optimizer's own statistics


def training_optimizer_figure(table: pd.DataFrame, colours: Theme) -> go.Figure:
    """Draw the norm of the gradient, learning rate and update, and what the optimizer tells.

    Args:
        table: `iteration` and `grad_norm, grad_norm/<part>, lr, update_ratio, optim_<name>`, as
            `Run.iterations` gives; what is missing is left out.
    """
    told = [n for n in table.columns if str(n).startswith("optim_") and known(table, str(n))]
    norms = [n for n in table.columns if str(n).startswith("grad_norm") and known(table, str(n))]
    steps = [n for n in ("lr", "update_ratio") if known(table, n)]
    if table.empty or not (told or norms or steps):
        return empty_figure(colours, "No optimizer was watched: inspector.watch(model, optimizer).")
    groups = [
        (Panel("norm of the gradient", 1.0, True), norms[: MOST_LINES + 1]),
        (Panel("rate, share", 0.8, True), steps),
        (Panel("of the optimizer", 0.8, _wide(table, told[:MOST_LINES])), told[:MOST_LINES]),
    ]
    groups = [(panel, names) for panel, names in groups if names]
    figure = panels(colours, "iteration", [p for p, _ in groups], height=150 + 130 * len(groups))
    for number, (panel, names) in enumerate(groups, 1):
        for place, name in enumerate(names):
            seen = table[np.isfinite(numbers(table, name))]
            part = seen.iloc[drawn(MOST, numbers(seen, name))]
            values = numbers(part, name)
            colour = (colours.accepted, *colours.highlights)[place % 7]
            figure.add_scatter(
                x=numbers(part, "iteration"),
                y=np.where(values > 0, values, np.nan) if panel.log else values,
                yaxis="y" if number == 1 else f"y{number}", name=_title(str(name)),
                mode="lines+markers" if len(part) <= 40 else "lines", marker={"size": 4},
                line={"color": colour, "width": 1.6, "dash": DASHES[place % len(DASHES)]},
                hovertemplate=f"iteration %{{x}}<br>{_title(str(name))} %{{y:.4g}}<extra></extra>",
            )  # fmt: skip
    between(figure, numbers(table, "iteration"))
    return figure


def _title(name: str) -> str:
    """Return a column in words."""
    words = {"grad_norm": "gradient", "lr": "learning rate", "update_ratio": "update / parameters"}
    part = name.removeprefix("grad_norm/")
    return words.get(name, part.removeprefix("optim_").replace("_", " "))


def _wide(table: pd.DataFrame, names: list[str]) -> bool:
    values = np.concatenate([numbers(table, name) for name in names]) if names else np.empty(0)
    values = values[np.isfinite(values)]
    return bool(len(values)) and values.min() > 0 and values.max() > 100 * values.min()
