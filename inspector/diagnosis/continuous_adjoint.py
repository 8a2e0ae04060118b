"""Gradients of an equation that the solver did not solve."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case

MODES = ("continuous", "joint", "interpolated")
TIGHT = 1e-9  # below this the two solutions agree well enough


@rule("continuous_adjoint", title="The gradient carries an error of its own")
def look(case: Case) -> Iterator[Finding]:
    """Look for backward passes of modes that solve the adjoint equation anew."""
    mode = str(case.start.get("adjoint") or "").partition(":")[0]
    passes = case.run.solve_state(case.solve).backward
    if mode not in MODES or not passes or "backward_of" in case.start or not case.rtol > TIGHT:
        return
    error = _measured(case, mode)
    told = (
        f"measured error {error:.1e} relative to the exact gradient"
        if np.isfinite(error)
        else f"its error is about the tolerance, rtol = {case.rtol:.1g}, times how far errors grow"
    )
    yield Finding(
        evidence=f'adjoint="{mode}" solves the adjoint equation with steps of its own, so its '
        f"gradient is not that of the states returned: {told}",
        certainty="measured" if np.isfinite(error) else "possible",
        advice='Use adjoint="symplectic": exact for the steps taken, at about the same memory. '
        "`stepscope adjoints` measures both.",
        numbers={"rtol": case.rtol, **({"error": error} if np.isfinite(error) else {})},
        change={
            "adjoint": "symplectic",
            **({"gradient": "symplectic"} if case.spec.get("gradient") else {}),
        },
        weight=0.3,
    )


def _measured(case: Case, mode: str) -> float:
    """Return the error of a mode where this run compared modes; NaN where it did not."""
    if not (case.run.path / "adjoints.jsonl").exists():
        return float("nan")
    from inspector.adjoints import Comparison

    table = Comparison(case.run.path).table()
    if "mode" not in table or "error" not in table:
        return float("nan")
    found = table.loc[table["mode"] == mode, "error"].to_numpy("f8")
    return float(found[-1]) if len(found) else float("nan")
