"""Steps on a given grid: torchdiffeq's explicit methods, and what all methods on a grid share.

Times are floats, or tensors where derivatives by them are wanted; the same code runs on both.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from solver.compat._roots import beside, first_zero
from solver.compat._system import System, use

OPTIONS: dict[str, Any] = {
    "step_size": None, "grid_constructor": None, "interp": "linear", "perturb": False,
}  # fmt: skip
SUPPORTED = ("callback_step",)
MOST_STEPS_TO_EVENT = 20_000
Time = float | Tensor


def number(t: Time) -> float:
    """Return a time as a number, off any graph."""
    return float(t.detach()) if isinstance(t, Tensor) else float(t)


def plus(y: Tensor, h: Time, slope: Tensor) -> Tensor:
    """Return `y + h slope`."""
    if isinstance(h, Tensor):
        return y + h.to(y.dtype) * slope
    return torch.add(y, slope, alpha=h)


class FixedGrid(ABC):
    """A method on a given grid, in one solve."""

    options: dict[str, Any] = OPTIONS

    def __init__(self, method: str, system: System):
        """Read the options.

        Raises:
            ValueError: two ways to make a grid are given, or an interpolation that is none.
        """
        self.system = system
        chosen = use(method, system.options, self.options)
        self._size, self._constructor = chosen["step_size"], chosen["grid_constructor"]
        self.interp, self.perturb, self.chosen = chosen["interp"], chosen["perturb"], chosen
        if self._size is not None and self._constructor is not None:
            raise ValueError("step_size and grid_constructor are mutually exclusive arguments.")
        if self.interp not in ("linear", "cubic"):
            raise ValueError(f'interp is {self.interp!r}: must be "linear" or "cubic"')
        self.sign = system.sign
        self._tensors = system.t.requires_grad and torch.is_grad_enabled()

    @abstractmethod
    def step(self, t0: Time, dt: Time, t1: Time, y0: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state at the end of a step, and the slope at its start."""

    def slope(self, t: Time, y: Tensor, side: float = 0.0) -> Tensor:
        """Evaluate the vector field; `side` is 1 for just behind `t`, -1 for just before it."""
        system = self.system
        if side and self.perturb:
            toward = side * self.sign
            if isinstance(t, Tensor):
                near = beside(float(t.detach()), toward, system.real)
                t = near + (t - t.detach())
            else:
                t = beside(t, toward, system.real)
        return system.slope(system.time(t), y)

    def integrate(self) -> Tensor:
        """Return the states at all times, `(T, *shape)`."""
        system, sign = self.system, self.sign
        asked, grid = self._list(system.t), self._list(self._grid())
        y, found = system.y0, [system.y0]
        assert bool(grid[0] == asked[0]), "the grid must begin with the first time"
        assert bool(grid[-1] == asked[-1]), "the grid must end with the last time"
        last, line = len(asked), self.interp == "linear"
        self.prepare(grid)
        for t0, t1 in pairwise(grid):
            dt = t1 - t0
            if system.callbacks:
                system.tell("callback_step", t0, y, dt * sign)
            y1, f0 = self.step(t0, dt, t1, y)
            at = len(found)
            if at < last and (t1 - asked[at]) * sign >= 0:
                if line and not self._tensors and t1 == asked[at]:
                    found.append(y1)
                else:
                    read = self._reader(t0, t1, y, y1, f0)
                    while len(found) < last and (t1 - asked[len(found)]) * sign >= 0:
                        found.append(read(asked[len(found)]))
            y = y1
        return torch.stack(found)

    def prepare(self, grid: list[Any]) -> None:  # noqa: B027
        """Take up the grid that is about to be gone through, in order."""

    def until_event(self, event: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """Return when `event` changes its sign, and the states at both ends, `(2, *shape)`.

        Raises:
            AssertionError: there is no step size.
            RuntimeError: nothing happens for long.
        """
        assert self._size is not None, (
            "Event handling for fixed step solvers currently requires `step_size` to be provided "
            "in options."
        )
        system, y = self.system, self.system.y0
        # Times add up in the state's own precision, so that both are rounded alike.
        t0, dt = system.t[0].to(system.real), float(self._size) * self.sign

        def value(t: Time, y: Tensor) -> float:
            with torch.no_grad():
                return float(event(system.time(t), y))

        before = value(t0, y)
        for _ in range(MOST_STEPS_TO_EVENT):
            t1 = t0 + dt
            y1, f0 = self.step(t0, dt, t1, y)
            now = value(t1, y1)
            if now * before <= 0:
                break
            t0, y, before = t1, y1, now
        else:
            raise RuntimeError(f"Reached maximum number of iterations {MOST_STEPS_TO_EVENT}.")
        read = self._reader(t0, t1, y, y1, f0)
        start, end = float(t0.detach()), float(t1.detach())

        def inside(theta: float) -> float:
            with torch.no_grad():
                return value(start + theta * dt, read(start + theta * dt))

        size = max(abs(start), abs(end)) / abs(dt)
        width = 4 * torch.finfo(system.real).eps * max(size, 1.0)
        place = 0.0 if before == 0 else first_zero(inside, 0.0, 1.0, before, now, width)
        found = start + place * dt
        states = torch.stack([system.y0, read(found)])
        return torch.tensor(found, dtype=torch.float64, device=states.device), states

    def _list(self, times: Tensor) -> list[Any]:
        return list(times.unbind(0)) if self._tensors else times.detach().double().tolist()

    def _grid(self) -> Tensor:
        t = self.system.t
        if self._constructor is not None:
            return self._constructor(self.slope, self.system.y0, t)
        if self._size is None:
            return t
        count = torch.ceil((t[-1] - t[0]).detach().abs() / self._size + 1).item()
        steps = torch.arange(0, count, dtype=t.dtype, device=t.device)
        return torch.cat([steps[:-1] * (self.sign * self._size) + t[0], t[-1:]])

    def _reader(
        self, t0: Time, t1: Time, y0: Tensor, y1: Tensor, f0: Tensor
    ) -> Callable[[Time], Tensor]:
        """Return the state inside a step, as a function of time."""
        dt = t1 - t0
        if self.interp == "linear":

            def line(t: Time) -> Tensor:
                if t == t1:  # the time itself may still have its derivative
                    return plus(y1, (t - t1) / dt, y1 - y0) if self._tensors else y1
                return plus(y0, (t - t0) / dt, y1 - y0)

            return line
        f1 = self.slope(t1, y1)

        def cubic(t: Time) -> Tensor:
            x = (t - t0) / dt
            y = plus(y0, x * x * (3 - 2 * x), y1 - y0)
            y = plus(y, x * (1 - x) * (1 - x) * dt, f0)
            return plus(y, x * x * (x - 1) * dt, f1)

        return cubic


class ExplicitGrid(FixedGrid):
    """An explicit Runge-Kutta method."""

    def __init__(self, method: str, system: System):
        """Look up the coefficients."""
        super().__init__(method, system)
        self._method = EXPLICIT[method]
        self._times: Iterator[Tensor] = iter(())  # those of all stages, step after step

    def prepare(self, grid: list[Any]) -> None:
        """Make the times of all stages at once."""
        if self._tensors:
            return
        whole = torch.tensor(grid, dtype=torch.float64)
        start, end = whole[:-1, None], whole[1:, None]
        nodes = torch.tensor([0.0, *self._method[0]], dtype=torch.float64)
        times = torch.where(nodes == 1.0, end, start + nodes * (end - start))
        real = self.system.real
        if self.perturb:
            sides = torch.where(nodes == 0.0, self.sign, torch.where(nodes == 1.0, -self.sign, 0))
            times = times.to(real)
            near = torch.nextafter(times, (sides * math.inf).to(real).expand_as(times))
            times = torch.where(sides == 0, times, near)
        self._times = iter(times.to(dtype=real, device=self.system.y0.device).unbind(0))

    def step(self, t0: Time, dt: Time, t1: Time, y0: Tensor) -> tuple[Tensor, Tensor]:
        """Take one step."""
        times = next(self._times, None)
        if times is None:
            slopes = [self.slope(t0, y0, 1.0)]
            return explicit_step(self, self._method, t0, dt, t1, y0, slopes), slopes[0]
        slope, rows, y = self.system.slope, self._method[1], y0
        first, *later = times.unbind(0)
        slopes = [slope(first, y0)]
        for t, row in zip(later, rows, strict=True):
            y = _sum(y0, dt, row, slopes)
            slopes.append(slope(t, y))
        return _sum(y0, dt, self._method[2], slopes), slopes[0]


Coefficients = tuple[Sequence[float], Sequence[Sequence[float]], Sequence[float]]
_THIRD = 1 / 3
EXPLICIT: dict[str, Coefficients] = {
    "euler": ((), (), (1.0,)),
    "midpoint": ((0.5,), ((0.5,),), (0.0, 1.0)),
    "heun2": ((1.0,), ((1.0,),), (0.5, 0.5)),
    "heun3": ((_THIRD, 2 / 3), ((_THIRD,), (0.0, 2 / 3)), (0.25, 0.0, 0.75)),
    "rk4": (  # Kutta's 3/8 rule
        (_THIRD, 2 / 3, 1.0),
        ((_THIRD,), (-_THIRD, 1.0), (1.0, -1.0, 1.0)),
        (0.125, 0.375, 0.375, 0.125),
    ),
}


def explicit_step(
    grid: FixedGrid, method: Coefficients, t0: Time, dt: Time, t1: Time, y0: Tensor,
    slopes: list[Tensor],
) -> Tensor:  # fmt: skip
    """Return the end of a step whose first slope stands in `slopes`, which takes up the others."""
    nodes, rows, weights = method
    for node, row in zip(nodes, rows, strict=True):
        at_end = math.isclose(node, 1.0)
        t = t1 if at_end else t0 + node * dt
        slopes.append(grid.slope(t, _sum(y0, dt, row, slopes), -1.0 if at_end else 0.0))
    return _sum(y0, dt, weights, slopes)


def _sum(y: Tensor, dt: Time, weights: Sequence[float], slopes: list[Tensor]) -> Tensor:
    """Return `y + dt * sum(weights * slopes)`, the small terms added up first."""
    total, factor = None, 1.0
    for weight, slope in zip(weights, slopes, strict=True):
        if not weight:
            continue
        if total is None:
            total, factor = slope, weight  # of what is added up, so that one term needs no product
        else:
            total = torch.add(total, slope, alpha=weight / factor)
    return y if total is None else plus(y, factor * dt, total)
