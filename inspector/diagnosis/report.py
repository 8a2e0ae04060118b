"""Asks every rule about a run and ranks what they find."""

import dataclasses
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from inspector.diagnosis.base import CERTAINTIES, Diagnosis, Finding, Rule, rules
from inspector.diagnosis.case import Case

if TYPE_CHECKING:
    from inspector.run import Run

MOST_SOLVES = 3  # looked at where none is named


def diagnose(
    run: "Run", solve: int | None = None, *, only: Iterable[str] | None = None
) -> Diagnosis:
    """Say what limits a run.

    Args:
        run: an open run, also one that still grows.
        solve: the solve to look at; None for the costliest few.
        only: names of the rules to ask; None for all.

    Raises:
        KeyError: there is no such solve.
        ValueError: there is no such rule.
    """
    known = rules()
    asked = list(known) if only is None else list(only)
    for name in asked:
        if name not in known:
            raise ValueError(f"rule {name!r}: must be one of {', '.join(known)}")
    chosen = _costliest(run) if solve is None else [solve]
    cases = [Case(run, one) for one in chosen]
    found: list[Finding] = []
    not_judged: dict[str, str] = {}
    for name in asked:
        each = known[name]
        for case in cases[:1] if each.whole_run else cases:
            missing = [column for column in each.columns if not case.has(column)]
            if missing:
                not_judged[name] = f"{', '.join(missing)} was not recorded"
                continue
            found += _ask(each, case, not_judged)
    found.sort(key=lambda f: (-f.weight, CERTAINTIES.index(f.certainty), f.rule))
    notes = tuple(filter(None, (case.note for case in cases)))
    return Diagnosis(tuple(found), not_judged, tuple(chosen), notes)


def _ask(each: Rule, case: Case, not_judged: dict[str, str]) -> list[Finding]:
    try:
        with np.errstate(all="ignore"):
            found = list(each.look(case) or ())
    except Exception as error:  # a rule, perhaps a user's, must not hide what others find
        not_judged[each.name] = f"{type(error).__name__}: {error}"
        warnings.warn(
            f"rule {each.name!r} raised {type(error).__name__}: {error}; the others go on",
            RuntimeWarning,
            stacklevel=3,
        )
        return []
    solve = None if each.whole_run else case.solve
    return [
        dataclasses.replace(finding, rule=each.name, title=finding.title or each.title, solve=solve)
        for finding in found
    ]


def _costliest(run: "Run") -> list[int]:
    """Return the solves with the most attempts, in order; backward ones count as others do."""
    table = run.solve_table()
    if table.empty:
        return []
    cost = np.nan_to_num(table["n_steps"].to_numpy("f8", na_value=np.nan))
    return sorted(int(i) for i in np.argsort(-cost, kind="stable")[:MOST_SOLVES])
