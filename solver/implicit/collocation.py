"""Fully implicit Runge-Kutta steps: all stages in one system of size S D."""

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from solver.errors import InvalidArgument
from solver.implicit.jacobian import JacobianSetup
from solver.implicit.linear import Dense, Factored, Matrix, kronecker
from solver.implicit.newton import Solved
from solver.implicit.stepper import ImplicitStepper, first_order
from solver.methods.base import ReplayingStepper, Trial
from solver.norms import Tolerance, rms_norm
from solver.problem import Field


@dataclass(frozen=True)
class CollocationTableau:
    """A collocation method; irrational numbers as floats, as they follow from `c` alone.

    `a_ij` is the integral of the j-th Lagrange polynomial of `c` from 0 to `c_i`, `b_j` that to 1.

    Args:
        source: where it was published, with the year.
        order, error_order: of the step, and of its error estimate, if there is one.
        c: the nodes.
        gamma: factor of h in the matrix of the error estimate.
        error: weights of the stage increments in it.
    """

    source: str
    order: int
    error_order: int | None
    c: tuple[float, ...]
    gamma: float = 0.0
    error: tuple[float, ...] = ()

    @property
    def fsal(self) -> bool:
        """Whether the last stage is the end of the step."""
        return self.c[-1] == 1

    @property
    def a(self) -> Tensor:
        """Coefficients of the stages, `(S, S)` float64."""
        return integrals(self.c, self.c)

    @property
    def b(self) -> Tensor:
        """Weights of the step, `(S,)` float64."""
        return integrals(self.c, (1.0,))[0]


def integrals(nodes: Sequence[float], ends: Sequence[float]) -> Tensor:
    """Return the integrals from 0 to each end of the Lagrange polynomials, `(ends, nodes)`."""
    ends_ = torch.tensor(ends, dtype=torch.float64)[:, None]
    powers = torch.arange(1, len(nodes) + 1, dtype=torch.float64)
    return (ends_**powers / powers) @ _lagrange(nodes).t()


def _lagrange(nodes: Sequence[float]) -> Tensor:
    """Return the coefficients of the Lagrange polynomials, `(nodes, degree + 1)`, lowest first."""
    powers = torch.arange(len(nodes), dtype=torch.float64)
    values = torch.tensor(nodes, dtype=torch.float64)[:, None] ** powers
    return torch.linalg.inv(values).t().contiguous()


class Mode(NamedTuple):
    """An eigenvalue of the coefficients, with which the stages fall apart.

    Hairer & Wanner II (2nd ed.), section IV.8. One of each conjugate pair stands for both.
    """

    value: Tensor  # scalar, real or complex
    into: Tensor  # (S,) weights of the stages in this mode
    back: Tensor  # (S,) share of this mode in the stages


def _modes(a: Tensor, device: torch.device, dtype: torch.dtype) -> list[Mode]:
    """Return the modes of `a (S, S)`."""
    values, vectors = torch.linalg.eig(a)
    inverse = torch.linalg.inv(vectors)
    found = []
    for i, value in enumerate(values):
        parts = value, inverse[i], vectors[:, i]
        if value.imag.abs() <= 1e-12 * value.abs():  # eigenvectors may have any phase
            scale = vectors[vectors[:, i].abs().argmax(), i]
            parts = value.real, (inverse[i] * scale).real, (vectors[:, i] / scale).real
            found.append(Mode(*(part.to(device, dtype) for part in parts)))
        elif value.imag > 0:
            kind = dtype.to_complex()
            value, into, back = (part.to(device, kind) for part in parts)
            found.append(Mode(value, into, 2 * back))
    return found


def _changes_of_basis(modes: Sequence[Mode]) -> tuple[Tensor, Tensor]:
    """Return `(S, S)` from stages to modes, real and imaginary parts one below the other; and back.

    The real part of `back * x` is `back.real * x.real - back.imag * x.imag`.
    """
    into: list[Tensor] = []
    back: list[Tensor] = []
    for mode in modes:
        if mode.value.is_complex():
            into += [mode.into.real, mode.into.imag]
            back += [mode.back.real, -mode.back.imag]
        else:
            into.append(mode.into)
            back.append(mode.back)
    return torch.stack(into), torch.stack(back, dim=1)


def _mixed(weights: Tensor, parts: Tensor) -> Tensor:
    """Return `sum_j weights[i, j] parts[j]`, `(S, B, D)`, for `weights (S, S)`."""
    return torch.mm(weights, parts.reshape(len(parts), -1)).view(parts.shape)


