"""Tensors that remember what computed them: a field or a step runs once, its scalars are kept.

A symbolic tensor holds one scalar expression for each element of one row: an array of objects with
the shape of the tensor, in which the batch axis has length 1. Views share memory, as numpy's do, so
a field may write into its own tensors. What only depends on other tensors than the state is done by
torch itself, noted down, and done again before every solve.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils import _python_dispatch as dispatch
from torch.utils._pytree import tree_flatten, tree_map

from solver.compiled.expression import BOOL, F32, F64, I64, Graph

KINDS = {
    torch.float32: F32,
    torch.float64: F64,
    torch.int64: I64,
    torch.int32: I64,
    torch.bool: BOOL,
}
MOST_ELEMENTS = 4096  # of one tensor that is loaded from
MOST_NODES = 60_000  # beyond, a step is no small thing and compiling it takes minutes


class Untraceable(Exception):
    """A field or step does something that cannot be written down as one row's scalars."""


class SymbolicTensor(Tensor):
    """A tensor of expressions; `cells` is an object array with length 1 along `axis`."""

    cells: np.ndarray
    axis: int | None
    owner: "Trace"

    @staticmethod
    def make(
        trace: "Trace", cells: np.ndarray, axis: int | None, dtype: torch.dtype
    ) -> "SymbolicTensor":
        """Wrap expressions; `axis` is where the batch is, None if they are the same in all rows."""
        shape = list(cells.shape)
        if axis is not None:
            shape[axis] = trace.batch
        wrapped = Tensor._make_wrapper_subclass(SymbolicTensor, shape, dtype=dtype)
        wrapped.cells, wrapped.axis, wrapped.owner = cells, axis, trace
        return wrapped

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        """Say what it is."""
        return f"SymbolicTensor(shape={tuple(self.shape)}, axis={self.axis})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Write the operation down in the trace its arguments belong to."""
        for value in tree_flatten((args, kwargs))[0]:
            if isinstance(value, SymbolicTensor):
                return value.owner.record(func, args, kwargs or {})
        raise Untraceable(f"{func} without symbolic arguments")


