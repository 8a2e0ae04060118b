"""Products of rows with matrices."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from solver.compiled.expression import Graph, Node
from solver.compiled.operations.arithmetic import add
from solver.compiled.operations.table import binary, elementwise, operation, result_type
from solver.compiled.symbolic import KINDS, SymbolicTensor, Trace, Untraceable

aten = torch.ops.aten


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
    dtype = result_type([a, b])
    kind, graph = KINDS[dtype], trace.graph
    batched = func.overloadpacket is aten.bmm
    shared = func.overloadpacket is aten.mm and not isinstance(b, SymbolicTensor) and a.axis == 0
    if shared and b.numel() >= SMALL_PRODUCT and b.dtype == dtype:
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
        product = binary("mul")(trace, func, product, alpha)
    if beta != 1:
        if not beta:
            return product
        x = elementwise(trace, [x, beta], lambda p, q: trace.graph.node("mul", (p, q), p.kind))
    return add(trace, aten.add.Tensor, product, x)
