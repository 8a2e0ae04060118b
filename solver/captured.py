"""The tensors that a vector field is seen to use: whether a solve needs autograd's graph."""

import contextlib
import functools
import inspect
from collections.abc import Iterable, Iterator
from itertools import islice
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor

# A closure may hold a whole data set: look at so many objects, and so many of one container.
MOST_OBJECTS = 10_000
MOST_ENTRIES = 1_000
_OF_EVERY_MODULE = frozenset(torch.nn.Module().__dict__)
_PLAIN = (str, bytes, int, float, complex, type(None), type, ModuleType)


def captured_tensors(value: Any, *, of_modules_only: bool = False) -> Iterator[Tensor]:
    """Yield the tensors reachable from a callable or container.

    Parameters, buffers and attributes of modules, attributes of other objects, closures, default
    arguments, bound objects, globals that a function names, and what containers hold.

    Args:
        of_modules_only: yield nothing but parameters and buffers of modules.
    """
    seen: set[int] = set()
    waiting = [value]
    while waiting and len(seen) < MOST_OBJECTS:
        part = waiting.pop()
        if isinstance(part, _PLAIN) or id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Tensor):
            if not of_modules_only:
                yield part
        elif isinstance(part, torch.nn.Module):
            yield from part.parameters()
            yield from part.buffers()
            for module in part.modules():
                seen.add(id(module))
                waiting.extend(_parts_of_module(module))
        else:
            waiting.extend(islice(_parts(part), MOST_ENTRIES))


def _parts(value: Any) -> Iterable[Any]:
    """Return what `value` holds, one level deep."""
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, functools.partial):
        return (value.func, value.args, value.keywords)
    if inspect.ismethod(value):
        return (value.__self__, value.__func__)
    if inspect.isfunction(value):
        return _parts_of_function(value)
    return () if _is_torchs(type(value)) else _parts_of_object(value)


def _is_torchs(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] == "torch"


def _parts_of_module(module: torch.nn.Module) -> Iterator[Any]:
    """Yield attributes that are neither parameters, buffers nor modules, and globals it names."""
    if _is_torchs(type(module)):
        return
    for name, part in module.__dict__.items():
        if name not in _OF_EVERY_MODULE:
            yield part
    yield getattr(type(module), "forward", None)


def _parts_of_object(value: Any) -> Iterator[Any]:
    if callable(value):
        yield type(value).__call__
    yield from getattr(value, "__dict__", {}).values()
    for cls in inspect.getmro(type(value)):
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(value, name, None)


def _parts_of_function(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a cell that is still empty
            yield cell.cell_contents
    yield from (function.__defaults__, function.__kwdefaults__, function.__dict__)
    if not _is_torchs(function):
        for name in names_in(function.__code__):
            yield function.__globals__.get(name)


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the global names and attributes that the code and functions made in it use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)
