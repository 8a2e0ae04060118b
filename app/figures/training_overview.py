"""How does the loss fall, and what does the solver cost meanwhile?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from app.figures.panels import Panel, band, between, drawn, known, numbers, panels
from app.figures.style import MOST_MARKERS, empty_figure, even
from app.theme import Theme

MOST = 360  # iterations drawn, in about ten traces


def training_overview_figure(
    table: pd.DataFrame,
    colours: Theme,
    *,
    replaced: pd.DataFrame | None = None,
    ghost: pd.DataFrame | None = None,
    ghost_name: str = "other run",
    resumed: Sequence[float] = (),
    selected: float | None = None,
) -> go.Figure:
    """Draw loss, attempts of the rows, evaluations, refusals and failed rows over the iteration.

    Args:
        table: lines of `Run.iterations`, one for each iteration: `iteration, loss, solve`,
            `forward_steps_q05 .. _max`, `forward_nfe_median`, `backward_nfe_median`,
            `forward_steps`, `forward_refused`, `forward_failed`, `test`, `non_finite`; what is
            missing is left out.
        replaced: the same of iterations that a later session has taken over, drawn faint.
        ghost: the same of another training, dashed.
        resumed: iterations at which the training was started again.
        selected: iteration that is marked.
    """
    if table.empty:
        return empty_figure(colours, "No iteration is recorded yet.")
    loss = numbers(table, "loss")
    log = _positive(loss) and (ghost is None or _positive(numbers(ghost, "loss")))
    refused = (
        100 * numbers(table, "forward_refused") / np.maximum(numbers(table, "forward_steps"), 1)
    )
    parts = [
        Panel("loss", 1.0, log),
        Panel("attempts of a row", 1.0),
        Panel("evaluations of a row", 0.8),
        Panel("refused [%]", 0.45),
    ]
    figure = panels(colours, "iteration", parts, height=620)
    kept = drawn(MOST, loss, numbers(table, "forward_steps_max"))
    x = numbers(table, "iteration")[kept]
    solve = numbers(table, "solve")[kept]

    def line(
        values: np.ndarray, name: str, colour: str, yaxis: str, *, dash: str = "solid",
        width: float = 1.8, at: np.ndarray = x, custom: np.ndarray | None = solve,
    ) -> None:  # fmt: skip
        figure.add_scatter(
            x=at, y=values, yaxis=yaxis, name=name, customdata=custom, connectgaps=False,
            mode="lines+markers" if len(at) <= 40 else "lines", marker={"color": colour, "size": 4},
            line={"color": colour, "width": width, "dash": dash},
            hovertemplate=f"iteration %{{x}}<br>{name} %{{y:.4g}}<extra></extra>",
        )  # fmt: skip

    for other, name, dash in (
        (replaced, "replaced by a resume", "dot"),
        (ghost, ghost_name, "dash"),
    ):
        if other is None or other.empty:
            continue
        few = drawn(MOST // 3, numbers(other, "loss"))
        at = numbers(other, "iteration")[few]
        for column, axis in (("loss", "y"), ("forward_steps_median", "y2")):
            if known(other, column):
                label = name if axis == "y" else f"{name}, attempts"
                line(numbers(other, column)[few], label, colours.ghost, axis, dash=dash,
                     width=1.4, at=at, custom=None)  # fmt: skip
    values = loss[kept]
    line(np.where(np.isfinite(values), values, np.nan), "loss", colours.accepted, "y")
    _bad(figure, table, loss, colours)
    tests = numbers(table, "test")
    tested = np.flatnonzero(np.isfinite(tests) & ((tests > 0) | (not log)))
    if len(tested):
        tested = tested[even(len(tested), 100)]
        figure.add_scatter(
            x=numbers(table, "iteration")[tested], y=tests[tested], mode="markers", name="test",
            marker={"symbol": "diamond-open", "size": 8, "color": colours.highlights[0],
                    "line": {"width": 1.6}},
            hovertemplate="iteration %{x}<br>test %{y:.4g}<extra></extra>",
        )  # fmt: skip
    for low, high, colour, name in (
        ("q05", "q95", colours.band_outer, "5 to 95 % of rows"),
        ("q25", "q75", colours.band_inner, "25 to 75 %"),
    ):
        edges = [numbers(table, f"forward_steps_{edge}")[kept] for edge in (low, high)]
        band(figure, x, *edges, colour=colour, name=name, yaxis="y2")
    for column, name, colour, axis, dash in (
        ("forward_steps_median", "median row", colours.median, "y2", "solid"),
        ("forward_steps_max", "slowest row", colours.refused, "y2", "dot"),
        ("forward_nfe_median", "forward", colours.median, "y3", "solid"),
        ("backward_nfe_median", "backward", colours.highlights[0], "y3", "dash"),
        ("backward_pass_calls", "backward pass, calls", colours.highlights[1], "y3", "dashdot"),
    ):
        if known(table, column):
            line(numbers(table, column)[kept], name, colour, axis, dash=dash)
    if np.isfinite(refused).any():
        line(refused[kept], "refused", colours.refused, "y4")
    failed = np.flatnonzero(numbers(table, "forward_failed") > 0)
    if len(failed):
        failed = failed[even(len(failed), MOST_MARKERS // 8)]
        figure.add_scatter(
            x=numbers(table, "iteration")[failed], y=np.zeros(len(failed)), yaxis="y4",
            mode="markers", name=f"rows failed ({len(failed):,})",
            marker={"symbol": "x-thin", "size": 9, "color": colours.refused,
                    "line": {"color": colours.refused, "width": 2}},
            customdata=numbers(table, "solve")[failed],
            hovertemplate="iteration %{x}<br>rows failed<extra></extra>",
        )  # fmt: skip
    for at in resumed[:12]:
        figure.add_vline(x=at, line={"color": colours.muted, "width": 1.2, "dash": "dash"})
    if selected is not None:
        figure.add_vline(x=selected, line={"color": colours.primary, "width": 1.6})
    between(figure, numbers(table, "iteration"))
    for name in ("yaxis2", "yaxis3", "yaxis4"):
        figure.update_layout({name: {"rangemode": "tozero"}})
    figure.update_layout(hovermode="closest", clickmode="event+select")
    return figure


def _positive(values: np.ndarray) -> bool:
    finite = values[np.isfinite(values)]
    return bool(len(finite)) and bool((finite > 0).all()) and finite.max() > 20 * finite.min()


def _bad(figure: go.Figure, table: pd.DataFrame, loss: np.ndarray, colours: Theme) -> None:
    """Mark iterations in which a number that was logged is not finite, at the upper edge."""
    bad = np.flatnonzero(np.isinf(loss) | (numbers(table, "non_finite") > 0))
    if len(bad):
        bad = bad[even(len(bad), 200)]
        figure.add_scatter(
            x=numbers(table, "iteration")[bad], y=np.full(len(bad), 0.98), yaxis="y9",
            mode="markers", name=f"not finite ({len(bad):,})",
            marker={"symbol": "x-thin", "size": 9, "color": colours.refused,
                    "line": {"color": colours.refused, "width": 2}},
            hovertemplate="iteration %{x}<br>a logged number is not finite<extra></extra>",
        )  # fmt: skip
        figure.update_layout(
            yaxis9={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
        )
