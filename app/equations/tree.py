"""What a typed expression becomes: a tree of numbers, names and known operations."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

MOST_EXPONENT = 100.0  # constant powers, either sign
CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e}
TIME = "t"


@dataclass(frozen=True)
class Fault:
    """What is wrong at one place of a text.

    Args:
        line, column: counted from 1.
        length: of what is wrong, in characters, at least 1.
        text: what was seen, what is allowed, and what may have been meant.
    """

    line: int
    column: int
    length: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.text}"


class Refused(ValueError):
    """A text that is no system of equations; `faults` has every place."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults


@dataclass(frozen=True)
class Place:
    """Where something stands in the text, counted from 1."""

    line: int
    column: int
    length: int = 1

    def refuse(self, text: str) -> Refused:
        """Return the error that says so."""
        return Refused([Fault(self.line, self.column, self.length, text)])


@dataclass(frozen=True)
class Number:
    """A constant; `word` is its name if it was written by one."""

    value: float
    place: Place
    word: str = ""


@dataclass(frozen=True)
class Name:
    """A state, parameter, definition, or `t`."""

    name: str
    place: Place


@dataclass(frozen=True)
class Apply:
    """An operation on expressions: a key of `OPERATIONS`; with its value where that is known."""

    operation: str
    parts: "tuple[Expression, ...]"
    place: Place
    value: float | None = None


Expression = Number | Name | Apply


@dataclass(frozen=True)
class Operation:
    """What an operation is.

    Args:
        number: its value on numbers, for constants.
        least, most: how many parts it takes.
        truth: whether it gives true or false.
        of_truth: which of its parts must be true or false.
    """

    number: Callable[..., float]
    least: int = 1
    most: int = 1
    truth: bool = False
    of_truth: tuple[int, ...] = ()


FUNCTIONS: Mapping[str, Operation] = {
    "sin": Operation(math.sin),
    "cos": Operation(math.cos),
    "tan": Operation(math.tan),
    "asin": Operation(math.asin),
    "acos": Operation(math.acos),
    "atan": Operation(math.atan),
    "sinh": Operation(math.sinh),
    "cosh": Operation(math.cosh),
    "tanh": Operation(math.tanh),
    "exp": Operation(math.exp),
    "log": Operation(math.log),
    "log10": Operation(math.log10),
    "sqrt": Operation(math.sqrt),
    "abs": Operation(math.fabs),
    "sign": Operation(lambda x: float((x > 0) - (x < 0))),
    "floor": Operation(lambda x: float(math.floor(x))),
    "atan2": Operation(math.atan2, 2, 2),
    "min": Operation(min, 2, 8),
    "max": Operation(max, 2, 8),
    "where": Operation(lambda c, a, b: a if c else b, 3, 3, of_truth=(0,)),
}
"""What may be called, by name."""

OPERATIONS: Mapping[str, Operation] = {
    **FUNCTIONS,
    "+": Operation(lambda a, b: a + b, 2, 2),
    "-": Operation(lambda a, b: a - b, 2, 2),
    "*": Operation(lambda a, b: a * b, 2, 2),
    "/": Operation(lambda a, b: a / b, 2, 2),
    "**": Operation(lambda a, b: math.pow(a, b), 2, 2),
    "neg": Operation(lambda a: -a),
    "<": Operation(lambda a, b: a < b, 2, 2, True),
    "<=": Operation(lambda a, b: a <= b, 2, 2, True),
    ">": Operation(lambda a, b: a > b, 2, 2, True),
    ">=": Operation(lambda a, b: a >= b, 2, 2, True),
    "and": Operation(lambda a, b: a and b, 2, 2, True, (0, 1)),
    "or": Operation(lambda a, b: a or b, 2, 2, True, (0, 1)),
    "not": Operation(lambda a: not a, 1, 1, True, (0,)),
}
"""Everything an `Apply` may be."""


def is_truth(tree: Expression) -> bool:
    """Whether an expression is true or false rather than a number."""
    return isinstance(tree, Apply) and OPERATIONS[tree.operation].truth


def value_of(tree: Expression) -> float | None:
    """Return the value of a constant expression, None for others."""
    return None if isinstance(tree, Name) else tree.value


def apply(operation: str, parts: tuple[Expression, ...], place: Place) -> Expression:
    """Return an operation on parts, with its value if all parts are constant.

    Raises:
        Refused: wrong count or kind of parts, too large a power, or a constant that is no number.
    """
    known = OPERATIONS[operation]
    if not known.least <= len(parts) <= known.most:
        wanted = str(known.least) if known.least == known.most else f"{known.least} to {known.most}"
        plural = "" if wanted == "1" else "s"
        raise place.refuse(f"{operation} takes {wanted} value{plural}, {len(parts)} given")
    for at, part in enumerate(parts):
        if is_truth(part) != (at in known.of_truth):
            wanted = "a comparison such as x > 0" if at in known.of_truth else "a number"
            seen = "a comparison" if is_truth(part) else "a number"
            more = "" if at in known.of_truth else "; where(x > 0, 1, 0) makes one of a comparison"
            raise part.place.refuse(f"{seen} where `{operation}` takes {wanted}{more}")
    power = value_of(parts[1]) if operation == "**" else None
    if power is not None and abs(power) > MOST_EXPONENT:
        raise parts[1].place.refuse(
            f"power {power:g}: constant powers lie in -{MOST_EXPONENT:g} to {MOST_EXPONENT:g}"
        )
    values = [value_of(part) for part in parts]
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(parts):
        return Apply(operation, parts, place)
    try:
        value = float(known.number(*numbers))
    except (ArithmeticError, ValueError):  # 1 / 0, log(-1), exp(1000)
        value = math.nan
    if not math.isfinite(value):
        raise place.refuse(f"{shown(operation, numbers)} is no finite number")
    return Apply(operation, parts, place, value)


def shown(operation: str, numbers: list[float]) -> str:
    """Return an operation on numbers as people write it."""
    texts = [f"{number:g}" for number in numbers]
    if operation in FUNCTIONS:
        return f"{operation}({', '.join(texts)})"
    return f"-{texts[0]}" if len(texts) == 1 else f" {operation} ".join(texts)


def names_in(tree: Expression) -> list[Name]:
    """Return every name an expression uses, in reading order."""
    if isinstance(tree, Name):
        return [tree]
    if isinstance(tree, Apply):
        return [name for part in tree.parts for name in names_in(part)]
    return []
