"""Bounds of a setting: checked where it is made, and what a slider is drawn from."""

import copy
import dataclasses
import math
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from solver.errors import InvalidArgument, InvalidType


@dataclass(frozen=True)
class Bounds:
    """Closed interval a number must lie in.

    Args:
        low, high: smallest and largest allowed value, in the setting's own unit.
        step: what one press of an arrow key changes; None lets the widget choose.
        scale: how a slider should be spaced.
    """

    low: float
    high: float
    step: float | None = None
    scale: Literal["linear", "log"] = "linear"


@dataclass(frozen=True)
class Help:
    """One line that says what a setting does, shown beside its widget."""

    text: str


def check_bounds(settings: Any) -> None:
    """Check every annotated field of a settings dataclass; meant as its `__post_init__`.

    Raises:
        InvalidArgument: a number is outside its bounds, or a choice is not among the allowed ones.
        InvalidType: a number field holds something that is no number.
    """
    owner = type(settings).__name__
    for field in _described(type(settings)):
        name, value = field["name"], getattr(settings, field["name"])
        if field["type"] == "choice":
            if value not in field["choices"]:
                allowed = ", ".join(repr(choice) for choice in field["choices"])
                raise InvalidArgument(f"{owner}({name}={value!r}): must be one of {allowed}")
        elif field["type"] in ("float", "int"):
            if value is None and field["optional"]:
                continue
            whole = field["type"] == "int"
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                kind = "a whole number" if whole else "a number"
                raise InvalidType(f"{owner}({name}={value!r}): must be {kind}")
            low, high = field["low"], field["high"]
            if low is not None and not (low <= value <= high and math.isfinite(value)):
                raise InvalidArgument(
                    f"{owner}({name}={value!r}): must be between {low} and {high}"
                )
        elif field["type"] == "bool" and not isinstance(value, bool):
            raise InvalidType(f"{owner}({name}={value!r}): must be True or False")


def describe_settings(cls: type) -> list[dict[str, Any]]:
    """List the fields of a settings dataclass as plain JSON values, in order.

    Each entry has `name, type, default, low, high, step, scale, choices, help, optional`; `type` is
    one of `"float"`, `"int"`, `"bool"`, `"choice"`, `"str"`.
    """
    return copy.deepcopy(_described(cls))


@cache
def _described(cls: type) -> list[dict[str, Any]]:
    hints = get_type_hints(cls, include_extras=True)
    described = []
    for field in dataclasses.fields(cls):
        hint, bounds, text = hints[field.name], None, ""
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
            bounds = next((extra for extra in extras if isinstance(extra, Bounds)), None)
            text = next((extra.text for extra in extras if isinstance(extra, Help)), "")
        optional = NoneType in get_args(hint) and get_origin(hint) is not Literal
        if optional:
            (hint,) = (part for part in get_args(hint) if part is not NoneType)
        choices = list(get_args(hint)) if get_origin(hint) is Literal else None
        kinds: dict[Any, str] = {float: "float", int: "int", bool: "bool"}
        default = None if field.default is dataclasses.MISSING else field.default
        described.append(
            {
                "name": field.name,
                "type": "choice" if choices else kinds.get(hint, "str"),
                "default": default,
                "low": bounds.low if bounds else None,
                "high": bounds.high if bounds else None,
                "step": bounds.step if bounds else None,
                "scale": bounds.scale if bounds else "linear",
                "choices": choices,
                "help": text,
                "optional": optional,
            }
        )
    return described
