"""One iteration of a training after the other: what was told of each, and the line it becomes."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, final

import numpy as np
from torch import Tensor

from inspector import records
from inspector.buffer import Copy
from inspector.store.writer import RunWriter
from solver.hooks import BackwardInfo, SolveEnd

Values = Mapping[str, float] | Callable[[], Mapping[str, float]]


@final
class Samples:
    """Which sample of a data set each row of a batch is.

    Args:
        ids: one for each row: whole numbers or words, in a tensor, array or list.

    Raises:
        TypeError, ValueError: they are neither, or not in one line.
    """

    def __init__(self, ids: Tensor | np.ndarray | Iterable[Any]) -> None:
        self._copy: Copy | None = None
        self._ids: Any = []
        if isinstance(ids, Tensor):
            if ids.ndim != 1 or ids.is_floating_point() or ids.is_complex():
                raise ValueError(
                    f"sample_ids is a {ids.dtype} tensor of shape {tuple(ids.shape)}: "
                    "must be whole numbers, one for each row"
                )
            self.count = len(ids)
            # the loader may use its buffer again
            self._copy = Copy({"ids": ids.detach().clone()})
            return
        listed = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        for one in listed:
            if isinstance(one, bool) or not (isinstance(one, str) or hasattr(one, "__index__")):
                raise TypeError(
                    f"sample_ids holds {one!r}: must be whole numbers or words, one for each row"
                )
        self._ids = [one if isinstance(one, str) else int(one) for one in listed]
        if not any(isinstance(one, str) for one in listed):
            self._ids = np.array(self._ids, "i8")
        self.count = len(listed)

    def listed(self) -> "np.ndarray | list[Any]":
        """Return the ids `(B,)`; waits for those that come from a device."""
        if self._copy is not None:
            self._ids, self._copy = self._copy.arrays()["ids"], None
        return self._ids


@dataclass
class _Iteration:
    number: int
    began: float
    samples: Samples | None
    first_solve: int
    forward: float = 0.0  # seconds in solves
    in_f: float = 0.0
    backward: float = float("nan")  # seconds between the last solve and the optimizer's step
    solved: float = float("nan")  # when the last forward solve ended
    values: list[Values] = field(default_factory=list)


@final
class Ending(AbstractContextManager[int]):
    """What `with insp.iteration(7) as step` is: ends the iteration behind it."""

    def __init__(self, iterations: "Iterations", number: int) -> None:
        self._iterations, self._number = iterations, number

    def __enter__(self) -> int:
        return self._number

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._iterations.end(self._number)


@final
class Iterations:
    """The iterations of one training process; each is written as one line when it ends.

    Args:
        writer: of the run; None records nothing.
        before: tells the iteration before the first one that is not given a number.
    """

    def __init__(self, writer: RunWriter | None, before: Callable[[], int] = lambda: -1) -> None:
        self._writer = writer
        self._before = before
        self.number: int | None = None  # what solves and numbers belong to; stays after its end
        self._open: _Iteration | None = None
        self._steps = 0  # of a watched optimizer, where nobody says which iteration it is
        self.on_end: list[Callable[[], None]] = []  # told before an iteration ends

    @property
    def current(self) -> int | None:
        """The number of the iteration under way, if one is."""
        return None if self._open is None else self._open.number

    @property
    def samples(self) -> Samples | None:
        """Which samples the rows of this iteration's solves are, if that was said."""
        return None if self._open is None else self._open.samples

    def begin(
        self, step: int | None, samples: Samples | None = None, first_solve: int | None = None
    ) -> Ending:
        """End the iteration under way and begin the next.

        Args:
            step: its number; the next one if None.
            samples: that the rows of its solves are.
            first_solve: that belongs to it, if some have begun before.

        Raises:
            TypeError: the step is no whole number.
        """
        if step is None:
            step = self._before() + 1 if self.number is None else self.number + 1
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            raise TypeError(f"step={step!r}: must be a whole number")
        self.end()
        self.number = int(step)
        first = 0 if self._writer is None else self._writer.started
        first = first if first_solve is None else first_solve
        self._open = _Iteration(self.number, time.perf_counter(), samples, first)
        return Ending(self, self.number)

    def end(self, number: int | None = None) -> None:
        """Write the line of the iteration under way, if it is the one meant."""
        one = self._open
        if one is None or (number is not None and one.number != number):
            return
        for tell in self.on_end:
            tell()
        self._open = None
        seconds = time.perf_counter() - one.began
        times = {"seconds": seconds, "forward_seconds": one.forward, "f_seconds": one.in_f}
        times["backward_seconds"] = one.backward
        self._write(one.number, one.first_solve, [times, *one.values])

    def note(self, values: Values) -> None:
        """Take numbers that belong to the iteration under way, or to this step of the optimizer."""
        if self._open is not None:
            self._open.values.append(values)
        else:
            number = self._before() + 1 + self._steps if self.number is None else self.number
            self._write(number, None, [values])

    def stepped(self) -> None:
        """Count a step of an optimizer."""
        self._steps += 1

    def about_to_step(self) -> None:
        """Note that gradients are there."""
        one = self._open
        if one is not None and one.backward != one.backward:
            one.backward = time.perf_counter() - one.solved

    def solved(self, end: SolveEnd) -> None:
        """Take a solve that has ended."""
        one = self._open
        if one is None or end.solve.backward_of is not None:
            return
        one.forward += end.wall_seconds
        if end.solution is not None:
            one.in_f += end.solution.stats.f_seconds
        one.solved = time.perf_counter()

    def _write(self, number: int, first_solve: int | None, values: list[Values]) -> None:
        if self._writer is None:
            return
        about: dict[str, Any] = {"iteration": number, "time": time.time()}
        about["solves"] = None if first_solve is None else [first_solve, self._writer.started]

        def make() -> Mapping[str, Any]:
            found: dict[str, float] = {}
            for one in values:
                found.update(one() if callable(one) else one)
            return about | {"values": {name: v for name, v in found.items() if v == v}}

        self._writer.line("iterations", make)


def numbers(values: Mapping[str, Any]) -> Values:
    """Return numbers and 0-d tensors as floats, or a way to get them that waits for no device now.

    Tensors of one device travel together.
    """
    later: dict[str, Tensor] = {}
    now: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, Tensor) and value.device.type != "cpu":
            later[name] = value.detach()
        else:
            found = records.scalar(name, value)
            now[name] = found() if callable(found) else found
    if not later:
        return now
    copy = Copy(later)
    return lambda: now | {name: float(array) for name, array in copy.arrays().items()}


def backward_record(info: BackwardInfo, solve: int, iteration: int | None) -> dict[str, Any]:
    """Return the line of a backward pass."""
    names = (
        *("n_steps", "n_f_calls", "n_vjps", "checkpoint_bytes", "graph_bytes", "gradient_bytes"),
        *("predicted_bytes", "allocated_bytes", "seconds"),
    )
    record: dict[str, Any] = {"kind": "backward", "solve": solve, "iteration": iteration}
    record["time"] = time.time()
    return record | {name: getattr(info, name) for name in names}
