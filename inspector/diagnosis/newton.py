"""Implicit equations that Newton's iteration does not solve."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, named, percent

NEWTON = 8  # code of the limiter
FAILED = 8  # status NOT_CONVERGED
SHARE = 0.05


@rule("newton", title="Newton's iteration fails")
def look(case: Case) -> Iterator[Finding]:
    """Look for rows that ended so, and for attempts refused because of it."""
    failed = np.flatnonzero(case.each["status"] == FAILED)
    where = np.zeros(0, bool)
    if len(case.starts) and case.has("limiter"):
        where = case.column("limiter") == NEWTON
    share = float(where.mean()) if len(where) else 0.0
    if not len(failed) and share < SHARE:
        return
    rows = tuple(int(r) for r in failed[:8]) or case.worst(case.per_row(where))
    words = []
    if len(failed):
        words.append(f"{named(failed.tolist(), case.batch)} ended because of it")
    if share:
        words.append(f"{percent(share)} of the attempts were made smaller by it")
    yield Finding(
        evidence="No solution of a step's equations was found: " + "; ".join(words),
        certainty="measured",
        advice="Use a Rosenbrock method, such as rodas5p, which solves linear systems only; check "
        "`jacobian` if you gave one; a field that jumps needs `jump_t` or an Event.",
        rows=rows,
        times=case.stretch(where, rows[0]) if len(where) else (),
        numbers={"rows": len(failed), "share": share},
        change={"method": "rodas5p"},
        weight=1.0 if len(failed) else min(1.0, 3 * share),
    )
