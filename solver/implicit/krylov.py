"""Systems solved without a matrix: the Jacobian is known by its products with vectors alone."""

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, final

import torch
from torch import Tensor
from torch.autograd import forward_ad

from solver.implicit.linear import Factored, Matrix
from solver.norms import rms_norm

RESTART = 40  # basis vectors kept
MOST = 400  # products for one system

Slope = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Accuracy:
    """How well systems are to be solved: the residual, in tolerances, at most either of these."""

    absolute: float
    relative: float  # of the right-hand side


@final
@dataclass(frozen=True, eq=False)
class Products(Matrix):
    """The Jacobian at one place of every row, as products with vectors.

    Args:
        slope: the vector field, `(B,), (B, D) -> (B, D)`.
        t, y: where, `(B,)`, `(B, D)`.
        scale: tolerance of each unknown, `(B, D)`.
        accuracy: of solutions.
        spent: told, for each product, in which rows it was needed, `(B,)` bool.
        resting: rows whose Jacobian counts as 0.
    """

    slope: Slope
    t: Tensor
    y: Tensor
    scale: Tensor
    accuracy: Accuracy
    spent: Callable[[Tensor], None]
    resting: Tensor | None = None

    def merged(self, rows: Tensor, other: Matrix) -> "Products":
        """Return this in `rows (B,)`, `other` elsewhere."""
        assert isinstance(other, Products)
        column = rows[:, None]
        resting = self.resting
        if resting is not None or other.resting is not None:
            never = torch.zeros_like(rows)
            mine, theirs = (never if r is None else r for r in (resting, other.resting))
            resting = torch.where(rows, mine, theirs)
        return replace(
            self,
            t=torch.where(rows, self.t, other.t),
            y=torch.where(column, self.y, other.y),
            scale=torch.where(column, self.scale, other.scale),
            resting=resting,
        )

    def at_rest(self, rows: Tensor) -> "Products":
        """Return this with zeros in `rows (B,)`."""
        return replace(self, resting=rows if self.resting is None else self.resting | rows)

    def usable(self) -> "Products":
        """Return this out of autograd's graph; rows that are not finite have no solutions."""
        return replace(self, t=self.t.detach(), y=self.y.detach())

    def by_columns(self, factors: Tensor) -> "Products":
        """Never asked for: products are not made of differences of columns."""
        raise TypeError("products with vectors have no columns")

    def detached(self) -> "Products":
        """Return this out of autograd's graph."""
        return self.usable()

    def times(self, v: Tensor) -> Tensor:
        """Return the product with `v (B, D)`, by forward-mode differentiation or differences."""
        got = None
        if not tangents_travel():
            _meet_forward_mode()
            try:
                with torch.inference_mode(False), forward_ad.dual_level():
                    dual = forward_ad.make_dual(self.y.detach(), v.to(self.y.dtype))
                    got = forward_ad.unpack_dual(self.slope(self.t, dual)).tangent
            except RuntimeError:
                got = None
        if got is None:
            got = self._difference(v)
        return got if self.resting is None else got.masked_fill(self.resting[:, None], 0.0)

    def _difference(self, v: Tensor) -> Tensor:
        """Return a symmetric difference: forward mode does not get through the field."""
        y = self.y.detach()
        length = torch.linalg.vector_norm(v, dim=1, keepdim=True)
        size = torch.linalg.vector_norm(y, dim=1, keepdim=True)
        step = torch.finfo(y.dtype).eps ** (1 / 3) * (size + 1e-3) / length.clamp_min(1e-300)
        step = torch.where(length > 0, step, 0.0)
        ahead, behind = self.slope(self.t, y + step * v), self.slope(self.t, y - step * v)
        return torch.where(length > 0, (ahead - behind) / (2 * step), 0.0)

    def transposed(self, w: Tensor) -> Tensor:
        """Return the product of the transposed Jacobian with `w (B, D)`."""
        with torch.inference_mode(False), torch.enable_grad():
            y = self.y.detach().requires_grad_()
            slope = self.slope(self.t, y)
            got = None
            if slope.requires_grad:
                (got,) = torch.autograd.grad(slope, y, w, allow_unused=True)
        got = torch.zeros_like(w) if got is None else got
        return got if self.resting is None else got.masked_fill(self.resting[:, None], 0.0)

    def times_followed(self, v: Tensor) -> Tensor:
        """Return the product with `v (B, D)` as autograd's graph of `t`, `y` and the field."""
        y = self.y if self.y.requires_grad else self.y.detach().requires_grad_()
        slope = self.slope(self.t, y)
        w = torch.zeros_like(slope, requires_grad=True)
        (back,) = torch.autograd.grad(slope, y, w, create_graph=True, allow_unused=True)
        if back is None:
            return torch.zeros_like(v)
        (got,) = torch.autograd.grad(back, w, v, create_graph=True)
        return got if self.resting is None else got.masked_fill(self.resting[:, None], 0.0)

    def shifted(self, h: Tensor, rows: Tensor | None = None) -> Factored:
        """Return what solves systems of `I - h J` for `h (B,)`, real or complex."""
        return _Krylov(self, h, rows)


