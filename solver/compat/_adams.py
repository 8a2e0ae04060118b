"""Adams methods on a grid of equal steps, of growing order, as torchdiffeq has them."""

import warnings
from collections import deque
from fractions import Fraction
from functools import cache
from typing import Any

import torch
from torch import Tensor

from solver.compat._fixed import EXPLICIT, OPTIONS, FixedGrid, Time, explicit_step, plus
from solver.compat._system import System

LEAST, MOST = 4, 12  # orders


@cache
def adams_weights(count: int, *, implicit: bool) -> tuple[float, ...]:
    """Return what the slopes at the last `count` points count for, the latest first.

    Integrals over the step from 0 to 1 of the Lagrange polynomials on the points 0, -1, ... (or
    1, 0, -1, ... if implicit); Hairer, Norsett & Wanner I (2nd ed.), section III.1.
    """
    points = [Fraction(int(implicit) - j) for j in range(count)]
    weights = []
    for j, here in enumerate(points):
        polynomial = [Fraction(1)]  # coefficients of 1, s, s ** 2, ...
        for k, other in enumerate(points):
            if k != j:
                shifted = [Fraction(0), *polynomial]
                lower = [*(-other * c for c in polynomial), Fraction(0)]
                polynomial = [(a + b) / (here - other) for a, b in zip(shifted, lower, strict=True)]
        weights.append(float(sum(c / (power + 1) for power, c in enumerate(polynomial))))
    return tuple(weights)


class Adams(FixedGrid):
    """Adams-Bashforth, or with it as predictor Adams-Moulton; begins with Runge-Kutta steps."""

    options: dict[str, Any] = OPTIONS | {"max_iters": 4, "max_order": MOST}

    def __init__(self, method: str, system: System):
        """Begin without a history."""
        super().__init__(method, system)
        self._implicit = method != "explicit_adams"
        order = int(self.chosen["max_order"])
        assert order <= MOST, f"max_order must be at most {MOST}"
        if order < LEAST:
            warnings.warn(
                f"max_order is below {LEAST}, so the solver reduces to `rk4`.", stacklevel=4
            )
        self._order, self._iterations = order, int(self.chosen["max_iters"])
        self._slopes: deque[Tensor] = deque(maxlen=max(order - 1, 1))  # the latest first
        self._last: Time | None = None

    def step(self, t0: Time, dt: Time, t1: Time, y0: Tensor) -> tuple[Tensor, Tensor]:
        """Take one step."""
        slope = self.slope(t0, y0, 1.0)
        if self._last is None or bool(self._last != t0):
            self._slopes.appendleft(slope)
            self._last = t0
        count = min(len(self._slopes), self._order - 1)
        if count < LEAST - 1:
            return explicit_step(self, EXPLICIT["rk4"], t0, dt, t1, y0, [self._slopes[0]]), slope
        zero = torch.zeros_like(y0)
        dy = self._sum(zero, dt, adams_weights(count, implicit=False))
        if self._implicit:
            dy = self._corrected(dy, dt, t1, y0, count)
        return y0 + dy, slope

    def _corrected(self, dy: Tensor, dt: Time, t1: Time, y0: Tensor, count: int) -> Tensor:
        """Iterate the implicit formula, from its explicit forecast."""
        weights = adams_weights(count + 1, implicit=True)
        known = self._sum(torch.zeros_like(y0), dt, weights[1:])
        for _ in range(self._iterations):
            before = dy
            dy = plus(known, weights[0] * dt, self.slope(t1, y0 + dy, -1.0))
            if self._settled(before.detach(), dy.detach()):
                return dy
        warnings.warn(
            "Functional iteration did not converge. Solution may be incorrect.", stacklevel=6
        )
        self._slopes.pop()
        return dy

    def _sum(self, start: Tensor, dt: Time, weights: tuple[float, ...]) -> Tensor:
        total = start
        for weight, slope in zip(weights, self._slopes, strict=False):
            total = plus(total, weight * dt, slope)
        return total

    def _settled(self, before: Tensor, after: Tensor) -> bool:
        system = self.system
        scale = system.atol + system.rtol * torch.maximum(before.abs(), after.abs())
        return bool(((after - before).abs() / scale).max() < 1) if after.numel() else True
