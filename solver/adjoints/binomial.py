"""Few checkpoints within a budget of memory; the states between them are made again in backward."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import Annotated, ClassVar, final

import torch
from torch import Tensor

from solver.adjoints.aca import WholeStep
from solver.adjoints.mesh import Mesh, MeshRecord, Window
from solver.adjoints.parameters import VectorJacobian
from solver.adjoints.replay import Replay
from solver.adjoints.reverser import StepReverser
from solver.bounds import Bounds, Help, check_bounds
from solver.errors import InvalidArgument
from solver.loop import Problem
from solver.methods.base import ReplayingStepper, Stepper
from solver.outputs import Outputs
from solver.stops import Stops


@final
@dataclass(frozen=True)
class Binomial(Replay):
    """States are kept at evenly spaced steps, as many as the budget allows; others are made again.

    Exact, for every method that can take a step once more. How many steps there will be is not
    known while they are taken, so whenever the budget is full every other state is let go, as in
    Stumm & Walther (2010), SIAM J. Sci. Comput. 32(2). Backward fills the room that is free with
    further states, placed as in Griewank & Walther (2000), ACM Trans. Math. Softw. 26(1). Times and
    sizes of all steps are kept besides, 16 bytes for each step of each row.

    Raises:
        InvalidArgument: `budget` is out of bounds.
    """

    budget: Annotated[
        float, Bounds(0.0, 1e7, scale="log"), Help("Mebibytes of states; at least four are kept")
    ] = 1.0

    name: ClassVar[str] = "binomial"
    title: ClassVar[str] = "Binomial checkpoints"

    def __post_init__(self) -> None:
        """Check the budget."""
        check_bounds(self)

    @property
    def needs_steps_only(self) -> bool:
        """No: states are chosen while they are made."""
        return False

    def slots(self, like: Tensor) -> int:
        """Return how many states of the whole batch, `(B, D)`, fit."""
        return max(4, int(self.budget * 2**20 // max(like.nbytes, 1)))

    def record(self, like: Tensor, outputs: Outputs | None) -> MeshRecord:
        """Return what collects the steps."""
        return _ThinRecord(like, outputs, most=self.slots(like) // 2 * len(like))

    def reverser(
        self, problem: Problem, product: VectorJacobian, kept: int, *, times: bool
    ) -> StepReverser:
        """Replay whole steps."""
        return WholeStep(problem, product, times=times)

    def states(
        self, problem: Problem, mesh: Mesh, record: MeshRecord | None, start: Tensor, pad: Tensor
    ) -> Iterator[Tensor]:
        """Make the states again, last ones first."""
        assert isinstance(record, _ThinRecord)
        return _Remade(problem, mesh, record, start, pad, self.slots(pad)).below(mesh.length)


@final
class _ThinRecord(MeshRecord):
    """Keeps times of all steps, and states of each row at every `stride`-th of its steps.

    Args:
        most: states of single rows that are kept at most.
    """

    def __init__(self, like: Tensor, outputs: Outputs | None, *, most: int):
        """Begin with nothing."""
        super().__init__(like, outputs)
        self._most, self.stride = max(most, len(like)), 1
        self._entries: list[tuple[Tensor, Tensor, Tensor]] = []  # numbers, rows (k,), states (k, D)
        self._stored = 0

    def add(
        self,
        t: Tensor,
        dt: Tensor,
        seen: Tensor,
        y: Tensor,
        moved: Tensor,
        reach: Tensor,
        last: Tensor,
        stepper: Stepper,
    ) -> None:
        """Keep one attempt in which some row moved, before its end is taken over."""
        rows = (moved & (self.count % self.stride == 0)).nonzero()[:, 0]
        if len(rows):
            self._entries.append((self.count[rows], rows, y[rows]))
            self._stored += len(rows)
            while self._stored > self._most:
                self._thin()
        super().add(t, dt, seen, y[:, :0], moved, reach, last, stepper)

    def _thin(self) -> None:
        """Let go of every other state."""
        before, self.stride = self._stored, 2 * self.stride
        numbers, rows, states = (torch.cat(parts) for parts in zip(*self._entries, strict=True))
        kept = numbers % self.stride == 0
        self._entries = [(numbers[kept], rows[kept], states[kept])]
        self._stored = len(self._entries[0][0])
        if self._stored == before:  # only starts are left
            self._most = before

    @property
    def kept_apart(self) -> int:
        """Bytes of the states that are kept."""
        return sum(states.nbytes for _, _, states in self._entries)

    def state(self, number: int, pad: Tensor) -> Tensor:
        """Return the state at the start of step `number` of every row that has one, else `pad`."""
        found = pad.clone()
        for numbers, rows, states in self._entries:
            here = numbers == number
            if bool(here.any()):
                found[rows[here]] = states[here]
        return found


@final
class _Remade:
    """States at the start of each step, last ones first, made again from those that were kept.

    Args:
        problem: field and method; everything detached.
        mesh: times and sizes of the steps.
        record: the states that were kept.
        start, pad: `(B,)`, `(B, D)`, where rows that have fewer steps stand.
        slots: how many states of the whole batch may be held.
    """

    def __init__(
        self,
        problem: Problem,
        mesh: Mesh,
        record: _ThinRecord,
        start: Tensor,
        pad: Tensor,
        slots: int,
    ):
        """Make a stepper without a graph."""
        dtype = problem.times.start.dtype
        stepper = problem.method.stepper(
            problem.field, problem.y0, dtype, graph=False, tolerance=problem.tolerance
        )
        if not isinstance(stepper, ReplayingStepper):
            raise InvalidArgument(
                f'adjoint is "binomial" and method {problem.method.name!r}, whose steps cannot be '
                'taken once more: use adjoint="backprop"'
            )
        self._stops = None  # of methods whose stages look beyond the step
        if stepper.looks_ahead and problem.controller.adaptive:
            self._stops = Stops(problem.times, problem.times.end)
        self._stepper, self._mesh, self._record = stepper, mesh, record
        self._start, self._pad, self._slots = start, pad, slots
        self._window: Window | None = None

    def below(self, length: int) -> Iterator[Tensor]:
        """Yield the states of all steps, span by span between the states that were kept."""
        stride, record = self._record.stride, self._record
        kept = -(-length // stride)
        free = max(self._slots - kept, 1)
        for place in reversed(range(kept)):
            low, high = place * stride, min((place + 1) * stride, length)
            yield from self._span(low, high, record.state(low, self._pad), free)

    def _span(self, low: int, high: int, y: Tensor, slots: int) -> Iterator[Tensor]:
        """Yield the states of steps `high - 1` to `low`, from `y` at `low` and `slots` to fill."""
        while high - low > 1:
            if slots < 1:
                yield self._advance(low, high - 1, y)
                high -= 1
                continue
            middle = low + _first_part(high - low, slots)
            yield from self._span(middle, high, self._advance(low, middle, y), slots - 1)
            high = middle
        yield y

    def _advance(self, low: int, high: int, y: Tensor) -> Tensor:
        """Take steps `low` to `high - 1` once more."""
        for number in range(low, high):
            window = self._window_of(number)
            i = number - window.first
            t, start = window.t[i], window.t[i] if window.start is None else window.start[i]
            active = None if window.active is None else window.active[i]
            if self._stops is not None:
                self._stepper.horizon = self._stops.from_here(t).limit()
            choice = window.choice
            self._stepper.choice = None if choice is None else choice[i].long()
            end = self._stepper.replay(
                t, window.dt[i], window.seen[i], y, start=start, polynomial=False
            )
            y = end if active is None else torch.where(active[:, None], end, y)
            later = self._mesh.count > number + 1
            y = torch.where(later[:, None], y, self._pad)
        return y

    def _window_of(self, number: int) -> Window:
        window = self._window
        if window is None or not window.first <= number < window.first + len(window.t):
            window = self._window = self._mesh.window_of(number, self._start, self._pad[:, :0])
        return window


def _first_part(steps: int, slots: int) -> int:
    """Return how far to go before the next state is kept, so that few steps are taken again.

    With `slots` states and `r` repetitions at most `comb(slots + r, r)` steps can be reversed.
    """
    r = 1
    while comb(slots + 1 + r, r) < steps:
        r += 1
    return max(1, min(steps - 1, steps - comb(slots + r, r)))
