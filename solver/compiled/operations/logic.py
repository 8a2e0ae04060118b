"""Comparisons, choices and casts of elements."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from solver.compiled.expression import BOOL, Node
from solver.compiled.operations.table import OPERATIONS, elementwise, operation, place, result_type
from solver.compiled.symbolic import KINDS, SymbolicTensor, Trace, Untraceable

aten = torch.ops.aten


def _comparison(name: str) -> Callable[..., SymbolicTensor]:
    def run(trace: Trace, func: Any, x: Any, y: Any) -> SymbolicTensor:
        def make(a: Node, b: Node) -> Node:
            return trace.graph.node(name, (a, b), BOOL)

        return elementwise(trace, [x, y], make, result=torch.bool)

    return run


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    OPERATIONS[getattr(aten, _name)] = _comparison(_name)


def _logical(name: str) -> Callable[..., SymbolicTensor]:
    def run(trace: Trace, func: Any, x: Any, y: Any) -> SymbolicTensor:
        if "bitwise" in str(func) and result_type([x, y]) != torch.bool:
            raise Untraceable(f"it uses {func} on numbers")
        return elementwise(
            trace, [x, y], lambda a, b: trace.graph.node(name, (a, b), BOOL), torch.bool
        )

    return run


for _name, _word in (("and", "and"), ("or", "or"), ("xor", "xor")):
    for _form in ("logical_{}", "bitwise_{}", "__{}__"):
        OPERATIONS[getattr(aten, _form.format(_name))] = _logical(_word)


@operation(aten.logical_not, aten.bitwise_not)
def _not(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    if func.overloadpacket is aten.bitwise_not and x.dtype != torch.bool:
        raise Untraceable(f"it uses {func} on numbers")
    return elementwise(trace, [x], lambda a: trace.graph.node("not", (a,), BOOL), torch.bool)


@operation(aten.isfinite, aten.isnan, aten.isinf)
def _isfinite(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    graph = trace.graph
    if x.dtype not in (torch.float32, torch.float64):
        true = graph.literal(func.overloadpacket is aten.isfinite, BOOL)
        return elementwise(trace, [x], lambda a: true, result=torch.bool)
    if func.overloadpacket is aten.isinf:
        kind = KINDS[x.dtype]
        largest = graph.node("literal", (math.inf.hex(), "f"), kind)

        def make(a: Node) -> Node:
            return graph.node("eq", (graph.node("abs", (a,), kind), largest), BOOL)

        return elementwise(trace, [x], make, result=torch.bool)
    name = "isfinite" if func.overloadpacket is aten.isfinite else "isnan"
    return elementwise(trace, [x], lambda a: graph.node(name, (a,), BOOL), result=torch.bool)


@operation(aten.where)
def _where(trace: Trace, func: Any, condition: Any, x: Any, y: Any) -> SymbolicTensor:
    graph = trace.graph
    operands = [condition, x, y]
    ndim, axis = place(trace, operands)
    dtype = result_type([x, y])
    kind = KINDS[dtype]
    test = trace.cells_of(condition, ndim, axis, torch.bool)
    yes, no = (trace.cells_of(value, ndim, axis, dtype) for value in (x, y))
    make = np.frompyfunc(lambda c, a, b: graph.node("where", (c, a, b), kind), 3, 1)
    cells = make(test, yes, no)
    if not isinstance(cells, np.ndarray):
        cells = np.array(cells, dtype=object)
    return trace.wrap(cells, axis, dtype)


@operation(aten.masked_fill)
def _masked_fill(trace: Trace, func: Any, x: Any, mask: Any, value: Any) -> SymbolicTensor:
    filled = _where(trace, func, mask, value, x)
    return to(trace, func, filled, x.dtype)


@operation(aten.nan_to_num)
def _nan_to_num(
    trace: Trace,
    func: Any,
    x: Any,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> SymbolicTensor:
    info = torch.finfo(x.dtype)
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    inf = math.inf
    result = _where(trace, func, _isfinite(trace, aten.isnan.default, x), nan or 0.0, x)
    result = _where(trace, func, _comparison("eq")(trace, func, x, inf), high, result)
    return _where(trace, func, _comparison("eq")(trace, func, x, -inf), low, result)


@operation(aten.to)
def _to_dtype(trace: Trace, func: Any, x: Any, dtype: Any, *more: Any) -> SymbolicTensor:
    return to(trace, func, x, dtype if isinstance(dtype, torch.dtype) else x.dtype)


@operation(aten._to_copy)
def _to_copy(trace: Trace, func: Any, x: Any, **kwargs: Any) -> SymbolicTensor:
    return to(trace, func, x, kwargs.get("dtype") or x.dtype)


def to(trace: Trace, func: Any, x: SymbolicTensor, dtype: torch.dtype) -> SymbolicTensor:
    """Cast to another dtype."""
    if dtype not in KINDS:
        raise Untraceable(f"it computes in {dtype}")
    cells = trace.cells_of(x, x.ndim, x.axis, dtype)
    return trace.wrap(cells.copy(), x.axis, dtype)


@operation(aten.clone, aten.detach, aten.alias, aten.lift_fresh_copy)
def clone(trace: Trace, func: Any, x: Any, **kwargs: Any) -> SymbolicTensor:
    """A copy, or the same elements under another name."""
    same = func.overloadpacket in (aten.detach, aten.alias)
    return trace.wrap(x.cells if same else x.cells.copy(), x.axis, x.dtype)
