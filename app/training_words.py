"""What a training's numbers say, in sentences: alerts with the numbers they rest on."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from app import explain
from app.frames import floats

Level = Literal["error", "warning", "info"]
PART = 10  # a tenth of the iterations at each end is compared
GROWN = 1.5  # a factor worth a word
REFUSED = 0.25  # share of attempts


class Alert(NamedTuple):
    """Something worth a look."""

    level: Level
    text: str


def merged(table: pd.DataFrame) -> pd.DataFrame:
    """Return one line for each iteration: means over the ranks, sums of failures, worst rows."""
    if table.empty or table["rank"].nunique() == 1:
        return table
    names = [str(name) for name in table.columns if name not in ("iteration", "adjoint")]
    how: dict[str, Any] = dict.fromkeys(names, "mean")
    how |= {n: "sum" for n in names if n in ("forward_failed", "backward_failed", "non_finite")}
    how |= {n: "max" for n in names if n.endswith("_max") or n == "time"}
    how |= {n: "min" for n in names if n in ("solve", "rank", "session")}
    return table.groupby("iteration", as_index=False).agg(how)


def alerts(table: pd.DataFrame) -> list[Alert]:
    """Return what stands out in the iterations that count, the worst first.

    Args:
        table: lines of `Run.iterations`, by iteration, one for each.
    """
    if table.empty:
        return []
    rules: tuple[Callable[[pd.DataFrame], Alert | None], ...] = (
        not_finite, failed, evaluations, refusals, gradient,
    )  # fmt: skip
    found = [alert for rule in rules if (alert := rule(table)) is not None]
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda alert: order[alert.level])


def column(table: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column `(n,)`, NaN where it is missing."""
    return floats(table, name) if name in table else np.full(len(table), np.nan)


def ends(values: np.ndarray) -> tuple[float, float]:
    """Return the medians of the first and the last tenth of the values that are there."""
    there = values[np.isfinite(values)]
    if len(there) < PART:
        return float("nan"), float("nan")
    size = max(1, len(there) // PART)
    return float(np.median(there[:size])), float(np.median(there[-size:]))


def not_finite(table: pd.DataFrame) -> Alert | None:
    """Name the iterations in which a logged number was not finite."""
    bad = np.flatnonzero(column(table, "non_finite") > 0)
    if not len(bad):
        return None
    first = int(floats(table, "iteration")[bad[0]])
    text = f"A logged number was not finite in {explain.count(len(bad))} iterations, "
    return Alert("error", text + f"first in iteration {first}.")


def failed(table: pd.DataFrame) -> Alert | None:
    """Name the iterations in which rows were not solved."""
    rows = np.nan_to_num(column(table, "forward_failed"))
    bad = np.flatnonzero(rows)
    if not len(bad):
        return None
    last = int(floats(table, "iteration")[bad[-1]])
    return Alert(
        "error",
        f"{explain.count(rows.sum())} rows could not be solved, in {explain.count(len(bad))} "
        f"iterations, the last time in iteration {last}. Their outputs are NaN.",
    )


def evaluations(table: pd.DataFrame) -> Alert | None:
    """Say if solving has become more expensive."""
    for name, words in (("forward_nfe_median", "A row"), ("backward_nfe_median", "Going back")):
        first, last = ends(column(table, name))
        if last > GROWN * first:
            text = f"{words} takes {explain.times(last / first)} the evaluations it took at first "
            text += f"({first:.0f} then, {last:.0f} now): the learnt field has become harder to "
            return Alert("warning", text + "solve.")
    return None


def refusals(table: pd.DataFrame) -> Alert | None:
    """Say if many attempts are refused."""
    steps = column(table, "forward_steps")
    first, last = ends(column(table, "forward_refused") / np.where(steps > 0, steps, np.nan))
    if last > REFUSED:
        return Alert(
            "warning",
            f"{explain.percent(last)} of the attempts are refused now, {explain.percent(first)} "
            "were at first: a controller with smaller gains wastes fewer.",
        )
    return None


def gradient(table: pd.DataFrame) -> Alert | None:
    """Say if the gradient has vanished or blown up."""
    first, last = ends(column(table, "grad_norm"))
    if last > 100 * first:
        return Alert("warning", f"The gradient has grown from {first:.2g} to {last:.2g}.")
    return None
