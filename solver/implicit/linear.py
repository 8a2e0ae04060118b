"""Linear systems of every row, factored together, refused row by row."""

from typing import NamedTuple

import torch
from torch import Tensor


class Factored(NamedTuple):
    """LU factors of `(B, N, N)` matrices."""

    lu: Tensor
    pivots: Tensor

    def solve(self, rhs: Tensor) -> Tensor:
        """Return the solutions for `rhs (B, N)`; not finite in rows whose matrix is singular."""
        return torch.linalg.lu_solve(self.lu, self.pivots, rhs[:, :, None])[:, :, 0]


def factor(matrix: Tensor) -> Factored:
    """Factor `(B, N, N)`; a singular row does not raise, its solutions are not finite."""
    lu, pivots, _ = torch.linalg.lu_factor_ex(matrix)
    return Factored(lu, pivots)


def shifted(jacobian: Tensor, h: Tensor) -> Tensor:
    """Return `I - h J`, `(B, D, D)`, for `jacobian (B, D, D)` and `h (B,)`."""
    matrix = jacobian * -h[:, None, None]
    matrix.diagonal(dim1=1, dim2=2).add_(1.0)
    return matrix


def kronecker(coefficients: Tensor, jacobians: list[Tensor], h: Tensor) -> Tensor:
    """Return `I - h (a_ij J_j)`, `(B, S D, S D)`, blocks of stage i by stage j.

    Args:
        coefficients: `a (S, S)`.
        jacobians: of every stage `(B, D, D)`, or one for all.
        h: `(B,)`.
    """
    count, (batch, dim, _) = len(coefficients), jacobians[0].shape
    if len(jacobians) == 1:
        jacobians = jacobians * count
    stacked = torch.stack(jacobians)  # (S, B, D, D) of stage j
    blocks = coefficients[:, :, None, None, None] * stacked  # (i, j, B, D, D)
    matrix = blocks.permute(2, 0, 3, 1, 4).reshape(batch, count * dim, count * dim)
    return shifted(matrix, h)
