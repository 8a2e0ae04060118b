"""A first step that is far too large or far too small."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, named

REFUSED = 3  # attempts lost at once
GROWN = 1e4  # times the first step, within the first attempts
WITHIN = 12


@rule("first_step", title="The first step is a poor guess")
def look(case: Case) -> Iterator[Finding]:
    """Look for rows that begin with refusals, or take many steps to grow to their size."""
    if not len(case.starts):
        return
    place = np.arange(len(case.instance)) - np.repeat(case.starts, case.lengths)
    before = np.cumsum(case.accepted) - np.repeat(
        (np.cumsum(case.accepted) - case.accepted)[case.starts], case.lengths
    )
    leading = case.per_row((before == 0) & ~case.accepted)  # refused before any step was taken
    first = case.dt[case.starts]
    early = np.where((place < WITHIN) & case.accepted, case.dt, 0.0)
    grown = case.per_row(early, np.maximum) / first
    too_large = (leading >= REFUSED) & (leading >= 0.02 * case.lengths)
    too_small = (grown > GROWN) & (case.lengths > WITHIN) & (case.lengths < 50 * WITHIN)
    struck = too_large | too_small
    if struck.mean() < 0.1:
        return
    # What rows settled at: the first step that was taken, or the largest of the early ones.
    taken = case.accepted & (before == 1)
    size = case.per_row(np.where(taken, case.dt, 0.0), np.maximum)
    better = np.where(too_large, size, case.per_row(early, np.maximum) * 0.1)[struck]
    given = case.spec.get("dt0")
    lost = np.where(too_large, leading, WITHIN / 2)[struck].sum() / case.lengths.sum()
    rows = case.worst(np.where(struck, leading + 1e-3, -1.0))[: int(struck.sum())]
    what = (
        f"was refused {leading[too_large].mean():.0f} times before the first step was taken"
        if too_large.any()
        else f"was followed by steps up to {np.median(grown[too_small]):.1e} times as large within "
        f"{WITHIN} attempts"
    )
    suggested = float(f"{np.median(better[better > 0]):.2g}") if (better > 0).any() else None
    change = {"dt0": None} if given else {"dt0": suggested} if suggested else None
    yield Finding(
        evidence=f"In {named(case.stepping_rows[struck].tolist(), len(case.starts))} the first "
        f"step, {np.median(first[struck]):.2g}, {what}",
        certainty="measured",
        advice=(
            "Leave dt0 out: the solver guesses a first step from the field."
            if given
            else f"Give dt0 = {suggested:g}, near what the rows settled at."
            if suggested
            else "Give dt0."
        ),
        rows=rows,
        times=tuple((float(case.t[i]), float(case.t[i] + first[0])) for i in case.starts[:1]),
        numbers={"lost": float(lost), "rows": int(struck.sum())},
        change=change,
        weight=min(float(lost), 1.0),
    )
