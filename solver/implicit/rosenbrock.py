"""Rosenbrock steps: linear systems in place of Newton's iteration, one matrix a step."""

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import torch
from torch import Tensor

from solver.implicit.jacobian import JacobianSetup
from solver.implicit.krylov import Accuracy
from solver.implicit.linear import Factored
from solver.implicit.stepper import ImplicitStepper
from solver.methods.base import ReplayingStepper, Trial
from solver.methods.tableau import Number
from solver.norms import Tolerance
from solver.problem import Field

Row = tuple[Number, ...]


@dataclass(frozen=True)
class RosenbrockTableau:
    """A Rosenbrock method as its numbers; Hairer & Wanner II (2nd ed.), eq. IV.7.25.

    Stage i solves `(I - h gamma J) U_i = h gamma f(t + c_i h, y + sum_j a_ij U_j)
    + gamma sum_j g_ij U_j + h^2 gamma d_i f_t`, and `y1 = y + sum_i m_i U_i`.

    Args:
        source: where it was published, with the year.
        order, error_order: of the step and of its error estimate.
        gamma: on the diagonal.
        c: places of the stages in the step, at most 1.
        d: factors of the derivative by time.
        a, g: rows below the diagonal, one for each stage but the first.
        m: weights of the step.
        m_error: weights of the error estimate.
        dense: further rows D_1 .. of the dense output `theta (y1 - y + (1 - theta) (D_1 + theta
            (D_2 + ..)))`, each a sum of the stages; may be shorter than them.
        dense_order: order of the dense output.

    Raises:
        ValueError: the numbers of rows and stages do not agree.
    """

    source: str
    order: int
    error_order: int
    gamma: Number
    c: Row
    d: Row
    a: tuple[Row, ...]
    g: tuple[Row, ...]
    m: Row
    m_error: Row
    dense: tuple[Row, ...]
    dense_order: int

    def __post_init__(self) -> None:
        """Check the shapes."""
        n = len(self.m)
        lengths = [len(row) for row in (self.c, self.d, self.m_error)]
        below = [[len(row) for row in rows] for rows in (self.a, self.g)]
        if lengths != [n] * 3 or below != [list(range(1, n))] * 2:
            raise ValueError(f"{self.source}: rows of {lengths} and {below} for {n} stages")

    @property
    def fsal(self) -> bool:
        """Whether the last stage is the first of the next step: never."""
        return False

    @cached_property
    def interpolant(self) -> list[list[Fraction]]:
        """Coefficients of theta, theta ** 2, .. of every stage, `(S, degree)`."""
        n, rows = len(self.m), [[Fraction(x) for x in row] for row in self.dense]
        rows = [row + [Fraction(0)] * (n - len(row)) for row in rows]
        powers = [[Fraction(x) for x in self.m], *rows]
        columns = [[p + q for p, q in zip(powers[0], powers[1], strict=True)]]
        for earlier, later in zip(rows, [*rows[1:], [Fraction(0)] * n], strict=True):
            columns.append([q - p for p, q in zip(earlier, later, strict=True)])
        return [list(row) for row in zip(*columns, strict=True)]