@final
class _Krylov(Factored):
    """Solves with `I - h J` by products."""

    def __init__(self, matrix: Products, h: Tensor, rows: Tensor | None):
        """Keep what is needed."""
        self._matrix, self._h, self._rows = matrix, h, rows

    def solve(self, rhs: Tensor) -> Tensor:
        """Return the solutions for `rhs (B, N)`; NaN in rows where none was found."""
        if torch.is_grad_enabled() and (rhs.requires_grad or self._matrix.y.requires_grad):
            return self._followed(rhs)
        return self.bare(rhs, transposed=False)

    def _followed(self, rhs: Tensor) -> Tensor:
        """Return the solution as a function of all it is made from, to first order."""
        with torch.no_grad():
            x = self.bare(rhs.detach(), transposed=False)
        if self._matrix.y.requires_grad:
            made = x - self._h[:, None] * self._matrix.times_followed(x)
        else:
            made = x - self._h.detach()[:, None] * self._matrix.times(x)
        return x + _Solve.apply(rhs - made, self)

    def bare(self, rhs: Tensor, *, transposed: bool) -> Tensor:
        """Return the solution out of the graph."""
        matrix, h = self._matrix, self._h.detach()[:, None]
        product = matrix.transposed if transposed else matrix.times
        scale = 1 / matrix.scale if transposed else matrix.scale

        def apply(x: Tensor) -> Tensor:
            x = x * scale
            if x.is_complex():
                image = torch.complex(product(x.real), product(x.imag))
            else:
                image = product(x)
            return (x - h * image) / scale

        with torch.no_grad():
            found = gmres(apply, rhs / scale, matrix.accuracy, matrix.spent, self._rows)
            return found * scale


