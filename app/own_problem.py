"""Typed equations as problems the solver takes; and any problem by what a spec calls it."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from app.equations.about import describe_system
from app.equations.system import System, is_equations, read
from app.equations.tree import TIME, Expression, Name, Number, value_of
from sample_problems import catalogue
from sample_problems.base import Parameters, SampleProblem
from solver.errors import InvalidArgument, InvalidType

FORMS: Mapping[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "neg": operator.neg,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": torch.logical_and,
    "or": torch.logical_or,
    "not": torch.logical_not,
    "where": torch.where,
    "min": torch.minimum,
    "max": torch.maximum,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "log": torch.log,
    "log10": torch.log10,
    "sqrt": torch.sqrt,
    "abs": torch.abs,
    "sign": torch.sign,
    "floor": torch.floor,
    "atan2": torch.atan2,
}
"""What an operation does with tensors `(B,)`; the only things a text can make happen."""
TENSORS_ONLY = frozenset(("where", "min", "max", "atan2", "and", "or", "not"))
"""Operations that take no bare number beside a tensor."""


@dataclass(frozen=True)
class Constant:
    """A number among the parts of an operation."""

    value: float


Part = int | Constant  # place among the values, or a number


@dataclass(frozen=True)
class Step:
    """One operation; its result becomes the next value."""

    form: Callable[..., Any]
    parts: tuple[Part, ...]
    tensors_only: bool


class Program:
    """Expressions as a flat list of operations; each is done once, however often it is used.

    Args:
        names: of the values a call is given, in their order.
        definitions: names for expressions, each after those it uses.
        results: expressions of what a call returns.
    """

    def __init__(
        self,
        names: Sequence[str],
        definitions: Sequence[tuple[str, Expression]],
        results: Sequence[Expression],
    ) -> None:
        self.steps: tuple[Step, ...] = ()
        known: dict[tuple[str, tuple[Part, ...]], int] = {}
        places: dict[str, Part] = {name: place for place, name in enumerate(names)}

        def put(tree: Expression) -> Part:
            """Add what an expression needs, and return where its value is."""
            value = value_of(tree)
            if value is not None or isinstance(tree, Number):
                return Constant(value or 0.0)
            if isinstance(tree, Name):
                return places[tree.name]
            parts = tuple(map(put, tree.parts))
            if tree.operation in ("min", "max"):  # of several: two by two
                place: Part = parts[0]
                for part in parts[1:]:
                    place = add(tree.operation, (place, part))
                return place
            if tree.operation == "**" and isinstance(parts[1], Constant):
                power = parts[1].value
                parts = (parts[0], Constant(int(power) if power.is_integer() else power))
            return add(tree.operation, parts)

        def add(operation: str, parts: tuple[Part, ...]) -> int:
            key = (operation, parts)
            if key not in known:
                step = Step(FORMS[operation], parts, operation in TENSORS_ONLY)
                known[key] = len(names) + len(self.steps)
                self.steps = (*self.steps, step)
            return known[key]

        for name, tree in definitions:
            places[name] = put(tree)
        self.results = tuple(map(put, results))

    def __call__(self, given: Sequence[Tensor]) -> list[Tensor]:
        """Return the results, `(B,)` each, from values `(B,)` in the order of the names."""
        values, like = list(given), given[0]

        def tensor(part: Part) -> Tensor:
            if isinstance(part, Constant):
                return torch.full_like(like, part.value)
            return values[part]

        for step in self.steps:
            parts = [
                part.value if isinstance(part, Constant) and not step.tensors_only else tensor(part)
                for part in step.parts
            ]
            values += [step.form(*parts)]
        return [tensor(part) for part in self.results]


@dataclass(frozen=True, kw_only=True)
class EquationsProblem(SampleProblem):
    """A problem given by a text; every text has a class of its own, made by `problem_class`.

    Args:
        values: of parameters and starts, where they differ from those of the text.
    """

    system: ClassVar[System]
    slopes: ClassVar[Program]
    starts: ClassVar[Program]

    values: Mapping[str, float]

    def __post_init__(self) -> None:
        """Refuse what is no value of a parameter of this text."""
        known = {p.name: p for p in self.system.parameters}
        for name, value in self.values.items():
            if name not in known:
                raise InvalidArgument(
                    f"the equations have no parameter {name!r}: they have {', '.join(known)}"
                )
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InvalidType(f"parameter {name}={value!r}: must be a number")
            low, high = known[name].low, known[name].high
            if not (math.isfinite(value) and low <= value <= high):
                raise InvalidArgument(
                    f"parameter {name}={value!r}: must be between {low:g} and {high:g}"
                )

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the slopes, `(B, D)`."""
        given = [*y.unbind(-1), *(p[name] for name in self.spread_choices()), t.to(y.dtype)]
        return torch.stack(self.slopes(given), dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Return what the text says of the starts, `(B, D)`."""
        return torch.stack(self.starts([p[name] for name in self.spread_choices()]), dim=-1)

    def settings(self) -> dict[str, Any]:
        """Return parameters and starts by name."""
        return {p.name: p.value for p in self.system.parameters} | dict(self.values)

    @classmethod
    def spread_choices(cls) -> list[str]:
        """Return the names of parameters and starts."""
        return [parameter.name for parameter in cls.system.parameters]

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Return what a page needs to offer these equations."""
        return describe_system(cls.system)


@lru_cache(maxsize=64)
def problem_class(text: str) -> type[EquationsProblem]:
    """Return the problem a text describes; the same class for the same text.

    Raises:
        Refused: the text is no system of equations.
    """
    system = read(text)
    names = [parameter.name for parameter in system.parameters]
    body: dict[str, Any] = {
        "system": system,
        "slopes": Program([*system.states, *names, TIME], system.definitions, system.slopes),
        "starts": Program(names, (), system.starts),
        "__module__": __name__,
        "__doc__": system.title or None,
    }
    told = describe_system(system)
    body |= {
        key: told[key]
        for key in ("name", "title", "question", "latex", "source", "t0", "t1", "batch", "spread")
    }
    body |= {key: told[key] for key in ("rtol", "atol", "method", "presets")}
    body |= {"components": system.states, "phase": told["phase"] and tuple(told["phase"])}
    return type("Equations", (EquationsProblem,), body)


def problem_by_name(name: str, parameters: Mapping[str, Any] | None = None) -> SampleProblem:
    """Return the problem that a spec calls so: by name, file of one's own, or text of equations.

    Args:
        name: what to look up.
        parameters: values that differ from the defaults.

    Raises:
        KeyError: there is none of that name; the message has the nearest.
        Refused: the equations cannot be read; the message has every place.
        InvalidArgument: a parameter is outside its bounds, or there is no such parameter.
    """
    if is_equations(name):
        return problem_class(name)(values=dict(parameters or {}))
    return catalogue.problem_by_name(name, parameters)
