"""What torch's operations are for one row: on arrays of expressions, batch axis of length 1."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from solver.compiled.expression import BOOL, FLOATS, I64, Graph, Node
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


# ---- elementwise


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if isinstance(value, Tensor) else ()


def _place(trace: Trace, operands: Sequence[Any]) -> tuple[int, int | None]:
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


def _dtype(*operands: Any) -> torch.dtype:
    result: Any = operands[0]
    for other in operands[1:]:
        result = torch.empty((), dtype=torch.result_type(result, other), device="meta")
    return result.dtype if isinstance(result, Tensor) else torch.result_type(result, result)


def _result_type(operands: Sequence[Any]) -> torch.dtype:
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
    ndim, axis = _place(trace, operands)
    dtype = _result_type(operands) if dtype is None else dtype
    arrays = [trace.cells_of(value, ndim, axis, dtype) for value in operands]
    cells = np.frompyfunc(make, len(arrays), 1)(*arrays)
    if not isinstance(cells, np.ndarray):
        cells = np.array(cells, dtype=object)
    return trace.wrap(cells, axis, dtype if result is None else result)


def _floating(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def _unary(name: str) -> Callable[..., SymbolicTensor]:
    def run(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
        dtype = _floating(_result_type([x]))
        kind = KINDS[dtype]
        return elementwise(trace, [x], lambda a: trace.graph.node(name, (a,), kind), dtype)

    return run


for _name in [
    "sqrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "lgamma",
]:
    OPERATIONS[getattr(aten, _name)] = _unary(_name)
for _name, _func in (("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc"), ("round", "rint")):
    OPERATIONS[getattr(aten, _name)] = _unary(_func)


def _binary(name: str) -> Callable[..., SymbolicTensor]:
    def run(trace: Trace, func: Any, x: Any, y: Any) -> SymbolicTensor:
        kind = KINDS[_result_type([x, y])]
        return elementwise(trace, [x, y], lambda a, b: trace.graph.node(name, (a, b), kind))

    return run


for _name, _func in (("mul", "mul"), ("maximum", "max"), ("minimum", "min")):
    OPERATIONS[getattr(aten, _name)] = _binary(_func)


@operation(aten.add, aten.sub, aten.rsub)
def _add(trace: Trace, func: Any, x: Any, y: Any, alpha: float = 1) -> SymbolicTensor:
    if func.overloadpacket is aten.rsub:
        x, y = y, x
    name = "add" if func.overloadpacket is aten.add else "sub"
    dtype = _result_type([x, y])
    graph, kind = trace.graph, KINDS[dtype]
    if alpha == 1:
        return elementwise(trace, [x, y], lambda a, b: graph.node(name, (a, b), kind), dtype)

    def make(a: Node, b: Node, c: Node) -> Node:
        return graph.node(name, (a, graph.node("mul", (c, b), kind)), kind)

    return elementwise(trace, [x, y, alpha], make, dtype)


@operation(aten.div)
def _div(
    trace: Trace, func: Any, x: Any, y: Any, rounding_mode: str | None = None
) -> SymbolicTensor:
    dtype = _result_type([x, y])
    graph = trace.graph
    if rounding_mode is None:
        dtype = _floating(dtype)
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
    return _div(trace, func, 1.0, x)


@operation(aten.rsqrt)
def _rsqrt(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    return _div(trace, func, 1.0, _unary("sqrt")(trace, func, x))


@operation(aten.addcmul, aten.addcdiv)
def _addcmul(trace: Trace, func: Any, x: Any, a: Any, b: Any, value: float = 1) -> SymbolicTensor:
    dtype = _result_type([x, a, b])
    graph, kind = trace.graph, KINDS[dtype]
    name = "mul" if func.overloadpacket is aten.addcmul else "div"

    def make(x: Node, a: Node, b: Node) -> Node:
        if value != 1:
            a = graph.node("mul", (graph.literal(value, kind), a), kind)
        return graph.node("add", (x, graph.node(name, (a, b), kind)), kind)

    return elementwise(trace, [x, a, b], make, dtype)


@operation(aten.lerp)
def _lerp(trace: Trace, func: Any, x: Any, y: Any, weight: Any) -> SymbolicTensor:
    dtype = _result_type([x, y])
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
def _abs(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    kind = KINDS[x.dtype]
    name = "sign"
    if func.overloadpacket is aten.abs:
        name = "abs" if kind in FLOATS else "iabs"
    return elementwise(trace, [x], lambda a: trace.graph.node(name, (a,), kind))


@operation(aten.square)
def _square(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    return _binary("mul")(trace, func, x, x)


@operation(aten.pow)
def _pow(trace: Trace, func: Any, x: Any, exponent: Any) -> SymbolicTensor:
    dtype = _result_type([x, exponent])
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
            return _unary("sqrt")(trace, func, x)
        if exponent == -0.5:
            return _rsqrt(trace, func, x)
        return _div(trace, func, 1.0, x if exponent == -1 else _square(trace, func, x))
    if not dtype.is_floating_point:
        raise Untraceable("it raises whole numbers to a power")
    return elementwise(trace, [x, exponent], lambda a, b: graph.node("pow", (a, b), kind), dtype)


@operation(aten.atan2)
def _atan2(trace: Trace, func: Any, x: Any, y: Any) -> SymbolicTensor:
    dtype = _floating(_result_type([x, y]))
    kind = KINDS[dtype]
    return elementwise(trace, [x, y], lambda a, b: trace.graph.node("atan2", (a, b), kind), dtype)


@operation(aten.sigmoid)
def _sigmoid(trace: Trace, func: Any, x: Any) -> SymbolicTensor:
    dtype = _floating(x.dtype)
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
    return _binary("mul")(trace, func, x, _sigmoid(trace, func, x))


@operation(aten.clamp, aten.clamp_min, aten.clamp_max)
def _clamp(trace: Trace, func: Any, x: Any, min: Any = None, max: Any = None) -> SymbolicTensor:
    if func.overloadpacket is aten.clamp_max:
        min, max = None, min
    dtype = _result_type([v for v in (x, min, max) if v is not None])
    graph, kind = trace.graph, KINDS[dtype]
    if min is not None:  # NaN stays NaN: it is the first operand
        x = elementwise(trace, [x, min], lambda a, b: graph.node("max", (a, b), kind), dtype)
    if max is not None:
        x = elementwise(trace, [x, max], lambda a, b: graph.node("min", (a, b), kind), dtype)
    return x


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
        if "bitwise" in str(func) and _result_type([x, y]) != torch.bool:
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
    ndim, axis = _place(trace, operands)
    dtype = _result_type([x, y])
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
    return _to(trace, func, filled, x.dtype)


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


@operation(aten._to_copy)
def _to_copy(trace: Trace, func: Any, x: Any, **kwargs: Any) -> SymbolicTensor:
    return _to(trace, func, x, kwargs.get("dtype") or x.dtype)


def _to(trace: Trace, func: Any, x: SymbolicTensor, dtype: torch.dtype) -> SymbolicTensor:
    if dtype not in KINDS:
        raise Untraceable(f"it computes in {dtype}")
    cells = trace.cells_of(x, x.ndim, x.axis, dtype)
    return trace.wrap(cells.copy(), x.axis, dtype)


@operation(aten.clone, aten.detach, aten.alias, aten.lift_fresh_copy)
def _clone(trace: Trace, func: Any, x: Any, **kwargs: Any) -> SymbolicTensor:
    same = func.overloadpacket in (aten.detach, aten.alias)
    return trace.wrap(x.cells if same else x.cells.copy(), x.axis, x.dtype)


# ---- made like another


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


# ---- shapes


def _axis(x: SymbolicTensor, dim: int) -> int:
    return dim % x.ndim if x.ndim else 0


def _not_batch(x: SymbolicTensor, dim: int, what: str) -> int:
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
def _unsqueeze(trace: Trace, func: Any, x: Any, dim: int) -> SymbolicTensor:
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
        return _clone(trace, aten.alias.default, x)
    dims = list(range(x.ndim))
    a, b = _axis(x, a), _axis(x, b)
    dims[a], dims[b] = dims[b], dims[a]
    return _permute(trace, func, x, dims)


@operation(aten.select)
def _select(trace: Trace, func: Any, x: Any, dim: int, index: int) -> SymbolicTensor:
    dim = _not_batch(x, dim, "picks one of")
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
        return _clone(trace, aten.alias.default, x)
    place = (slice(None),) * dim + (slice(start, end, step),)
    return trace.wrap(x.cells[place], x.axis, x.dtype)


@operation(aten.unbind)
def _unbind(trace: Trace, func: Any, x: Any, dim: int = 0) -> list[SymbolicTensor]:
    dim = _not_batch(x, dim, "takes apart")
    return [_select(trace, func, x, dim, i) for i in range(x.shape[dim])]


@operation(aten.split)
def _split(trace: Trace, func: Any, x: Any, size: Any, dim: int = 0) -> list[SymbolicTensor]:
    dim = _not_batch(x, dim, "takes apart")
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
    axes = tuple(_not_batch(x, d, "turns round") for d in dims)
    return trace.wrap(np.flip(x.cells, axes).copy(), x.axis, x.dtype)


@operation(aten.roll)
def _roll(
    trace: Trace, func: Any, x: Any, shifts: Sequence[int], dims: Sequence[int] = ()
) -> SymbolicTensor:
    if not dims:
        raise Untraceable("it rolls the rows of the batch")
    axes = tuple(_not_batch(x, d, "rolls") for d in dims)
    return trace.wrap(np.roll(x.cells, tuple(shifts), axes), x.axis, x.dtype)


def _together(
    trace: Trace, tensors: Sequence[Any]
) -> tuple[list[np.ndarray], int | None, torch.dtype]:
    axis = next((x.axis for x in tensors if isinstance(x, SymbolicTensor)), None)
    if any(isinstance(x, SymbolicTensor) and x.axis != axis for x in tensors):
        raise Untraceable("it puts rows beside numbers that are no rows")
    dtype = _result_type(list(tensors))
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
    dim = _not_batch(x, dim, "picks some of")
    if isinstance(index, SymbolicTensor):
        raise Untraceable("it picks by numbers it computes")
    return trace.wrap(np.take(x.cells, trace.bake(index), axis=dim), x.axis, x.dtype)


@operation(aten.index)
def _index(trace: Trace, func: Any, x: Any, indices: Sequence[Any]) -> SymbolicTensor:
    used = [i for i, index in enumerate(indices) if index is not None]
    if len(used) != 1 or isinstance(indices[used[0]], SymbolicTensor):
        raise Untraceable("it picks by several or computed numbers")
    dim = _not_batch(x, used[0], "picks some of")
    index = trace.bake(indices[dim])
    if index.ndim != 1:
        raise Untraceable("it picks by a table of numbers")
    index = np.flatnonzero(index) if index.dtype == bool else index
    return trace.wrap(np.take(x.cells, index, axis=dim), x.axis, x.dtype)


# ---- over components


def _dims(x: SymbolicTensor, dim: Any) -> tuple[int, ...]:
    if dim is None or (isinstance(dim, Sequence) and not dim):
        dim = range(x.ndim)
    dims = [dim] if isinstance(dim, int) else dim
    return tuple(_not_batch(x, d, "adds up or compares") for d in dims)


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
    x = x if dtype in (None, x.dtype) else _to(trace, func, x, dtype)
    kind = KINDS[x.dtype]
    return _reduce(
        trace, x, _dims(x, dim), keepdim, lambda a, b: trace.graph.node("add", (a, b), kind), 0
    )


@operation(aten.mean)
def _mean(
    trace: Trace, func: Any, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> SymbolicTensor:
    count = math.prod(x.cells.shape[d] for d in _dims(x, dim))
    return _div(trace, aten.div.Tensor, _sum(trace, func, x, dim, keepdim, dtype), float(count))


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
    x = x if x.dtype == torch.bool else _to(trace, func, x, torch.bool)
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
    dim = _not_batch(x, dim, "compares")
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
        total = _sum(trace, func, _square(trace, func, x), dim, keepdim)
        return _unary("sqrt")(trace, func, total)
    size = _abs(trace, aten.abs.default, x)
    if ord == 1:
        return _sum(trace, func, size, dim, keepdim)
    if ord == math.inf:
        return _extreme(trace, aten.amax.default, size, dim, keepdim)
    raise Untraceable(f"it uses a norm of order {ord}")


@operation(aten.cumsum)
def _cumsum(trace: Trace, func: Any, x: Any, dim: int, dtype: Any = None) -> SymbolicTensor:
    dim = _not_batch(x, dim, "adds up")
    cells = x.cells.copy()
    moved = np.moveaxis(cells, dim, 0)
    for i in range(1, moved.shape[0]):
        for place in np.ndindex(moved.shape[1:]):
            pair = (moved[i - 1][place], moved[i][place])
            moved[i][place] = trace.graph.node("add", pair, KINDS[x.dtype])
    return trace.wrap(cells, x.axis, x.dtype)


# ---- products


def _dot(graph: Graph, a: np.ndarray, b: np.ndarray, kind: str) -> Node:
    total = None
    for x, y in zip(a, b, strict=True):
        product = graph.node("mul", (x, y), kind)
        total = product if total is None else graph.node("add", (total, product), kind)
    return graph.literal(0, kind) if total is None else total


SMALL_PRODUCT = 100  # elements of a matrix that are still written out one by one


def _product(trace: Trace, a: SymbolicTensor, b: Tensor, dtype: torch.dtype) -> SymbolicTensor:
    """Multiply a row `(B, K)` with a matrix `(K, H)` that all rows share: one loop in the code."""
    graph, kind = trace.graph, KINDS[dtype]
    inputs = trace.cells_of(a, 2, 0, dtype)[0]
    slot = trace.slot(b, None)
    product = graph.node("product", (slot, *b.shape, *inputs), kind)
    cells = np.empty((1, b.shape[1]), dtype=object)
    for j in range(b.shape[1]):
        cells[0, j] = graph.node("element", (product, j), kind)
    return trace.wrap(cells, 0, dtype)


@operation(aten.mm, aten.bmm, aten.mv, aten.dot)
def _matmul(trace: Trace, func: Any, a: Any, b: Any) -> SymbolicTensor:
    """Products of stacks of matrices; the batch may be rows of the first, or count matrices."""
    dtype = _result_type([a, b])
    kind, graph = KINDS[dtype], trace.graph
    batched = func.overloadpacket is aten.bmm
    if func.overloadpacket is aten.mm and not isinstance(b, SymbolicTensor) and a.axis == 0:
        if b.numel() >= SMALL_PRODUCT and b.dtype == dtype:
            return _product(trace, a, b, dtype)

    def cells(x: Any, other: Any) -> tuple[np.ndarray, int | None]:
        if isinstance(x, SymbolicTensor):
            return trace.cells_of(x, x.ndim, x.axis, dtype), x.axis
        axis = 0 if batched and isinstance(other, SymbolicTensor) and other.axis == 0 else None
        array = trace.cells_of(x, x.ndim, axis, dtype)
        return array, axis

    (left, i), (right, j) = cells(a, b), cells(b, a)
    if batched:
        if {i, j} <= {0} or (i == 1 and j is None and not isinstance(b, SymbolicTensor)):
            axis = i if i is not None else j
        elif j == 2 and i is None:
            axis = 2
        else:
            raise Untraceable("it multiplies rows with rows")
        count = max(left.shape[0], right.shape[0])
        out = np.empty((count, left.shape[1], right.shape[2]), dtype=object)
        for n, p, q in np.ndindex(out.shape):
            m1, m2 = min(n, left.shape[0] - 1), min(n, right.shape[0] - 1)
            out[n, p, q] = _dot(graph, left[m1, p], right[m2, :, q], kind)
        return trace.wrap(out, axis, dtype)
    one = left.ndim == 1
    left = left[None] if one else left
    flat = right.ndim == 1
    right = right[:, None] if flat else right
    i = None if i is None else i + one
    if i == 1 or j == 0:
        raise Untraceable("it adds up the rows of the batch")
    if i is not None and j is not None:
        raise Untraceable("it multiplies rows with rows")
    out = np.empty((left.shape[0], right.shape[1]), dtype=object)
    for p, q in np.ndindex(out.shape):
        out[p, q] = _dot(graph, left[p], right[:, q], kind)
    axis = 0 if i == 0 else 1 if j == 1 else None
    if flat:
        out = out[:, 0]
    if one:
        out = out[0]
        axis = None if axis is None else axis - 1
    return trace.wrap(np.asarray(out, dtype=object), axis, dtype)


@operation(aten.addmm, aten.baddbmm, aten.addmv)
def _addmm(
    trace: Trace, func: Any, x: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1
) -> SymbolicTensor:
    product_of = {aten.addmm: aten.mm, aten.baddbmm: aten.bmm, aten.addmv: aten.mv}
    product = _matmul(trace, product_of[func.overloadpacket].default, a, b)
    if alpha != 1:
        product = _binary("mul")(trace, func, product, alpha)
    if beta != 1:
        if not beta:
            return product
        x = elementwise(trace, [x, beta], lambda p, q: trace.graph.node("mul", (p, q), p.kind))
    return _add(trace, aten.add.Tensor, product, x)


# ---- in place


def _assign(x: SymbolicTensor, value: SymbolicTensor) -> SymbolicTensor:
    cells = value.trace.cells_of(value, x.ndim, x.axis, x.dtype)
    if not x.cells.flags.writeable:
        raise Untraceable("it writes into an expanded tensor")
    x.cells[...] = cells
    return x


@operation(aten.copy_)
def _copy(trace: Trace, func: Any, x: Any, value: Any, non_blocking: bool = False) -> Any:
    if not isinstance(x, SymbolicTensor):
        raise Untraceable("it writes the state into a tensor of its own")
    if not isinstance(value, SymbolicTensor):
        value = trace.wrap(trace.cells_of(value, x.ndim, x.axis, x.dtype), x.axis, x.dtype)
    return _assign(x, value)


@operation(aten.zero_, aten.fill_)
def _fill(trace: Trace, func: Any, x: Any, value: Any = 0.0) -> Any:
    cells = trace.cells_of(value, x.ndim, x.axis, x.dtype)
    return _assign(x, trace.wrap(cells, x.axis, x.dtype))


def _in_place(packet: Any) -> Callable[..., Any]:
    def run(trace: Trace, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(x, SymbolicTensor):
            raise Untraceable("it writes the state into a tensor of its own")
        return _assign(x, OPERATIONS[packet](trace, packet.default if hasattr(packet, "default")
                                             else getattr(packet, packet.overloads()[0]),
                                             x, *args, **kwargs))  # fmt: skip

    return run


for _name in [
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "abs",
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "relu",
    "pow",
    "clamp",
    "clamp_min",
    "clamp_max",
    "addcmul",
    "addcdiv",
    "masked_fill",
    "reciprocal",
    "square",
    "lerp",
]:
    OPERATIONS[getattr(aten, _name + "_")] = _in_place(getattr(aten, _name))
