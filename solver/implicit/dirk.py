"""Diagonally implicit Runge-Kutta steps: systems of size D one by one, one matrix for all."""

import copy
from collections.abc import Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from solver.implicit.jacobian import JacobianSetup
from solver.implicit.linear import Factored, Matrix
from solver.implicit.newton import Solved
from solver.implicit.stepper import ImplicitStepper, first_order
from solver.methods.base import ReplayingStepper, Trial
from solver.methods.tableau import ButcherTableau
from solver.norms import Tolerance
from solver.problem import Field


class DirkStepper(ImplicitStepper, ReplayingStepper):
    """Takes steps of a method with an explicit first stage and one number on the diagonal.

    Hairer & Wanner II (2nd ed.), section IV.6. The unknown of a stage is `z = h gamma k`, so that
    nothing is divided by a step, which may be 0 in rows that stand still.

    Args:
        tableau: its first stage is explicit, the others have the same diagonal.
        filtered: whether the matrix is applied to the error estimate, for methods whose embedded
            one is not stable enough, Hosea & Shampine (1996).
    """

    def __init__(
        self,
        tableau: ButcherTableau,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None,
        exact: bool,
        setup: JacobianSetup,
        filtered: bool = False,
    ):
        """Make the coefficients' tensors."""
        super().__init__(field, like, graph=graph, tolerance=tolerance, exact=exact, setup=setup)
        exact_numbers = tableau.exact
        self._a = [[float(x) for x in row] for row in exact_numbers.a]
        self._c = [float(c) for c in exact_numbers.c]
        self._at_end = [c == 1 for c in exact_numbers.c]
        self._b = [float(b) for b in exact_numbers.b]
        error = exact_numbers.b_error
        self._error = None if error is None else [float(x) for x in error]
        self.looks_ahead = max(self._c) > 1
        self._count, self._fsal = tableau.stages, tableau.fsal
        self._gamma = self._a[-1][-1]
        self._interpolant = tableau.coefficients(time_dtype, like.device).interpolant
        self._filtered = filtered
        self._guesses = [_guess(self._c, i) for i in range(self._count)]
        self._solver = self._newton()
        self._quiet = torch.no_grad if graph else nullcontext
        self._hk: list[Tensor] = []  # h times the slopes of the attempt just made
        self._end: Tensor | None = None  # slope at its end
        self.keeps_end_slope = self._fsal
        self.interpolant_evals = 0 if self._fsal else 1
        self.interpolant_gives_end_slope = not self._fsal

    def attempt(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Trial:
        """Try one step; the estimate of its error is not part of autograd's graph."""
        y = self._field.real(y)
        if self._stale:
            self._evaluate_start(self._at_start(t), y)
            self._stale = False
        self._end = None
        y1 = self._solve(t, dt, t_next, y)
        error = None
        if self._error is not None:
            with self._quiet():
                error = combined(self._hk, self._error)
                if self._filtered:
                    error = self._factored.solve(error)
                error = self._field.back(error)
        return Trial(self._field.back(y1), error)

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
        self._evaluate_start(start, y)
        self._j, self._behind, self._end = None, start, None
        self._current = torch.zeros_like(self._current)
        self._solver.forget(~self._current)
        return self._field.back(self._solve(t, dt, t_next, y))

    def _evaluate_start(self, t: Tensor, y: Tensor) -> None:
        self._start = self._slope(t, y)

    def _base(self, i: int, y: Tensor, h: Tensor, hk: list[Tensor]) -> Tensor:
        """Return what stage i adds its own slope to."""
        return y + combined(hk, self._a[i])

    def _took(self, time: Tensor, h: Tensor, state: Tensor, rows: Tensor) -> None:
        """Meet the stage just solved in `rows (B,)`."""

    def _finish(self, y: Tensor, h: Tensor, hk: list[Tensor], states: list[Tensor]) -> Tensor:
        """Return the state at the end of the step."""
        self._hk = hk
        if self._fsal:  # rows that stand still have no slope to divide out
            self._end = hk[-1] / torch.where(h > 0, h, 1.0)
            return states[-1]
        return y + combined(hk, self._b)

    def _solve(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Tensor:
        """Solve all stages; return the state at the end, NaN in rows without a solution."""
        h, active = dt.to(self._real)[:, None], self._active(dt)
        with torch.no_grad():
            self._factor(self._jacobian_for(t, y, h, active), h, active)
            self._solver.doubt(h.detach()[:, 0], self._current)
        scale, size = self._scales(y)
        hk, states, ok, finite = [h * self._start], [y], active, torch.ones_like(active)
        for i in range(1, self._count):
            time = t_next if self._at_end[i] else torch.add(t, dt, alpha=self._c[i])
            if self._c[i] > 1 and self.horizon is not None:
                time = torch.minimum(time, self.horizon)
            base = self._base(i, y, h, hk)
            z = self._stage(time, h, base, self._first_guess(i, hk, states, base), scale, size, ok)
            hk.append(z / self._gamma)
            states.append(base + z)
            self._took(time, h, states[-1], ok)
            ok, finite = ok & self._solved_ok, finite & self._solved_finite
        self.unsolved = active & ~ok & finite
        y1 = self._finish(y, h, hk, states)
        lost = active & ~ok
        return self._if_any(lost, lambda: y1.masked_fill(lost[:, None], torch.nan), y1)

    def _factor(self, jacobian: Matrix, h: Tensor, rows: Tensor) -> None:
        self._factored: Factored = jacobian.shifted(self._gamma * h.detach()[:, 0], rows)
        self._counts.factored(rows)

    def _first_guess(self, i: int, hk: list[Tensor], states: list[Tensor], base: Tensor) -> Tensor:
        same, weights = self._guesses[i]
        if same is not None:
            return (states[same] - base).detach()
        return self._gamma * combined([each.detach() for each in hk], weights)

    def _stage(
        self,
        time: Tensor,
        h: Tensor,
        base: Tensor,
        guess: Tensor,
        scale: Tensor,
        size: Tensor,
        rows: Tensor,
    ) -> Tensor:
        """Solve `z = h gamma f(time, base + z)` in `rows (B,)`, `(B, D)`."""
        bare_base, bare_time, hg = base.detach(), time.detach(), self._gamma * h.detach()

        def residual(z: Tensor) -> Tensor:
            return z - hg * self._slope(bare_time, bare_base + z)

        def renew(z: Tensor, slow: Tensor) -> None:
            if bool(slow.any()):
                self._take_jacobian(bare_time, bare_base + z, slow)
                self._factor(self._j_known(), h, rows)

        def correct(r: Tensor) -> Tensor:
            return self._factored.solve(r)

        with torch.no_grad():
            solve = self._solver.solve
            solved = solve(residual, correct, guess, scale, size, rows, renew)
            self._counts.add(solved.iterations, None, solved.iterations)
            again = rows & ~solved.ok & solved.finite & ~self._current

            def solve_again() -> Solved:  # with the Jacobian of this step instead of an earlier one
                self._take_jacobian(bare_time, bare_base, again)
                self._factor(self._j_known(), h, rows)
                self._current = self._current | again
                self._solver.forget(again)
                second = solve(residual, correct, guess, scale, size, again, renew)
                self._counts.add(second.iterations, None, second.iterations)
                return solved.replaced(again, second)

            solved = self._if_any(again, solve_again, solved)
            self._learn(solved)
            self._solved_ok, self._solved_finite = solved.ok, solved.finite
            z = solved.z.masked_fill(~(rows & solved.ok)[:, None], 0.0)
        if self._graph:
            self._counts.add(rows.long(), rows.long())
            self._counts.factored(rows)
        return self._attached(time, h, base, z) if self._graph else z

    def _attached(self, time: Tensor, h: Tensor, base: Tensor, z: Tensor) -> Tensor:
        """Return the solution as a function of what it was made from, to first order.

        One more correction of Newton's, with the Jacobian at the solution itself: its derivative
        is that of the implicit function theorem.
        """
        with torch.enable_grad():
            slope, matrix = self._with_jacobian(time, base + z)
            factored = matrix.shifted(self._gamma * h.detach()[:, 0])
            residual = first_order(z - (self._gamma * h) * slope)
            return z - factored.solve(residual)

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the dense output of the attempt just made."""
        hk = torch.stack(self._hk)
        if not self._fsal:
            self._end = self._slope(t_next, self._field.real(y1))
            hk = torch.cat([hk, (dt.to(self._real)[:, None] * self._end)[None]])
        dtype = torch.promote_types(self._interpolant.dtype, hk.dtype)
        out = torch.tensordot(self._interpolant.t().to(dtype), hk.to(dtype), dims=1)
        return self._field.back(out)

    def advance(self, moved: Tensor) -> None:
        """Go on from the attempt just made in the rows `moved (B,)`."""
        self._moved(moved)
        if self._end is None:
            self._stale = True
        else:
            self._start = torch.where(moved[:, None], self._end, self._start)

    def known_slopes(self) -> list[Tensor]:
        """Return the slope at the start, h times those of the attempt, and that at its end."""
        back = self._field.back
        if self._stale:
            return []
        end = [] if self._end is None else [self._end]
        return [back(self._start), *map(back, self._hk), *map(back, end)]

    def continuing(self, slopes: Sequence[Tensor]) -> "DirkStepper":
        """Return a stepper of the same solve that knows these slopes."""
        other = copy.copy(self)
        real = [self._field.real(slope) for slope in slopes]
        other._stale = not real
        if real:
            other._start, other._hk = real[0], real[1 : 1 + self._count]
        other._end = real[-1] if len(real) > 1 + self._count else None
        return other

    def slopes(self) -> Tensor:
        """Return h times the slopes of the attempt just made, `(S, B, D)`."""
        return self._field.back(torch.stack(self._hk))


def combined(hk: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Return `sum_j weights[j] hk[j]`; scalar weights make autograd keep nothing."""
    total = hk[0] * weights[0]
    for each, weight in zip(hk[1:], weights[1:], strict=False):
        if weight:
            total = torch.add(total, each, alpha=weight)
    return total


def _guess(c: Sequence[float], i: int) -> tuple[int | None, list[float]]:
    """Return what stage i is guessed from: a stage at the same time, or weights of slopes.

    The slopes of the two stages nearest in time are extended by the straight line through them.
    """
    for j in range(i - 1, 0, -1):
        if c[j] == c[i]:
            return j, []
    near = sorted(range(i), key=lambda j: abs(c[j] - c[i]))[:2]
    weights = [0.0] * max(i, 1)
    if len(near) < 2 or c[near[0]] == c[near[1]]:
        weights[near[0] if near else 0] = 1.0
        return None, weights
    p, q = near
    weights[p] = (c[i] - c[q]) / (c[p] - c[q])
    weights[q] = 1 - weights[p]
    return None, weights
