"""Attempts of one row gathered into few bars that tile the x axis without gaps."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from app.figures.step_size import X
from app.frames import floats, ints


class Groups(NamedTuple):
    """Runs of consecutive attempts: `of (n,)` is the group of each attempt, the rest per group."""

    of: NDArray[np.intp]  # (n,)
    first: NDArray[np.int64]  # (g,) attempt numbers, inclusive
    last: NDArray[np.int64]
    left: NDArray[np.float64]  # (g,) where the bar begins, on the x axis
    width: NDArray[np.float64]

    @property
    def middle(self) -> NDArray[np.float64]:
        """Centre of each bar, `(g,)`."""
        return self.left + self.width / 2

    def mean(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of `values (n,)` in each group, `(g,)`, of those that are finite."""
        whole = np.isfinite(values)
        size = len(self.left)
        total = np.bincount(self.of[whole], weights=values[whole], minlength=size)
        count = np.bincount(self.of[whole], minlength=size)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def group_attempts(steps: pd.DataFrame, x: X, most: int) -> Groups:
    """Gather the attempts of one row, in order, into at most `most` groups of equal count.

    Over `t` a bar reaches from the start of its first attempt to the start of the next group, so
    accepted steps tile the axis; over `attempt` every attempt is one wide.

    Args:
        steps: `attempt`, `t`, `dt` [time], `accepted`; not empty.
    """
    n = len(steps)
    size = max(1, -(-n // most))
    of = np.arange(n) // size
    starts = np.arange(0, n, size)
    ends = np.append(starts[1:], n) - 1
    attempt = ints(steps, "attempt")
    if x == "attempt":
        left = attempt[starts] - 0.5
        right = attempt[ends] + 0.5
    else:
        t = floats(steps, "t")
        taken = ints(steps, "accepted")[-1] != 0
        last = t[-1] + floats(steps, "dt")[-1] * taken
        left = t[starts]
        right = np.append(left[1:], last)
    low, high = np.minimum(left, right), np.maximum(left, right)
    return Groups(of, attempt[starts], attempt[ends], low, high - low)
