"""A tolerance that the state's numbers cannot resolve."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case

ROOM = 8  # a relative error below so many times the spacing of numbers is rounding


@rule("tolerance_resolution", title="The tolerance is below what the numbers resolve")
def look(case: Case) -> Iterator[Finding]:
    """Compare rtol with the spacing of the state's numbers."""
    eps, rtol = case.eps(), case.rtol
    dtype = str(case.start.get("dtype"))
    if not np.isfinite(rtol) or rtol >= ROOM * eps or not case.n_steps.sum():
        return
    if rtol == 0 and not case.each["n_rejected"].sum():
        return  # atol alone decides
    wider = dtype in ("float32", "float16", "bfloat16", "complex64")
    better = float(f"{30 * eps:.0e}")
    yield Finding(
        evidence=(
            f"rtol = {rtol:.2g}, but neighbouring {dtype} numbers differ by {eps:.2g} relative to "
            f"their size: errors of {rtol / eps:.2g} times that are rounding, not solving"
        ),
        certainty="measured",
        advice=(
            f"Use float64, or rtol of at least {better:.0e}."
            if wider
            else f"Use rtol of at least {better:.0e}; the digits beyond are not there."
        ),
        rows=case.worst(case.n_steps, np.arange(case.batch)),
        numbers={"rtol": rtol, "eps": eps},
        change={"dtype": "float64"} if dtype == "float32" else {"rtol": better},
        weight=0.5,
    )
