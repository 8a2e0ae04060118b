"""Which samples of a data set are hard to solve, and how that changes while a model learns."""

from typing import TYPE_CHECKING, Any

import numpy as np

from inspector.progress import seen_samples
from inspector.store.state import spread

if TYPE_CHECKING:
    import pandas as pd

    from inspector.run import Run

_KEY = "samples"


class SampleVisits:
    """Every time a sample was solved; grows with the run, each line is read once."""

    def __init__(self) -> None:
        self._solves = 0
        self._codes: dict[Any, int] = {}
        self._parts: list[tuple[np.ndarray, ...]] = []

    def update(self, run: "Run") -> None:
        """Take the solves that came since the last update; those that have not ended wait."""
        for solve, iteration, ids, rows in seen_samples(run, self._solves):
            size = len(ids)
            codes = np.array([self._codes.setdefault(one, len(self._codes)) for one in ids], "i8")
            counts = [spread(rows.get(n), size, 0.0) for n in ("n_steps", "n_rejected", "status")]
            where = np.full(size, solve), np.full(size, iteration), np.arange(size)
            self._parts.append((codes, *where, *counts))
        ended = (i for i in range(self._solves, run.n_solves) if run.solve_state(i).end is None)
        self._solves = next(ended, run.n_solves)

    def frame(self) -> "pd.DataFrame":
        """Return `sample, visit, iteration, solve, instance, n_steps, n_rejected, failed`."""
        import pandas as pd

        names = ("code", "solve", "iteration", "instance", "n_steps", "n_rejected", "status")
        parts = [np.concatenate(each) for each in zip(*self._parts, strict=True)]
        frame = pd.DataFrame(
            dict(zip(names, parts, strict=True)) if parts else {name: [] for name in names}
        )
        frame["visit"] = frame.groupby("code").cumcount()
        words = np.array(list(self._codes), object)
        code = frame.pop("code").to_numpy("i8")
        frame.insert(0, "sample", words[code] if len(words) else code)
        frame["failed"] = frame.pop("status") > 0
        return frame


def visits(run: "Run") -> "pd.DataFrame":
    """Return one line for each time a sample was solved, in order.

    `sample, solve, iteration, instance, n_steps, n_rejected, visit, failed`; empty where no
    `sample_ids` were given.
    """
    held = run.cache.setdefault(_KEY, SampleVisits())
    assert isinstance(held, SampleVisits)
    held.update(run)
    return held.frame()


def hard_samples(run: "Run", most: int = 200) -> "pd.DataFrame":
    """Return the samples that took most attempts in their last visits, hardest first.

    Args:
        most: lines returned.

    Returns:
        `sample, visits, steps_first, steps_last, steps_mean, steps_max, refused, failed` and where
        it was solved last: `iteration, solve, instance`.
    """
    found = visits(run)
    grouped = found.groupby("sample", sort=False)
    table = grouped.agg(
        visits=("n_steps", "size"),
        steps_first=("n_steps", "first"),
        steps_last=("n_steps", "last"),
        steps_mean=("n_steps", "mean"),
        steps_max=("n_steps", "max"),
        refused=("n_rejected", "sum"),
        failed=("failed", "sum"),
        iteration=("iteration", "last"),
        solve=("solve", "last"),
        instance=("instance", "last"),
    ).reset_index()
    table = table.sort_values(
        ["failed", "steps_last", "steps_max"], ascending=False, kind="stable", ignore_index=True
    )
    whole = ("visits", "steps_first", "steps_last", "steps_max", "refused", "failed")
    return table.astype(dict.fromkeys(whole, "i8")).head(most)
