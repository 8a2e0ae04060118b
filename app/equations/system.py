"""Lines of text read as a system of equations, with every fault at its place.

    # a title
    dx = v
    dv = mu * (1 - x**2) * v - x
    mu = 5 in 1..10
    x(0) = 2
    t = 0..20

A line gives the slope of a state (`dx = ...`, `x' = ...` or `dx/dt = ...`), a parameter with an
optional range (`in 1..10`, `in 1..10 log`), where a state starts (`x(0) = ...`), the span of time,
or a name for an expression that others use.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from app.equations.lines import Kind, Line, derived_names, heads, read_line, read_span
from app.equations.tokens import cut, nearest
from app.equations.tree import (
    FUNCTIONS,
    TIME,
    Expression,
    Fault,
    Name,
    Place,
    Refused,
    names_in,
    value_of,
)

MOST_TEXT = 10_000  # characters
MOST_LINES = 200
MOST_LINE = 500
MOST_STATES = 40
MOST_FAULTS = 10
START = 1.0  # of a state that is given none
SPAN = (0.0, 20.0)


@dataclass(frozen=True)
class Parameter:
    """A number that may be changed, or differ between rows.

    Args:
        name: also that of a start: `x0` of the state `x`.
        low, high: range of its slider.
        ranged: whether the text says the range.
        log: whether the range is spaced by factors.
        start_of: the state whose start it is, if it is one.
    """

    name: str
    value: float
    low: float
    high: float
    ranged: bool = False
    log: bool = False
    start_of: str = ""


@dataclass(frozen=True)
class System:
    """A system of equations, all names known.

    Args:
        text: it was read from.
        title: its first comment, else empty.
        states: names, in the order of their equations.
        slopes: one for each state.
        parameters: numbers of the text, then starts.
        definitions: name and expression, each after those it uses.
        starts: of each state, an expression of parameters.
        t0, t1: span of time.
    """

    text: str
    title: str
    states: tuple[str, ...]
    slopes: tuple[Expression, ...]
    parameters: tuple[Parameter, ...]
    definitions: tuple[tuple[str, Expression], ...]
    starts: tuple[Expression, ...]
    t0: float
    t1: float


def is_equations(problem: object) -> bool:
    """Whether what a spec calls its problem is a text of equations, not a name or a file."""
    return isinstance(problem, str) and "=" in problem and ".py:" not in problem


@lru_cache(maxsize=256)
def read(text: str) -> System:
    """Read a system of equations.

    Raises:
        Refused: it is none; the error has every fault, at most `MOST_FAULTS`.
    """
    lines = split(text)
    faults: list[Fault] = []
    said: list[Line] = []
    span: tuple[float, float] | None = None
    derived = derived_names(lines)
    unread: set[str] = set()
    for number, line in enumerate(lines, 1):
        try:
            tokens = cut(line, number)
            if tokens[0].kind == "end":
                continue
            if tokens[0].text == TIME and tokens[1].text in ("=", "in"):
                if span is not None:
                    raise tokens[0].place.refuse("the span of time is given twice")
                span = read_span(tokens)
            else:
                said.append(read_line(tokens, derived))
        except Refused as error:
            faults += error.faults
            unread |= heads(line)
        if len(faults) >= MOST_FAULTS:
            break
    checked = Checked(text, lines, said, span or SPAN)
    if faults:
        faults += checked.unknown(unread)
        faults.sort(key=lambda fault: (fault.line, fault.column))
        raise Refused(faults[:MOST_FAULTS])
    return checked.together()


def split(text: str) -> list[str]:
    """Return the lines of a text that is not too large.

    Raises:
        Refused: it is; at the place where it became so.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    size = 0
    for number, line in enumerate(lines, 1):
        if number > MOST_LINES:
            raise Place(number, 1).refuse(f"more than {MOST_LINES} lines")
        if len(line) > MOST_LINE:
            raise Place(number, MOST_LINE + 1).refuse(
                f"a line of {len(line)} characters: at most {MOST_LINE}"
            )
        size += len(line) + 1
        if size > MOST_TEXT + 1:
            raise Place(number, 1).refuse(f"more than {MOST_TEXT} characters in all")
    return lines


