"""The recorder: a hook that keeps what a solver did, and what was logged beside it, in a run."""

import itertools
import os
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np
import torch

from inspector import arguments, records
from inspector.buffer import StateRows, StepRows
from inspector.iterations import backward_record
from inspector.schema import Column
from inspector.store.budget import Budget
from inspector.store.output import Block, Kind, Status
from inspector.store.writer import FLUSH_ATTEMPTS, RunWriter
from inspector.thinning import Thinning
from inspector.training import TrainingRecorder, checked_tags
from solver.hooks import BackwardInfo, SolveEnd, SolveInfo, StepBlock
from solver.statistics.base import Statistic

MEMORY_EVERY = 10  # backward pass in which graphs are measured, which costs about an evaluation


@dataclass
class _Solve:
    """One solve that is being recorded."""

    number: int
    unit: Hashable  # what it is kept or let go with
    held: bool  # whether its steps wait until it is known that they are wanted
    columns: tuple[Column, ...]
    instances: np.ndarray | None
    states: np.ndarray  # (R,) instances whose states are kept
    picked: torch.Tensor | None  # the same on the device of the solve; None if they are all
    next_attempt: int = 0


class Inspector(TrainingRecorder):
    """Records solves into a run::

        with Inspector("runs/my-run") as insp:
            for batch in batches:
                sol = solve_ivp(f, y0, t_eval, hooks=[insp])
                insp.log(loss=loss)

    In a training `insp.watch(model, optimizer)` and `with insp.iteration(step)` tell more.

    Recording never changes a solve and never ends a training: errors of the disk are reported by
    one warning, counted, and shown by the viewer. A run that exists is continued. Without `with`,
    the run is closed by `close`, or when the inspector is no longer used, or when Python ends.

    A copy of an inspector, by `copy`, `deepcopy` or `pickle` (so also one in a copied or saved
    model, or in a forked process), records nothing: two recorders of one solve would count it
    twice.

    Args:
        path: folder of the run; made if missing.
        statistics: which further columns to keep: "all", or names, or Statistic objects.
        every: keep the steps of every k-th iteration, or solve where there are none, the first one
            included, and of the last and the worst between those. Counts, times and all numbers of
            the others are kept too; what was left out is counted.
        budget_rows, budget_bytes: most steps to store, None for no limit. When they are used up the
            steps of every second iteration go, then of three in four, and so on; the last and the
            worst stay. For each process.
        instances: rows of the batch to keep: None for all, a slice, or their numbers; numbers
            beyond a batch are left out.
        states: whose accepted states to keep too: a number of instances, spread evenly, or their
            numbers.
        flush: "auto" writes after 12 attempts, 4096 rows or a quarter of a second, whichever is
            first; "always" writes every attempt before the solver goes on.
        note, tags: shown in the list of runs.
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
        budget_rows: int | None = None,
        budget_bytes: int | None = None,
        instances: slice | Iterable[int] | None = None,
        states: int | Iterable[int] = 0,
        flush: Literal["auto", "always"] = "auto",
        note: str = "",
        tags: Iterable[str] = (),
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
        budget = Budget(
            arguments.limit("budget_rows", budget_rows),
            arguments.limit("budget_bytes", budget_bytes),
        )
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
            tags=checked_tags(tags),
            budget=budget,
            **records.place(),
        )
        if every > 1:
            writer = self._writer
            self._thinning = Thinning(every, writer.steps, writer.thinned, writer.decided)
        self._begin_recording(self._writer)
        weakref.finalize(self, _finish, self._writer, self._thinning)

    def _begin(self, path: str | os.PathLike[str]) -> None:
        """Set up an inspector that does not record yet; a copy stays one."""
        self.path = arguments.checked_path(path)
        self.statistics: Sequence[Statistic | str] = ()
        self._writer: RunWriter | None = None
        self._thinning: Thinning | None = None
        self._instances: slice | np.ndarray | None = None
        self._states: int | np.ndarray = 0
        self._solves: dict[SolveInfo, _Solve] = {}
        # Solves that may still have a backward pass: number and what they are kept or let go with.
        self._numbers: WeakKeyDictionary[SolveInfo, tuple[int, Hashable]] = WeakKeyDictionary()
        self._seen = itertools.count()
        self._passes = 0  # backward passes seen
        self._begin_training()

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
        self.unwatch()
        self._iterations.end()
        if self._writer is not None:
            _finish(self._writer, self._thinning, status)
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
        """Begin a solve."""
        if self._writer is None or self._writer.closed or info in self._solves:
            return
        ordinal = next(self._seen)
        iteration = self._iterations.current
        forward = None if info.backward_of is None else self._numbers.get(info.backward_of)
        if forward is not None:
            unit = forward[1]
        else:
            unit = f"solve {ordinal}" if iteration is None else f"iteration {iteration}"
        wanted = {each if isinstance(each, str) else each.name for each in self.statistics}
        columns = tuple(records.column(each) for each in info.statistics if each.name in wanted)
        instances = arguments.chosen(self._instances, info.batch)
        place = {"iteration": iteration, "ordinal": ordinal, "unit": unit, "instances": instances}
        if info.backward_of is not None:
            place["backward_of"] = -1 if forward is None else forward[0]
        states = arguments.spread(self._states, info.batch)
        number = self._writer.start_solve(lambda: records.settings(info) | place, columns)
        self._numbers[info] = (number, unit)
        held = False
        if self._thinning is not None:
            held = self._thinning.begin(unit)
        self._tell_samples(number, info)
        rows = torch.from_numpy(states).to(info.y0.device)
        picked = None if len(states) == info.batch else rows
        self._solves[info] = _Solve(number, unit, held, columns, instances, states, picked)
        if len(states):
            there = torch.ones((1, len(states)), dtype=torch.bool, device=info.y0.device)
            first = StateRows(-1, there, info.t0[rows][None], info.y0[rows][None], states)
            self._put(self._solves[info], first, "states")

    def on_compile(self, info: SolveInfo) -> None:
        """Write down that the next solve waits for a compiler."""
        text = f"native code is made for {info.method} with {info.dim} components"
        self.event("compile", text)

    def on_steps(self, steps: StepBlock) -> None:
        """Take the tensors of a block as they are and leave the rest to the writer's thread."""
        solve = self._solves.get(steps.solve)
        if solve is None or steps.first < solve.next_attempt or self._writer is None:
            return
        solve.next_attempt = steps.first + len(steps.t)
        self._put(solve, StepRows(steps, solve.columns, solve.instances), "steps")
        if steps.y is not None and len(solve.states):
            taken, t, dt, y = steps.accepted, steps.t, steps.dt, steps.y
            if solve.picked is not None:  # the others' states need not wait for the disk
                taken, t, dt, y = (one[:, solve.picked] for one in (taken, t, dt, y))
            block = StateRows(steps.first, taken, t + dt, y, solve.states)
            self._put(solve, block, "states")

    def on_solve_end(self, end: SolveEnd) -> None:
        """Write what became of the solve and of each of its instances."""
        self._iterations.solved(end)
        solve = self._solves.pop(end.solve, None)
        if solve is None or self._writer is None:
            return
        outcome = records.outcome(end)
        if self._thinning is not None:
            record, rows = outcome()
            failed = record.get("n_failed", end.solve.batch)
            self._thinning.ended(solve.unit, failed, record.get("n_attempts", solve.next_attempt))
            if solve.held:
                record["held"] = True
            outcome = lambda: (record, rows)  # noqa: E731
        self._writer.end_solve(solve.number, outcome)

    def on_backward(self, info: BackwardInfo) -> None:
        """Write what a backward pass took."""
        self._passes += 1
        known = self._numbers.get(info.solve)
        if known is None or self._writer is None:
            return
        record = backward_record(info, known[0], self._iterations.number)
        self._writer.line("solves", lambda: record)

    @property
    def wants_memory(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether graphs are measured: in each tenth backward pass, the first one included."""
        return self._passes % MEMORY_EVERY == 0

    def _put(self, solve: _Solve, block: Block, kind: Kind) -> None:
        if self._thinning is not None:
            self._thinning.steps(solve.unit, solve.number, block, kind)
        elif self._writer is not None:
            self._writer.steps(solve.number, block, kind)

    def _tell_samples(self, number: int, info: SolveInfo) -> None:
        """Write which sample each row is, if that is known of so many rows."""
        samples = self._iterations.samples
        if samples is None or self._writer is None:
            return
        if samples.count == info.batch:
            self._writer.line(
                "solves", lambda: {"kind": "samples", "solve": number, "ids": samples.listed()}
            )
        elif info.backward_of is None and "samples" not in self._told:
            self._told.add("samples")
            text = f"sample_ids names {samples.count} samples, a solve has {info.batch} rows"
            self.event("samples", text)


def _finish(writer: RunWriter, thinning: Thinning | None, status: Status = "finished") -> None:
    """Write what was held back, and end the run."""
    if thinning is not None and not writer.closed:
        thinning.close()
    writer.close(status)
