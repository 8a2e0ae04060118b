"""Implicit Runge-Kutta steps on a given grid, for stiff systems of moderate size.

The stages solve one system of equations by Newton's method with dense Jacobians. Derivatives go
through the solution, not through the iteration: one more Newton step in autograd's graph.
"""

import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from solver.compat._fixed import OPTIONS, FixedGrid, Time, number, plus
from solver.compat._system import System

_R2, _R3, _R6, _R15 = (math.sqrt(n) for n in (2, 3, 6, 15))
_G = 1 - _R2 / 2
Tableau = tuple[Sequence[float], Sequence[Sequence[float]], Sequence[float]]  # c, A, b
# Hairer & Wanner II (2nd ed.), sections IV.5 and IV.6; Bank et al. (1985) for TR-BDF2.
IMPLICIT: dict[str, Tableau] = {
    "implicit_euler": ((1.0,), ((1.0,),), (1.0,)),
    "implicit_midpoint": ((0.5,), ((0.5,),), (1.0,)),
    "trapezoid": ((0.0, 1.0), ((0.0, 0.0), (0.5, 0.5)), (0.5, 0.5)),
    "radauIIA3": ((1 / 3, 1.0), ((5 / 12, -1 / 12), (0.75, 0.25)), (0.75, 0.25)),
    "gl4": (
        (0.5 - _R3 / 6, 0.5 + _R3 / 6),
        ((0.25, 0.25 - _R3 / 6), (0.25 + _R3 / 6, 0.25)),
        (0.5, 0.5),
    ),
    "radauIIA5": (
        ((4 - _R6) / 10, (4 + _R6) / 10, 1.0),
        (
            ((88 - 7 * _R6) / 360, (296 - 169 * _R6) / 1800, (-2 + 3 * _R6) / 225),
            ((296 + 169 * _R6) / 1800, (88 + 7 * _R6) / 360, (-2 - 3 * _R6) / 225),
            ((16 - _R6) / 36, (16 + _R6) / 36, 1 / 9),
        ),
        ((16 - _R6) / 36, (16 + _R6) / 36, 1 / 9),
    ),
    "gl6": (
        (0.5 - _R15 / 10, 0.5, 0.5 + _R15 / 10),
        (
            (5 / 36, 2 / 9 - _R15 / 15, 5 / 36 - _R15 / 30),
            (5 / 36 + _R15 / 24, 2 / 9, 5 / 36 - _R15 / 24),
            (5 / 36 + _R15 / 30, 2 / 9 + _R15 / 15, 5 / 36),
        ),
        (5 / 18, 4 / 9, 5 / 18),
    ),
    "sdirk2": ((_G, 1.0), ((_G, 0.0), (1 - _G, _G)), (1 - _G, _G)),
    "trbdf2": (
        (0.0, 2 * _G, 1.0),
        ((0.0, 0.0, 0.0), (_G, _G, 0.0), (_R2 / 4, _R2 / 4, _G)),
        (_R2 / 4, _R2 / 4, _G),
    ),
}