class RosenbrockStepper(ImplicitStepper, ReplayingStepper):
    """Takes Rosenbrock steps; every step has its own Jacobian, in autograd's graph if there is one.

    The field, its Jacobian and its derivative by time come from one call at the start of a step.
    """

    def __init__(
        self,
        tableau: RosenbrockTableau,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None,
        exact: bool,
        setup: JacobianSetup,
    ):
        """Make the coefficients."""
        tight = exact or tolerance is None
        super().__init__(field, like, graph=graph, tolerance=tolerance, exact=tight, setup=setup)
        if not tight:  # no iteration makes good what a solution lacks
            self._jacobian.accuracy = Accuracy(0.003, 0.0)
        self._gamma = float(Fraction(tableau.gamma))
        self._c, self._d, self._m, self._error = (
            [float(Fraction(x)) for x in row]
            for row in (tableau.c, tableau.d, tableau.m, tableau.m_error)
        )
        self._a, self._g = (
            [[], *([float(Fraction(x)) for x in row] for row in rows)]
            for rows in (tableau.a, tableau.g)
        )
        self._repeats = [  # stages at the place of the one before, which share its slope
            i > 1 and self._c[i] == self._c[i - 1] and self._a[i] == [*self._a[i - 1], 0.0]
            for i in range(len(self._c))
        ]
        self._interpolant = torch.tensor(
            [[float(x) for x in row] for row in tableau.interpolant],
            dtype=time_dtype,
            device=like.device,
        )
        self._quiet = torch.no_grad if graph else nullcontext
        # Whether stages may share a buffer: not where gradients take the step again, operation by
        # operation, and find in float32 what another order of sums rounds differently.
        self._in_place = not (graph or tight)
        self._rows = {  # the same weights for such a buffer
            "a": [self._tensor(row) for row in self._a],
            "g": [self._tensor([self._gamma * x for x in row]) for row in self._g],
            "ends": [self._tensor(self._m), self._tensor(self._error)],
        }
        self._by_time: Tensor | None = None  # (B, D)
        self._u: Sequence[Tensor] = []

    def _tensor(self, numbers: Sequence[float]) -> Tensor:
        return torch.tensor(numbers, dtype=self._real, device=self._like.device)

    def attempt(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Trial:
        """Try one step; the estimate of its error is not part of autograd's graph."""
        y = self._field.real(y)
        self._linearise(t, y, self._active(dt))
        if self._in_place and type(y) is Tensor:
            y1, error = self._solve_in_place(t, dt, t_next, y)
            return Trial(self._field.back(y1), self._field.back(error))
        y1 = self._solve(t, dt, t_next, y)
        with self._quiet():
            error = self._field.back(_sum(self._u, self._error))
        return Trial(self._field.back(y1), error)

    def _linearise(self, t: Tensor, y: Tensor, active: Tensor) -> None:
        """Take slope, Jacobian and derivative by time at the start, unless they are known."""
        wanted = active & ~self._current
        if self._j is not None and not bool(wanted.any()):
            return
        calls = self._field.field.calls
        found = self.evaluate_jacobian(t, y, time=True)
        assert found.by_time is not None
        calls = self._field.field.calls - calls
        self._counts.add(wanted * calls, wanted.long())
        self._start, self._j, self._by_time = found
        self._current = self._current | wanted

    def _factored_at_start(
        self, dt: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Factored]:
        """Return slope, derivative by time, h, h gamma, who moves, and the step's factors."""
        slope, jacobian, by_time = self._start, self._j, self._by_time
        assert jacobian is not None
        assert by_time is not None
        if self._resting is not None:
            slope, by_time = (x.masked_fill(self._resting, 0.0) for x in (slope, by_time))
            jacobian = jacobian.at_rest(self._resting[:, 0])
        h = dt.to(self._real)[:, None]
        hg = h * self._gamma
        active = self._active(dt)
        factored = jacobian.shifted(hg[:, 0], active)
        self._counts.factored(active)
        return slope, by_time, h, hg, active, factored

    def _solve(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Tensor:
        slope, by_time, h, hg, active, factored = self._factored_at_start(dt)
        u: list[Tensor] = []
        for i, c in enumerate(self._c):
            if i and not self._repeats[i]:
                time = t_next if c == 1 else torch.add(t, dt, alpha=c)
                slope = self._slope(time, y + _sum(u, self._a[i]))
            right = hg * slope
            if self._d[i]:
                right = right + (self._d[i] * hg * h) * by_time
            if i:
                right = torch.add(right, _sum(u, self._g[i]), alpha=self._gamma)
            u.append(factored.solve(right))
        self._u = u
        self._counts.add(active * (len(self._c) - 1 - sum(self._repeats)))
        return y + _sum(u, self._m)

    def _solve_in_place(
        self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return what `_solve` does, and the error: stages in one buffer, a sum in one operation.

        The buffer is new in every attempt, so what has been read of the last one stays.
        """
        slope, by_time, h, hg, active, factored = self._factored_at_start(dt)
        u = y.new_empty((len(self._c), *y.shape))
        flat, start = u.view(len(u), -1), y.reshape(-1)
        moving = (hg * h) * by_time
        for i, c in enumerate(self._c):
            known = flat[:i].t()
            if i and not self._repeats[i]:
                time = t_next if c == 1 else torch.add(t, dt, alpha=c)
                state = torch.addmv(start, known, self._rows["a"][i]).view(y.shape)
                slope = self._slope(time, state)
            right = hg * slope
            if i:
                right += torch.mv(known, self._rows["g"][i]).view(y.shape)
            if self._d[i]:
                right.add_(moving, alpha=self._d[i])
            u[i] = factored.solve(right)
        self._u = u.unbind(0)
        self._counts.add(active * (len(self._c) - 1 - sum(self._repeats)))
        step, error = self._rows["ends"]
        y1 = torch.addmv(start, flat.t(), step).view(y.shape)
        return y1, torch.mv(flat.t(), error).view(y.shape)

    def replay(
        self,
        t: Tensor,
        dt: Tensor,
        t_next: Tensor,
        y: Tensor,
        *,
        start: Tensor,
        polynomial: bool,
    ) -> Tensor:
        """Take an accepted step once more, from its start alone."""
        y = self._field.real(y)
        self._start, self._j, self._by_time = self._jacobian.at(start, y, graph=True, time=True)
        return self._field.back(self._solve(t, dt, t_next, y))

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the dense output of the attempt just made."""
        u = torch.stack(tuple(self._u))
        dtype = torch.promote_types(self._interpolant.dtype, u.dtype)
        out = torch.tensordot(self._interpolant.t().to(dtype), u.to(dtype), dims=1)
        return self._field.back(out)

    def advance(self, moved: Tensor) -> None:
        """Go on from the attempt just made in the rows `moved (B,)`."""
        self._moved(moved)

    def restart(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Let the next attempt of `rows (B,)` begin just behind a jump."""
        self._behind = t.detach() if self._behind is None else torch.maximum(self._behind, t)
        self._current = self._current & ~rows
        self._counts.add(-rows.long())  # counted as if it were made here

    def known_slopes(self) -> list[Tensor]:
        """Return the slope at the start and the stages of the attempt just made."""
        back = self._field.back
        return [back(self._start), *map(back, self._u)]

    def continuing(self, slopes: Sequence[Tensor]) -> "RosenbrockStepper":
        """Return a stepper of the same solve that knows these slopes."""
        other = copy.copy(self)
        real = [self._field.real(slope) for slope in slopes]
        other._start, other._u = real[0], real[1:]
        return other

    def slopes(self) -> Tensor:
        """Return the stages of the attempt just made, `(S, B, D)`."""
        return self._field.back(torch.stack(tuple(self._u)))


def _sum(u: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Return `sum_i weights[i] u[i]`; scalar weights make autograd keep nothing."""
    total = u[0] * weights[0]
    for each, weight in zip(u[1:], weights[1:], strict=False):
        if weight:
            total = torch.add(total, each, alpha=weight)
    return total
