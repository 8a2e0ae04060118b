"""Which entries of the Jacobian may differ from zero: declared, so that few products give all."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, final

import torch
from torch import Tensor

from solver.bounds import Bounds, check_bounds
from solver.errors import InvalidArgument, InvalidType
from solver.implicit.banded import Bands
from solver.implicit.linear import Dense, Matrix


class Structure(ABC):
    """Says where the Jacobian of the vector field has entries.

    Components whose entries do not meet get one colour, and one product for each colour gives the
    whole Jacobian; Curtis, Powell & Reid (1974), J. Inst. Maths Applics 13.
    """

    @abstractmethod
    def paired(self) -> "Structure":
        """Return the same for complex states, as real and imaginary parts side by side."""

    @abstractmethod
    def check(self, dim: int) -> None:
        """Refuse states of another size D.

        Raises:
            InvalidArgument: the structure is that of another D.
        """

    @abstractmethod
    def row_colours(self, dim: int) -> Tensor:
        """Return the colour of each f_i, `(D,)` int64: those of one colour share no y_j."""

    @abstractmethod
    def column_colours(self, dim: int) -> Tensor:
        """Return the colour of each y_j, `(D,)` int64: those of one colour share no f_i."""

    @abstractmethod
    def from_rows(self, sums: Tensor) -> Matrix:
        """Return the matrix from `(C, B, D)`: sums of the rows of each colour."""

    @abstractmethod
    def from_columns(self, sums: Tensor) -> Matrix:
        """Return the matrix from `(C, B, D)`: sums of the columns of each colour."""

    @abstractmethod
    def from_dense(self, matrix: Tensor) -> Matrix:
        """Return the matrix from all entries, `(B, D, D)`."""


@final
@dataclass(frozen=True)
class Full(Structure):
    """Every entry may differ from zero."""

    def paired(self) -> "Full":
        """Return the same for complex states."""
        return self

    def check(self, dim: int) -> None:
        """Fit every size."""

    def row_colours(self, dim: int) -> Tensor:
        """Return a colour of its own for each row."""
        return torch.arange(dim)

    def column_colours(self, dim: int) -> Tensor:
        """Return a colour of its own for each column."""
        return torch.arange(dim)

    def from_rows(self, sums: Tensor) -> Dense:
        """Return the matrix from its rows, `(D, B, D)`."""
        return Dense(sums.transpose(0, 1))

    def from_columns(self, sums: Tensor) -> Dense:
        """Return the matrix from its columns, `(D, B, D)`."""
        return Dense(sums.permute(1, 2, 0))

    def from_dense(self, matrix: Tensor) -> Dense:
        """Return the matrix itself."""
        return Dense(matrix)


@final
@dataclass(frozen=True)
class Banded(Structure):
    """Entries `d f_i / d y_j` with `i - lower <= j <= i + upper` only.

    Args:
        lower, upper: how many diagonals below and above the main one.

    Raises:
        ValueError: one of them is negative or no whole number.
    """

    lower: Annotated[int, Bounds(0, 1_000_000)]
    upper: Annotated[int, Bounds(0, 1_000_000)]

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_bounds(self)

    @property
    def width(self) -> int:
        """How many diagonals there are."""
        return self.lower + self.upper + 1

    def paired(self) -> "Banded":
        """Return the same for complex states."""
        return Banded(2 * self.lower + 1, 2 * self.upper + 1)

    def check(self, dim: int) -> None:
        """Fit every size."""

    def row_colours(self, dim: int) -> Tensor:
        """Return colours that come again after the width of the band."""
        return torch.arange(dim) % self.width

    def column_colours(self, dim: int) -> Tensor:
        """Return colours that come again after the width of the band."""
        return torch.arange(dim) % self.width

    def from_rows(self, sums: Tensor) -> Bands:
        """Return the matrix from sums of rows."""
        row, column, inside = self._places(sums)
        colour = (row % self.width).expand_as(column)
        found = sums[colour, :, column]  # (W, D, B)
        return Bands(found.masked_fill(~inside[:, :, None], 0.0).permute(2, 0, 1), self.lower)

    def from_columns(self, sums: Tensor) -> Bands:
        """Return the matrix from sums of columns."""
        row, column, inside = self._places(sums)
        found = sums[column % self.width, :, row.expand_as(column)]
        return Bands(found.masked_fill(~inside[:, :, None], 0.0).permute(2, 0, 1), self.lower)

    def from_dense(self, matrix: Tensor) -> Bands:
        """Return the bands of all entries, `(B, D, D)`; bands `(B, W, D)` are taken as they are."""
        if matrix.shape[1] == self.width != matrix.shape[2]:
            return Bands(matrix, self.lower)
        row, column, inside = self._places(matrix)
        found = matrix[:, row.expand_as(column), column]
        return Bands(found.masked_fill(~inside, 0.0), self.lower)

    def _places(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return row `(1, D)` and column `(W, D)` of each entry, and whether it is there."""
        dim = like.shape[-1]
        row = torch.arange(dim, device=like.device)[None]
        column = row + torch.arange(self.width, device=like.device)[:, None] - self.lower
        return row, column.clamp(0, max(dim - 1, 0)), (column >= 0) & (column < dim)


