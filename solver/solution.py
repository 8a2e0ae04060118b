"""What a solve returns: outputs, and per instance how it ended and what it took."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from solver.dense import DenseOutput
from solver.errors import InvalidArgument, SolveFailed
from solver.event_log import EventLog
from solver.status import Status


@dataclass(frozen=True, eq=False)
class Stats:
    """Counts of a solve; tensors are `(B,)` int64 and count only what that row needed.

    `n_f_calls` is how often the vector field was called, `n_rows_evaluated = n_f_calls * B` what
    these calls evaluated. Compiled, where rows that are done are left out, they are the evaluations
    of the row that needed most, and those of all rows together. The excess of `n_rows_evaluated`
    over `n_f_evals.sum()` was spent on rows that were done or waited.
    """

    n_steps: Tensor  # attempts, accepted or not
    n_accepted: Tensor
    n_rejected: Tensor
    n_f_evals: Tensor
    n_jac_evals: Tensor
    n_newton_iterations: Tensor
    n_factorizations: Tensor  # of matrices; a method with two in a step counts both
    n_f_calls: int
    n_rows_evaluated: int
    wall_seconds: float
    f_seconds: float = float("nan")  # of them in the vector field; NaN where not measured
    engine: str = "plain"  # what ran: "plain" or "compiled"

    def __getitem__(self, name: str) -> Any:
        """Return a count by its name, `stats["n_steps"]`."""
        if name not in self.__dataclass_fields__:
            raise KeyError(f"{name!r}: must be one of {', '.join(self.__dataclass_fields__)}")
        return getattr(self, name)


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of a batch of initial value problems.

    Outputs that a row never reached, as it failed or an event ended it, are NaN. `t_reached`,
    `y_reached` are the last accepted time and state of every row.
    """

    ts: Tensor  # (B, T) times asked for; (B, 1), the end, without t_eval
    ys: Any  # (B, T, ...) or the structure of y0 with such leaves
    status: Tensor  # (B,) int64, values of Status
    t_reached: Tensor  # (B,)
    y_reached: Any  # (B, ...)
    component: Tensor  # (B,) int64, flat index of the component that failed the row, -1 elsewhere
    last_dt: Tensor  # (B,) signed size of the last attempt
    stats: Stats
    dense: DenseOutput | None = None
    events: EventLog | None = None  # what happened, if events were watched for

    def __call__(self, t: Any) -> Any:
        """Evaluate the dense output, see `DenseOutput`.

        Raises:
            InvalidArgument: the solve was made without `dense=True`.
        """
        if self.dense is None:
            raise InvalidArgument("sol(t) needs dense=True in solve_ivp")
        return self.dense(t)

    @property
    def success(self) -> Tensor:
        """Whether each row reached its t1 or the event that was to end it, `(B,)` bool."""
        return (self.status == int(Status.SUCCESS)) | (self.status == int(Status.EVENT))

    @property
    def event_times(self) -> Tensor:
        """Times of the events of every row, `(B, E)`, NaN behind its last; see `EventLog`.

        Raises:
            InvalidArgument: the solve had no `events`.
        """
        return self._log.times

    @property
    def event_states(self) -> Any:
        """States at these times, `(B, E, ...)`, before they were changed.

        Raises:
            InvalidArgument: the solve had no `events`.
        """
        return self._log.states

    @property
    def _log(self) -> EventLog:
        if self.events is None:
            raise InvalidArgument("this solve watched for nothing: give events to solve_ivp")
        return self.events

    def message(self, row: int) -> str:
        """Say in a sentence how the row ended and, if it failed, where and what to do."""
        status = Status(int(self.status[row]))
        t = self.t_reached[row].item()
        if status is Status.SUCCESS:
            return f"row {row} reached t = {t:.9g}"
        if status is Status.EVENT:
            log = self._log
            which = int(log.ended_by[row])
            count = int(log.count[row, which])
            often = f", the {count}. of its kind" if count > 1 else ""
            return f"row {row} was ended by {log.names[which]} at t = {t:.9g}{often}"
        component = int(self.component[row])
        where = f", component {component}" if component >= 0 else ""
        return (
            f"row {row} failed with {status.name} at t = {t:.9g}, dt = "
            f"{self.last_dt[row].item():.3g}"
            f"{where}, after {int(self.stats.n_steps[row])} attempts. {status.cure}"
        )

    def raise_if_failed(self) -> None:
        """Raise if any row failed.

        Raises:
            SolveFailed: names the first failed rows, when and why.
        """
        failed = self.success.logical_not().nonzero()[:, 0].tolist()
        if failed:
            more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
            raise SolveFailed("; ".join(self.message(row) for row in failed[:3]) + more)
