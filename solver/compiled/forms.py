"""What the steppers of the methods that have a compiled form are in a kernel."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from solver.compiled.derivative import Scalars, tangents
from solver.compiled.expression import BOOL, Node
from solver.compiled.symbolic import KINDS, SymbolicTensor, Untraceable, no_trace
from solver.implicit.linear import Factored, Matrix
from solver.implicit.methods import Rosenbrock
from solver.implicit.rosenbrock import RosenbrockStepper
from solver.loop import Problem
from solver.methods.base import Method, ReplayingStepper
from solver.methods.explicit_rk import ExplicitRungeKutta, GraphStages
from solver.problem import Field

COMPONENTS_WITH_MATRIX = 24  # beyond, compiling factors written out takes minutes


@dataclass(frozen=True)
class Form:
    """A stepper whose attempts can be traced, and what one costs.

    Args:
        stepper: evaluates the traced field.
        evals_per_attempt: evaluations of the field in every attempt.
        evals_per_start: those in an attempt from a new place, made again where a kernel keeps
            nothing.
        counts_first: whether these are also made in the first attempt.
        literal: coefficients, whose values become part of the code.
        known: how many slopes there are after an attempt.
        end_slope: which of them the next attempt starts from, where that is kept.
        jacobians: whether an attempt from a new place evaluates a Jacobian.
    """

    stepper: ReplayingStepper
    evals_per_attempt: int
    evals_per_start: int
    counts_first: bool
    literal: tuple[Tensor, ...]
    known: int
    end_slope: int | None
    jacobians: bool


def reason_against(method: Method, dim: int) -> str | None:
    """Return why a method has no compiled form for `dim` components, None if it has."""
    if isinstance(method, ExplicitRungeKutta):
        return None
    if not isinstance(method, Rosenbrock):
        return f"method {method.name!r} has no compiled form"
    if method.jacobian is not None:
        return f"{method.name} with a jacobian of one's own has no compiled form"
    if method.linear == "gmres":
        return f'{method.name} with linear="gmres" has no compiled form'
    if dim > COMPONENTS_WITH_MATRIX:
        return f"D = {dim} components: must be at most {COMPONENTS_WITH_MATRIX} with {method.name}"
    return None


def form_of(problem: Problem, field: Field, like: Tensor) -> Form:
    """Return the form of a problem's method.

    Args:
        problem: what is solved; its own field is evaluated once where a Jacobian is needed.
        field: the traced field.
        like: tensor like the state, `(B, D)`.
    """
    method, time = problem.method, problem.times.start.dtype
    if isinstance(method, ExplicitRungeKutta):
        stepper = method.stepper(field, like, time, graph=True)
        keeps = stepper.keeps_end_slope
        return Form(
            stepper.with_stages(LiteralStages, like),
            stepper.evals_per_attempt,
            0 if keeps else 1,
            False,
            stepper.nodes,
            stepper.stages,
            stepper.end_slope if keeps else None,
            False,
        )
    assert isinstance(method, Rosenbrock)
    inner = method.stepper(field, like, time, graph=False, tolerance=problem.tolerance, exact=False)
    calls = _calls(problem)
    stages = TracedRosenbrock.of(inner)
    known = len(method.numbers.m) + 1
    return Form(stages, inner.evals_of_stages, calls, True, (), known, None, True)


def _calls(problem: Problem) -> int:
    """Return how many evaluations of the field one Jacobian is, as the plain loop counts them."""
    field = problem.field
    stepper = problem.method.stepper(
        field, problem.y0, problem.times.start.dtype, graph=False, tolerance=problem.tolerance,
        exact=False,
    )  # fmt: skip
    before = field.calls
    cast(RosenbrockStepper, stepper).linearised(problem.times.start, problem.y0)
    after, field.calls = field.calls, before
    return after - before


# ---- explicit Runge-Kutta


class LiteralStages(GraphStages):
    """Slopes combined with weights that are numbers in the code; weights of 0 cost nothing."""

    def combine(self, weights: Tensor, n: int) -> Tensor:
        """Return `sum_{i<n} weights[i] k_i`."""
        return weighted_sum(self._rows[:n], numbers_of(weights))

    def polynomial(self, interpolant: Tensor) -> Tensor:
        """Return `interpolant^T k`, `(degree, B, D)`."""
        dtype = torch.promote_types(interpolant.dtype, self._rows[0].dtype)
        rows = [row.to(dtype) for row in self._rows]
        columns = zip(*numbers_of(interpolant), strict=True)
        return torch.stack([weighted_sum(rows, weights) for weights in columns])

    def sums(self, weights: Tensor, stride: int) -> Tensor:
        """Return `weights (R, n)` times the first slopes, of each `stride`-th one, `(R, B, E)`."""
        seen = [row[:, ::stride] for row in self._rows[: weights.shape[1]]]
        return torch.stack([weighted_sum(seen, row) for row in numbers_of(weights)])


def weighted_sum(slopes: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Return `sum_i weights[i] slopes[i]` of the weights that are not 0."""
    total: Tensor | None = None
    for slope, weight in zip(slopes, weights, strict=False):
        if weight:
            term = slope if weight == 1 else slope * weight
            total = term if total is None else total + term
    return slopes[0] * 0.0 if total is None else total


