"""A field that is not finite somewhere."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, named

ENDED = {1: "at the start", 4: "however small the step"}


@rule("non_finite", title="The field is not finite there")
def look(case: Case) -> Iterator[Finding]:
    """Look for rows that ended so, and for attempts that met it."""
    status, component = case.each["status"], case.each["component"].astype("i8")
    failed = np.flatnonzero(np.isin(status, list(ENDED)))
    bad = ~np.isfinite(case.ratio) if len(case.starts) else np.zeros(0, bool)
    if case.has("limiter") and len(bad):
        bad &= ~newton_before_next(case)
    share = float(bad.mean()) if len(bad) else 0.0
    if len(failed):
        row = int(failed[0])
        at, which = float(case.each["t_reached"][row]), int(component[row])
        yield Finding(
            evidence=f"{named(failed.tolist(), case.batch).capitalize()} ended because values were "
            f"NaN or infinite {ENDED[int(status[row])]}: row {row} at t = {at:.6g}"
            + (f" in component {which}" if which >= 0 else ""),
            certainty="measured",
            advice="Look at the field there: a root or logarithm of a negative number, a division "
            "by zero, an overflow; or the solution itself blows up.",
            rows=tuple(int(r) for r in failed[:8]),
            times=((at, at),),
            numbers={"rows": len(failed), "component": which},
            weight=1.0,
        )
    elif share > 0.01:
        rows = case.worst(case.per_row(bad))
        where = case.t[bad]
        yield Finding(
            evidence=f"{int(bad.sum())} attempts ({100 * share:.0f} %) met values that are not "
            f"finite and were refused, from t = {where.min():.5g} to {where.max():.5g}",
            certainty="measured",
            advice="Trial states leave the domain of the field. A smaller dt_max keeps them in; or "
            "continue the field smoothly beyond its domain.",
            rows=rows,
            times=case.stretch(bad, rows[0]),
            numbers={"attempts": int(bad.sum()), "share": share},
            change={"dt_max": _smaller(case, bad)} if case.accepted.any() else None,
            weight=share,
        )


def _smaller(case: Case, bad: np.ndarray) -> float:
    """Return a size below the usual one and well below those that met what is not finite."""
    usual, met = np.median(case.dt[case.accepted]), np.median(case.dt[bad])
    return float(f"{min(usual, met / 2):.2g}")


def newton_before_next(case: Case) -> np.ndarray:
    """Return which attempts are followed by one that Newton's iteration limited, `(N,)` bool."""
    code = case.column("limiter")
    return np.r_[(code[1:] == 8) & (case.instance[1:] == case.instance[:-1]), False]
