"""Jacobians of all rows and the systems made of them, factored together, refused row by row."""

from abc import ABC, abstractmethod
from typing import Self, final

import torch
from torch import Tensor

MANY = 24  # unknowns from which rows that need no factors are left out


class Factored(ABC):
    """A matrix `(B, N, N)` whose systems can be solved."""

    @abstractmethod
    def solve(self, rhs: Tensor) -> Tensor:
        """Return the solutions for `rhs (B, N)`; not finite in rows whose matrix is singular."""


class Matrix(ABC):
    """The Jacobian of every row, in whatever form it is kept."""

    @abstractmethod
    def merged(self, rows: Tensor, other: "Matrix") -> Self:
        """Return this in `rows (B,)`, `other`, of the same kind, elsewhere."""

    @abstractmethod
    def at_rest(self, rows: Tensor) -> Self:
        """Return this with zeros in `rows (B,)`."""

    @abstractmethod
    def usable(self) -> Self:
        """Return this out of autograd's graph, with 0 for what is not finite."""

    @abstractmethod
    def detached(self) -> Self:
        """Return this out of autograd's graph."""

    @abstractmethod
    def by_columns(self, factors: Tensor) -> Self:
        """Return this with every column j of row b times `factors (B, D)`."""

    @abstractmethod
    def times(self, v: Tensor) -> Tensor:
        """Return the product with `v (B, D)`."""

    @abstractmethod
    def shifted(self, h: Tensor, rows: Tensor | None = None) -> Factored:
        """Return the factors of `I - h J` for `h (B,)`, real or complex.

        Args:
            h: one number for each row.
            rows: `(B,)` bool, whose systems will be solved; solutions of others mean nothing.
        """


@final
class LU(Factored):
    """LU factors of dense matrices."""

    def __init__(self, matrix: Tensor):
        """Factor `(B, N, N)`; a singular row does not raise, its solutions are not finite."""
        self._lu, self._pivots, _ = torch.linalg.lu_factor_ex(matrix)

    def solve(self, rhs: Tensor) -> Tensor:
        """Return the solutions for `rhs (B, N)`; not finite in rows whose matrix is singular."""
        return torch.linalg.lu_solve(self._lu, self._pivots, rhs[:, :, None])[:, :, 0]


@final
class _SomeLU(Factored):
    """LU factors of some rows; the solutions of the others are 0."""

    def __init__(self, matrix: Tensor, rows: Tensor):
        """Factor `(n, N, N)`, the matrices of the n `rows`."""
        self._inner, self._rows = LU(matrix), rows

    def solve(self, rhs: Tensor) -> Tensor:
        """Return the solutions for `rhs (B, N)`."""
        found = self._inner.solve(rhs[self._rows])
        return torch.zeros_like(rhs).index_copy(0, self._rows, found)


@final
class Dense(Matrix):
    """All entries, `(B, D, D)`, `[b, i, j] = d f_i / d y_j`."""

    def __init__(self, matrix: Tensor):
        """Keep them."""
        self.matrix = matrix

    def merged(self, rows: Tensor, other: Matrix) -> "Dense":
        """Return this in `rows (B,)`, `other` elsewhere."""
        assert isinstance(other, Dense)
        return Dense(torch.where(rows[:, None, None], self.matrix, other.matrix))

    def at_rest(self, rows: Tensor) -> "Dense":
        """Return this with zeros in `rows (B,)`."""
        return Dense(self.matrix.masked_fill(rows[:, None, None], 0.0))

    def usable(self) -> "Dense":
        """Return this out of autograd's graph, with 0 for what is not finite."""
        return Dense(self.matrix.detach().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0))

    def by_columns(self, factors: Tensor) -> "Dense":
        """Return this with every column j of row b times `factors (B, D)`."""
        return Dense(self.matrix * factors[:, None, :])

    def detached(self) -> "Dense":
        """Return this out of autograd's graph."""
        return Dense(self.matrix.detach())

    def times(self, v: Tensor) -> Tensor:
        """Return the product with `v (B, D)`."""
        return (self.matrix @ v[:, :, None])[:, :, 0]

    def shifted(self, h: Tensor, rows: Tensor | None = None) -> Factored:
        """Return the factors of `I - h J` for `h (B,)`, real or complex."""
        jacobian = self.matrix
        few = rows is not None and jacobian.shape[1] >= MANY and not jacobian.requires_grad
        if rows is None or not few or bool(rows.all()):
            return LU(one_minus(jacobian, h))
        chosen = rows.nonzero()[:, 0]
        return _SomeLU(one_minus(jacobian[chosen], h[chosen]), chosen)


def one_minus(jacobian: Tensor, h: Tensor) -> Tensor:
    """Return `I - h J`, `(B, D, D)`, for `jacobian (B, D, D)` and `h (B,)`."""
    matrix = jacobian * -h[:, None, None]
    matrix.diagonal(dim1=1, dim2=2).add_(1.0)
    return matrix


def kronecker(coefficients: Tensor, jacobians: list[Tensor], h: Tensor) -> LU:
    """Return the factors of `I - h (a_ij J_j)`, `(B, S D, S D)`, blocks of stage i by stage j.

    Args:
        coefficients: `a (S, S)`.
        jacobians: of every stage `(B, D, D)`.
        h: `(B,)`.
    """
    count, (batch, dim, _) = len(coefficients), jacobians[0].shape
    stacked = torch.stack(jacobians)  # (S, B, D, D) of stage j
    blocks = coefficients[:, :, None, None, None] * stacked  # (i, j, B, D, D)
    matrix = blocks.permute(2, 0, 3, 1, 4).reshape(batch, count * dim, count * dim)
    return LU(one_minus(matrix, h))
