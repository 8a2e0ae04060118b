"""Runs side by side: work over time, states at the same times, numbers and settings of each."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from inspector import arrays, queries

if TYPE_CHECKING:
    import pandas as pd

    from inspector.run import Run

NUMBERS = (
    *("attempts", "refused", "evaluations", "attempts of the slowest", "attempts of the median"),
    *("failed instances", "seconds"),
)


def time_edges(run: "Run", solve: int, bins: int = 120) -> np.ndarray:
    """Return the edges `(bins + 1,)` of equal parts of the time that a solve covers, ascending."""
    low, high = np.inf, -np.inf
    for part in arrays.parts(run, solve, ["t", "dt"]):
        t, dt = part.columns["t"], part.columns["dt"]
        if len(t):
            low = min(low, float(np.min(t)), float(np.min(t + dt)))
            high = max(high, float(np.max(t)), float(np.max(t + dt)))
    if not low < high:
        low, high = 0.0, 1.0
    return np.linspace(low, high, bins + 1)


def work_over_time(run: "Run", solve: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count the attempts of each row in parts of time.

    Args:
        edges: `(bins + 1,)`, ascending.

    Returns:
        `instances (M,)` and their attempts that began in each part, `(M, bins)`.

    Raises:
        KeyError: the run has no such solve.
    """
    instances = arrays.recorded_instances(run, solve)
    bins = len(edges) - 1
    counts = np.zeros((int(instances.max(initial=-1)) + 1, bins))
    for part in arrays.parts(run, solve, ["t", "instance"]):
        t, row = part.columns["t"], part.columns["instance"]
        if not len(t):
            continue
        place = np.clip(np.searchsorted(edges, t, "right") - 1, 0, bins - 1)
        np.add.at(counts, (row, place), 1)
    return instances, counts[instances] if len(instances) else np.zeros((0, bins))


def work_difference(
    a: "Run", b: "Run", solve: int, edges: np.ndarray, rows: int = 256
) -> tuple[np.ndarray, np.ndarray]:
    """Compare the attempts of two runs, row by row, in parts of time.

    Returns:
        `instances (r,)` that both have, at most `rows` of them, and `log2` of B's attempts over
        A's, `(r, bins)`; 0 where neither has any, ends at -3 and 3.
    """
    (ours, before), (theirs, after) = (work_over_time(run, solve, edges) for run in (a, b))
    shared, at_a, at_b = np.intersect1d(ours, theirs, return_indices=True)
    kept = np.unique(np.linspace(0, max(len(shared) - 1, 0), rows).round().astype("i8"))
    kept = kept[kept < len(shared)]
    smooth = 0.5  # a part with a single attempt more or less is no factor of two
    ratio = np.log2((after[at_b[kept]] + smooth) / (before[at_a[kept]] + smooth))
    return shared[kept], np.clip(ratio, -3.0, 3.0).astype("f4")


def state_at(t: np.ndarray, y: np.ndarray, when: np.ndarray) -> np.ndarray:
    """Interpolate recorded states by cubic polynomials through the four nearest.

    Args:
        t: times `(n,)`, in the order solved.
        y: values `(n,)`.
        when: times `(m,)`; NaN is returned for those outside.
    """
    order = np.argsort(t, kind="stable")
    t, y = t[order], y[order]
    keep = np.append(True, np.diff(t) > 0) & np.isfinite(y)
    t, y = t[keep], y[keep]
    if len(t) < 4:
        return np.interp(when, t, y, np.nan, np.nan) if len(t) else np.full(len(when), np.nan)
    first = np.clip(np.searchsorted(t, when) - 2, 0, len(t) - 4)
    places = first[:, None] + np.arange(4)
    nodes, values = t[places], y[places]
    found = np.zeros(len(when))
    for i in range(4):
        weight = np.ones(len(when))
        for j in range(4):
            if j != i:
                weight *= (when - nodes[:, j]) / (nodes[:, i] - nodes[:, j])
        found += weight * values[:, i]
    return np.where((when >= t[0]) & (when <= t[-1]), found, np.nan)


def numbers_of(runs: Mapping[str, "Run"], solve: int = 0) -> "pd.DataFrame":
    """Return one line a run with what its solve took; the first is what the others are held to.

    Returns:
        `run`, each of `NUMBERS`, and as `<number> %` the change from the first run (NaN for it).
    """
    import pandas as pd

    first = next(iter(runs.values()))
    lines: list[dict[str, Any]] = []
    for name, run in runs.items():
        table = queries.compare(first, run, solve).set_index("quantity")
        line: dict[str, Any] = {"run": name}
        for number in NUMBERS:
            line[number] = float(table["b"].get(number, np.nan))
            change = float(table["percent"].get(number, np.nan))
            line[f"{number} %"] = np.nan if run is first else change
        lines.append(line)
    return pd.DataFrame(lines)
