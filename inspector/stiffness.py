"""What stiffness did to a solve: shares of what limited the steps, and rows ranked by it."""

from typing import TYPE_CHECKING

import numpy as np

from inspector.diagnosis.case import Case
from inspector.diagnosis.stability_limited import limited_by_stability, near_limit
from inspector.stability import limit

if TYPE_CHECKING:
    import pandas as pd

    from inspector.run import Run


def limited_shares(run: "Run", solve: int = 0, bins: int = 100) -> "pd.DataFrame":
    """Return what limited the steps, stability apart from accuracy, as shares of the attempts.

    Returns:
        `attempt` (the middle of its bin) and a column for each cause that occurs: "stability",
        "accuracy" and the labels of the statistic `limiter`. Only `attempt` where that was not
        recorded. Without `stiffness` nothing counts as stability.

    Raises:
        KeyError: the run has no such solve.
    """
    import pandas as pd

    case = Case(run, solve)
    if not case.has("limiter"):
        return pd.DataFrame({"attempt": np.zeros(0)})
    labels = run.columns["limiter"]["labels"]
    code = case.column("limiter").astype("i8")
    unstable = limited_by_stability(case)
    attempt = case.column("attempt")
    edges = np.linspace(
        0, int(attempt.max(initial=0)) + 1, min(bins, attempt.max(initial=0) + 1) + 1
    )
    place = np.clip(np.searchsorted(edges, attempt, "right") - 1, 0, len(edges) - 2)
    total = np.bincount(place, minlength=len(edges) - 1)
    there = total > 0
    frame = pd.DataFrame({"attempt": ((edges[:-1] + edges[1:] - 1) / 2)[there]})
    marks = {"stability": unstable}
    marks |= {word: (code == number) & ~unstable for number, word in sorted(labels.items())}
    for word, mark in marks.items():
        if mark.any():
            share = np.bincount(place, weights=mark, minlength=len(total))
            frame[word] = share[there] / total[there]
    return frame


def held_by_stability(run: "Run", solve: int, row: int) -> np.ndarray:
    """Return which attempts of a row stability limited, `(n,)` bool, as `Run.steps` orders them."""
    steps, case = run.steps(solve, row), Case(run, solve)
    function = case.stability
    known = function is not None and case.explicit and "stiffness" in steps
    if function is None or not known:
        return np.zeros(len(steps), bool)
    held = near_limit(steps["stiffness"].to_numpy(dtype="f8"), limit(function))
    if "limiter" in steps:
        held &= steps["limiter"].to_numpy() == 0
    return held


def ranking(run: "Run", solve: int = 0) -> "pd.DataFrame":
    """Return rows ranked by stiffness: the time they spend at the limit, then how stiff they are.

    Returns:
        `instance, stability_share` (of its attempts limited by stability), `stiffness_median`,
        `stiffness_max` (|h lambda|), `radius_median`, `radius_max` (|lambda|, 1 / time), `n_steps`;
        empty if `stiffness` was not recorded.

    Raises:
        KeyError: the run has no such solve.
    """
    import pandas as pd

    case = Case(run, solve)
    names = ["instance", "stability_share", "stiffness_median", "stiffness_max"]
    names += ["radius_median", "radius_max", "n_steps"]
    if not case.has("stiffness") or not len(case.starts):
        return pd.DataFrame({name: np.zeros(0) for name in names})
    stiffness, dt = case.column("stiffness").astype("f8"), case.dt
    radius = np.divide(stiffness, dt, out=np.full(len(dt), np.nan), where=dt > 0)
    share = case.per_row(limited_by_stability(case)) / case.lengths
    middle, most, middle_radius, most_radius = (
        np.array([pick(part) for part in np.split(values, case.starts[1:])])
        for values, pick in (
            (stiffness, _median), (stiffness, _high), (radius, _median), (radius, _high),
        )
    )  # fmt: skip
    rows = case.stepping_rows.astype("i8")
    values = (rows, share, middle, most, middle_radius, most_radius, case.lengths)
    frame = pd.DataFrame(dict(zip(names, values, strict=True)))
    order = ["stability_share", "stiffness_median"]
    return frame.sort_values(order, ascending=False, kind="stable", ignore_index=True)


def _median(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _high(values: np.ndarray) -> float:
    """Return what 95 % of the values stay below: single ones may be far off."""
    known = values[np.isfinite(values)]
    return float(np.quantile(known, 0.95)) if len(known) else float("nan")
