"""Methods, controllers and statistics by name, found by scanning their folders when asked for."""

import dataclasses
import importlib
import inspect
import json
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from solver.controllers.base import Controller, normalised
from solver.errors import (
    InvalidArgument,
    InvalidType,
    UnknownAdjoint,
    UnknownController,
    UnknownMethod,
    UnknownName,
    UnknownStatistic,
)

if TYPE_CHECKING:
    from solver.adjoints.base import Adjoint
    from solver.methods.base import Method
    from solver.statistics.base import Statistic

CONTROLLER_ALIASES = {"i": "integral"}


T = TypeVar("T")


@cache
def members(package: str, base: type[T]) -> dict[str, type[T]]:
    """Return the classes of a family by their `name`: subclasses of `base`, not abstract, one a
    file.

    Raises:
        RuntimeError: two of them have the same name.
    """
    found: dict[str, type[T]] = {}
    for module_info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        module = importlib.import_module(f"{package}.{module_info.name}")
        for cls in vars(module).values():
            if not (inspect.isclass(cls) and issubclass(cls, base)):
                continue
            if cls.__module__ != module.__name__ or not getattr(cls, "__final__", False):
                continue
            name: str = vars(cls)["name"]
            if name in found:
                raise RuntimeError(f"{cls} and {found[name]} are both named {name!r}")
            found[name] = cls
    return dict(sorted(found.items()))


def methods() -> dict[str, type["Method"]]:
    """Return every method class by name."""
    from solver.methods.base import Method

    return dict(members("solver.methods", Method))


def method_by_name(name: str) -> "Method":
    """Return the method of that name with its default settings.

    Raises:
        UnknownMethod: there is none; the message has the nearest name.
    """
    return _lookup(methods(), name, UnknownMethod)()


def statistics() -> dict[str, type["Statistic"]]:
    """Return every statistic class by name."""
    from solver.statistics.base import Statistic

    return dict(members("solver.statistics", Statistic))


def statistic_by_name(name: str) -> "Statistic":
    """Return the statistic of that name.

    Raises:
        UnknownStatistic: there is none; the message has the nearest name.
    """
    return _lookup(statistics(), name, UnknownStatistic)()


def adjoints() -> dict[str, type["Adjoint"]]:
    """Return every adjoint class by name."""
    from solver.adjoints.base import Adjoint

    return dict(members("solver.adjoints", Adjoint))


def adjoint_by_name(name: str) -> "Adjoint":
    """Return the adjoint of that name, with the settings written behind it if there are any.

    `"symplectic"`, `"symplectic:keep=graphs"`, `"continuous:seminorm=false,rtol=1e-8"`.

    Raises:
        UnknownAdjoint: there is none; the message has the nearest name.
        InvalidArgument: a setting is outside its bounds, or there is no such setting.
    """
    plain, _, written = _text(name, "adjoint").partition(":")
    cls = _lookup(adjoints(), plain, UnknownAdjoint)
    settings: dict[str, Any] = {}
    known = [field.name for field in dataclasses.fields(cls)]
    for part in filter(None, written.split(",")):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals or key not in known:
            raise InvalidArgument(
                f"adjoint {name!r}: {part!r} is no setting of it, "
                f"it has {', '.join(known) or 'none'}, written as name=value"
            )
        try:
            settings[key] = json.loads(value)
        except ValueError:
            settings[key] = value
    return cls(**settings)


def controllers() -> dict[str, type[Controller[Any]]]:
    """Return every controller class by name."""
    return dict(members("solver.controllers", Controller))


def controller_by_name(name: str, settings: Mapping[str, Any] | None = None) -> Controller[Any]:
    """Return the controller, or published preset of one, of that name.

    Case, dots, dashes and underscores do not matter: `"pid"`, `"I"`, `"h211b"`, `"PI.4.2"`,
    `"hairer_dopri5"`.

    Args:
        name: what to look up.
        settings: values that differ from the default or the preset.

    Raises:
        UnknownController: there is none; the message has the nearest name.
        InvalidArgument: a setting is outside its bounds, or there is no such setting.
    """
    known = controllers()
    changes = dict(settings or {})
    key = normalised(_text(name, "controller"))
    key = CONTROLLER_ALIASES.get(key, key)
    for cls in known.values():
        if normalised(cls.name) == key:
            return cls.with_settings(changes)
    for cls in known.values():
        if any(normalised(preset) == key for preset in cls.presets):
            return cls.preset(key, **changes)
    presets = [preset for cls in known.values() for preset in cls.presets]
    raise UnknownController.among(name, {*known, *CONTROLLER_ALIASES, *presets})


def _lookup(known: Mapping[str, type], name: str, error: type[UnknownName]) -> type:
    found = known.get(_text(name, error.kind).lower())
    if found is None:
        raise error.among(name, known)
    return found


def _text(name: object, kind: str) -> str:
    if not isinstance(name, str):
        raise InvalidType(f"{kind} must be a name (str), not {type(name).__name__}")
    return name
