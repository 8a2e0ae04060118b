"""Sums, products, powers and functions of elements."""

from typing import Any

import torch

from solver.compiled.expression import FLOATS, Node
from solver.compiled.operations.table import (
    binary,
    elementwise,
    floating,
    operation,
    result_type,
    unary,
)
from solver.compiled.symbolic import KINDS, SymbolicTensor, Trace, Untraceable

aten = torch.ops.aten


@operation(aten.add, aten.sub, aten.rsub)
def add(trace: Trace, func: Any, x: Any, y: Any, alpha: float = 1) -> SymbolicTensor:
    """Sum or difference, `x + alpha y`."""
    if func.overloadpacket is aten.rsub:
        x, y = y, x
    name = "add" if func.overloadpacket is aten.add else "sub"
    dtype = result_type([x, y])
    graph, kind = trace.graph, KINDS[dtype]
    if alpha == 1:
        return elementwise(trace, [x, y], lambda a, b: graph.node(name, (a, b), kind), dtype)

    def make(a: Node, b: Node, c: Node) -> Node:
        return graph.node(name, (a, graph.node("mul", (c, b), kind)), kind)

    return elementwise(trace, [x, y, alpha], make, dtype)


@operation(aten.div)
def div_of(
    trace: Trace, func: Any, x: Any, y: Any, rounding_mode: str | None = None
) -> SymbolicTensor:
    """Quotient, perhaps rounded."""
    dtype = result_type([x, y])
    graph = trace.graph
    if rounding_mode is None:
        dtype = floating(dtype)
    elif not dtype.is_floating_point:
        raise Untraceable("it divides whole numbers")
    kind = KINDS[dtype]
    if rounding_mode is None:
        return elementwise(trace, [x, y], lambda a, b: graph.node("div", (a, b), kind), dtype)

    def make(a: Node, b: Node) -> Node:
        return graph.node(rounding_mode, (graph.node("div", (a, b), kind),), kind)

    return elementwise(trace, [x, y], make, dtype)


@operation(aten.reciprocal)
def _reciprocal(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    return div_of(trace, func, 1.0, x)


@operation(aten.rsqrt)
def _rsqrt(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    return div_of(trace, func, 1.0, unary("sqrt")(trace, func, x))


@operation(aten.addcmul, aten.addcdiv)
def _addcmul(trace: Trace, func: Any, x: Any, a: Any, b: Any, value: float = 1) -> SymbolicTensor:
    dtype = result_type([x, a, b])
    graph, kind = trace.graph, KINDS[dtype]
    name = "mul" if func.overloadpacket is aten.addcmul else "div"

    def make(x: Node, a: Node, b: Node) -> Node:
        if value != 1:
            a = graph.node("mul", (graph.literal(value, kind), a), kind)
        return graph.node("add", (x, graph.node(name, (a, b), kind)), kind)

    return elementwise(trace, [x, a, b], make, dtype)


@operation(aten.lerp)
def _lerp(trace: Trace, func: Any, x: Any, y: Any, weight: Any) -> SymbolicTensor:
    dtype = result_type([x, y])
    graph, kind = trace.graph, KINDS[dtype]

    def make(a: Node, b: Node, w: Node) -> Node:
        return graph.node(
            "add", (a, graph.node("mul", (w, graph.node("sub", (b, a), kind)), kind)), kind
        )

    return elementwise(trace, [x, y, weight], make, dtype)


@operation(aten.neg)
def _neg(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    kind = KINDS[x.dtype]
    return elementwise(trace, [x], lambda a: trace.graph.node("neg", (a,), kind))


@operation(aten.abs, aten.sgn, aten.sign)
def abs_of(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    """Magnitude or sign."""
    kind = KINDS[x.dtype]
    name = "sign"
    if func.overloadpacket is aten.abs:
        name = "abs" if kind in FLOATS else "iabs"
    return elementwise(trace, [x], lambda a: trace.graph.node(name, (a,), kind))


@operation(aten.square)
def square(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    """Square."""
    return binary("mul")(trace, func, x, x)


@operation(aten.pow)
def _pow(trace: Trace, func: Any, x: Any, exponent: Any) -> SymbolicTensor:
    dtype = result_type([x, exponent])
    graph, kind = trace.graph, KINDS[dtype]
    whole = isinstance(exponent, int | float) and float(exponent).is_integer()
    if whole and 0 <= exponent <= 16:

        def times(a: Node) -> Node:
            result, square, left = None, a, int(exponent)
            while left:
                if left & 1:
                    result = square if result is None else graph.node("mul", (result, square), kind)
                left >>= 1
                square = graph.node("mul", (square, square), kind) if left else square
            return graph.literal(1.0, kind) if result is None else result

        return elementwise(trace, [x], times, dtype)
    if isinstance(exponent, int | float) and exponent in (0.5, -1, -2, -0.5):
        if exponent == 0.5:
            return unary("sqrt")(trace, func, x)
        if exponent == -0.5:
            return _rsqrt(trace, func, x)
        return div_of(trace, func, 1.0, x if exponent == -1 else square(trace, func, x))
    if not dtype.is_floating_point:
        raise Untraceable("it raises whole numbers to a power")
    return elementwise(trace, [x, exponent], lambda a, b: graph.node("pow", (a, b), kind), dtype)


@operation(aten.atan2)
def _atan2(trace: Trace, func: Any, x: Any, y: Any) -> SymbolicTensor:
    dtype = floating(result_type([x, y]))
    kind = KINDS[dtype]
    return elementwise(trace, [x, y], lambda a, b: trace.graph.node("atan2", (a, b), kind), dtype)


@operation(aten.sigmoid)
def _sigmoid(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    dtype = floating(x.dtype)
    graph, kind = trace.graph, KINDS[dtype]

    def make(a: Node) -> Node:
        one = graph.node("literal", ((1.0).hex(), "f"), kind)
        e = graph.node("exp", (graph.node("neg", (a,), kind),), kind)
        return graph.node("div", (one, graph.node("add", (one, e), kind)), kind)

    return elementwise(trace, [x], make, dtype)


@operation(aten.relu)
def _relu(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    return _clamp(trace, func, x, 0)


@operation(aten.silu)
def _silu(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    return binary("mul")(trace, func, x, _sigmoid(trace, func, x))


@operation(aten.clamp, aten.clamp_min, aten.clamp_max)
def _clamp(trace: Trace, func: Any, x: Any, min: Any = None, max: Any = None) -> SymbolicTensor:
    if func.overloadpacket is aten.clamp_max:
        min, max = None, min
    dtype = result_type([v for v in (x, min, max) if v is not None])
    graph, kind = trace.graph, KINDS[dtype]
    if min is not None:  # NaN stays NaN: it is the first operand
        x = elementwise(trace, [x, min], lambda a, b: graph.node("max", (a, b), kind), dtype)
    if max is not None:
        x = elementwise(trace, [x, max], lambda a, b: graph.node("min", (a, b), kind), dtype)
    return x


@operation(aten.remainder, aten.fmod)
def _remainder(trace: Trace, func: Any, x: Any, y: Any) -> SymbolicTensor:
    dtype = result_type([x, y])
    if not dtype.is_floating_point:
        raise Untraceable("it divides whole numbers")
    graph, kind = trace.graph, KINDS[dtype]
    down = "floor" if func.overloadpacket is aten.remainder else "trunc"

    def make(a: Node, b: Node) -> Node:
        whole = graph.node(down, (graph.node("div", (a, b), kind),), kind)
        return graph.node("sub", (a, graph.node("mul", (whole, b), kind)), kind)

    return elementwise(trace, [x, y], make, dtype)
