"""Counts of a solve that has not ended, from the steps stored so far."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from inspector import arrays
from inspector.store.state import SolveState, spread

if TYPE_CHECKING:
    from inspector.run import Run


class LiveCounts:
    """Attempts and progress of each instance of one solve, counted from its stored steps."""

    def __init__(self) -> None:
        self.n_steps = np.zeros(0, "i8")  # (B,) each
        self.n_accepted = np.zeros(0, "i8")
        self.t_reached = np.zeros(0, "f8")
        self._done: dict[str, int] = {}  # segment -> batches counted
        self.attempts = 0

    def update(self, run: "Run", solve: int) -> None:
        """Count the batches that came since the last update."""
        state = run.solve_state(solve)
        wanted = ["instance", "t", "dt", "accepted"]
        for segment, batches in run.places(solve):
            done = self._done.get(segment.name, 0)
            for _, columns in segment.load(batches[done:], wanted):
                self._add(columns)
            self._done[segment.name] = len(batches)
        self.attempts = arrays.attempts_stored(run, solve)
        self._grow(state.batch, state)

    def _add(self, columns: Mapping[str, np.ndarray]) -> None:
        instance, accepted = columns["instance"], columns["accepted"] != 0
        if len(instance) and instance.min() >= 0:
            self._grow(int(instance.max()) + 1, None)
            size = len(self.n_steps)
            self.n_steps += np.bincount(instance, minlength=size)
            self.n_accepted += np.bincount(instance[accepted], minlength=size)
            # rows are in order of attempt, so the last one of an instance is the one that stays
            self.t_reached[instance[accepted]] = (columns["t"] + columns["dt"])[accepted]

    def _grow(self, size: int, state: SolveState | None) -> None:
        more = size - len(self.n_steps)
        if more > 0:
            self.n_steps = np.concatenate([self.n_steps, np.zeros(more, "i8")])
            self.n_accepted = np.concatenate([self.n_accepted, np.zeros(more, "i8")])
            self.t_reached = np.concatenate([self.t_reached, np.full(more, np.nan)])
        if state is not None and state.batch == len(self.t_reached):
            t0 = spread(state.start.get("t0"), state.batch)
            self.t_reached = np.where(np.isnan(self.t_reached), t0, self.t_reached)
