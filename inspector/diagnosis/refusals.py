"""Many attempts refused, without a rhythm."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, named, percent
from inspector.diagnosis.discontinuity import look as jumps
from inspector.diagnosis.oscillating import FEWEST

REFUSED = 0.25  # share of a row's attempts
LOST = 0.1  # share of all attempts, below which it does not matter


@rule("refusals", title="Many attempts are refused")
def look(case: Case) -> Iterator[Finding]:
    """Look for rows that lose a quarter of their attempts."""
    steps, refused = case.n_steps, case.each["n_rejected"].astype("f8")
    share = refused / np.maximum(steps, 1)
    arrived = case.each["status"] <= 0  # others shrink to a singularity, see `non_finite`
    struck = (steps >= FEWEST) & (share >= REFUSED) & arrived
    if not struck.any() or refused.sum() < LOST * steps.sum():
        return
    if any(jumps(case)):
        return  # a jump, see `discontinuity`
    rows = case.worst(np.where(struck, refused, -1.0), np.arange(case.batch))[: int(struck.sum())]
    settings = dict(case.start.get("controller_settings") or {})
    safety = float(settings.get("safety") or 0.9)
    name = str(case.start.get("controller") or "pid")
    lower = round(max(0.5, safety - 0.15), 2)
    change = {"controller": {"name": name, **settings, "safety": lower}} if settings else None
    lost = float(refused.sum() / steps.sum())
    where = ~case.accepted if len(case.starts) else np.zeros(0, bool)
    yield Finding(
        evidence=(
            f"{percent(lost)} of all attempts were refused; in "
            f"{named(np.flatnonzero(struck).tolist(), case.batch)} it is a quarter or more"
        ),
        certainty="measured",
        advice=(
            f"Lower safety from {safety:g} to {lower:g}, so that steps aim lower, or use a PI "
            "controller, which is not surprised by an error that grows."
        ),
        rows=rows,
        times=case.stretch(where, rows[0]),
        numbers={"refused": lost, "safety": safety},
        change=change,
        weight=lost,
    )