def diagonal() -> Banded:
    """Return the structure of components that do not depend on each other."""
    return Banded(0, 0)


@final
@dataclass(frozen=True, eq=False)
class Pattern(Structure):
    """Entries where `mask (D, D)` is True; the matrix itself is kept dense.

    Raises:
        InvalidType: `mask` is no bool tensor.
        InvalidArgument: it is not square.
    """

    mask: Tensor

    def __post_init__(self) -> None:
        """Check the mask."""
        if not isinstance(self.mask, Tensor) or self.mask.dtype != torch.bool:
            got = self.mask.dtype if isinstance(self.mask, Tensor) else type(self.mask).__name__
            raise InvalidType(f"Pattern(mask={got}): must be a bool tensor (D, D)")
        if self.mask.ndim != 2 or self.mask.shape[0] != self.mask.shape[1]:
            raise InvalidArgument(
                f"Pattern(mask of shape {tuple(self.mask.shape)}): must be square, (D, D)"
            )

    def paired(self) -> "Pattern":
        """Return the same for complex states."""
        return Pattern(self.mask.repeat_interleave(2, 0).repeat_interleave(2, 1))

    def check(self, dim: int) -> None:
        """Refuse states of another size."""
        if len(self.mask) != dim:
            raise InvalidArgument(
                f"structure is a Pattern of {len(self.mask)} components and the state has {dim}"
            )

    def row_colours(self, dim: int) -> Tensor:
        """Return the first colour that no row with a common column has."""
        return self._row_colours

    def column_colours(self, dim: int) -> Tensor:
        """Return the first colour that no column with a common row has."""
        return self._column_colours

    @cached_property
    def _row_colours(self) -> Tensor:
        return _greedy(self.mask)

    @cached_property
    def _column_colours(self) -> Tensor:
        return _greedy(self.mask.t())

    def from_rows(self, sums: Tensor) -> Dense:
        """Return the matrix from sums of rows."""
        colours = self._row_colours.to(sums.device)
        return Dense(sums[colours].transpose(0, 1) * self.mask.to(sums.device))

    def from_columns(self, sums: Tensor) -> Dense:
        """Return the matrix from sums of columns."""
        colours = self._column_colours.to(sums.device)
        return Dense(sums[colours].permute(1, 2, 0) * self.mask.to(sums.device))

    def from_dense(self, matrix: Tensor) -> Dense:
        """Return the matrix itself."""
        return Dense(matrix)


def _greedy(mask: Tensor) -> Tensor:
    """Return the colour of each row of a bool matrix; rows of one colour have no common entry."""
    mask = mask.cpu()
    taken: list[Tensor] = []
    colours = []
    for row in mask:
        colour = next((c for c, used in enumerate(taken) if not bool((used & row).any())), None)
        if colour is None:
            colour = len(taken)
            taken.append(torch.zeros_like(row))
        taken[colour] = taken[colour] | row
        colours.append(colour)
    return torch.tensor(colours, dtype=torch.int64)
