"""Jacobians written out number by number, and the elimination that solves with them."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from torch import Tensor

from solver.compiled.derivative import Scalars, tangents
from solver.compiled.expression import BOOL, Node
from solver.compiled.symbolic import KINDS, SymbolicTensor
from solver.implicit.linear import Factored, Matrix

Join = Callable[[Node | None, Node | None], Node | None]


def jacobian_of(slope: Tensor, y: Tensor) -> "WrittenOut":
    """Return the derivative of `slope (B, D)` by `y (B, D)`, both traced."""
    slope, y = cast(SymbolicTensor, slope), cast(SymbolicTensor, y)
    found = tangents(slope.owner.graph, list(slope.cells[0]), list(y.cells[0]))
    return WrittenOut(found, slope)


def derivative_by(slope: Tensor, t: Tensor) -> Tensor:
    """Return the derivative of `slope (B, D)` by `t (B,)`, both traced, `(B, D)`."""
    slope, t = cast(SymbolicTensor, slope), cast(SymbolicTensor, t)
    found = tangents(slope.owner.graph, list(slope.cells[0]), list(t.cells))
    zero = _scalars(slope).number(0.0)
    return _vector([zero if each[0] is None else each[0] for each in found], slope)


def _scalars(like: SymbolicTensor) -> Scalars:
    return Scalars(like.owner.graph, KINDS[like.dtype])


class WrittenOut(Matrix):
    """A Jacobian as one expression for each entry; what is always 0 is not there."""

    def __init__(self, entries: list[list[Node | None]], like: SymbolicTensor):
        """Keep the entries `[i][j]`, None for 0, of a matrix for vectors like `like (B, D)`."""
        self._entries, self._like = entries, like

    def shifted(self, h: Tensor, rows: Tensor | None = None) -> "Eliminated":
        """Return the factors of `I - h J` for `h (B,)`."""
        like, s = self._like, _scalars(self._like)
        size = cast(SymbolicTensor, h).cells[0]
        matrix = [
            [s.sub(s.one if i == j else None, s.mul(size, x)) for j, x in enumerate(row)]
            for i, row in enumerate(self._entries)
        ]
        return Eliminated(matrix, like)

    def times(self, v: Tensor) -> Tensor:
        """Return the product with `v (B, D)`."""
        like, s = self._like, _scalars(self._like)
        given = like.owner.cells_of(v, 2, 0, like.dtype)[0]
        out = []
        for row in self._entries:
            total = None
            for x, y in zip(row, given, strict=True):
                total = s.add(total, s.mul(x, y))
            out.append(s.number(0.0) if total is None else total)
        return _vector(out, like)

    def detached(self) -> "WrittenOut":
        """Return this: there is no graph."""
        return self

    def usable(self) -> "WrittenOut":
        """Return this with 0 for what is not finite."""
        s = _scalars(self._like)

        def usable(x: Node) -> Node | None:
            return s.pick(s.graph.node("isfinite", (x,), BOOL), x, None)

        return self._mapped(lambda x: None if x is None else usable(x))

    def merged(self, rows: Tensor, other: Matrix) -> "WrittenOut":
        """Return this in `rows (B,)`, `other` elsewhere."""
        (mask,) = cast(SymbolicTensor, rows).cells
        return self.joined(other, lambda new, old: _scalars(self._like).pick(mask, new, old))

    def joined(self, other: Matrix, join: Join) -> "WrittenOut":
        """Return the matrix of `join(entry, other's entry)`."""
        assert isinstance(other, WrittenOut)
        rows = zip(self._entries, other._entries, strict=True)
        return WrittenOut([list(map(join, *pair)) for pair in rows], self._like)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Where there are entries that are not always 0."""
        found = enumerate(self._entries)
        return [(i, j) for i, row in found for j, x in enumerate(row) if x is not None]

    def entries(self) -> dict[tuple[int, int], Tensor]:
        """Return the entries that are not always 0, `(B,)` each."""
        like = self._like
        out = {}
        for i, j in self.places:
            cells = np.empty(1, dtype=object)
            cells[0] = self._entries[i][j]
            out[i, j] = like.owner.wrap(cells, 0, like.dtype)
        return out

    @classmethod
    def of(cls, entries: dict[tuple[int, int], Tensor], like: Tensor) -> "WrittenOut":
        """Return the matrix with these entries, `(B,)` each, for vectors like `like (B, D)`."""
        dim = like.shape[1]
        rows: list[list[Node | None]] = [[None] * dim for _ in range(dim)]
        for (i, j), entry in entries.items():
            rows[i][j] = cast(SymbolicTensor, entry).cells[0]
        return cls(rows, cast(SymbolicTensor, like))

    def _mapped(self, change: Callable[[Node | None], Node | None]) -> "WrittenOut":
        return WrittenOut([list(map(change, row)) for row in self._entries], self._like)

    def at_rest(self, rows: Tensor) -> "WrittenOut":
        """Return this with zeros in `rows (B,)`."""
        return self._mapped(lambda x: None).merged(rows, self)

    def by_columns(self, factors: Tensor) -> "WrittenOut":
        """Return this with every column j of row b times `factors (B, D)`."""
        s, given = _scalars(self._like), cast(SymbolicTensor, factors).cells[0]
        rows = [[s.mul(x, f) for x, f in zip(row, given, strict=True)] for row in self._entries]
        return WrittenOut(rows, self._like)


