"""One line of equations read: what it says, of which name."""

import re
from dataclasses import dataclass
from typing import Literal

from app.equations.grammar import Reader
from app.equations.tokens import Token, cut, nearest
from app.equations.tree import (
    CONSTANTS,
    FUNCTIONS,
    TIME,
    Expression,
    Place,
    Refused,
    is_truth,
    value_of,
)

Kind = Literal["slope", "start", "parameter", "definition"]


@dataclass(frozen=True)
class Line:
    """What one line says."""

    kind: Kind
    name: str  # of the state for a slope or start
    tree: Expression
    place: Place
    span: tuple[float, float] | None = None  # after `in`
    log: bool = False
    written: str = ""  # what stands on the left, where `dname` may be a name of its own


def heads(line: str) -> set[str]:
    """Return what a line that cannot be read may have been going to explain."""
    found = re.match(r"\s*([A-Za-z]\w{0,30})", line)
    name = found[1] if found else ""
    return {name, name[1:], f"{name}0", f"{name[1:]}0"} if name else set()


def derived_names(lines: list[str]) -> set[str]:
    """Return the names `dx` that are derivatives, not names of their own such as `damping`.

    `damping = 0.2` is a parameter where some line uses `damping`, or a name like it that nothing
    explains, and none the state `amping`.
    """
    left: set[str] = set()
    heads: set[str] = set()
    used: set[str] = set()
    for number, line in enumerate(lines, 1):
        try:
            tokens = cut(line, number)
        except Refused:
            continue
        if tokens[0].kind != "name":
            continue
        head = tokens[0].text
        heads.add(head)
        if tokens[1].text == "(":  # x(0) = ...
            used.add(head)
        elif head[0] == "d" and len(head) > 1 and tokens[1].text == "=":
            ranged = any(token.kind == "name" and token.text == "in" for token in tokens[2:])
            left |= set() if ranged else {head}
        used |= {token.text for token in tokens[2:] if token.kind == "name"}
    unknown = used - heads - {head[1:] for head in left} - set(FUNCTIONS) - set(CONSTANTS) - {TIME}
    found = {name for name in left if name[1:] in used or name not in used}
    meant = {name for name in found if name[1:] not in used and nearest(name, unknown)}
    return found - {name for name in meant if len(name) > 3}


def read_line(tokens: list[Token], derived: set[str]) -> Line:
    """Read a line that says something of a name.

    Raises:
        Refused: it says nothing that is understood.
    """
    reader = Reader(tokens)
    head = tokens[0]
    if head.kind != "name":
        raise head.place.refuse(
            f"{head.seen} where a line begins with a name, as in dx = ..., mu = 5 or x(0) = 1"
        )
    reader.at = 1
    kind, name = "definition", head.text
    if reader.take("'"):
        kind = "slope"
    elif reader.next.text == "/" and name.startswith("d") and tokens[2].text == "dt":
        kind, name, reader.at = "slope", name[1:], 3
    elif reader.take("("):
        kind = "start"
        zero = reader.next
        if zero.kind != "number":
            raise zero.place.refuse(f"{zero.seen} where a start is written {name}(0) = ...")
        reader.at += 1
        reader.need(")", f"a start is written {name}(0) = ...")
    elif name in derived:
        kind, name = "slope", name[1:]
    reader.need("=", "a line says `name = ...`")
    refuse_taken(name, head.place)
    tree = reader.expression()
    span, log = None, False
    if reader.next.kind == "name" and reader.next.text == "in" and kind in ("definition", "start"):
        where = reader.next.place
        reader.at += 1
        span = read_range(reader)
        log = bool(reader.take("log"))
        if log and span[0] <= 0:
            raise where.refuse(f"a range from {span[0]:g} cannot be `log`: it must be above 0")
    reader.end()
    if is_truth(tree):
        raise tree.place.refuse(
            "a comparison where a number is needed: where(x > 0, 1, 0) makes one of it"
        )
    value = value_of(tree)
    if kind == "definition" and value is not None:
        kind = "parameter"
    if span is not None:
        if value is None:
            raise tree.place.refuse("a range needs a number before it, as in mu = 5 in 1..10")
        if not span[0] <= value <= span[1]:
            raise tree.place.refuse(
                f"{value:g} is outside its own range, {span[0]:g} to {span[1]:g}"
            )
    return Line(kind, name, tree, head.place, span, log, head.text)


def refuse_taken(name: str, place: Place) -> None:
    """Refuse names that mean something already.

    Raises:
        Refused: this one does.
    """
    if name == TIME:
        raise place.refuse("`t` is the time; its span is written t = 0..20")
    if name in FUNCTIONS:
        raise place.refuse(f"`{name}` is a function and cannot be given a value")
    if name in CONSTANTS:
        raise place.refuse(f"`{name}` is the number {CONSTANTS[name]:.6g} and cannot be changed")
    if name in ("and", "or", "not", "in"):
        raise place.refuse(f"`{name}` is a word of the language and no name")


def read_range(reader: Reader) -> tuple[float, float]:
    """Read `1..10`; both ends are constants and rise.

    Raises:
        Refused: they do not.
    """
    place = reader.next.place
    low = constant(reader.sum())
    reader.need("..", "a range is written 1..10")
    high = constant(reader.sum())
    if not low < high:
        raise place.refuse(f"the range {low:g}..{high:g} does not rise")
    return low, high


def constant(tree: Expression) -> float:
    """Return the value of an expression that must be a number.

    Raises:
        Refused: it is none.
    """
    value = value_of(tree)
    if value is None:
        raise tree.place.refuse("a number is needed here")
    return value


def read_span(tokens: list[Token]) -> tuple[float, float]:
    """Read the span of time: `t = 0..20`."""
    reader = Reader(tokens)
    reader.at = 2
    span = read_range(reader)
    reader.end()
    return span
