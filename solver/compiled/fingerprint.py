"""What a vector field is made of: whether it is the one traced before, and its tensors now."""

import dis
import enum
import functools
import inspect
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from solver.captured import MOST_ENTRIES, names_in
from solver.compiled.symbolic import Untraceable

MOST_PARTS = 20_000
SMALL = 50_000  # elements of a numpy array that are compared one by one
_SCALARS = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, slice)
# What a function does with these is not seen in what it computes.
IMPURE = frozenset(("print", "input", "open", "exec", "eval", "breakpoint"))
CHANGING = ("append", "extend", "insert", "pop", "setdefault", "update", "write", "put")
IMPURE_MODULES = frozenset(("random", "time", "datetime", "secrets", "logging", "os", "sys"))
PARTS = ("_parameters", "_buffers", "_modules")  # of a module
_STABLE = ("torch", "numpy", "math", "cmath", "builtins", "functools", "operator", "itertools")


class Fingerprint:
    """A hashable description of a callable, with tensors listed apart from it.

    Two callables with equal `key` do the same with their `tensors`: same code, same numbers, same
    structure. Tensors of `batch` elements along an axis are described by that, not by the number.

    Raises:
        Untraceable: it holds something that cannot be compared.
    """

    def __init__(self, value: Any, batch: int):
        """Look through everything `value` reaches."""
        self.tensors: list[Tensor] = []
        self._batch, self._seen, self._parts = batch, {}, 0
        self._keep: list[Any] = []
        self.key = self._describe(value)

    def _describe(self, value: Any) -> Any:
        kind = type(value)
        if kind in _SCALARS:
            return (kind, value if kind is not float else value.hex())
        known = self._seen.get(id(value))
        if known is not None:
            return ("again", known)
        self._seen[id(value)] = len(self._seen)
        self._keep.append(value)
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise Untraceable("f reaches too many objects")
        if isinstance(value, Tensor):
            return self._tensor(value)
        if kind is types.FunctionType:
            return self._function(value)
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        if isinstance(value, types.ModuleType):
            if value.__name__ in IMPURE_MODULES:
                raise Untraceable(f"f uses the module {value.__name__}")
            return ("module", value.__name__)
        if isinstance(value, types.MethodType):
            return ("method", self._describe(value.__func__), self._describe(value.__self__))
        if isinstance(value, type | types.BuiltinFunctionType | types.MethodDescriptorType):
            return ("is", value)
        return self._object(value)

    def _tensor(self, value: Tensor) -> Any:
        self.tensors.append(value)
        batch = self._batch
        shape = tuple("B" if n == batch and batch > 1 else n for n in value.shape)
        return ("tensor", shape, value.dtype, value.device, value.layout, type(value))

    def _function(self, value: Any) -> Any:
        if _stable(value):
            return ("is", value)
        cells = []
        for cell in value.__closure__ or ():
            try:
                cells.append(self._describe(cell.cell_contents))
            except ValueError:
                cells.append("empty")
        code = value.__code__
        named = []
        effect = _side_effect(code)
        if effect is not None:
            raise Untraceable(f"{value.__name__} {effect}")
        impure = IMPURE.intersection(names_in(code))
        if impure and not impure <= set(value.__globals__):
            raise Untraceable(f"f calls {', '.join(sorted(impure))}")
        for name in dict.fromkeys(names_in(code)):
            if name in value.__globals__:
                part = value.__globals__[name]
                named.append((name, self._describe(part)))
                if isinstance(part, types.ModuleType) and not _stable_module(part):
                    named.extend(
                        (name, inner, self._describe(part.__dict__[inner]))
                        for inner in dict.fromkeys(names_in(code))
                        if inner in part.__dict__
                    )
        return (
            "function", code, tuple(cells), tuple(named), self._describe(value.__defaults__),
            self._describe(value.__kwdefaults__),
            self._describe(value.__dict__) if value.__dict__ else None,
        )  # fmt: skip

    def _module(self, value: torch.nn.Module) -> Any:
        own = {}
        for name, part in value.__dict__.items():
            if name in PARTS:
                continue
            if name.startswith("_") and isinstance(part, dict) and not part:
                continue
            own[name] = part
        forward = inspect.getattr_static(type(value), "forward", None)
        return (
            "network", type(value), self._describe(forward),
            *(self._mapping(value.__dict__[name]) for name in PARTS), self._mapping(own),
        )  # fmt: skip

    def _mapping(self, value: Mapping[Any, Any]) -> Any:
        return tuple((self._describe(k), self._describe(v)) for k, v in value.items())

    def _object(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, dict | list | tuple | set | frozenset) and len(value) > MOST_ENTRIES:
            raise Untraceable(f"f reaches a {kind.__name__} of {len(value)} entries")
        if isinstance(value, dict):
            return (kind, self._mapping(value))
        if isinstance(value, list | tuple):
            return (kind, *map(self._describe, value))
        if isinstance(value, set | frozenset):
            return (kind, frozenset(map(self._describe, value)))
        if isinstance(value, functools.partial):
            return ("partial", *map(self._describe, (value.func, value.args, value.keywords)))
        if isinstance(value, enum.Enum | np.generic):
            return (kind, value)
        if isinstance(value, np.ndarray):
            if value.size > SMALL or value.dtype == object:
                raise Untraceable("f uses a large numpy array: make it a tensor")
            return (kind, value.shape, str(value.dtype), value.tobytes())
        if kind.__module__.partition(".")[0] in _STABLE:
            if isinstance(value, torch.Generator):
                raise Untraceable("f holds a generator of random numbers")
            return ("is", _Identity(value))
        parts = getattr(value, "__dict__", None)
        if parts is None and not hasattr(kind, "__slots__"):
            return ("is", _Identity(value))
        slots = {
            name: getattr(value, name)
            for cls in kind.__mro__
            for name in _slots(cls)
            if hasattr(value, name)
        }
        call = inspect.getattr_static(kind, "__call__", None)
        return (
            "object", kind, self._describe(call), self._mapping(parts or {}), self._mapping(slots)
        )  # fmt: skip


@functools.cache
def _side_effect(code: types.CodeType) -> str | None:
    """Return what running `code` would change besides its own variables, None if nothing is seen.

    A trace would do that once where every call should.
    """
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in ("STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"):
            return f"writes to {instruction.argval}"
        if name in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in code.co_freevars:
            return f"writes to {instruction.argval}"
        if name in ("LOAD_METHOD", "LOAD_ATTR") and instruction.argval in CHANGING:
            return f"calls {instruction.argval}"
    return None


class _Identity:
    """An object compared by identity, and kept alive so that this means something."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _stable_module(module: types.ModuleType) -> bool:
    return module.__name__.partition(".")[0] in _STABLE


def _stable(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] in _STABLE
