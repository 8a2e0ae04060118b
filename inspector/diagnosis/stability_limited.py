"""Steps of an explicit method that stability keeps small, not accuracy."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, named, percent
from inspector.stability import limit

NEAR, BEYOND = 0.7, 2.0  # times the limit between which a step counts as limited by it
SHARE = 0.25  # of a row's attempts
LOST = 0.05  # of all attempts
FEWEST = 30  # attempts of a row


@rule("stability_limited", title="Stability limits the steps, not accuracy", columns=("stiffness",))
def look(case: Case) -> Iterator[Finding]:
    """Look for rows whose step size times the spectral radius stays near the method's limit."""
    function = case.stability
    if function is None or not case.explicit or not len(case.starts):
        return
    far = limit(function)
    near = stable_part(case, far)
    share = case.per_row(near) / case.lengths
    struck = (share >= SHARE) & (case.lengths >= FEWEST)
    if not struck.any():
        return
    rows = case.worst(np.where(struck, share, -1.0))[: int(struck.sum())]
    stiff = case.column("stiffness")[np.isin(case.instance, case.stepping_rows[struck]) & near]
    lost = float((share * case.lengths)[struck].sum() / case.lengths.sum())
    if lost < LOST:
        return
    method = implicit_for(case)
    yield Finding(
        evidence=(
            f"In {named(case.stepping_rows[struck].tolist(), len(case.starts))} the step times the "
            f"largest eigenvalue stays at {np.median(stiff):.2g}, where {case.method} is stable up "
            f"to {far:.2g} along the negative real axis, in {percent(lost)} of all attempts"
        ),
        certainty="measured" if lost > 0.5 else "likely",
        advice=(
            f"Use an implicit method, such as {method}: its steps are limited by accuracy alone. "
            "Smaller tolerances cost little more here, looser ones save nothing."
        ),
        rows=rows,
        times=case.stretch(near, rows[0]),
        numbers={
            "stability_limit": far,
            "stiffness": float(np.median(stiff)),
            "share": lost,
            "rows": int(struck.sum()),
        },
        change={"method": method, "engine": "auto"},
        weight=lost,
    )


def stable_part(case: Case, far: float) -> np.ndarray:
    """Return which attempts stability limited, `(N,)` bool: near its limit, and no other cause."""
    near = near_limit(case.column("stiffness"), far)
    if case.has("limiter"):
        near &= case.column("limiter") == 0  # accuracy, as far as the controller knows
    return near


def near_limit(stiffness: np.ndarray, far: float) -> np.ndarray:
    """Return where step size times spectral radius is about what a method bears, bool."""
    return (stiffness >= NEAR * far) & (stiffness <= BEYOND * far)


def limited_by_stability(case: Case) -> np.ndarray:
    """Return which attempts stability limited, `(N,)` bool; none where that is not known."""
    function = case.stability
    if function is None or not case.explicit or not case.has("stiffness"):
        return np.zeros(len(case.instance), bool)
    return stable_part(case, limit(function))


def implicit_for(case: Case) -> str:
    """Return the implicit method that suits tolerance and size."""
    if case.dim > 100:
        return "kvaerno5"
    return "radau5" if case.rtol < 1e-8 else "rodas5p"
