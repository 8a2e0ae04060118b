"""One solve of a run as rules see it: its settings, counts, and steps sorted by row."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from inspector import arrays
from inspector.store.state import spread
from inspector.tables import per_instance, solve_line

if TYPE_CHECKING:
    import pandas as pd

    from inspector.run import Run

MOST_STEPS = 2_000_000  # attempts of all rows that are looked at
FEWEST_ROWS = 16
EXPLICIT = (1.0,)
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


@final
class Case:
    """What there is to judge by. Arrays of steps are sorted by instance, then attempt.

    Args:
        run: an open run.
        solve: number of the solve.
    """

    def __init__(self, run: "Run", solve: int) -> None:
        self.run, self.solve = run, solve
        self.start: Mapping[str, Any] = run.solve_state(solve).start
        self.end: Mapping[str, Any] = run.solve_state(solve).end or {}
        self.spec: Mapping[str, Any] = run.spec or {}
        self._read: dict[str, np.ndarray] = {}

    # Settings and counts, from the small files.

    @cached_property
    def line(self) -> dict[str, Any]:
        """The solve's line in `Run.solve_table`."""
        return solve_line(self.run, self.solve)

    @cached_property
    def each(self) -> dict[str, np.ndarray]:
        """`status, n_steps, n_accepted, n_rejected, n_f_evals, t0, t1, t_reached, component,
        message` of each instance, `(B,)`."""
        return per_instance(self.run, self.solve)

    @property
    def batch(self) -> int:
        """Number of instances B."""
        return len(self.each["status"])

    @property
    def dim(self) -> int:
        """Number of components D."""
        return int(self.start.get("dim") or 0)

    @property
    def n_steps(self) -> np.ndarray:
        """Attempts of each instance, `(B,)`."""
        return self.each["n_steps"].astype("f8")

    @property
    def rtol(self) -> float:
        """Relative tolerance, the smallest where they differ; NaN if not known."""
        return float(self.line["rtol"])

    @property
    def atol(self) -> float:
        """Absolute tolerance, the smallest where they differ; NaN if not known."""
        return float(self.line["atol"])

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.start.get("method") or "")

    @property
    def explicit(self) -> bool:
        """Whether the method is known to be explicit: its stability function is a polynomial."""
        known = self.stability
        return known is not None and tuple(known[1]) == EXPLICIT

    @property
    def stability(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Numerator and denominator of the stability function by rising powers, if recorded."""
        known = self.start.get("stability")
        if isinstance(known, list) and len(known) == 2:
            return tuple(np.atleast_1d(np.asarray(p, "f8")).tolist() for p in known)
        return None

    def eps(self, of: str = "dtype") -> float:
        """Return the distance of 1 to the next number, of `"dtype"` or `"time_dtype"`."""
        return EPS.get(str(self.start.get(of)).replace("complex64", "float32"), EPS["float64"])

    def setting(self, name: str, row: int | None = None) -> float:
        """Return a recorded number, of one row where rows differ; NaN if there is none."""
        values = spread(self.start.get(name), max(self.batch, 1))
        finite = values[np.isfinite(values)]
        if row is not None:
            return float(values[row])
        return float(finite.min()) if len(finite) else float("nan")

    # Steps.

    @cached_property
    def rows(self) -> np.ndarray:
        """Instances whose steps are looked at: all, or the slowest and some of the others."""
        recorded = arrays.recorded_instances(self.run, self.solve)
        recorded = recorded[recorded < self.batch]
        steps = self.n_steps[recorded]
        if steps.sum() <= MOST_STEPS or len(recorded) <= FEWEST_ROWS:
            return recorded
        ranked = np.argsort(-steps, kind="stable")
        keep = max(FEWEST_ROWS, int(len(recorded) * MOST_STEPS / steps.sum()))
        slow = ranked[: keep // 2]
        others = ranked[np.unique(np.linspace(keep // 2, len(ranked) - 1, keep // 2).astype(int))]
        return np.sort(recorded[np.union1d(slow, others)])

    @cached_property
    def attempts(self) -> tuple[int, int] | None:
        """Attempts that are looked at, half-open; None for all."""
        total = float(self.n_steps[self.rows].sum()) if len(self.rows) else 0.0
        if total <= 2 * MOST_STEPS:
            return None
        stored = arrays.attempts_stored(self.run, self.solve)
        return 0, max(1000, int(stored * 2 * MOST_STEPS / total))

    @property
    def note(self) -> str:
        """What of the steps is looked at, where that is not all; empty otherwise."""
        parts = []
        if len(self.rows) < len(arrays.recorded_instances(self.run, self.solve)):
            parts.append(f"{len(self.rows)} of {self.batch} rows, the slowest among them")
        if self.attempts is not None:
            parts.append(f"the first {self.attempts[1]} attempts")
        return f"solve {self.solve}: looked at " + ", ".join(parts) if parts else ""

    def has(self, name: str) -> bool:
        """Whether a column of the steps was recorded."""
        values = self.column(name)
        return bool(len(values)) and not bool(np.isnan(values.astype("f8")).all())

    def column(self, name: str) -> np.ndarray:
        """Return a column of the steps, `(N,)`, sorted by instance and attempt; NaN if missing."""
        if name not in self._read:
            self._load([name])
        return self._read[name]

    def _load(self, names: Sequence[str]) -> None:
        base = ["instance", "attempt", "t", "dt", "error_ratio", "accepted"]
        wanted = [*(base if "instance" not in self._read else []), *names]
        if "instance" not in self._read:
            stored = set(self.run.columns)
            wanted += [n for n in OFTEN if n in stored]
        wanted = list(dict.fromkeys(name for name in wanted if name not in self._read))
        rows = None if len(self.rows) == self.batch else self.rows.tolist()
        found = arrays.read(self.run, self.solve, wanted, rows, self.attempts)
        if "instance" in wanted:
            self._order = np.lexsort((found["attempt"], found["instance"]))
        for name in wanted:
            values = found[name]
            missing = len(values) != len(self._order)  # stored nowhere
            self._read[name] = np.full(len(self._order), np.nan) if missing else values[self._order]

    @property
    def instance(self) -> np.ndarray:
        """Row of each step, `(N,)`."""
        return self.column("instance")

    @property
    def t(self) -> np.ndarray:
        """Time at the start of each attempt, `(N,)`."""
        return self.column("t")

    @property
    def dt(self) -> np.ndarray:
        """Size tried, without its sign, `(N,)`."""
        return np.abs(self.column("dt"))

    @property
    def ratio(self) -> np.ndarray:
        """Error over tolerance, `(N,)`."""
        return self.column("error_ratio").astype("f8")

    @property
    def accepted(self) -> np.ndarray:
        """Whether the step was taken, `(N,)` bool."""
        return self.column("accepted") != 0

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each row's steps begin, `(R,)`; rows without steps are left out."""
        instance = self.instance
        if not len(instance):
            return np.zeros(0, "i8")
        return np.flatnonzero(np.r_[True, instance[1:] != instance[:-1]])

    @property
    def stepping_rows(self) -> np.ndarray:
        """Instance of each entry of what `per_row` gives, `(R,)`."""
        return self.instance[self.starts]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Number of steps of each row looked at, `(R,)`."""
        return np.diff(np.r_[self.starts, len(self.instance)])

    def per_row(self, values: np.ndarray, how: np.ufunc = np.add) -> np.ndarray:
        """Combine `(N,)` values of steps to one for each row, `(R,)`."""
        if not len(self.starts):
            return np.zeros(0)
        return how.reduceat(values.astype("f8") if values.dtype == bool else values, self.starts)

    @cached_property
    def iterations(self) -> "pd.DataFrame":
        """`Run.iterations`, those that count."""
        table = self.run.iterations()
        return table[table["current"]] if "current" in table else table

    # What findings say.

    def worst(self, score: np.ndarray, rows: np.ndarray | None = None) -> tuple[int, ...]:
        """Return the instances with the highest score first.

        Args:
            score: one for each of the rows.
            rows: their instances; None for `stepping_rows`.
        """
        from inspector.diagnosis.base import MOST_ROWS

        rows = self.stepping_rows if rows is None else rows
        order = np.argsort(-score, kind="stable")[:MOST_ROWS]
        return tuple(int(rows[i]) for i in order)

    def stretch(self, where: np.ndarray, row: int) -> tuple[tuple[float, float], ...]:
        """Return from when to when steps of a row were marked in `where (N,)`, at most 3 times."""
        mine = np.flatnonzero(self.instance == row)
        marked = np.flatnonzero(where[mine])
        if not len(marked):
            return ()
        gaps = np.flatnonzero(np.diff(marked) > max(8, len(mine) // 50))
        firsts, lasts = marked[np.r_[0, gaps + 1]], marked[np.r_[gaps, len(marked) - 1]]
        longest = np.sort(np.argsort(-(lasts - firsts), kind="stable")[:3])
        t, end = self.t[mine], self.t[mine] + self.column("dt")[mine]
        return tuple((float(t[firsts[i]]), float(end[lasts[i]])) for i in longest)


OFTEN = ("limiter", "limiting_component", "stiffness")


def percent(share: float) -> str:
    """Return a share as whole percent."""
    return f"{100 * share:.0f} %"


def named(rows: Sequence[int], of: int) -> str:
    """Return `all rows`, `row 3` or `12 of 64 rows (3, 7, ..)`."""
    if len(rows) == of:
        return "all rows" if of > 1 else "the row"
    if len(rows) == 1:
        return f"row {rows[0]}"
    return f"{len(rows)} rows ({', '.join(map(str, rows[:4]))}{', ..' if len(rows) > 4 else ''})"
