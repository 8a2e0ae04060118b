"""A recorded run, opened for reading: data frames of what happened, also while it happens."""

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, final

from inspector import progress, tables
from inspector.live import LiveCounts
from inspector.store.files import without_collection
from inspector.store.folder import RunFolder
from inspector.store.state import base_columns

if TYPE_CHECKING:
    import pandas as pd


def open_run(path: str | os.PathLike[str]) -> "Run":
    """Open a run for reading. Damaged files are named in `Run.damage`, they never raise.

    Raises:
        FileNotFoundError: there is no folder of a run at `path`.
    """
    from inspector.listing import is_run

    if not is_run(path):
        raise FileNotFoundError(f"path={os.fspath(path)!r}: must be the folder of a recorded run")
    return Run(path)


@final
class Run(RunFolder):
    """What was recorded so far; `refresh` looks for more.

    Solves are numbered in the order they began, over all processes that record into the run and
    over every resumption: nothing a later writer adds replaces anything.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._counted: dict[tuple[str, int], LiveCounts] = {}
        self.cache: OrderedDict[Any, Any] = OrderedDict()  # results of `queries`
        super().__init__(path)

    # What a run is.

    @property
    def spec(self) -> dict[str, Any] | None:
        """What `stepscope run` takes to do it again, if the run came from there."""
        spec = self.meta.get("spec")
        return spec if isinstance(spec, dict) else None

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        """Column name -> `unit`, `help`, `labels` (code -> word) and `dtype`."""
        found = base_columns()
        for lines in self.lines.values():
            found |= {name: column.describe() for name, column in lines.columns.items()}
        return found

    @property
    def lost(self) -> dict[str, int]:
        """`rows_dropped` (disk too slow), `rows_lost`, `lines_lost` and `errors` of the disk."""
        names = ("rows_dropped", "rows_lost", "lines_lost", "errors")
        return {name: sum(writer.count(name) for writer in self.writers.values()) for name in names}

    @property
    def thinned(self) -> dict[str, int]:
        """`rows` let go on purpose, by `every` or a budget, and of how many `solves`."""
        states = (self.solve_state(solve) for solve in range(self.n_solves))
        thinned = [state.thinned for state in states if state.thinned]
        return {"rows": sum(thinned), "solves": len(thinned)}

    # What happened.

    def steps(
        self,
        solve: int | None = None,
        instances: int | Iterable[int] | None = None,
        columns: Sequence[str] | None = None,
        attempts: tuple[int, int] | None = None,
    ) -> "pd.DataFrame":
        """Return attempts, one row for each attempt of each instance that took part in it.

        Args:
            solve: its number, None for all.
            instances: one or more rows of the batch, None for all.
            columns: some of `solve, attempt, instance, t, dt, error_ratio, accepted` and the
                statistics.
            attempts: half-open range `(low, high)`.

        Raises:
            KeyError: the run has no such solve.
        """
        return tables.steps_frame(self, "steps", solve, instances, columns, attempts)

    def states(
        self, solve: int | None = None, instances: int | Iterable[int] | None = None
    ) -> "pd.DataFrame":
        """Return sampled trajectories, `solve, instance, t, y0, y1, ...`; empty if none is kept."""
        return tables.states_frame(self, solve, instances)

    def solves(self) -> "pd.DataFrame":
        """Return one row for each instance of each solve.

        `solve, instance, status, status_name, n_steps, n_accepted, n_rejected, n_f_evals, t0, t1,
        t_reached, component, message`; rows of a solve that has not ended are counted from the
        steps so far, with status -1 and `n_f_evals` missing.
        """
        return tables.solves_frame(self)

    def solve_table(self) -> "pd.DataFrame":
        """Return one row for each solve, from the small files alone.

        `solve, batch, dim, method, controller, rtol, atol, stepping, dtype, started, seconds,
        n_attempts, n_f_calls, n_rows_evaluated, n_failed, finished, iteration, n_steps, n_accepted,
        n_rejected, n_f_evals, rows, error`.
        """
        return tables.solve_table(self)

    def instances(self, solve: int = 0) -> "pd.DataFrame":
        """Return one row for each recorded instance of a solve, the one tried most often first.

        `instance, n_steps, n_accepted, n_rejected, accept_share, dt_min, dt_median, dt_max (sizes
        of accepted steps), max_error_ratio, t_reached, status_name, component`, and the parameters
        of the run.

        Raises:
            KeyError: the run has no such solve.
        """
        return tables.instances_frame(self, solve)

    def scalars(self) -> "pd.DataFrame":
        """Return what was logged, `iteration, name, value, time, session`, by iteration and time.

        A run that was resumed may hold an iteration twice. Both are kept, the later one behind;
        `session` counts the starts of the training, see `sessions`.
        """
        return tables.scalars_frame(self)

    def iterations(self) -> "pd.DataFrame":
        """Return one row for each iteration of each rank and session, from the small files alone.

        `iteration, session, rank, current` (no later session has taken it over), `time, solve` (its
        first), `solves, rows, loss`, every other number logged (`non_finite` of them are not), and
        where known `seconds, forward_seconds, f_seconds, backward_seconds, forward_steps` (of all
        rows), `forward_steps_q05 .. _median .. _max` and `forward_nfe...` (over the rows),
        `forward_refused, forward_failed`, the same of backward solves, `backward_pass_seconds,
        backward_pass_calls, vjps, checkpoint_bytes, graph_bytes, gradient_bytes, memory_bytes,
        adjoint, lr, grad_norm, param_norm, update_ratio, optim_...`.

        A session that resumes at some iteration replaces what earlier ones did from there on, in
        all columns alike; nothing is left out, `current` tells.
        """
        held = self.cache.get("iterations")
        if held is None or held[0] != self.version:
            with without_collection():
                held = self.cache["iterations"] = (self.version, progress.iterations_frame(self))
        return held[1].copy(deep=False)

    def ranks(self) -> "pd.DataFrame":
        """Return one row for each process that recorded: how far it came, how it ended.

        `rank, session, writer, host, status, started, last_sign, world_size, iterations,
        first_iteration, last_iteration, forward_seconds` (median of an iteration), `slowest_share`
        (of the iterations that all ranks did, in how many its solves took longest).
        """
        return progress.ranks_frame(self)

    def events(self) -> "pd.DataFrame":
        """Return `time, kind, text, writer` and a column for every further entry."""
        return tables.events_frame(self)

    def summary(self) -> dict[str, Any]:
        """Return the run's line in `list_runs`."""
        return tables.summary(self)

    def settings(self, solve: int = 0) -> dict[str, Any]:
        """Return the settings of a solve as recorded when it began.

        Raises:
            KeyError: there is no such solve.
        """
        return dict(self.solve_state(solve).start)

    def live_counts(self, solve: int) -> LiveCounts:
        """Return counts of each instance from the steps stored so far; reads only what is new."""
        state = self.solve_state(solve)
        counts = self._counted.setdefault((state.writer, state.local), LiveCounts())
        counts.update(self, solve)
        return counts
