"""Tensors made like others, and other views of them; the batch axis is followed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from solver.compiled.operations.logic import clone
from solver.compiled.operations.table import operation, result_type
from solver.compiled.symbolic import KINDS, SymbolicTensor, Trace, Untraceable

aten = torch.ops.aten


@operation(aten.zeros_like, aten.ones_like, aten.empty_like, aten.full_like)
def _full_like(
    trace: Trace, func: Any, x: Any, value: float | None = None, **kwargs: Any
) -> SymbolicTensor:
    dtype = kwargs.get("dtype") or x.dtype
    number = {aten.ones_like: 1.0, aten.full_like: value}.get(func.overloadpacket, 0.0)
    cells = np.full(x.cells.shape, trace.graph.literal(number, KINDS[dtype]), dtype=object)
    return trace.wrap(cells, x.axis, dtype)


@operation(aten.new_zeros, aten.new_ones, aten.new_empty, aten.new_full)
def _new(
    trace: Trace, func: Any, x: Any, size: Sequence[int], value: float | None = None, **kwargs: Any
) -> SymbolicTensor:
    dtype = kwargs.get("dtype") or x.dtype
    number = {aten.new_ones: 1.0, aten.new_full: value}.get(func.overloadpacket, 0.0)
    shape, axis = list(size), None
    for place, length in enumerate(shape):
        if length == trace.batch and axis is None and x.axis is not None:
            shape[place], axis = 1, place
    cells = np.full(shape, trace.graph.literal(number, KINDS[dtype]), dtype=object)
    return trace.wrap(cells, axis, dtype)


def _axis(x: SymbolicTensor, dim: int) -> int:
    return dim % x.ndim if x.ndim else 0


def not_batch(x: SymbolicTensor, dim: int, what: str) -> int:
    """Return `dim` counted from the front; refuse the batch axis."""
    dim = _axis(x, dim)
    if dim == x.axis:
        raise Untraceable(f"it {what} the rows of the batch")
    return dim


@operation(aten.view, aten._unsafe_view, aten.reshape)
def _view(trace: Trace, func: Any, x: Any, size: Sequence[int]) -> SymbolicTensor:
    shape, total = list(size), math.prod(x.shape)
    if -1 in shape:
        rest = -math.prod(shape)
        shape[shape.index(-1)] = total // rest if rest else 0
    axis = None
    if x.axis is not None:
        before, passed = math.prod(x.shape[: x.axis]), 1
        for place, length in enumerate(shape):
            if passed == before and length == trace.batch:
                axis = place
                break
            passed *= length
        if axis is None:
            raise Untraceable("it folds the batch axis into another")
        shape[axis] = 1
    return trace.wrap(x.cells.reshape(shape), axis, x.dtype)


@operation(aten.expand)
def _expand(
    trace: Trace, func: Any, x: Any, size: Sequence[int], implicit: bool = False
) -> SymbolicTensor:
    shift = len(size) - x.ndim
    shape = [x.cells.shape[i - shift] if length == -1 else length for i, length in enumerate(size)]
    axis = None if x.axis is None else x.axis + shift
    if axis is not None:
        shape[axis] = 1
    return trace.wrap(np.broadcast_to(x.cells, shape), axis, x.dtype)


@operation(aten.unsqueeze)
def unsqueeze(trace: Trace, func: Any, x: Any, dim: int) -> SymbolicTensor:
    """A new axis of length 1."""
    dim = dim % (x.ndim + 1)
    axis = x.axis if x.axis is None or x.axis < dim else x.axis + 1
    return trace.wrap(np.expand_dims(x.cells, dim), axis, x.dtype)


@operation(aten.squeeze)
def _squeeze(trace: Trace, func: Any, x: Any, dim: Any = None) -> SymbolicTensor:
    dims = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = [_axis(x, d) for d in dims]
    gone = [d for d in gone if x.cells.shape[d] == 1 and d != x.axis]
    axis = None if x.axis is None else x.axis - sum(d < x.axis for d in gone)
    return trace.wrap(np.squeeze(x.cells, tuple(gone)), axis, x.dtype)


@operation(aten.permute)
def _permute(trace: Trace, func: Any, x: Any, dims: Sequence[int]) -> SymbolicTensor:
    dims = [_axis(x, d) for d in dims]
    axis = None if x.axis is None else dims.index(x.axis)
    return trace.wrap(np.transpose(x.cells, dims), axis, x.dtype)


@operation(aten.transpose, aten.t)
def _transpose(trace: Trace, func: Any, x: Any, a: int = 0, b: int = 1) -> SymbolicTensor:
    if x.ndim < 2:
        return clone(trace, aten.alias.default, x)
    dims = list(range(x.ndim))
    a, b = _axis(x, a), _axis(x, b)
    dims[a], dims[b] = dims[b], dims[a]
    return _permute(trace, func, x, dims)


@operation(aten.select)
def _select(trace: Trace, func: Any, x: Any, dim: int, index: int) -> SymbolicTensor:
    dim = not_batch(x, dim, "picks one of")
    axis = x.axis if x.axis is None or x.axis < dim else x.axis - 1
    place = (slice(None),) * dim + (index,)
    cells = x.cells[place]
    return trace.wrap(np.asarray(cells, dtype=object), axis, x.dtype)


@operation(aten.slice)
def _slice(
    trace: Trace,
    func: Any,
    x: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> SymbolicTensor:
    dim = _axis(x, dim)
    if dim == x.axis:
        whole = not start and (end is None or end >= trace.batch) and step == 1
        if not whole:
            raise Untraceable("it picks some of the rows of the batch")
        return clone(trace, aten.alias.default, x)
    place = (slice(None),) * dim + (slice(start, end, step),)
    return trace.wrap(x.cells[place], x.axis, x.dtype)


@operation(aten.unbind)
def _unbind(trace: Trace, func: Any, x: Any, dim: int = 0) -> list[SymbolicTensor]:
    dim = not_batch(x, dim, "takes apart")
    return [_select(trace, func, x, dim, i) for i in range(x.shape[dim])]


@operation(aten.split)
def _split(trace: Trace, func: Any, x: Any, size: Any, dim: int = 0) -> list[SymbolicTensor]:
    dim = not_batch(x, dim, "takes apart")
    length = x.shape[dim]
    sizes = [size] * math.ceil(length / size) if isinstance(size, int) else size
    parts, at = [], 0
    for part in sizes:
        parts.append(_slice(trace, func, x, dim, at, at + part))
        at += part
    return parts


@operation(aten.split_with_sizes)
def _split_with_sizes(
    trace: Trace, func: Any, x: Any, sizes: Sequence[int], dim: int = 0
) -> list[SymbolicTensor]:
    return _split(trace, func, x, sizes, dim)


@operation(aten.flip)
def _flip(trace: Trace, func: Any, x: Any, dims: Sequence[int]) -> SymbolicTensor:
    axes = tuple(not_batch(x, d, "turns round") for d in dims)
    return trace.wrap(np.flip(x.cells, axes).copy(), x.axis, x.dtype)


@operation(aten.roll)
def _roll(
    trace: Trace, func: Any, x: Any, shifts: Sequence[int], dims: Sequence[int] = ()
) -> SymbolicTensor:
    if not dims:
        raise Untraceable("it rolls the rows of the batch")
    axes = tuple(not_batch(x, d, "rolls") for d in dims)
    return trace.wrap(np.roll(x.cells, tuple(shifts), axes), x.axis, x.dtype)


def _together(
    trace: Trace, tensors: Sequence[Any]
) -> tuple[list[np.ndarray], int | None, torch.dtype]:
    axis = next((x.axis for x in tensors if isinstance(x, SymbolicTensor)), None)
    if any(isinstance(x, SymbolicTensor) and x.axis != axis for x in tensors):
        raise Untraceable("it puts rows beside numbers that are no rows")
    dtype = result_type(list(tensors))
    arrays = [trace.cells_of(x, x.ndim, axis, dtype) for x in tensors]
    if axis is not None and any(a.shape[axis] != 1 for a in arrays):
        raise Untraceable("it lets one row meet another")
    return arrays, axis, dtype


@operation(aten.stack)
def _stack(trace: Trace, func: Any, tensors: Sequence[Any], dim: int = 0) -> SymbolicTensor:
    arrays, axis, dtype = _together(trace, tensors)
    dim = dim % (tensors[0].ndim + 1)
    axis = axis if axis is None or axis < dim else axis + 1
    return trace.wrap(np.stack(arrays, axis=dim), axis, dtype)


@operation(aten.cat)
def _cat(trace: Trace, func: Any, tensors: Sequence[Any], dim: int = 0) -> SymbolicTensor:
    tensors = [x for x in tensors if not (x.ndim == 1 and x.shape[0] == 0)]
    arrays, axis, dtype = _together(trace, tensors)
    dim = dim % tensors[0].ndim
    if dim == axis:
        raise Untraceable("it lengthens the batch")
    return trace.wrap(np.concatenate(arrays, axis=dim), axis, dtype)


@operation(aten.index_select)
def _index_select(trace: Trace, func: Any, x: Any, dim: int, index: Tensor) -> SymbolicTensor:
    dim = not_batch(x, dim, "picks some of")
    if isinstance(index, SymbolicTensor):
        raise Untraceable("it picks by numbers it computes")
    return trace.wrap(np.take(x.cells, trace.bake(index), axis=dim), x.axis, x.dtype)


@operation(aten.index)
def _index(trace: Trace, func: Any, x: Any, indices: Sequence[Any]) -> SymbolicTensor:
    used = [i for i, index in enumerate(indices) if index is not None]
    if len(used) != 1 or isinstance(indices[used[0]], SymbolicTensor):
        raise Untraceable("it picks by several or computed numbers")
    dim = not_batch(x, used[0], "picks some of")
    index = trace.bake(indices[dim])
    if index.ndim != 1:
        raise Untraceable("it picks by a table of numbers")
    index = np.flatnonzero(index) if index.dtype == bool else index
    return trace.wrap(np.take(x.cells, index, axis=dim), x.axis, x.dtype)