def numbers_of(weights: Tensor) -> Any:
    """Return a tensor's numbers, which no trace sees."""
    with no_trace():
        return weights.tolist()


# ---- Rosenbrock


class TracedRosenbrock(RosenbrockStepper):
    """A Rosenbrock stepper whose Jacobian is that of the traced expressions."""

    @classmethod
    def of(cls, stepper: RosenbrockStepper) -> "TracedRosenbrock":
        """Return one with the coefficients and the field of `stepper`."""
        traced = cls.__new__(cls)
        vars(traced).update(vars(stepper))
        traced._counts = cast(Any, _Uncounted())  # kernels count by themselves
        return traced

    def _linearise(self, t: Tensor, y: Tensor, active: Tensor) -> None:
        """Take slope, Jacobian and derivative by time in every attempt."""
        slope = self._field(t, y)
        assert isinstance(slope, SymbolicTensor)
        trace, graph = slope.owner, slope.owner.graph
        kind = KINDS[slope.dtype]
        dim = slope.shape[1]
        variables = [*cast(SymbolicTensor, y).cells[0], cast(SymbolicTensor, t).cells[0]]
        rows = tangents(graph, [graph.cast(cell, kind) for cell in slope.cells[0]], variables)
        self._start, self._j = slope, WrittenOut([row[:dim] for row in rows], slope)
        cells = np.empty((1, dim), dtype=object)
        zero = Scalars(graph, kind).number(0.0)
        cells[0] = [zero if row[dim] is None else row[dim] for row in rows]
        self._by_time = trace.wrap(cells, 0, slope.dtype)

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the dense output of the attempt just made, `(degree, B, D)`."""
        dtype = torch.promote_types(self._interpolant.dtype, self._u[0].dtype)
        u = [each.to(dtype) for each in self._u]
        columns = zip(*numbers_of(self._interpolant), strict=True)
        return torch.stack([weighted_sum(u, weights) for weights in columns])

    def continuing(self, slopes: Sequence[Tensor]) -> "TracedRosenbrock":
        """Return a stepper of the same solve that knows these slopes."""
        other = copy.copy(self)
        other._start, other._u = slopes[0], list(slopes[1:])
        return other


class _Uncounted:
    """Counts nothing."""

    def add(self, *counts: Any) -> None:
        """Forget them."""


class WrittenOut(Matrix):
    """A Jacobian as one expression for each entry; what is always 0 is not there."""

    def __init__(self, entries: list[list[Node | None]], like: SymbolicTensor):
        """Keep the entries `[i][j]`, None for 0, of a matrix for vectors like `like (B, D)`."""
        self._entries, self._like = entries, like

    def shifted(self, h: Tensor, rows: Tensor | None = None) -> "Eliminated":
        """Return the factors of `I - h J` for `h (B,)`."""
        like = self._like
        s = Scalars(like.owner.graph, KINDS[like.dtype])
        size = cast(SymbolicTensor, h).cells[0]
        matrix = [
            [s.sub(s.one if i == j else None, s.mul(size, x)) for j, x in enumerate(row)]
            for i, row in enumerate(self._entries)
        ]
        return Eliminated(matrix, like)

    def times(self, v: Tensor) -> Tensor:
        """Return the product with `v (B, D)`."""
        like = self._like
        s = Scalars(like.owner.graph, KINDS[like.dtype])
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
        """Return this: steps with what is not finite are refused."""
        return self

    def merged(self, rows: Tensor, other: Matrix) -> "WrittenOut":
        """Not needed: each attempt takes its own."""
        raise Untraceable("it keeps Jacobians")

    at_rest = by_columns = merged  # type: ignore[assignment]


class Eliminated(Factored):
    """Gaussian elimination with partial pivoting, each row of the batch with pivots of its own."""

    def __init__(self, matrix: list[list[Node | None]], like: SymbolicTensor):
        """Factor the matrix `[i][j]`."""
        self._like = like
        self._s = s = Scalars(like.owner.graph, KINDS[like.dtype])
        count = len(matrix)
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
