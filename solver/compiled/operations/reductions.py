"""Sums, extremes and norms over the components of a row."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from solver.compiled.expression import BOOL, I64
from solver.compiled.operations.arithmetic import abs_of, add, div_of, square
from solver.compiled.operations.logic import to
from solver.compiled.operations.shapes import not_batch, unsqueeze
from solver.compiled.operations.table import binary, operation, unary
from solver.compiled.symbolic import KINDS, SymbolicTensor, Trace, Untraceable

aten = torch.ops.aten


def _dims(x: SymbolicTensor, dim: Any) -> tuple[int, ...]:
    if dim is None or (isinstance(dim, Sequence) and not dim):
        dim = range(x.ndim)
    dims = [dim] if isinstance(dim, int) else dim
    return tuple(not_batch(x, d, "adds up or compares") for d in dims)


def _reduce(
    trace: Trace,
    x: SymbolicTensor,
    dims: tuple[int, ...],
    keepdim: bool,
    make: Callable,
    empty: Any,
) -> SymbolicTensor:
    """Combine the elements along `dims`, pair by pair."""
    axis = x.axis
    keep = [d for d in range(x.ndim) if d not in dims]
    moved = np.transpose(x.cells, [*keep, *dims]).reshape(*(x.cells.shape[d] for d in keep), -1)
    out = np.empty(moved.shape[:-1], dtype=object)
    for place in np.ndindex(out.shape):
        total = None
        for cell in moved[place]:
            total = cell if total is None else make(total, cell)
        out[place] = trace.graph.literal(empty, KINDS[x.dtype]) if total is None else total
    if axis is not None:
        axis = keep.index(axis)
    if keepdim:
        shape = [1 if d in dims else x.cells.shape[d] for d in range(x.ndim)]
        out, axis = out.reshape(shape), x.axis
    return trace.wrap(out, axis, x.dtype)


@operation(aten.sum)
def _sum(
    trace: Trace, func: Any, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> SymbolicTensor:
    if dtype is None and not x.dtype.is_floating_point:
        dtype = torch.int64
    x = x if dtype in (None, x.dtype) else to(trace, func, x, dtype)
    kind = KINDS[x.dtype]
    return _reduce(
        trace, x, _dims(x, dim), keepdim, lambda a, b: trace.graph.node("add", (a, b), kind), 0
    )


@operation(aten.mean)
def _mean(
    trace: Trace, func: Any, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> SymbolicTensor:
    count = math.prod(x.cells.shape[d] for d in _dims(x, dim))
    return div_of(trace, aten.div.Tensor, _sum(trace, func, x, dim, keepdim, dtype), float(count))


@operation(aten.prod)
def _prod(
    trace: Trace, func: Any, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> SymbolicTensor:
    kind = KINDS[x.dtype]
    return _reduce(
        trace, x, _dims(x, dim), keepdim, lambda a, b: trace.graph.node("mul", (a, b), kind), 1
    )


@operation(aten.amax, aten.amin)
def _extreme(
    trace: Trace, func: Any, x: Any, dim: Any = (), keepdim: bool = False
) -> SymbolicTensor:
    kind, name = KINDS[x.dtype], "max" if func.overloadpacket is aten.amax else "min"
    return _reduce(
        trace, x, _dims(x, dim), keepdim, lambda a, b: trace.graph.node(name, (a, b), kind), 0
    )


@operation(aten.any, aten.all)
def _any(trace: Trace, func: Any, x: Any, dim: Any = None, keepdim: bool = False) -> SymbolicTensor:
    name = "or" if func.overloadpacket is aten.any else "and"
    x = x if x.dtype == torch.bool else to(trace, func, x, torch.bool)
    return _reduce(
        trace, x, _dims(x, dim), keepdim, lambda a, b: trace.graph.node(name, (a, b), BOOL),
        name == "and",
    )  # fmt: skip


@operation(aten.argmax, aten.argmin)
def _argmax(
    trace: Trace, func: Any, x: Any, dim: int | None = None, keepdim: bool = False
) -> SymbolicTensor:
    """The first of the largest, where NaN is the largest."""
    if dim is None or keepdim:
        raise Untraceable(f"it uses {func} over everything")
    dim = not_batch(x, dim, "compares")
    graph = trace.graph
    better = "gt" if func.overloadpacket is aten.argmax else "lt"
    moved = np.moveaxis(x.cells, dim, -1)
    out = np.empty(moved.shape[:-1], dtype=object)
    for place in np.ndindex(out.shape):
        cells = moved[place]
        best, at = cells[0], graph.literal(0, I64)
        for i, cell in enumerate(cells[1:], start=1):
            wins = graph.node(better, (cell, best), BOOL)
            if x.dtype.is_floating_point:
                nan = graph.node("isnan", (cell,), BOOL)
                known = graph.node("not", (graph.node("isnan", (best,), BOOL),), BOOL)
                wins = graph.node("and", (graph.node("or", (wins, nan), BOOL), known), BOOL)
            best = graph.node("where", (wins, cell, best), cell.kind)
            at = graph.node("where", (wins, graph.literal(i, I64), at), I64)
        out[place] = at
    axis = x.axis if x.axis is None or x.axis < dim else x.axis - 1
    return trace.wrap(out, axis, torch.int64)


@operation(aten.linalg_vector_norm)
def _vector_norm(
    trace: Trace,
    func: Any,
    x: Any,
    ord: float = 2,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
) -> SymbolicTensor:
    if ord == 2:
        total = _sum(trace, func, square(trace, func, x), dim, keepdim)
        return unary("sqrt")(trace, func, total)
    size = abs_of(trace, aten.abs.default, x)
    if ord == 1:
        return _sum(trace, func, size, dim, keepdim)
    if ord == math.inf:
        return _extreme(trace, aten.amax.default, size, dim, keepdim)
    raise Untraceable(f"it uses a norm of order {ord}")


@operation(aten.cumsum)
def _cumsum(trace: Trace, func: Any, x: Any, dim: int, dtype: Any = None) -> SymbolicTensor:
    dim = not_batch(x, dim, "adds up")
    cells = x.cells.copy()
    moved = np.moveaxis(cells, dim, 0)
    for i in range(1, moved.shape[0]):
        for place in np.ndindex(moved.shape[1:]):
            pair = (moved[i - 1][place], moved[i][place])
            moved[i][place] = trace.graph.node("add", pair, KINDS[x.dtype])
    return trace.wrap(cells, x.axis, x.dtype)


@operation(aten.var)
def _var(
    trace: Trace, func: Any, x: Any, dim: Any = None, correction: float | None = None,
    keepdim: bool = False,
) -> SymbolicTensor:  # fmt: skip
    count = math.prod(x.cells.shape[d] for d in _dims(x, dim))
    mean = _mean(trace, func, x, dim, keepdim=True)
    squares = square(trace, func, add(trace, aten.sub.Tensor, x, mean))
    total = _sum(trace, func, squares, dim, keepdim)
    return div_of(trace, func, total, float(count - (1 if correction is None else correction)))


@operation(aten.max, aten.min)
def _largest(trace: Trace, func: Any, x: Any, dim: Any, keepdim: bool = False) -> Any:
    if not isinstance(dim, int):  # of two tensors
        return binary("max" if func.overloadpacket is aten.max else "min")(trace, func, x, dim)
    packet = aten.amax if func.overloadpacket is aten.max else aten.amin
    place = aten.argmax if func.overloadpacket is aten.max else aten.argmin
    at = _argmax(trace, place.default, x, dim)
    at = unsqueeze(trace, func, at, dim) if keepdim else at
    return _extreme(trace, packet.default, x, dim, keepdim), at
