"""Dense output: the solution between steps, as polynomials evaluated by Horner's rule."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from solver.errors import InvalidArgument
from solver.problem import StateLayout
from solver.times import Times, put_inside, read_grid, read_tensor


def horner(y: Tensor, coefficients: Tensor, theta: Tensor) -> Tensor:
    """Evaluate `y + sum_j theta ** j * coefficients[j - 1]`.

    Args:
        y: state at the start of the step, `(n, D)`.
        coefficients: `(degree, n, D)` of theta, theta ** 2, ..., in the state's dtype or wider.
        theta: place in the step, 0 to 1, `(n,)`.

    Returns:
        `(n, D)` in the state's dtype.
    """
    at = theta.to(coefficients.real.dtype)[:, None]
    total = coefficients[-1]
    for coefficient in coefficients[:-1].flip(0).unbind(0):
        total = torch.addcmul(coefficient, total, at)
    return torch.addcmul(y.to(total.dtype), total, at).to(y.dtype)


class DenseRecord:
    """Keeps the polynomials of all steps of a solve."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._t: list[Tensor] = []
        self._dt: list[Tensor] = []
        self._moved: list[Tensor] = []
        self._y: list[Tensor] = []
        self._polynomial: list[Tensor] = []

    def add(self, t: Tensor, dt: Tensor, moved: Tensor, y: Tensor, polynomial: Tensor) -> None:
        """Keep one attempt; rows that did not move are left out later."""
        self.add_block(t[None], dt[None], moved[None], y[None], polynomial[None])

    def add_block(
        self, t: Tensor, dt: Tensor, moved: Tensor, y: Tensor, polynomial: Tensor
    ) -> None:
        """Keep `n` attempts: `(n, B)`, `y (n, B, D)`, `polynomial (n, degree, B, D)`."""
        self._t.append(t)
        self._dt.append(dt)
        self._moved.append(moved)
        self._y.append(y)
        self._polynomial.append(polynomial)

    def finish(self, layout: StateLayout, times: Times, t_reached: Tensor) -> "DenseOutput":
        """Sort the steps by row."""
        if not self._t:
            steps = None
        else:
            moved = torch.cat(self._moved)  # (N, B)
            order = moved.logical_not().int().argsort(dim=0, stable=True)  # accepted first
            start = torch.cat(self._t)
            sorted_start = torch.where(moved, start.detach(), torch.inf).gather(0, order)
            steps = _Steps(
                first=sorted_start.t().contiguous(),
                order=order,
                t=start,
                dt=torch.cat(self._dt),
                y=torch.cat(self._y),
                polynomial=torch.cat(self._polynomial),
            )
        return DenseOutput(layout, times, t_reached, steps)


@dataclass(frozen=True, eq=False)
class _Steps:
    first: Tensor  # (B, N) start of the row's n-th accepted step, +inf behind the last
    order: Tensor  # (N, B) attempt of the row's n-th accepted step
    t: Tensor  # (N, B) by attempt, as the rest
    dt: Tensor
    y: Tensor  # (N, B, D)
    polynomial: Tensor  # (N, degree, B, D)


@dataclass(frozen=True, eq=False)
class DenseOutput:
    """Solution of every row at any time of its span; differentiable if the solve was."""

    layout: StateLayout
    times: Times
    t_reached: Tensor  # (B,) tau
    steps: _Steps | None

    def __call__(self, t: Any) -> Any:
        """Evaluate every row.

        Args:
            t: a number or `(T,)`, the same times for all rows, or `(B, T)`.

        Returns:
            State `(B, ...)` for a number, else `(B, T, ...)`; NaN where a failed row never arrived
            and where `t` is NaN.

        Raises:
            InvalidArgument: a time lies outside the span of its row.
        """
        times, layout = self.times, self.layout
        asked, slack = read_tensor("t", t, times.t0.dtype, times.t0.device)
        single = asked.ndim == 0
        grid = read_grid("t", asked.reshape(-1) if single else asked, layout.batch)
        tau = grid if times.direction is None else grid * times.direction[:, None]
        tau, outside = put_inside(tau, times.start[:, None], times.end[:, None], slack)
        outside = outside | tau.isinf()
        if bool(outside.any()):
            row, column = (int(i) for i in outside.nonzero()[0])
            raise InvalidArgument(
                f"t is {grid[row, column].item()!r} for row {row}: must lie between t0 = "
                f"{times.t0[row].item()!r} and t1 = {times.t1[row].item()!r}"
            )
        y = self._evaluate(tau)
        y = torch.where((tau <= self.t_reached[:, None])[:, :, None], y, torch.nan)
        state = layout.unflatten(y)
        if not single:
            return state
        return tree_map(lambda leaf: leaf[:, 0], state)

    def states(self, tau: Tensor) -> Tensor:
        """Return the flat states `(B, D)` at `tau (B,)`, in the direction of integration."""
        return self._evaluate(tau[:, None])[:, 0]

    def _evaluate(self, tau: Tensor) -> Tensor:
        layout, steps = self.layout, self.steps
        start = layout.y0[:, None].expand(-1, tau.shape[1], -1)
        if steps is None or tau.numel() == 0:
            return start
        place = torch.searchsorted(steps.first, tau.detach().contiguous(), right=True) - 1  # (B, T)
        place = place.clamp(min=0)
        attempt = steps.order.t().gather(1, place)
        moved = steps.first.gather(1, place).isfinite()
        row = torch.arange(layout.batch, device=tau.device)[:, None].expand_as(attempt)
        t, dt = steps.t[attempt, row], steps.dt[attempt, row]
        theta = torch.where(moved, (tau - t) / torch.where(moved, dt, 1.0), 0.0)
        polynomial = steps.polynomial[attempt, :, row]  # (B, T, degree, D)
        y = horner(
            steps.y[attempt, row].flatten(0, 1),
            polynomial.permute(2, 0, 1, 3).flatten(1, 2),
            theta.flatten(),
        )
        return torch.where(moved[:, :, None], y.reshape(start.shape), start)
