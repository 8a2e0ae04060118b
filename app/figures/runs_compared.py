"""Several runs beside each other: work over time, where it differs, paths, trainings."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from app.figures.style import DASHES, MOST_POINTS, empty_figure, new_figure, positive, thin
from app.frames import floats
from app.theme import SCALES, Theme

Array = NDArray[np.float64]


def hues(colours: Theme) -> list[str]:
    """Return a colour for the baseline and each of six runs."""
    return [colours.text, *colours.highlights]


def work_over_time_figure(
    edges: Array, work: Mapping[str, Array], colours: Theme, *, rows: Mapping[str, int]
) -> go.Figure:
    """Draw the attempts of an average row per unit of time; the first run is the baseline.

    Args:
        edges: `(bins + 1,)` of parts of time.
        work: attempts of all rows in each part, `(bins,)`, by run.
        rows: how many rows a run has.
    """
    if not work or not any(counts.any() for counts in work.values()):
        return empty_figure(colours, "These runs recorded no attempts.")
    figure = new_figure(colours, "time t", "attempts of a row per unit of time", height=300)
    width = np.diff(edges)
    for i, (name, counts) in enumerate(work.items()):
        rate = counts / width / max(rows[name], 1)
        figure.add_scatter(
            x=np.repeat(edges, 2)[1:-1], y=np.repeat(rate, 2), mode="lines", name=name,
            line={"color": hues(colours)[i % 7], "width": 2.4 if i == 0 else 1.6,
                  "dash": "dash" if i == 0 else DASHES[(i - 1) % len(DASHES)]},
            hovertemplate="t %{x:.4g}<br>%{y:.4g} attempts<extra></extra>",
        )  # fmt: skip
    figure.update_layout(showlegend=True)
    return figure


def work_difference_figure(
    edges: Array, instances: NDArray[np.int64], ratio: Array, colours: Theme, *, a: str, b: str
) -> go.Figure:
    """Draw where in time which row took more or fewer attempts in run B than in run A.

    Args:
        edges: `(bins + 1,)` of parts of time.
        instances: `(r,)` rows shown.
        ratio: `(r, bins)`, log2 of B's attempts over A's, from -3 to 3.
        a, b: what the runs are called.
    """
    if not ratio.size:
        return empty_figure(colours, "These runs share no row.", height=340)
    figure = new_figure(colours, "time t", "row", height=340)
    scale = SCALES["puor"][::-1]
    figure.add_heatmap(
        x=(edges[:-1] + edges[1:]) / 2, y=np.arange(len(instances), dtype="f8"),
        z=ratio.astype("f4"), name=f"{b} over {a}", zmin=-3, zmax=3,
        colorscale=[[i / (len(scale) - 1), colour] for i, colour in enumerate(scale)],
        colorbar={"title": {"text": "attempts, B over A", "side": "right"}, "thickness": 12,
                  "outlinewidth": 0, "tickvals": [-3, -2, -1, 0, 1, 2, 3],
                  "ticktext": ["1/8", "1/4", "1/2", "1", "2", "4", "8"],
                  "tickfont": {"color": colours.muted}},
        customdata=np.repeat(instances[:, None], ratio.shape[1], axis=1).astype("i4"),
        hovertemplate="row %{customdata}, t %{x:.4g}<br>2^%{z:.2f} times as many<extra></extra>",
    )  # fmt: skip
    shown = np.unique(np.linspace(0, len(instances) - 1, min(len(instances), 7)).round())
    figure.update_yaxes(
        tickvals=shown.tolist(), ticktext=[str(instances[int(i)]) for i in shown],
        autorange="reversed", showgrid=False,
    )  # fmt: skip
    return figure


def paths_figure(
    paths: Mapping[str, tuple[Array, Array]], colours: Theme, *, name: str
) -> go.Figure:
    """Draw one component of one row over time in every run; the first is the baseline, dashed.

    Args:
        paths: times and values `(n,)` by run.
        name: what the component is called.
    """
    if not paths:
        return empty_figure(colours, "No run recorded the states of this row.", height=300)
    figure = new_figure(colours, "time t", name, height=300)
    each = MOST_POINTS // len(paths)
    for i, (run, (t, y)) in enumerate(paths.items()):
        kept = thin(y, each)
        figure.add_scatter(
            x=t[kept], y=np.where(np.isfinite(y[kept]), y[kept], np.nan), mode="lines", name=run,
            line={"color": hues(colours)[i % 7], "width": 2.6 if i == 0 else 1.5,
                  "dash": "dash" if i == 0 else DASHES[(i - 1) % len(DASHES)]},
            hovertemplate="t %{x:.4g}<br>%{y:.5g}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(showlegend=True)
    return figure


def path_difference_figure(
    paths: Mapping[str, tuple[Array, Array]], colours: Theme, *, name: str, baseline: str
) -> go.Figure:
    """Draw how far each run's component is from the baseline's.

    Args:
        paths: times and differences `(n,)` by run.
        name: what the component is called.
        baseline: the run held to.
    """
    drawn = {run: (t, positive(y)) for run, (t, y) in paths.items()}
    drawn = {run: pair for run, pair in drawn.items() if np.isfinite(pair[1]).any()}
    if not drawn:
        return empty_figure(colours, "Nothing differs, or no states were recorded.", height=300)
    figure = new_figure(colours, "time t", f"|{name} - that of {baseline}|", log_y=True, height=300)
    each = MOST_POINTS // len(drawn)
    for run, (t, y) in drawn.items():
        i = list(paths).index(run) + 1
        kept = thin(y, each)
        figure.add_scatter(
            x=t[kept], y=y[kept], mode="lines", name=run,
            line={"color": hues(colours)[i % 7], "width": 1.6,
                  "dash": DASHES[(i - 1) % len(DASHES)]},
            hovertemplate="t %{x:.4g}<br>%{y:.2~g}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(showlegend=True)
    return figure


def trainings_figure(
    tables: Mapping[str, pd.DataFrame], colours: Theme, *, column: str, title: str, log: bool
) -> go.Figure:
    """Draw one number of several trainings over their iterations; the first is the baseline.

    Args:
        tables: `iteration` and the column, by run.
        column: what is drawn.
        title: of the axis, with its unit.
        log: whether on a log axis; what is not positive is left out.
    """
    known = {run: table for run, table in tables.items() if column in table and len(table)}
    if not known:
        return empty_figure(colours, f"No training recorded {title}.", height=280)
    figure = new_figure(colours, "iteration", title, log_y=log, height=280)
    order: Sequence[str] = list(tables)
    for run, table in known.items():
        i = order.index(run)
        y = positive(floats(table, column)) if log else floats(table, column)
        kept = thin(y, MOST_POINTS // len(known))
        figure.add_scatter(
            x=floats(table, "iteration")[kept], y=y[kept], mode="lines", name=run,
            line={"color": hues(colours)[i % 7], "width": 2.4 if i == 0 else 1.6,
                  "dash": "dash" if i == 0 else DASHES[(i - 1) % len(DASHES)]},
            hovertemplate="iteration %{x}<br>%{y:.4g}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(showlegend=True)
    return figure
