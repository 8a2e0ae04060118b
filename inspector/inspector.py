"""The recorder: a hook that keeps what a solver did, and what was logged beside it, in a run."""

import itertools
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import torch

from inspector import arguments, records
from inspector.buffer import StateRows, StepRows
from inspector.schema import Column
from inspector.store.output import Status
from inspector.store.writer import FLUSH_ATTEMPTS, RunWriter
from solver.hooks import Hook, SolveEnd, SolveInfo, StepBlock
from solver.statistics.base import Statistic


@dataclass
class _Solve:
    """One solve that is being recorded."""

    number: int
    columns: tuple[Column, ...]
    instances: np.ndarray | None
    states: np.ndarray  # (R,) instances whose states are kept
    picked: torch.Tensor | None  # the same on the device of the solve; None if they are all
    next_attempt: int = 0


class Inspector(Hook):
    """Records solves into a run::

        with Inspector("runs/my-run") as insp:
            for batch in batches:
                sol = solve_ivp(f, y0, t_eval, hooks=[insp])
                insp.log(loss=loss)

    Recording never changes a solve and never ends a training: errors of the disk are reported by
    one warning, counted, and shown by the viewer. A run that exists is continued. Without `with`,
    the run is closed by `close`, or when the inspector is no longer used, or when Python ends.

    A copy of an inspector, by `copy`, `deepcopy` or `pickle` (so also one in a copied or saved
    model, or in a forked process), records nothing: two recorders of one solve would count it
    twice.

    Args:
        path: folder of the run; made if missing.
        statistics: which further columns to keep: "all", or names, or Statistic objects.
        every: record every k-th solve, the first one included.
        instances: rows of the batch to keep: None for all, a slice, or their numbers; numbers
            beyond a batch are left out.
        states: whose accepted states to keep too: a number of instances, spread evenly, or their
            numbers.
        flush: "auto" writes after 12 attempts, 4096 rows or a quarter of a second, whichever is
            first; "always" writes every attempt before the solver goes on.
        note: shown in the list of runs.
        spec: what `stepscope run` takes to do the run again.
        parameters: name -> one number for each instance, shown beside it.
        on_full: when the disk cannot keep up, "drop" leaves rows out and counts them, "block"
            waits.

    Raises:
        ValueError, TypeError: an argument is not allowed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        statistics: Literal["all"] | Iterable[str | Statistic] = "all",
        every: int = 1,
        instances: slice | Iterable[int] | None = None,
        states: int | Iterable[int] = 0,
        flush: Literal["auto", "always"] = "auto",
        note: str = "",
        spec: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        on_full: Literal["drop", "block"] = "drop",
    ) -> None:
        self._begin(path)
        self.statistics = arguments.checked_statistics(statistics)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ValueError(f"every={every!r}: must be a whole number of at least 1")
        if flush not in ("auto", "always"):
            raise ValueError(f"flush={flush!r}: must be 'auto' or 'always'")
        if on_full not in ("drop", "block"):
            raise ValueError(f"on_full={on_full!r}: must be 'drop' or 'block'")
        self._every = every
        self._instances = (
            instances if isinstance(instances, slice) else arguments.numbers("instances", instances)
        )
        self._states = arguments.checked_states(states)
        self.wants_states = not (isinstance(self._states, int) and self._states == 0)
        self.block_size = 1 if flush == "always" else FLUSH_ATTEMPTS
        self._writer = RunWriter(
            self.path,
            spec=spec,
            note=note,
            versions=records.versions(),
            parameters=None if parameters is None else records.plain(parameters),
            flush=flush,
            on_full=on_full,
            rank=records.rank(),
        )
        weakref.finalize(self, self._writer.close)

    def _begin(self, path: str | os.PathLike[str]) -> None:
        """Set up an inspector that does not record yet; a copy stays one."""
        self.path = arguments.checked_path(path)
        self.statistics: Sequence[Statistic | str] = ()
        self._writer: RunWriter | None = None
        self._every = 1
        self._instances: slice | np.ndarray | None = None
        self._states: int | np.ndarray = 0
        self._solves: dict[SolveInfo, _Solve] = {}
        self._seen = itertools.count()
        self._iteration: int | None = None
        self._logged = itertools.count()

    # In a training.

    def log(self, **scalars: Any) -> None:
        """Record named numbers, such as `loss=...`: Python numbers or tensors with one element.

        They belong to the current `iteration`, or to the number of this call if there is none. A
        tensor on a device is not waited for.

        Raises:
            TypeError: a value is no number.
        """
        values = {name: records.scalar(name, value) for name, value in scalars.items()}
        iteration = next(self._logged) if self._iteration is None else self._iteration
        if self._writer is not None:
            self._writer.scalars(iteration, values)

    def iteration(self, step: int | None = None) -> AbstractContextManager[int]:
        """Say which step of the training comes next; solves and numbers that follow belong to it.

        Call it alone, or as `with insp.iteration() as step`. Without `step` it counts by one.

        Raises:
            TypeError: the step is no whole number.
        """
        if step is None:
            step = 0 if self._iteration is None else self._iteration + 1
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            raise TypeError(f"step={step!r}: must be a whole number")
        self._iteration = int(step)
        return nullcontext(self._iteration)

    def event(self, kind: str, text: str, **data: Any) -> None:
        """Record something that happens rarely, such as a change of the learning rate."""
        if self._writer is not None:
            self._writer.event(kind, text, **data)

    def note_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Record a number for each instance under each name, to be shown beside it."""
        if self._writer is not None:
            self._writer.set_parameters(records.plain(parameters))

    def flush(self) -> bool:
        """Wait until all is in the files; returns whether nothing was lost so far."""
        return self._writer.flush() if self._writer is not None else True

    def close(self, status: Status = "finished") -> None:
        """End the recording with "finished", "failed", "cancelled" or "interrupted".

        Raises:
            ValueError: the status is none of these.
        """
        allowed = ("finished", "failed", "cancelled", "interrupted")
        if status not in allowed:
            raise ValueError(f"status={status!r}: must be one of {', '.join(allowed)}")
        if self._writer is not None:
            self._writer.close(status)
        self._solves.clear()

    @property
    def closed(self) -> bool:
        """Whether nothing is recorded: after `close`, and always for a copy."""
        return self._writer is None or self._writer.closed

    @property
    def rows_written(self) -> int:
        """Rows of steps that are in the files; exact after `flush`."""
        return 0 if self._writer is None else self._writer.counts["rows"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.event("failed", f"{type(error).__name__}: {error}")
            self.close("failed" if isinstance(error, Exception) else "interrupted")

    @classmethod
    def _copied(cls, path: str) -> "Inspector":
        """Return an inspector that records nothing."""
        copy = cls.__new__(cls)
        copy._begin(path)
        return copy

    def __reduce__(self) -> tuple[Callable[..., "Inspector"], tuple[str]]:
        return self._copied, (str(self.path),)

    def __repr__(self) -> str:
        return f"Inspector({str(self.path)!r}{', closed' if self.closed else ''})"

    # As a hook.

    def on_solve_start(self, info: SolveInfo) -> None:
        """Begin a solve, unless it is one that `every` leaves out."""
        if self._writer is None or self._writer.closed or info in self._solves:
            return
        ordinal = next(self._seen)
        if ordinal % self._every:
            return
        wanted = {each if isinstance(each, str) else each.name for each in self.statistics}
        columns = tuple(records.column(each) for each in info.statistics if each.name in wanted)
        instances = arguments.chosen(self._instances, info.batch)
        settings = records.settings(info) | {
            "iteration": self._iteration,
            "ordinal": ordinal,
            "instances": None if instances is None else instances,
        }
        states = arguments.spread(self._states, info.batch)
        number = self._writer.start_solve(settings, columns)
        rows = torch.from_numpy(states).to(info.y0.device)
        picked = None if len(states) == info.batch else rows
        self._solves[info] = _Solve(number, columns, instances, states, picked)
        if len(states):
            there = torch.ones((1, len(states)), dtype=torch.bool, device=info.y0.device)
            first = StateRows(-1, there, info.t0[rows][None], info.y0[rows][None], states)
            self._writer.steps(number, first, "states")

    def on_steps(self, steps: StepBlock) -> None:
        """Take the tensors of a block as they are and leave the rest to the writer's thread."""
        solve = self._solves.get(steps.solve)
        if solve is None or steps.first < solve.next_attempt or self._writer is None:
            return
        solve.next_attempt = steps.first + len(steps.t)
        block = StepRows(steps, solve.columns, solve.instances)
        self._writer.steps(solve.number, block)
        if steps.y is not None and len(solve.states):
            taken, t, dt, y = steps.accepted, steps.t, steps.dt, steps.y
            if solve.picked is not None:  # the others' states need not wait for the disk
                taken, t, dt, y = (one[:, solve.picked] for one in (taken, t, dt, y))
            block = StateRows(steps.first, taken, t + dt, y, solve.states)
            self._writer.steps(solve.number, block, "states")

    def on_solve_end(self, end: SolveEnd) -> None:
        """Write what became of the solve and of each of its instances."""
        solve = self._solves.pop(end.solve, None)
        if solve is None or self._writer is None:
            return
        record, rows = records.outcome(end)
        self._writer.end_solve(solve.number, record, rows)