class Trace(dispatch.TorchDispatchMode):
    """One trace: a graph of scalars, the tensors met on the way, and what torch did beforehand."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # which would import the compiler, seconds of it

    def __init__(self, graph: Graph, batch: int):
        """Trace rows of a batch of `batch`, which a field may ask for."""
        super().__init__()
        self.graph, self.batch = graph, batch
        self.outside: list[Tensor] = []  # tensors met, in the order they are numbered
        self._numbers: dict[int, int] = {}
        self._made: dict[int, int] = {}  # id of a tensor made here -> number of the step making it
        self._pure: set[int] = set()  # ids of those made from numbers alone
        self.before: list[tuple[Any, tuple, dict]] = []  # what torch did with them
        self._results: list[Any] = []
        self.depends_on_batch = False
        self.slots: list[Slot] = []  # what expressions load from
        self.baked: list[tuple[int, Tensor]] = []  # tensors whose values are in the code
        self._regions = 0
        self.literal: set[int] = set()  # ids of coefficients, whose values are in the code too

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Write down one operation of torch."""
        return self.record(func, args, kwargs or {})

    def record(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Do one operation on expressions, or let torch do it if only other tensors take part."""
        flat = tree_flatten((args, kwargs))[0]
        if not any(isinstance(value, SymbolicTensor) for value in flat):
            return self._outside(func, args, kwargs, flat)
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise Untraceable(f"it draws random numbers ({func})")
        if len(self.graph.nodes) > MOST_NODES:
            raise Untraceable("it is too large to be unrolled into scalars")
        return operate(self, func, args, kwargs)

    # ---- tensors that do not depend on the state

    def _outside(self, func: Any, args: tuple, kwargs: dict, flat: list) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise Untraceable(f"it draws random numbers ({func})")
        if func is torch.ops.aten._local_scalar_dense.default:
            tensor = args[0]
            if self._number_of(tensor, make=False) is not None and id(tensor) in self._made:
                raise Untraceable("it reads a number out of a tensor it has computed")
            raise Untraceable("it reads a number out of a tensor")
        if func._schema.is_mutable:
            raise Untraceable(f"it changes a tensor other than the state in place ({func})")
        if self.batch > 1 and any(type(v) is int and v == self.batch for v in flat):
            self.depends_on_batch = True
        with no_trace():
            result = func(*args, **kwargs)

        def name(value: Any) -> Any:
            return _Reference(self._number_of(value)) if isinstance(value, Tensor) else value

        fresh = func in (torch.ops.aten.lift_fresh.default, torch.ops.aten.lift_fresh_copy.default)
        if fresh:  # torch.tensor(numbers): what these are, the fingerprint knows
            self.before.append((torch.clone, args, {}))
        else:
            self.before.append((func, tree_map(name, args), tree_map(name, kwargs)))
        pure = fresh or all(id(v) in self._pure for v in flat if isinstance(v, Tensor))
        for place, tensor in enumerate(result if isinstance(result, tuple | list) else (result,)):
            if isinstance(tensor, Tensor):
                if pure:
                    self._pure.add(id(tensor))
                self._results.append((len(self.before) - 1, place, tensor))
                self._made[id(tensor)] = len(self._results) - 1
        return result

    def _number_of(self, tensor: Tensor, make: bool = True) -> int | None:
        """Return the number of a tensor met: negative for those made on the way."""
        made = self._made.get(id(tensor))
        if made is not None:
            return -1 - made
        known = self._numbers.get(id(tensor))
        if known is None and make:
            known = self._numbers[id(tensor)] = len(self.outside)
            self.outside.append(tensor)
        return known

    def prepare(self, given: Sequence[Tensor], numbers: Sequence[int]) -> list[Tensor]:
        """Do once more what torch did, with other tensors in place of `outside`.

        Args:
            given: the tensors, like `outside`.
            numbers: of the tensors to return, as slots and `baked` have them.
        """
        results: dict[int, Any] = {}
        needed: set[int] = set()
        waiting = [self._results[-1 - number][0] for number in numbers if number < 0]
        while waiting:
            step = waiting.pop()
            if step not in needed:
                needed.add(step)
                waiting += [
                    self._results[-1 - value.number][0]
                    for value in tree_flatten(self.before[step][1:], is_leaf=_is_reference)[0]
                    if _is_reference(value) and value.number < 0
                ]

        def fetch(value: Any) -> Any:
            if not isinstance(value, _Reference):
                return value
            if value.number >= 0:
                return given[value.number]
            step, place, _ = self._results[-1 - value.number]
            made = results[step]
            return made[place] if isinstance(made, tuple | list) else made

        for step in sorted(needed):
            func, args, kwargs = self.before[step]
            results[step] = func(
                *tree_map(fetch, args, is_leaf=_is_reference),
                **tree_map(fetch, kwargs, is_leaf=_is_reference),
            )
        return [fetch(_Reference(number)) for number in numbers]

    # ---- expressions

    def wrap(self, cells: np.ndarray, axis: int | None, dtype: torch.dtype) -> SymbolicTensor:
        """Return a symbolic tensor of this trace."""
        return SymbolicTensor.make(self, cells, axis, dtype)

    def row(self, names: Sequence[str] | np.ndarray, dtype: torch.dtype, axis: int = 0) -> Tensor:
        """Return a tensor that loads the C++ expressions `names`, with the batch as `axis`."""
        kind = KINDS[dtype]
        names = np.asarray(names, dtype=object)
        cells = np.empty(names.shape, dtype=object)
        for place in np.ndindex(names.shape):
            cells[place] = self.graph.load(str(names[place]), kind)
        return self.wrap(np.expand_dims(cells, axis), axis, dtype)

    def cells_of(self, value: Any, ndim: int, axis: int | None, dtype: torch.dtype) -> np.ndarray:
        """Return an operand as an array of nodes of `dtype`.

        Args:
            value: a symbolic tensor, another tensor, or a number.
            ndim, axis: dimensions of the result and place of its batch axis: where another tensor
                has the batch size along that axis, each row loads its own.
        """
        kind = KINDS.get(dtype)
        if kind is None:
            raise Untraceable(f"it computes in {dtype}")
        graph = self.graph
        if isinstance(value, SymbolicTensor):
            cells = value.cells
        elif isinstance(value, Tensor):
            shift = ndim - value.ndim
            own = None if axis is None else axis - shift
            cells = self.constant(value, own if own is not None and own >= 0 else None)
        else:
            if isinstance(value, complex):
                raise Untraceable("it computes with complex numbers")
            node = graph.literal(value, kind)
            return np.array(node, dtype=object)
        return _cast(graph, cells, kind)

    def constant(self, tensor: Tensor, axis: int | None) -> np.ndarray:
        """Return another tensor's elements as loads; its own row's along `axis` if that is given
        and has the batch size."""
        if tensor.is_complex() or (tensor.dtype not in KINDS and not tensor.is_floating_point()):
            raise Untraceable(f"it uses a tensor of {tensor.dtype}")
        if tensor.layout != torch.strided:
            raise Untraceable(f"it uses a {tensor.layout} tensor")
        per_row = axis is not None and tensor.shape[axis] == self.batch and self.batch > 1
        if id(tensor) in self._pure or id(tensor) in self.literal:
            with no_trace():
                one = tensor.narrow(axis or 0, 0, 1) if per_row else tensor
                if not per_row or bool((one == tensor).all()):
                    return self._literals(one, KINDS.get(tensor.dtype, F64))
        shape = list(tensor.shape)
        if per_row:
            assert axis is not None
            shape[axis] = 1
        size = int(np.prod(shape)) if shape else 1
        if size > MOST_ELEMENTS:
            raise Untraceable(f"it uses a tensor of {size} elements a row")
        at = self.slot(tensor, axis if per_row else None)
        cells = np.empty(size, dtype=object)
        for i in range(size):
            kind = self.slots[at].kind
            text = f"c{at}_{i}[l]" if per_row else f"U{at}[{i}]"
            text = f"({text} != 0)" if per_row and kind == BOOL else text
            cells[i] = self.graph.load(text, kind)
        return cells.reshape(shape)

    def slot(self, tensor: Tensor, axis: int | None) -> int:
        """Return the number of what is loaded from a tensor; the batch is its `axis`."""
        number = self._number_of(tensor)
        assert number is not None
        size = tensor.numel() if axis is None else tensor.numel() // max(self.batch, 1)
        slot = Slot(number, axis, KINDS.get(tensor.dtype, F64), size)
        if slot not in self.slots:
            self.slots.append(slot)
        return self.slots.index(slot)

    def _literals(self, tensor: Tensor, kind: str) -> np.ndarray:
        numbers = [self.graph.literal(x, kind) for x in tensor.flatten().tolist()]
        cells = np.empty(len(numbers), dtype=object)
        cells[:] = numbers
        return cells.reshape(tuple(tensor.shape))

    def guarded(
        self,
        mask: Tensor,
        new: Sequence[Tensor],
        old: Sequence[Tensor],
        region: str | None = None,
    ) -> list[SymbolicTensor]:
        """Return `new` in rows of `mask (B,)`, `old` elsewhere.

        What only the new ones need is computed only where the mask holds in some row: all that
        share a mask and the name of a `region` together, None for one of their own.
        """
        region = self.new_region() if region is None else region
        (condition,) = cast(SymbolicTensor, mask).cells.reshape(-1)
        pairs = []
        for a, b in zip(new, old, strict=True):
            axis = a.axis if isinstance(a, SymbolicTensor) else cast(SymbolicTensor, b).axis
            cells = [self.cells_of(x, a.ndim, axis, a.dtype) for x in (a, b)]
            pairs.append((*np.broadcast_arrays(*cells), axis, a.dtype))
        out = []
        for left, right, axis, dtype in pairs:
            cells = np.empty(left.shape, dtype=object)
            for place in np.ndindex(left.shape):
                cells[place] = self.graph.guard(condition, left[place], right[place], region)
            out.append(self.wrap(cells, axis, dtype))
        return out

    def new_region(self) -> str:
        """Return a name for a region of its own."""
        self._regions += 1
        return str(self._regions)

    def bake(self, tensor: Tensor) -> np.ndarray:
        """Return the values of another tensor, which become part of the code."""
        number = self._number_of(tensor)
        assert number is not None
        with no_trace():
            self.baked.append((number, tensor.detach().clone()))
            return tensor.detach().cpu().numpy()


class Slot(NamedTuple):
    """A tensor that expressions load from: a uniform one as `U[i]`, else each row its own."""

    number: int
    axis: int | None  # of the batch, None if all rows load the same
    kind: str
    size: int  # elements, of one row if each has its own


class _Reference:
    """Stands for a tensor in what torch did before."""

    def __init__(self, number: int | None):
        assert number is not None
        self.number = number


def _is_reference(value: Any) -> bool:
    return isinstance(value, _Reference)


@contextlib.contextmanager
def no_trace():
    """Let torch work unseen."""
    with getattr(dispatch, "_disable_current_modes")():  # noqa: B009
        yield


def _cast(graph: Graph, cells: np.ndarray, kind: str) -> np.ndarray:
    out = np.empty(cells.shape, dtype=object)
    for place in np.ndindex(cells.shape):
        cell: Any = cells[place]
        out[place] = graph.cast(cell, kind)
    return out


def operate(trace: Trace, func: Any, args: tuple, kwargs: dict) -> Any:
    """Do one operation of torch on expressions.

    Raises:
        Untraceable: it is not one that can be written for a single row.
    """
    from solver.compiled.operations import OPERATIONS

    known = OPERATIONS.get(func) or OPERATIONS.get(func.overloadpacket)
    if known is not None:
        return known(trace, func, *args, **kwargs)
    decompose = _decompositions().get(func)
    if decompose is not None:
        with trace:
            return decompose(*args, **kwargs)
    raise Untraceable(f"it uses {func}, which is not known for single rows")


_table: dict[Any, Callable[..., Any]] = {}


def _decompositions() -> dict[Any, Callable[..., Any]]:
    if not _table:
        import torch._decomp.decompositions  # fills the table

        _table.update(torch._decomp.decomposition_table)
    return _table
