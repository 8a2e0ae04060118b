"""From a problem to a compiled kernel: traced, written, built once; found again by what matters."""

import ctypes
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from solver.compiled import forms
from solver.compiled.body import Body, Tracer
from solver.compiled.build import Kernel, load
from solver.compiled.expression import BOOL, F32, F64, I8, I64
from solver.compiled.fingerprint import Fingerprint
from solver.compiled.source import Layout, emit, pointer_names
from solver.compiled.symbolic import KINDS, Slot, Untraceable
from solver.loop import Problem
from solver.statistics.base import Statistic

MOST_PLANS = 256  # kept in a process
MOST_COMPONENTS = 128  # beyond, compiling takes minutes
_NUMPY = {F32: np.dtype("f4"), F64: np.dtype("f8"), I64: np.dtype("i8")}
_NUMPY |= {BOOL: np.dtype("?"), I8: np.dtype("i1")}
_DTYPES = {kind: dtype for dtype, kind in KINDS.items() if dtype != torch.int32}


@dataclass(frozen=True)
class Recorded:
    """One column of a record, `(n, B, *shape)`."""

    name: str
    pointer: int  # its place among the pointers
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @cached_property
    def bytes(self) -> int:
        """Bytes of one row in one attempt."""
        return self.dtype.itemsize * math.prod(self.shape)