class Eliminated(Factored):
    """Gaussian elimination with partial pivoting, each row of the batch with pivots of its own."""

    def __init__(self, matrix: list[list[Node | None]], like: SymbolicTensor):
        """Factor the matrix `[i][j]`."""
        self._like, self._s = like, _scalars(like)
        s, count = self._s, len(matrix)
        self._swaps: list[tuple[int, int, Node]] = []  # rows, and where they were exchanged
        self._below: list[list[Node | None]] = [[None] * count for _ in range(count)]
        self._inverse: list[Node] = []
        self._matrix = matrix
        for k in range(count):
            self._pivot(k)
            top = matrix[k]
            pivot = s.number(0.0) if top[k] is None else top[k]
            assert pivot is not None
            self._inverse.append(s.call("div", s.one, pivot))
            for i in range(k + 1, count):
                factor = s.mul(matrix[i][k], self._inverse[k])
                self._below[i][k] = factor
                for j in range(k + 1, count):
                    matrix[i][j] = s.sub(matrix[i][j], s.mul(factor, top[j]))

    def joined(self, other: "Eliminated", join: Join) -> "Eliminated":
        """Return the factors of `join(number, other's number)`; both have the same structure."""
        out = copy.copy(self)

        def together(a: list[list[Node | None]], b: list[list[Node | None]]) -> Any:
            return [list(map(join, *pair)) for pair in zip(a, b, strict=True)]

        out._matrix = together(self._matrix, other._matrix)
        out._below = together(self._below, other._below)
        (out._inverse,) = together([[*self._inverse]], [[*other._inverse]])
        swaps = zip(self._swaps, other._swaps, strict=True)
        out._swaps = [(k, i, cast(Node, join(a, b))) for (k, i, a), (_, _, b) in swaps]
        return out

    def _pivot(self, k: int) -> None:
        """Bring the largest of column k to row k."""
        s, graph, matrix = self._s, self._s.graph, self._matrix
        for i in range(k + 1, len(matrix)):
            low = matrix[i][k]
            if low is None:
                continue
            here = s.number(0.0) if matrix[k][k] is None else matrix[k][k]
            assert here is not None
            larger = graph.node("gt", (s.call("abs", low), s.call("abs", here)), BOOL)
            self._swaps.append((k, i, larger))
            for rows, first in ((matrix, k), (self._below, 0)):
                for j in range(first, len(matrix) if rows is matrix else k):
                    a, b = rows[k][j], rows[i][j]
                    rows[k][j], rows[i][j] = s.pick(larger, b, a), s.pick(larger, a, b)

    def solve(self, rhs: Tensor) -> Tensor:
        """Return the solutions for `rhs (B, N)`; not finite in rows whose matrix is singular."""
        s, like = self._s, self._like
        x: list[Node | None] = list(like.owner.cells_of(rhs, 2, 0, like.dtype)[0])
        for k, i, larger in self._swaps:
            x[k], x[i] = s.pick(larger, x[i], x[k]), s.pick(larger, x[k], x[i])
        for i in range(len(x)):
            for j in range(i):
                x[i] = s.sub(x[i], s.mul(self._below[i][j], x[j]))
        for i in reversed(range(len(x))):
            for j in range(i + 1, len(x)):
                x[i] = s.sub(x[i], s.mul(self._matrix[i][j], x[j]))
            x[i] = s.mul(x[i], self._inverse[i])
        return _vector([s.number(0.0) if each is None else each for each in x], like)


def _vector(cells: Sequence[Node], like: SymbolicTensor) -> Tensor:
    out = np.empty((1, len(cells)), dtype=object)
    out[0] = list(cells)
    return like.owner.wrap(out, 0, like.dtype)
