"""How torch's operations are found, and the shared parts of those that work on elements."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from solver.compiled.expression import ELEMENTARY, Node
from solver.compiled.symbolic import KINDS, SymbolicTensor, Trace, Untraceable, no_trace

aten = torch.ops.aten
OPERATIONS: dict[Any, Callable[..., Any]] = {}


def operation(*funcs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function for operations of torch."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for func in funcs:
            OPERATIONS[func] = function
        return function

    return register


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if isinstance(value, Tensor) else ()


def place(trace: Trace, operands: Sequence[Any]) -> tuple[int, int | None]:
    """Return dimensions of the broadcast result and its batch axis."""
    ndim = max(len(_shape(value)) for value in operands)
    axes = {
        ndim - value.ndim + value.axis
        for value in operands
        if isinstance(value, SymbolicTensor) and value.axis is not None
    }
    if len(axes) > 1:
        raise Untraceable("it lets one row meet another")
    axis = axes.pop() if axes else None
    if axis is not None:
        for value in operands:
            shape = _shape(value)
            own = axis - (ndim - len(shape))
            on_batch = isinstance(value, SymbolicTensor) and value.axis == own
            if own >= 0 and not on_batch and shape[own] not in (1, trace.batch):
                raise Untraceable("it lets one row meet another")
    return ndim, axis


def result_type(operands: Sequence[Any]) -> torch.dtype:
    """Return torch's promotion of tensors, 0-dim tensors and numbers."""
    metas = [
        torch.empty((1,) * min(v.ndim, 1), dtype=v.dtype, device="meta")
        if isinstance(v, Tensor)
        else v
        for v in operands
    ]
    with no_trace():
        if len(metas) == 1:
            return metas[0].dtype
        result = metas[0]
        for other in metas[1:]:
            dtype = torch.result_type(result, other)
            ndim = max(len(_shape(result)), len(_shape(other)))
            result = torch.empty((1,) * ndim, dtype=dtype, device="meta")
        return result.dtype


def elementwise(
    trace: Trace,
    operands: Sequence[Any],
    make: Callable[..., Node],
    dtype: torch.dtype | None = None,
    result: torch.dtype | None = None,
) -> SymbolicTensor:
    """Apply `make` to the operands' elements, cast to their common or the given dtype."""
    ndim, axis = place(trace, operands)
    dtype = result_type(operands) if dtype is None else dtype
    arrays = [trace.cells_of(value, ndim, axis, dtype) for value in operands]
    cells = np.frompyfunc(make, len(arrays), 1)(*arrays)
    if not isinstance(cells, np.ndarray):
        cells = np.array(cells, dtype=object)
    return trace.wrap(cells, axis, dtype if result is None else result)


def floating(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that functions of `dtype` have."""
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def unary(name: str) -> Callable[..., SymbolicTensor]:
    """Return the operation that applies the function `name`."""

    def run(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
        dtype = floating(result_type([x]))
        kind = KINDS[dtype]
        return elementwise(trace, [x], lambda a: trace.graph.node(name, (a,), kind), dtype)

    return run


for _name in (*ELEMENTARY, "sqrt", "lgamma"):
    OPERATIONS[getattr(aten, _name)] = unary(_name)
for _name, _func in (("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc"), ("round", "rint")):
    OPERATIONS[getattr(aten, _name)] = unary(_func)


def binary(name: str) -> Callable[..., SymbolicTensor]:
    """Return the operation that combines two elements by `name`."""

    def run(trace: Trace, func: Any, x: Any, y: Any) -> SymbolicTensor:
        kind = KINDS[result_type([x, y])]
        return elementwise(trace, [x, y], lambda a, b: trace.graph.node(name, (a, b), kind))

    return run


for _name, _func in (("mul", "mul"), ("maximum", "max"), ("minimum", "min")):
    OPERATIONS[getattr(aten, _name)] = binary(_func)
