"""Jacobians whose entries lie near the diagonal: kept as bands, solved by cyclic reduction."""

from typing import NamedTuple, final

import torch
from torch import Tensor

from solver.implicit.linear import Factored, Matrix


@final
class Bands(Matrix):
    """The diagonals of a band, row by row.

    Args:
        bands: `(B, W, D)`, `[b, k, i] = d f_i / d y_(i + k - lower)`, 0 where there is no such y.
        lower: how many diagonals lie below the main one; W - 1 - lower lie above it.
    """

    def __init__(self, bands: Tensor, lower: int):
        """Keep them."""
        self.bands, self.lower = bands, lower

    def merged(self, rows: Tensor, other: Matrix) -> "Bands":
        """Return this in `rows (B,)`, `other` elsewhere."""
        assert isinstance(other, Bands)
        return Bands(torch.where(rows[:, None, None], self.bands, other.bands), self.lower)

    def at_rest(self, rows: Tensor) -> "Bands":
        """Return this with zeros in `rows (B,)`."""
        return Bands(self.bands.masked_fill(rows[:, None, None], 0.0), self.lower)

    def usable(self) -> "Bands":
        """Return this out of autograd's graph, with 0 for what is not finite."""
        bands = self.bands.detach().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        return Bands(bands, self.lower)

    def by_columns(self, factors: Tensor) -> "Bands":
        """Return this with every column j of row b times `factors (B, D)`."""
        width = self.bands.shape[1]
        wide = torch.nn.functional.pad(factors, (self.lower, width - 1 - self.lower))
        return Bands(self.bands * wide.unfold(1, width, 1).transpose(1, 2), self.lower)

    def detached(self) -> "Bands":
        """Return this out of autograd's graph."""
        return Bands(self.bands.detach(), self.lower)

    def times(self, v: Tensor) -> Tensor:
        """Return the product with `v (B, D)`."""
        width = self.bands.shape[1]
        wide = torch.nn.functional.pad(v, (self.lower, width - 1 - self.lower))
        return (self.bands * wide.unfold(1, width, 1).transpose(1, 2)).sum(dim=1)

    def shifted(self, h: Tensor, rows: Tensor | None = None) -> Factored:
        """Return the factors of `I - h J` for `h (B,)`, real or complex."""
        batch, width, dim = self.bands.shape
        if width == 1:
            return _Quotients(1 - h[:, None] * self.bands[:, 0])
        size = max(self.lower, width - 1 - self.lower)
        count = -(-dim // size)
        at = torch.arange(dim, device=h.device)[:, None] % size + size - self.lower
        at = at + torch.arange(width, device=h.device)  # (D, W) column in the three blocks
        entries = (self.bands * -h[:, None, None]).transpose(1, 2)
        wide = entries.new_zeros((batch, dim, 3 * size)).scatter(2, at.expand_as(entries), entries)
        wide = torch.nn.functional.pad(wide, (0, 0, 0, count * size - dim))
        left, middle, right = wide.unflatten(1, (count, size)).split(size, dim=3)
        middle = middle + torch.eye(size, dtype=middle.dtype, device=middle.device)
        return _CyclicReduction(left, middle, right, dim)


@final
class _Quotients(Factored):
    """A diagonal matrix."""

    def __init__(self, diagonal: Tensor):
        """Keep the diagonal, `(B, D)`."""
        self._diagonal = diagonal

    def solve(self, rhs: Tensor) -> Tensor:
        """Return the solutions for `rhs (B, D)`."""
        return rhs / self._diagonal


class _Level(NamedTuple):
    """What one halving needs: blocks `(B, n, b, b)` of even rows, the inverse of odd ones' own."""

    left: Tensor  # even rows, to the odd one before
    right: Tensor  # even rows, to the odd one behind
    inverse: Tensor  # odd rows
    before: Tensor  # odd rows, inverse times the block to the even one before
    behind: Tensor


@final
class _CyclicReduction(Factored):
    """Block tridiagonal systems: every other block row is eliminated, again and again.

    Hockney (1965), J. ACM 12(1); Golub & Van Loan, Matrix Computations, section 4.5. As many rounds
    as the logarithm of the number of blocks, each for all rows and blocks at once.

    Args:
        left, middle, right: blocks of every block row, `(B, n, b, b)`.
        dim: D, at most n b; what is beyond is the unit matrix.
    """

    def __init__(self, left: Tensor, middle: Tensor, right: Tensor, dim: int):
        """Eliminate down to one block."""
        self._dim, self._size, self._levels = dim, middle.shape[-1], list[_Level]()
        while middle.shape[1] > 1:
            odd = slice(1, None, 2)
            inverse = _inverse(middle[:, odd])
            before, behind = _product(inverse, left[:, odd]), _product(inverse, right[:, odd])
            left, middle, right = (each[:, 0::2] for each in (left, middle, right))
            self._levels.append(_Level(left, right, inverse, before, behind))
            count = left.shape[1]
            near, far = _after(before, count), _after(behind, count)  # of the odd row before
            here, next_ = _until(before, count), _until(behind, count)  # of the one behind
            middle = middle - _product(left, far) - _product(right, here)
            left, right = -_product(left, near), -_product(right, next_)
        self._last = _inverse(middle)

    def solve(self, rhs: Tensor) -> Tensor:
        """Return the solutions for `rhs (B, D)`."""
        padding = -self._dim % self._size
        r = torch.nn.functional.pad(rhs, (0, padding)).unflatten(1, (-1, self._size))[..., None]
        kept = []
        for level in self._levels:
            own = _product(level.inverse, r[:, 1::2])
            kept.append(own)
            r = r[:, 0::2]
            count = r.shape[1]
            r = r - _product(level.left, _after(own, count))
            r = r - _product(level.right, _until(own, count))
        x = _product(self._last, r)
        for level, own in zip(reversed(self._levels), reversed(kept), strict=True):
            count = own.shape[1]
            odd = own - _product(level.before, x[:, :count])
            odd = odd - _product(level.behind, _until(x[:, 1:], count))
            joined = torch.stack([x[:, :count], odd], dim=2).flatten(1, 2)
            x = joined if x.shape[1] == count else torch.cat([joined, x[:, count:]], dim=1)
        return x.flatten(1)[:, : self._dim]


def _after(blocks: Tensor, count: int) -> Tensor:
    """Return the block before each of `count`, 0 for the first."""
    return torch.cat([torch.zeros_like(blocks[:, :1]), blocks], dim=1)[:, :count]


def _until(blocks: Tensor, count: int) -> Tensor:
    """Return `count` blocks, 0 for the last if there are not enough."""
    if blocks.shape[1] == count:
        return blocks
    shape = list(blocks.shape)
    shape[1] = count - shape[1]
    return torch.cat([blocks, blocks.new_zeros(shape)], dim=1)


def _product(a: Tensor, b: Tensor) -> Tensor:
    return a * b if a.shape[-1] == 1 else a @ b


def _inverse(blocks: Tensor) -> Tensor:
    """Return the inverses of `(B, n, b, b)`, not finite where there is none."""
    if blocks.shape[-1] == 1:
        return 1 / blocks
    inverse, info = torch.linalg.inv_ex(blocks)
    return inverse.masked_fill((info != 0)[..., None, None], torch.nan)