class _Key:
    """What a plan is found by, hashed once."""

    __slots__ = ("_hash", "_value")

    def __init__(self, value: Any):
        self._value, self._hash = value, hash(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._value == other._value

    def __hash__(self) -> int:
        return self._hash


@dataclass(eq=False)
class Plan:
    """A kernel and how to feed it."""

    source: str
    body: Body
    layout: Layout
    pointers: list[str]
    roles: list[tuple[str, int]]  # where each tensor outside comes from
    slots: list[Slot]
    numbers: Any  # ctypes array, the pool
    column_kinds: dict[str, str]
    record: tuple[Recorded, ...]
    form: forms.Form
    starts: bool  # whether those of all steps are kept
    loaded: Kernel | None = None

    def kernel(self, on_compile: Callable[[], None] | None = None) -> Kernel:
        """Return the compiled function; compile it if it must be.

        Where that is not possible, `build.NoCompiler` says why.
        """
        if self.loaded is None:
            self.loaded = load(self.source, on_compile)
        return self.loaded

    def tensors(self, problem: Problem, fingerprint: Fingerprint) -> list[Tensor]:
        """Return what the kernel loads from, for this problem: one tensor a slot."""
        found = self._found(problem, fingerprint, [slot.number for slot in self.slots])
        ready = []
        for slot, tensor in zip(self.slots, found, strict=True):
            if slot.axis is not None and tensor.ndim > 1:
                tensor = tensor.movedim(slot.axis, -1)
            tensor = tensor.detach().to(_DTYPES[slot.kind])
            ready.append(tensor if tensor.is_contiguous() else tensor.contiguous())
        return ready

    def check_baked(self, problem: Problem, fingerprint: Fingerprint) -> None:
        """Refuse tensors whose values are in the code but differ now.

        Raises:
            Untraceable: one does.
        """
        baked = self.body.trace.baked
        now = self._found(problem, fingerprint, [number for number, _ in baked])
        if not all(torch.equal(a, b) for a, (_, b) in zip(now, baked, strict=True)):
            raise Untraceable("it picks by a tensor whose values have changed")

    def _found(
        self, problem: Problem, fingerprint: Fingerprint, numbers: list[int]
    ) -> list[Tensor]:
        given = settings(problem)
        outside = [_fetch(role, given, problem, fingerprint) for role in self.roles]
        return self.body.trace.prepare(outside, numbers)


_plans: OrderedDict[Any, Plan | Untraceable] = OrderedDict()
_lock = threading.RLock()  # a field that is traced may solve something itself


def reason_against(problem: Problem) -> str | None:
    """Return why no kernel can solve this problem, None if one may."""
    layout = problem.field.layout
    if problem.joint:
        return 'stepping="joint" lets rows meet'
    if problem.events is not None:
        return "events have no compiled form"
    if problem.times.stops is not None:
        return "jump_t has no compiled form"
    if layout.device.type != "cpu":
        return f"the state is on {layout.device}"
    if layout.dtype not in (torch.float32, torch.float64):
        return f"the state is {layout.dtype}"
    if not 0 < layout.dim <= MOST_COMPONENTS:
        return f"D = {layout.dim} components: must be 1 to {MOST_COMPONENTS}"
    return forms.reason_against(problem)


def find_plan(
    problem: Problem,
    statistics: Sequence[Statistic],
    *,
    outputs: bool,
    dense: bool,
    starts: bool,
    states: bool,
    recorded: bool,
) -> tuple[Plan, Fingerprint]:
    """Return the plan for this form of problem, traced if it is new.

    Args:
        problem: what is to be solved.
        statistics: columns a hook wants.
        outputs, dense, starts, states, recorded: whether outputs lie inside steps, all polynomials
            are kept, starts of steps are, states are recorded, attempts are recorded.

    Raises:
        Untraceable: the field, or what goes with it, has no compiled form; says why.
    """
    reason = reason_against(problem)
    if reason is not None:
        raise Untraceable(reason)
    key, fingerprint = key_of(
        problem, statistics, outputs=outputs, dense=dense, starts=starts, states=states,
        recorded=recorded,
    )  # fmt: skip
    batch, flags = problem.field.layout.batch, (outputs, dense, starts, states, recorded)
    with _lock:
        plan = _plans.get(key)
        if plan is not None:
            _plans.move_to_end(key)
        elif (plan := _plans.get((key, batch))) is not None:
            _plans.move_to_end((key, batch))
        else:
            try:
                plan = _make(problem, statistics, fingerprint, flags)
                if plan.body.trace.depends_on_batch:
                    key = (key, batch)
            except Untraceable as error:
                plan = error
            except Exception as error:  # whatever a user's function meets in a trace
                plan = Untraceable(f"{type(error).__name__}: {error}")
            _plans[key] = plan
            while len(_plans) > MOST_PLANS:
                _plans.popitem(last=False)
    if isinstance(plan, Untraceable):
        raise plan
    if plan.body.trace.baked:
        plan.check_baked(problem, fingerprint)
    return plan, fingerprint


def key_of(
    problem: Problem,
    statistics: Sequence[Statistic],
    *,
    outputs: bool,
    dense: bool,
    starts: bool,
    states: bool,
    recorded: bool,
) -> tuple[Any, Fingerprint]:
    """Return what a plan is found by, and the field's fingerprint; see `find_plan`.

    Raises:
        Untraceable: the field holds something that cannot be compared.
    """
    field = problem.field
    fingerprint = Fingerprint((field.function, field.args), field.layout.batch)
    flags = (outputs, dense, starts, states, recorded)
    return _Key((fingerprint.key, _form(problem), tuple(statistics), flags)), fingerprint


def _form(problem: Problem) -> Any:
    """Return what the code depends on besides the field: types and shapes, no values."""
    layout, times = problem.field.layout, problem.times
    tolerance = problem.tolerance

    def shape(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value is None
        return tuple("B" if n == layout.batch else n for n in value.shape)

    return (
        layout.dim, layout.dtype, tuple(layout.dtypes), tuple(layout.shapes), str(layout.tree),
        times.start.dtype, times.direction is None,
        type(problem.method), problem.method, type(problem.controller), problem.controller,
        problem.dt0 is None, *map(shape, (problem.dt_min, problem.dt_max, problem.max_steps)),
        shape(tolerance.rtol), shape(tolerance.atol), tolerance.may_vanish,
        layout.batch == 1, layout.batch == layout.dim,
    )  # fmt: skip


def settings(problem: Problem) -> dict[str, Tensor | None]:
    """Return the settings that are inputs of a kernel, as tensors."""
    state, time = problem.field.layout.dtype, problem.times.start.dtype
    values = (
        ("rtol", problem.tolerance.rtol, state),
        ("atol", problem.tolerance.atol, state),
        ("dt_min", problem.dt_min, time),
        ("dt_max", problem.dt_max, time),
        ("max_steps", problem.max_steps, time),
    )
    return {
        name: value if value is None else _as_tensor(value, dtype) for name, value, dtype in values
    }


def _as_tensor(value: Any, dtype: torch.dtype) -> Tensor:
    return value.to(dtype) if isinstance(value, Tensor) else _number(float(value), dtype)


@lru_cache(1024)
def _number(value: float, dtype: torch.dtype) -> Tensor:
    """Return a number as a tensor, which nobody writes to."""
    return torch.tensor(value, dtype=dtype)


def _fetch(
    role: tuple[str, int],
    given: dict[str, Tensor | None],
    problem: Problem,
    fingerprint: Fingerprint,
) -> Tensor:
    name, place = role
    if name == "field":
        return fingerprint.tensors[place]
    if name == "direction":
        assert problem.field.direction is not None
        return problem.field.direction
    if name == "column":
        assert problem.field.column is not None
        return problem.field.column
    value = given[name]
    assert value is not None
    return value


def _roles(tracer: Tracer, problem: Problem, fingerprint: Fingerprint) -> list[tuple[str, int]]:
    """Say where each tensor that the trace met comes from.

    Raises:
        Untraceable: it is not seen from outside, so a later solve could not find it.
    """
    known: dict[int, tuple[str, int]] = {}
    for place, tensor in enumerate(fingerprint.tensors):
        known.setdefault(id(tensor), ("field", place))
    for name, tensor in tracer.tensors.items():
        known[id(tensor)] = (name, 0)
    known[id(problem.field.direction)] = ("direction", 0)
    known[id(problem.field.column)] = ("column", 0)
    roles = []
    for tensor in tracer.trace.outside:
        if id(tensor) in tracer.trace.literal:
            roles.append(("rtol", 0))  # coefficients, never fetched
            continue
        if id(tensor) not in known:
            raise Untraceable("it uses a tensor that cannot be found from outside")
        roles.append(known[id(tensor)])
    return roles


def _make(
    problem: Problem,
    statistics: Sequence[Statistic],
    fingerprint: Fingerprint,
    flags: tuple[bool, bool, bool, bool, bool],
) -> Plan:
    """Trace and write one plan."""
    outputs, dense, starts, states, recorded = flags
    field = problem.field
    field.meet(problem.times.start, problem.y0)
    # Each its own tensor, as the trace tells them apart by identity.
    own = {k: None if v is None else v.clone() for k, v in settings(problem).items()}
    tracer = Tracer(problem, statistics, own, polynomial=outputs or dense)
    body = tracer.run()
    if Fingerprint((field.function, field.args), field.layout.batch).key != fingerprint.key:
        raise Untraceable("it changes its own state when it is called")
    state, time = KINDS[field.layout.dtype], KINDS[problem.times.start.dtype]
    narrow = {each.name for each in statistics if _fits_a_byte(each, field.layout.dim)}
    kinds = {
        name: I8 if name in narrow and node.kind == I64 else node.kind
        for name, node in body.columns.items()
    }
    polynomial = KINDS[tracer.polynomial_dtype]
    dim, stepper = field.layout.dim, tracer.stepper
    source = emit(
        body, dim=dim, state=state, time=time, outputs=outputs, dense=dense, starts=starts,
        states=states, recorded=recorded, column_kinds=kinds, polynomial_kind=polynomial,
        interpolant_evals=stepper.interpolant_evals,
        gives_end_slope=stepper.interpolant_gives_end_slope, automatic=problem.dt0 is None,
    )  # fmt: skip
    pointers = pointer_names(body, kinds, dim, state, time, polynomial)
    columns: dict[str, tuple[str, tuple[int, ...]]]
    columns = {"t": (time, ()), "dt": (time, ()), "ratio": (state, ())}
    columns |= {"moved": (BOOL, ()), "running": (BOOL, ())}
    columns |= {name: (kind, ()) for name, kind in kinds.items()}
    if states:
        columns["y"] = state, (dim,)
    if dense or starts:
        columns |= {"step": (time, ()), "start": (state, (dim,))}
    if dense:
        columns["polynomial"] = polynomial, (body.degree, dim)
    record = tuple(
        Recorded(name, pointers.index(f"R_{name}"), _NUMPY[kind], shape)
        for name, (kind, shape) in columns.items()
    )
    return Plan(
        source=source,
        body=body,
        layout=Layout(body, dim, state, time),
        pointers=pointers,
        roles=_roles(tracer, problem, fingerprint),
        slots=list(body.trace.slots),
        numbers=(ctypes.c_double * max(len(body.pool), 1))(*body.pool),
        column_kinds=kinds,
        record=record if recorded else (),
        form=tracer.form,
        starts=starts,
    )


def _fits_a_byte(statistic: Statistic, dim: int) -> bool:
    most = statistic.magnitude(dim)
    return most is not None and most < 128
