"""One component that decides about every step."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, percent
from inspector.diagnosis.stability_limited import limited_by_stability

SHARE = 0.95
FEWEST = 50


@rule(
    "one_component",
    title="One component decides about every step",
    columns=("limiting_component",),
)
def look(case: Case) -> Iterator[Finding]:
    """Look for a component with the largest error nearly always, though there are others."""
    component = case.column("limiting_component")
    counts = component >= 0
    if case.dim < 3 or counts.sum() < FEWEST:
        return
    number = np.bincount(component[counts].astype("i8"), minlength=case.dim)
    worst = int(number.argmax())
    share = float(number[worst] / number.sum())
    if share < SHARE:
        return
    if limited_by_stability(case).mean() > 0.5:
        return  # it is the stiff one
    where = component == worst
    rows = case.worst(case.per_row(where) / case.lengths)
    yield Finding(
        evidence=(
            f"Component {worst} of {case.dim} had the largest error in {percent(share)} of the "
            "attempts; the others would have allowed larger steps"
        ),
        certainty="likely",
        advice=(
            f"If component {worst} need not be so exact, give it an atol of its own, "
            f"`atol=torch.tensor([..])` with {case.dim} entries: one that fits its size."
        ),
        rows=rows,
        times=case.stretch(where, rows[0]) if rows else (),
        numbers={"component": worst, "share": share},
        change={"atol": 10 * case.atol} if np.isfinite(case.atol) and case.atol > 0 else None,
        weight=0.1 * share,
    )
