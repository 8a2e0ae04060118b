"""What a rule is, what it finds, and where the rules are."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from inspector.diagnosis.case import Case

Certainty = Literal["measured", "likely", "possible"]
CERTAINTIES: tuple[Certainty, ...] = ("measured", "likely", "possible")
MOST_ROWS = 8  # named in a finding


@dataclass(frozen=True)
class Finding:
    """One thing that limits a solve.

    Args:
        evidence: what was seen, in one sentence with its numbers.
        certainty: "measured": the records show the cause itself; "likely": they show what it
            leads to; "possible": it may matter, a rerun would tell.
        advice: what to do, one or two sentences.
        rows: instances where it was seen, the clearest first.
        times: stretches of time where it was seen.
        numbers: what it was judged by.
        change: entries of a spec to change, so that it can be tried; None where no setting of a
            spec does it.
        weight: share of the cost that is at stake, 0 to 1, for ranking.
        rule, title, solve: filled in by `diagnose`.
    """

    evidence: str
    certainty: Certainty
    advice: str
    rows: tuple[int, ...] = ()
    times: tuple[tuple[float, float], ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    change: Mapping[str, Any] | None = None
    weight: float = 0.0
    rule: str = ""
    title: str = ""
    solve: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return dataclasses.asdict(self) | {
            "rows": list(self.rows),
            "times": [list(stretch) for stretch in self.times],
            "numbers": dict(self.numbers),
            "change": None if self.change is None else dict(self.change),
        }


@dataclass(frozen=True)
class Rule:
    """One rule: a function of a case, and what it needs to know.

    Args:
        name: what it is called in reports and switched off by.
        title: what it finds, a short sentence.
        look: yields findings.
        columns: statistics it cannot do without; where a run has none of them the report says so.
        whole_run: whether it looks at the run as a whole, once, not at each solve.
    """

    name: str
    title: str
    look: "Callable[[Case], Iterable[Finding]]"
    columns: tuple[str, ...] = ()
    whole_run: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """All that was found, the costliest first, and what could not be judged."""

    findings: tuple[Finding, ...]
    not_judged: Mapping[str, str]  # rule -> why
    solves: tuple[int, ...]  # those looked at
    notes: tuple[str, ...] = ()  # what of them was looked at, where that is not all

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "findings": [finding.to_json() for finding in self.findings],
            "not_judged": dict(self.not_judged),
            "solves": list(self.solves),
            "notes": list(self.notes),
        }


_registered: dict[str, Rule] = {}


def rule(
    name: str, *, title: str, columns: Iterable[str] = (), whole_run: bool = False
) -> "Callable[[Callable[[Case], Iterable[Finding]]], Callable[[Case], Iterable[Finding]]]":
    """Register a function as a rule; one of the same name is replaced. See `Rule`.

    Raises:
        ValueError: the name is empty.
    """
    if not name or not isinstance(name, str):
        raise ValueError(f"name={name!r}: must be a text that is not empty")

    def register(
        look: "Callable[[Case], Iterable[Finding]]",
    ) -> "Callable[[Case], Iterable[Finding]]":
        _registered[name] = Rule(name, title, look, tuple(columns), whole_run)
        return look

    return register


def rules() -> dict[str, Rule]:
    """Return every rule by name: those in this folder and those registered by users."""
    package = importlib.import_module("inspector.diagnosis")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"inspector.diagnosis.{module.name}")
    return dict(sorted(_registered.items()))