class CollocationStepper(ImplicitStepper, ReplayingStepper):
    """Takes collocation steps; Hairer & Wanner II (2nd ed.), sections IV.5 and IV.8.

    The unknowns are the increments `z_i = Y_i - y` of all stages, guessed by the polynomial of
    the step before. Its derivative goes through the slopes at both ends as well, so that the dense
    output has no kinks.
    """

    def __init__(
        self,
        tableau: CollocationTableau,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None,
        exact: bool,
        setup: JacobianSetup,
    ):
        """Make the coefficients' tensors."""
        super().__init__(field, like, graph=graph, tolerance=tolerance, exact=exact, setup=setup)
        dtype, device = self._real, like.device
        a, b, c = tableau.a, tableau.b, tableau.c
        self._c, self._count, self._fsal = c, len(c), tableau.fsal
        self._a = a.to(device, dtype)
        self._a_inverse = torch.linalg.inv(a).to(device, dtype)
        self._modes = _modes(a, device, dtype)
        self._into, self._back = _changes_of_basis(self._modes)
        self._weights = (b @ torch.linalg.inv(a)).to(device, dtype)  # of increments in the step
        self._gamma, self._has_error = tableau.gamma, tableau.error_order is not None
        self._error = torch.tensor(tableau.error, dtype=dtype, device=device)
        ends = (0.0, *c) if self._fsal else (0.0, *c, 1.0)
        powers = torch.arange(1, len(ends) + 1, dtype=torch.float64)[:, None]
        # Slopes at `ends` to coefficients of theta, theta ** 2, ... of the polynomial.
        self._interpolant = (_lagrange(ends).t() / powers).to(device, time_dtype)
        values = torch.tensor(c, dtype=torch.float64)[:, None] ** powers[: len(c), 0]
        self._through = torch.linalg.inv(values).to(device, time_dtype)  # increments, likewise
        self._at = torch.tensor(c, dtype=time_dtype, device=device)
        self._solver = self._newton(10 if self._count > 1 else None)
        self._quiet = torch.no_grad if graph else nullcontext
        self._z: Tensor | None = None  # (S, B, D) increments of the attempt just made
        self._h = torch.zeros_like(self._start[:, :1])
        self._end: Tensor | None = None  # slope at its end
        self._before: tuple[Tensor, Tensor] | None = None  # last polynomial, its step
        self._tried_at: Tensor | None = None  # (B,) where the attempt before began
        self.keeps_end_slope = self._fsal
        self.interpolant_evals = 0 if self._fsal else 1
        self.interpolant_gives_end_slope = not self._fsal

    def attempt(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Trial:
        """Try one step; the estimate of its error is not part of autograd's graph."""
        y = self._field.real(y)
        if self._stale:
            self._start, self._stale = self._slope(t, y), False
        y1 = self._solve(t, dt, t_next, y)
        error = None
        if self._has_error:
            with torch.no_grad():
                error = self._field.back(self._estimate(t, dt, y.detach(), y1.detach()))
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
        self._start, self._j, self._behind, self._before = self._field(start, y), None, start, None
        self._current = torch.zeros_like(self._current)
        self._solver.forget(~self._current)
        return self._field.back(self._solve(t, dt, t_next, y))

    def _times(self, t: Tensor, dt: Tensor, t_next: Tensor) -> list[Tensor]:
        return [t_next if c == 1 else torch.add(t, dt, alpha=c) for c in self._c]

    def _solve(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Tensor:
        """Solve for all stages; return the state at the end, NaN in rows without a solution."""
        h, active = dt.to(self._real)[:, None], self._active(dt)
        times = self._times(t, dt, t_next)
        with torch.no_grad():
            self._jacobian_for(t, y, h, active)
            self._solver.doubt(h.detach()[:, 0], self._current)
            solved = self._iterate(t, h.detach(), times, y.detach(), active)
            z = solved.z.masked_fill(~(active & solved.ok)[:, None], 0.0)
        self.unsolved = active & ~solved.ok & solved.finite
        z = self._attached(times, h, y, z) if self._graph else z
        self._z, self._h = z, h
        if self._fsal:
            slope = torch.tensordot(self._a_inverse[-1], self._z, dims=1)
            self._end = slope / torch.where(h > 0, h, 1.0)
            y1 = y + self._z[-1]
        else:
            self._end = None
            y1 = y + torch.tensordot(self._weights, self._z, dims=1)
        lost = active & ~solved.ok
        return y1.masked_fill(lost[:, None], torch.nan) if bool(lost.any()) else y1

    def _apart(self, z: Tensor) -> Tensor:
        """Return `(S, B, D)` for `(B, S D)`."""
        return z.unflatten(1, (self._count, -1)).transpose(0, 1)

    def _together(self, z: Tensor) -> Tensor:
        """Return `(B, S D)` for `(S, B, D)`."""
        return z.transpose(0, 1).flatten(1)

    def _residual(self, times: list[Tensor], h: Tensor, y: Tensor, z: Tensor) -> Tensor:
        places = (y + z).unbind(0)
        slopes = [self._slope(t, place) for t, place in zip(times, places, strict=True)]
        return z - h * _mixed(self._a, torch.stack(slopes))

    def _iterate(
        self,
        t: Tensor,
        h: Tensor,
        times: list[Tensor],
        y: Tensor,
        active: Tensor,
    ) -> Solved:
        times = [time.detach() for time in times]
        scale, size = self._scales(y)
        self._factor(h, active)

        def renew(z: Tensor, slow: Tensor) -> None:
            if bool(slow.any()):
                self._take_jacobian(times[-1], y + z[-1], slow)
                self._factor(h, active)

        def solve(z: Tensor, rows: Tensor) -> Solved:
            solved = self._solver.solve(
                lambda z: self._residual(times, h, y, z),
                self._correct,
                z, scale, size, rows, renew,
            )  # fmt: skip
            self._counts.add(solved.iterations * self._count, None, solved.iterations)
            return solved

        first = self._guess(h)
        solved = solve(first, active)
        again = active & ~solved.ok & solved.finite & ~self._current
        if bool(again.any()):
            self._take_jacobian(self._at_start(t), y, again)
            self._current = self._current | again
            self._factor(h, active)
            self._solver.forget(again)
            solved = solved.replaced(again, solve(first, again))
        self._learn(solved)
        return solved

    def _factor(self, h: Tensor, rows: Tensor) -> None:
        """Factor a system of size D for each mode, in place of one of size S D."""
        jacobian = self._j_known()
        self._factored: list[Factored] = []
        for mode in self._modes:
            shift = h[:, 0].to(mode.value.dtype) * mode.value
            self._factored.append(jacobian.shifted(shift, rows))
            self._counts.factored(rows)

    def _correct(self, r: Tensor) -> Tensor:
        """Solve `(I - h A x J) z = r`, `(S, B, D)`, mode by mode."""
        parts = _mixed(self._into, r).unbind(0)
        solved, at = [], 0
        for mode, factored in zip(self._modes, self._factored, strict=True):
            if mode.value.is_complex():
                both = factored.solve(torch.complex(parts[at], parts[at + 1]))
                solved += [both.real, both.imag]
            else:
                solved.append(factored.solve(parts[at]))
            at = len(solved)
        return _mixed(self._back, torch.stack(solved))

    def _guess(self, h: Tensor) -> Tensor:
        """Extend the polynomial of the step before, `(S, B, D)`; 0 where there is none."""
        if self._before is None:
            return self._start.detach().new_zeros((self._count, *self._start.shape))
        polynomial, h_before = self._before
        ratio = (h / torch.where(h_before > 0, h_before, 1.0)).to(self._at.dtype)[:, 0]
        theta = (1 + self._at[:, None] * ratio)[:, :, None]  # (S, B, 1)
        value = polynomial[-1] * theta
        for coefficient in polynomial[:-1].flip(0):
            value = (value + coefficient) * theta
        guess = (value - polynomial.sum(dim=0)).to(h.dtype)
        known = (h_before > 0) & guess.isfinite().all(dim=0).all(dim=1, keepdim=True)
        return torch.where(known, guess, 0.0)

    def _attached(self, times: list[Tensor], h: Tensor, y: Tensor, z: Tensor) -> Tensor:
        """Return the solution as a function of what it was made from, to first order."""
        active = (h.detach()[:, 0] > 0).long()
        self._counts.add(active * self._count, active)
        self._counts.factored(active)
        with torch.enable_grad():
            slopes, jacobians = [], []
            for time, part in zip(times, z, strict=True):
                slope, matrix = self._with_jacobian(time, y + part)
                slopes.append(slope)
                jacobians.append(matrix)
            factored = self._of_stages(jacobians, h.detach()[:, 0])
            off = first_order(z - h * torch.tensordot(self._a, torch.stack(slopes), dims=1))
            return z - self._apart(factored.solve(self._together(off)))

    def _of_stages(self, jacobians: list[Matrix], h: Tensor) -> Factored:
        """Return the factors of the system of all stages, each with its own Jacobian."""
        dense = [each.matrix for each in jacobians if isinstance(each, Dense)]
        if len(dense) == self._count:
            return kronecker(self._a, dense, h)
        raise InvalidArgument(
            f"gradients are wanted through a collocation method and a Jacobian that is kept as "
            f"{type(jacobians[0]).__name__}: use a diagonally implicit or Rosenbrock method "
            '(kvaerno5, rodas5p), or linear="lu" without a banded structure'
        )

    def _estimate(self, t: Tensor, dt: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the error estimate, Hairer & Wanner II, eq. IV.8.19 and IV.8.20."""
        assert self._z is not None
        hg = self._gamma * dt.detach().to(self._real)[:, None]
        real = [i for i, mode in enumerate(self._modes) if not mode.value.is_complex()]
        factored = self._factored[real[0]]  # gamma is that eigenvalue
        parts = self._gamma * torch.tensordot(self._error, self._z.detach(), dims=1)
        error = factored.solve(hg * self._start.detach() + parts)
        ratio = rms_norm(self._weighted(error, y, y1))
        fresh = torch.ones_like(ratio, dtype=torch.bool)  # first in the row, or after a refusal
        if self._tried_at is not None:
            fresh = t == self._tried_at
        self._tried_at = t.detach()
        large = fresh & ~(ratio <= 1) & ratio.isfinite() & self._active(dt)
        if bool(large.any()):  # a transient that the matrix does not see enough of
            slope = self._slope(self._at_start(t).detach(), y + error)
            second = factored.solve(hg * slope + parts)
            error = torch.where(large[:, None], second, error)
            self._counts.add(large.long())
        return error

    def _weighted(self, error: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        back = self._field.back
        return self._tolerance.weighted(back(error), back(y), back(y1))

    def _slopes_at_ends(self, h: Tensor, t_next: Tensor, y1: Tensor) -> Tensor:
        """Return h times the slopes at the start, at the stages, at the end, `(S + 1.., B, D)`."""
        assert self._z is not None
        hk = torch.tensordot(self._a_inverse, self._z, dims=1)
        parts = [h * self._start[None], hk]
        if not self._fsal:
            if self._end is None:
                self._end = self._slope(t_next, self._field.real(y1))
            parts.append(h * self._end[None])
        return torch.cat(parts)

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the dense output of the attempt just made."""
        hk = self._slopes_at_ends(dt.to(self._real)[:, None], t_next, y1)
        dtype = torch.promote_types(self._interpolant.dtype, hk.dtype)
        out = torch.tensordot(self._interpolant.to(dtype), hk.to(dtype), dims=1)
        return self._field.back(out)

    def advance(self, moved: Tensor) -> None:
        """Go on from the attempt just made in the rows `moved (B,)`."""
        self._moved(moved)
        with torch.no_grad():
            self._remember(moved)
        if self._end is None:
            self._stale = True
        else:
            self._start = torch.where(moved[:, None], self._end, self._start)

    def _remember(self, moved: Tensor) -> None:
        """Keep the collocation polynomial of the rows `moved (B,)` for the next first guess."""
        assert self._z is not None
        z = self._z.detach()
        polynomial = torch.tensordot(self._through, z.to(self._through.dtype), dims=1)
        h = self._h.detach()
        if self._before is not None:
            polynomial = torch.where(moved[:, None], polynomial, self._before[0])
            h = torch.where(moved[:, None], h, self._before[1])
        else:
            h = torch.where(moved[:, None], h, 0.0)
        self._before = polynomial, h

    def known_slopes(self) -> list[Tensor]:
        """Return the start slope, the increments of the attempt, and the slope at its end."""
        if self._stale:
            return []
        back = self._field.back
        parts = [] if self._z is None else list(self._z)
        end = [] if self._end is None or self._z is None else [self._end]
        return [back(each) for each in (self._start, *parts, *end)]

    def continuing(self, slopes: Sequence[Tensor]) -> "CollocationStepper":
        """Return a stepper of the same solve that knows these slopes."""
        other = copy.copy(self)
        real = [self._field.real(slope) for slope in slopes]
        other._stale, other._z, other._before = not real, None, None
        other._end = real[-1] if len(real) > 1 + self._count else None
        if real:
            other._start = real[0]
        if len(real) > self._count:
            other._z = torch.stack(real[1 : 1 + self._count])
        return other

    def slopes(self) -> Tensor:
        """Return the increments of the attempt just made, `(S, B, D)`."""
        assert self._z is not None
        return self._field.back(self._z)