class Checked:
    """What all lines say, put together; finds what does not fit."""

    def __init__(
        self, text: str, lines: list[str], said: list[Line], span: tuple[float, float]
    ) -> None:
        self.text, self.span = text, span
        self.title = title_of(lines)
        self.faults: list[Fault] = []
        self.of: dict[Kind, dict[str, Line]] = {
            "slope": {}, "start": {}, "parameter": {}, "definition": {},
        }  # fmt: skip
        for line in said:
            if line.name in self.of[line.kind]:
                self.fault(line.place, f"`{line.name}` is given twice")
            self.of[line.kind].setdefault(line.name, line)
        self.states = tuple(self.of["slope"])

    def fault(self, place: Place, text: str) -> None:
        """Note a fault."""
        if len(self.faults) < MOST_FAULTS:
            self.faults += place.refuse(text).faults

    def unknown(self, unread: set[str]) -> list[Fault]:
        """Return the names that nothing explains, though some lines could not be read.

        Args:
            unread: names that those lines may explain.
        """
        self.faults = []
        known = {name for lines in self.of.values() for name in lines} | unread | {TIME}
        known |= {f"{state}0" for state in self.states}
        for line in (*self.of["slope"].values(), *self.of["definition"].values()):
            self.names_are_known(line, known)
        return self.faults

    def together(self) -> System:
        """Return the system.

        Raises:
            Refused: something does not fit.
        """
        if not self.states:
            self.fault(Place(1, 1), "no equation: the slope of a state is written dx = ...")
        if len(self.states) > MOST_STATES:
            line = self.of["slope"][self.states[MOST_STATES]]
            self.fault(line.place, f"more than {MOST_STATES} states")
        self.names_that_clash()
        parameters = self.parameters()
        known = {p.name for p in parameters} | set(self.of["definition"]) | set(self.states)
        for line in (*self.of["slope"].values(), *self.of["definition"].values()):
            self.names_are_known(line, known | {TIME})
        for line in self.of["start"].values():
            self.start_is_known(line, {p.name for p in parameters})
        definitions = self.definitions()
        if self.faults:
            self.faults.sort(key=lambda fault: (fault.line, fault.column))
            raise Refused(self.faults)
        own = {p.start_of: Name(p.name, Place(1, 1)) for p in parameters if p.start_of}
        starts = tuple(own[s] if s in own else self.of["start"][s].tree for s in self.states)
        slopes = tuple(self.of["slope"][s].tree for s in self.states)
        return System(
            self.text, self.title, self.states, slopes, parameters, definitions, starts, *self.span
        )

    def names_that_clash(self) -> None:
        """Note names that are two things."""
        for kind in ("parameter", "definition"):
            for name, line in self.of[kind].items():
                other = "definition" if kind == "parameter" else "parameter"
                if name in self.states:
                    self.fault(line.place, f"`{name}` is a state: its start is written {name}(0)")
                elif kind == "definition" and name in self.of[other]:
                    self.fault(line.place, f"`{name}` is given twice")

    def parameters(self) -> tuple[Parameter, ...]:
        """Return all parameters: of the text in its order, then starts that are numbers."""
        starts = {f"{state}0": state for state in self.states}
        found: dict[str, Parameter] = {}
        for name, line in self.of["parameter"].items():
            state = starts.get(name, "")
            if state and state in self.of["start"]:
                state = ""  # x(0) = 2 * x0
            found[name] = parameter(name, line, state)
        taken = set(found) | set(self.of["definition"]) | set(self.states)
        for name, state in starts.items():
            line = self.of["start"].get(state)
            if line is not None and value_of(line.tree) is None:
                continue
            if line is not None and name in taken:
                self.fault(line.place, f"the start of `{state}` is called `{name}`, which is taken")
            elif name not in taken:
                found[name] = parameter(name, line, state)
        order = [*(p for p in found.values() if not p.start_of)]
        return (*order, *(p for p in found.values() if p.start_of))

    def names_are_known(self, line: Line, known: set[str]) -> None:
        """Note names in an expression that nothing explains."""
        for name in names_in(line.tree):
            if name.name in known:
                continue
            text = f"there is no `{name.name}`"
            if name.name[:1] == "d" and name.name[1:] in self.states:
                text += f": it is the slope of `{name.name[1:]}`, write its right side out"
            else:
                text += nearest(name.name, known | set(FUNCTIONS)) or f": say {name.name} = 1"
            self.fault(name.place, text)

    def start_is_known(self, line: Line, parameters: set[str]) -> None:
        """Note a start of what is no state, or one that needs more than parameters."""
        if line.name not in self.states:
            self.fault(
                line.place, f"there is no state `{line.name}`{nearest(line.name, self.states)}"
            )
        for name in names_in(line.tree):
            if name.name not in parameters:
                more = nearest(name.name, parameters)
                self.fault(name.place, f"a start is made of numbers and parameters{more}")

    def definitions(self) -> tuple[tuple[str, Expression], ...]:
        """Return the definitions, each after those it uses; notes one that uses itself."""
        of, order, on_way = self.of["definition"], dict[str, Expression](), set[str]()

        def visit(name: str) -> Iterator[str]:
            """Yield what has to be visited first."""
            yield from (used.name for used in names_in(of[name].tree) if used.name in of)

        for first in of:
            waiting: list[tuple[str, Iterator[str]]] = []
            if first not in order:
                on_way.add(first)
                waiting.append((first, visit(first)))
            while waiting:
                name, needs = waiting[-1]
                needed = next((n for n in needs if n not in order), None)
                if needed is None:
                    order[name] = of[name].tree
                    on_way.discard(name)
                    waiting.pop()
                elif needed in on_way:
                    self.fault(of[needed].place, f"`{needed}` is used to say what it is itself")
                    return ()
                else:
                    on_way.add(needed)
                    waiting.append((needed, visit(needed)))
        return tuple(order.items())


def parameter(name: str, line: Line | None, start_of: str) -> Parameter:
    """Return a parameter; one without a range gets one around its value."""
    value = value_of(line.tree) if line is not None else None
    value = START if value is None else value
    if line is not None and line.span is not None:
        return Parameter(name, value, *line.span, ranged=True, log=line.log, start_of=start_of)
    reach = 3 * abs(value) or 1.0
    low = -reach if start_of or value <= 0 else 0.0
    high = reach if start_of or value >= 0 else 0.0
    return Parameter(name, value, low, high, start_of=start_of)


def title_of(lines: list[str]) -> str:
    """Return the first comment that has a line of its own, as far as it can be shown."""
    for line in lines:
        text = line.strip()
        if text.startswith("#") and text.strip("# "):
            shown = "".join(c for c in text.strip("# ") if c.isprintable())
            return shown[:80]
        if text:
            break
    return ""