class _Solve(torch.autograd.Function):
    """The solution of a system, derived by its right-hand side."""

    @staticmethod
    def forward(ctx: Any, rhs: Tensor, krylov: _Krylov) -> Tensor:
        ctx.krylov = krylov
        # What is solved for is a residual, and zero but for rounding.
        return torch.zeros_like(rhs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return ctx.krylov.bare(gradients[0], transposed=True), None


def gmres(
    apply: Callable[[Tensor], Tensor],
    rhs: Tensor,
    accuracy: Accuracy,
    spent: Callable[[Tensor], None],
    rows: Tensor | None,
) -> Tensor:
    """Solve `apply(x) = rhs`, rows on their own, all in the same iterations.

    Saad & Schultz (1986), SIAM J. Sci. Stat. Comput. 7(3), restarted.

    Args:
        apply: `(B, N) -> (B, N)`, linear in each row.
        rhs: `(B, N)`, in tolerances.
        accuracy: when a row is done.
        spent: told which rows needed each product.
        rows: `(B,)` bool, who is to be solved for; None for all.

    Returns:
        `(B, N)`, NaN in rows that did not converge.
    """
    x, r = torch.zeros_like(rhs), rhs
    norm = rms_norm(r)
    goal = (accuracy.relative * norm).clamp_min(accuracy.absolute)
    going = norm > goal
    if rows is not None:
        going = going & rows
    lost = ~norm.isfinite()
    going = going & ~lost
    products, left = 0, norm
    while bool(going.any()) and products < MOST:
        x, used = _cycle(apply, x, r, goal, going, spent)
        products += used
        r = rhs - apply(x)
        spent(going)
        left = torch.where(going, rms_norm(r), left)
        going = going & (left > 1.5 * goal)
    lost = lost | (going & ~(left <= 10 * goal))
    return x.masked_fill(lost[:, None], torch.nan)


def _cycle(
    apply: Callable[[Tensor], Tensor],
    x: Tensor,
    r: Tensor,
    goal: Tensor,
    going: Tensor,
    spent: Callable[[Tensor], None],
) -> tuple[Tensor, int]:
    """Build one Krylov space; return the nearest in it to the solution, and its size."""
    batch, dim = r.shape
    beta = torch.linalg.vector_norm(r, dim=1)
    goal = goal * dim**0.5
    most = min(RESTART, dim)
    basis = [r / _nonzero(beta)[:, None]]
    upper = r.new_zeros((batch, most + 1, most))
    active, size, rotations = going, 0, []
    right = [beta.to(r.dtype)]
    for j in range(most):
        w = apply(basis[j])
        spent(active)
        stacked = torch.stack(basis, dim=1)  # (B, j + 1, N)
        column = r.new_zeros((batch, j + 1))
        for _ in range(2):  # Gram and Schmidt, twice for the digits
            part = torch.einsum("bjn,bn->bj", stacked.conj(), w)
            w = w - torch.einsum("bj,bjn->bn", part, stacked)
            column = column + part
        length = torch.linalg.vector_norm(w, dim=1)
        entries = [*column.unbind(1), length.to(r.dtype)]
        for i, (c, s) in enumerate(rotations):  # Givens rotations keep the matrix triangular
            up, down = entries[i], entries[i + 1]
            entries[i], entries[i + 1] = c * up + s * down, -s.conj() * up + c * down
        a, b = entries[j], entries[j + 1]
        radius = (a.abs() ** 2 + b.abs() ** 2).sqrt()
        phase = torch.where(a.abs() > 0, a / _nonzero(a.abs()), 1.0)
        c = a.abs() / _nonzero(radius)
        s = phase * b.conj() / _nonzero(radius)
        rotations.append((c, s))
        entries[j] = c * a + s * b
        upper[:, : j + 1, j] = torch.stack(entries[: j + 1], dim=1)
        right[j:] = [c * right[j], -s.conj() * right[j]]
        # Rows that are done get nothing more: their further columns are those of the unit matrix.
        done = ~active
        upper[:, : j + 1, j] = upper[:, : j + 1, j].masked_fill(done[:, None], 0.0)
        upper[:, j, j] = torch.where(done | (radius == 0), 1.0, upper[:, j, j])
        right[j] = right[j].masked_fill(done, 0.0)
        size = j + 1
        tail = right[j + 1].abs()
        active = active & (tail > goal) & (length > 0) & tail.isfinite()
        if not bool(active.any()):
            break
        basis.append(w / _nonzero(length)[:, None])
    weights = torch.linalg.solve_triangular(
        upper[:, :size, :size], torch.stack(right[:size], dim=1)[:, :, None], upper=True
    )[:, :, 0]
    correction = torch.einsum("bj,bjn->bn", weights, torch.stack(basis[:size], dim=1))
    return torch.where(going[:, None], x + correction, x), size


def _nonzero(x: Tensor) -> Tensor:
    return torch.where(x == 0, 1.0, x)


@cache
def _meet_forward_mode() -> None:
    """Let torch load what it needs for forward mode, whose own warnings are not the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(RuntimeError), forward_ad.dual_level():
            forward_ad.make_dual(torch.zeros(()), torch.zeros(()))


def tangents_travel() -> bool:
    """Whether forward-mode differentiation is under way."""
    return getattr(forward_ad, "_current_level", -1) >= 0
