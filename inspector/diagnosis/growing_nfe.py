"""A training whose solves become dearer."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case

FEWEST = 20  # iterations
GROWN = 1.5


@rule("growing_nfe", title="Solves become dearer in the course of the training", whole_run=True)
def look(case: Case) -> Iterator[Finding]:
    """Compare evaluations of the field in the first and the last fifth of the iterations."""
    table = case.iterations
    if "forward_nfe" not in table or "rows" not in table:
        return
    per_row = table["forward_nfe"].to_numpy("f8") / np.maximum(table["rows"].to_numpy("f8"), 1)
    known = np.isfinite(per_row) & (per_row > 0)
    nfe, at = per_row[known], table["iteration"].to_numpy("f8")[known]
    if len(nfe) < FEWEST:
        return
    fifth = len(nfe) // 5
    before, now = float(np.median(nfe[:fifth])), float(np.median(nfe[-fifth:]))
    middle = float(np.median(nfe[2 * fifth : 3 * fifth]))
    if now < GROWN * before or now < middle * 0.95:
        return
    yield Finding(
        evidence=f"A row needs {now:.0f} evaluations of the field now, {before:.0f} in the first "
        f"iterations: {now / before:.1f} times as many after {at[-1]:.0f} iterations",
        certainty="measured",
        advice="The field becomes stiffer or rougher as it learns. Penalise its size (kinetic or "
        "Jacobian regularisation, weight decay), loosen the tolerance early on, or use a "
        "controller with a fixed budget of steps; see Training for which samples are hard.",
        numbers={"before": before, "now": now, "iterations": float(at[-1])},
        weight=1 - before / now,
    )
