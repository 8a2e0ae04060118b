"""Operations that write into their first argument."""

from collections.abc import Callable
from typing import Any

import torch

from solver.compiled.operations.table import OPERATIONS, operation
from solver.compiled.symbolic import SymbolicTensor, Trace, Untraceable

aten = torch.ops.aten


def _assign(x: SymbolicTensor, value: SymbolicTensor) -> SymbolicTensor:
    cells = value.owner.cells_of(value, x.ndim, x.axis, x.dtype)
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
