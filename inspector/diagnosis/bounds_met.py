"""Bounds of the step size, or of the number of attempts, that decide."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, named, percent

SHARE = 0.2
AT_DT_MIN, USED_UP = 2, 3  # statuses
DT_MIN, DT_MAX = 1, 2  # codes of the limiter


@rule("bounds_met", title="A bound that was set decides")
def look(case: Case) -> Iterator[Finding]:
    """Look for rows that met max_steps or dt_min, and for steps that dt_min or dt_max set."""
    status = case.each["status"]
    everyone = np.arange(case.batch)
    used_up = status == USED_UP
    if used_up.any():
        limit = int(case.n_steps[used_up].max())
        yield Finding(
            title="Rows used up their attempts",
            evidence=f"{named(everyone[used_up].tolist(), case.batch).capitalize()} stopped after "
            f"{limit} attempts at t = {case.each['t_reached'][used_up].min():.4g} and later",
            certainty="measured",
            advice="Raise max_steps, or see below for what makes the steps small.",
            rows=case.worst(used_up * case.n_steps, everyone)[: int(used_up.sum())],
            numbers={"max_steps": limit, "rows": int(used_up.sum())},
            change={"max_steps": _enough(case, used_up, limit)},
            weight=0.9,
        )
    at_min = status == AT_DT_MIN
    if at_min.any():
        yield Finding(
            title="Rows needed steps smaller than dt_min",
            evidence=f"{named(everyone[at_min].tolist(), case.batch).capitalize()} ended at "
            f"t = {case.each['t_reached'][at_min].min():.4g} or later: dt_min = "
            f"{case.setting('dt_min'):.3g} was still too large",
            certainty="measured",
            advice="Leave dt_min out; the solver ends a row itself when its time resolves no more.",
            rows=tuple(everyone[at_min].tolist()[:8]),
            numbers={"dt_min": case.setting("dt_min"), "rows": int(at_min.sum())},
            change={"dt_min": None},
            weight=0.9,
        )
    if not case.has("limiter"):
        return
    code = case.column("limiter")
    for number, name, advice in (
        (
            DT_MAX,
            "dt_max",
            "Raise or leave out dt_max, unless it keeps steps from missing a pulse.",
        ),
        (DT_MIN, "dt_min", "Leave out dt_min: steps at it miss the tolerance."),
    ):
        where = code == number
        share = float(where.mean()) if len(where) else 0.0
        if share < SHARE:
            continue
        rows = case.worst(case.per_row(where) / case.lengths)
        yield Finding(
            title=f"{name} sets the size of the steps",
            evidence=f"{percent(share)} of the attempts had the size {name} = "
            f"{np.median(case.dt[where]):.3g}, where the error was a median "
            f"{np.nanmedian(case.ratio[where]):.2g} of the tolerance",
            certainty="measured",
            advice=advice,
            rows=rows,
            times=case.stretch(where, rows[0]),
            numbers={"share": share},
            change={name: None},
            weight=share * 0.8,
        )


def _enough(case: Case, used_up: np.ndarray, limit: int) -> int:
    """Return twice the attempts that the whole span takes at the pace so far, of two digits."""
    each = case.each
    span = np.abs(each["t1"] - each["t0"])[used_up]
    done = np.abs(each["t_reached"] - each["t0"])[used_up]
    left = np.clip(span / np.maximum(done, 1e-3 * span), 5.0, 1000.0)
    wanted = 2 * limit * float(np.nanmax(left))
    digits = 10 ** max(int(np.log10(wanted)) - 1, 0)
    return int(np.ceil(wanted / digits)) * digits
