"""Bursts of refusals, as a field that jumps makes them."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, named

SHRUNK = 0.03  # size after the burst over size before
BURSTS = 2  # in a row, or one each in several rows at the same time
FAR_OFF = 30.0  # error ratio that a smooth field hardly ever gives


@rule("discontinuity", title="The field seems to jump")
def look(case: Case) -> Iterator[Finding]:
    """Look for runs of refusals in which the step falls by orders of magnitude and recovers."""
    if not len(case.starts):
        return
    times, rows, lengths = bursts(case)
    if len(times) < BURSTS:
        return
    number = np.bincount(rows, minlength=case.batch)
    span = float(np.nanmax(case.each["t1"]) - np.nanmin(case.each["t0"])) or 1.0
    several = number >= BURSTS
    order = np.sort(times)
    together = np.diff(order) < 1e-4 * abs(span)
    shared = int(together.sum())
    if not several.any() and not (shared and len(np.unique(rows)) >= BURSTS):
        return
    lost = float(lengths.sum() / case.lengths.sum())
    if lost < 0.05:
        return
    change = None
    if "announce_jumps" in (case.spec.get("parameters") or {}) or str(case.spec.get("problem")) in (
        "discontinuous",
    ):
        given = dict(case.spec.get("parameters") or {})
        change = {"parameters": {**given, "announce_jumps": True}}
    first = ", ".join(f"{t:.5g}" for t in np.unique(order.round(6))[:4])
    worst = case.worst(number.astype("f8"), np.arange(case.batch))[: int((number > 0).sum())]
    at_once = " in several rows at once" if shared else ""
    yield Finding(
        evidence=f"{len(times)} bursts of refusals{at_once} in "
        f"{named(np.flatnonzero(number).tolist(), case.batch)}, each with the step falling more "
        f"than {1 / SHRUNK:.0f} times: at t = {first}, ..",
        certainty="likely",
        advice=(
            "If the field or one of its derivatives jumps at known times, give them as `jump_t`; "
            "if it jumps where the state crosses something, make that an Event: steps then end "
            "there instead of searching for it."
        ),
        rows=worst,
        times=tuple((float(t), float(t)) for t in times[rows == worst[0]][:3]),
        numbers={"bursts": len(times), "rows": int((number > 0).sum())},
        change=change,
        weight=lost,
    )


def bursts(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return when, in which rows, and how many refusals followed each other as steps collapsed."""
    accepted, instance, dt = case.accepted, case.instance, case.dt
    new_row = np.r_[True, instance[1:] != instance[:-1]]
    begins = ~accepted & (new_row | np.r_[True, accepted[:-1]])
    group = np.cumsum(begins)
    refused = np.flatnonzero(~accepted)
    if not len(refused):
        return np.zeros(0), np.zeros(0, "i8"), np.zeros(0, "i8")
    firsts = refused[np.r_[True, group[refused][1:] != group[refused][:-1]]]
    lasts = refused[np.r_[group[refused][1:] != group[refused][:-1], True]]
    # The size right after the burst, where there is one in this row.
    after = np.minimum(lasts + 1, len(dt) - 1)
    same = instance[after] == instance[lasts]
    shrunk = np.where(same, dt[after], dt[lasts]) / dt[firsts]
    far = np.nan_to_num(case.ratio[firsts], nan=np.inf) > FAR_OFF
    leading = np.isin(firsts, case.starts)
    hit = ((shrunk < SHRUNK) | ((lasts - firsts >= 2) & far)) & ~leading
    when = case.t[lasts[hit]] + case.column("dt")[lasts[hit]]
    return when, instance[lasts[hit]].astype("i8"), (lasts - firsts + 1)[hit]
