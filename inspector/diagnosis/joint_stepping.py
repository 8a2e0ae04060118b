"""One step size for the whole batch."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case


@rule("joint_stepping", title="All rows take the steps of the hardest one")
def look(case: Case) -> Iterator[Finding]:
    """Say what a joint step means; a rerun tells what it costs."""
    if str(case.start.get("stepping")) != "joint" or case.batch < 2:
        return
    steps = float(case.n_steps.max(initial=0))
    yield Finding(
        evidence=f"All {case.batch} rows took the same {steps:.0f} attempts with one step size and "
        "one error norm: easy rows pay for hard ones, and a row's error may be above its own "
        "tolerance",
        certainty="likely",
        advice='Use stepping="independent": each row has its own steps and its own error.',
        numbers={"attempts": steps, "rows": float(np.float64(case.batch))},
        change={"stepping": "independent"},
        weight=0.4,
    )