class ImplicitGrid(FixedGrid):
    """An implicit Runge-Kutta method."""

    options: dict[str, Any] = OPTIONS | {"max_iters": 100}

    def __init__(self, method: str, system: System):
        """Look up the coefficients."""
        super().__init__(method, system)
        self._c, self._a, self._b = IMPLICIT[method]
        # On which side of their time stages are evaluated, if asked for.
        self._sides = [float(c == 0.0) - float(c == 1.0) for c in self._c]
        self._iterations = int(self.chosen["max_iters"])

    def step(self, t0: Time, dt: Time, t1: Time, y0: Tensor) -> tuple[Tensor, Tensor]:
        """Take one step."""
        f0 = self.slope(t0, y0, 1.0)
        times = [t1 if c == 1.0 else t0 if c == 0.0 else t0 + c * dt for c in self._c]
        with torch.no_grad():
            slopes, settled = self._solve(f0.detach(), times, dt, y0.detach())
        if not settled:
            warnings.warn(
                f"Newton's method did not converge in {self._iterations} iterations. Solution may "
                "be incorrect.",
                stacklevel=5,
            )
        if torch.is_grad_enabled():
            slopes = self._in_graph(slopes, times, dt, y0)
        y1 = y0
        for weight, slope in zip(self._b, slopes, strict=True):
            y1 = plus(y1, weight * dt, slope)
        return y1, f0

    def _stages(self, slopes: Sequence[Tensor], dt: Time, y0: Tensor) -> list[Tensor]:
        states = []
        for row in self._a:
            y = y0
            for weight, slope in zip(row, slopes, strict=True):
                if weight:
                    y = plus(y, weight * dt, slope)
            states.append(y)
        return states

    def _residual(
        self, slopes: Sequence[Tensor], times: Sequence[Time], dt: Time, y0: Tensor
    ) -> Tensor:
        """Return `k_i - f(t_i, y_i)`, `(S N,)`."""
        states = self._stages(slopes, dt, y0)
        return torch.cat([
            (slope - self.slope(t, y, side)).reshape(-1)
            for slope, t, y, side in zip(slopes, times, states, self._sides, strict=True)
        ])  # fmt: skip

    def _matrix(self, jacobians: Sequence[Tensor], dt: Time) -> Tensor:
        """Return the derivative of the residual by the slopes, `(S N, S N)`."""
        h = number(dt)
        rows = [
            torch.cat([-h * weight * jacobian for weight in row], dim=1)
            for row, jacobian in zip(self._a, jacobians, strict=True)
        ]
        whole = torch.cat(rows)
        return whole + torch.eye(len(whole), dtype=whole.dtype, device=whole.device)

    def _jacobians(self, times: Sequence[Time], states: Sequence[Tensor]) -> list[Tensor]:
        """Return the derivative of the field by the state at every stage, `(N, N)` each."""
        with torch.enable_grad():
            return [
                _jacobian(partial(self._field, number(t), side), y.detach())
                for t, y, side in zip(times, states, self._sides, strict=True)
            ]

    def _field(self, t: float, side: float, y: Tensor) -> Tensor:
        return self.slope(t, y, side)

    def _solve(
        self, guess: Tensor, times: Sequence[Time], dt: Time, y0: Tensor
    ) -> tuple[list[Tensor], bool]:
        """Return the slopes of all stages, and whether Newton's method has settled."""
        system, count, before = self.system, len(self._c), math.inf
        slopes = [guess] * count
        shape, floor = y0.shape, 16 * torch.finfo(system.real).eps
        for _ in range(self._iterations):
            states = self._stages(slopes, dt, y0)
            jacobians = self._jacobians(times, states)
            residual = self._residual(slopes, times, dt, y0)
            change = torch.linalg.solve(self._matrix(jacobians, dt), residual)
            slopes = [
                slope - part.reshape(shape)
                for slope, part in zip(slopes, change.chunk(count), strict=True)
            ]
            largest = max(float(slope.abs().max()) for slope in slopes)
            size = float(change.abs().max())
            if size <= floor * max(largest, 1e-30) or size == 0.0:
                return slopes, True
            if size >= before and size <= 1e3 * floor * max(largest, 1e-30):
                return slopes, True  # rounding is all that is left
            before = size
        return slopes, False

    def _in_graph(
        self, slopes: list[Tensor], times: Sequence[Time], dt: Time, y0: Tensor
    ) -> list[Tensor]:
        """Return the slopes as functions of what the step was given."""
        residual = self._residual(slopes, times, dt, y0)
        if not residual.requires_grad:
            return slopes
        with torch.no_grad():
            states = self._stages(slopes, dt, y0)
            jacobians = self._jacobians(times, states)
            matrix = self._matrix(jacobians, dt)
        change = torch.linalg.solve(matrix, residual)
        shape = y0.shape
        return [
            slope - part.reshape(shape)
            for slope, part in zip(slopes, change.chunk(len(slopes)), strict=True)
        ]


def _jacobian(f: Any, y: Tensor) -> Tensor:
    """Return the derivative of `f` by `y`, `(N, N)`, by one vector-Jacobian product a row."""
    at = y.requires_grad_()
    value = f(at).reshape(-1)
    rows = []
    for i in range(len(value)):
        row = torch.zeros_like(value)
        row[i] = 1
        (product,) = (
            torch.autograd.grad(
                value, at, row, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            if value.requires_grad
            else (torch.zeros_like(at),)
        )
        rows.append(product.detach().reshape(-1).conj())
    return torch.stack(rows)
