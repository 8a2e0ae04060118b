"""A batch that waits for its slowest rows."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, percent

WASTED = 0.3  # of the evaluated rows
UNEVEN = 2.0  # slowest row over the median
FEWEST = 30  # attempts of the slowest row, below which it does not matter


@rule("stragglers", title="Finished rows are evaluated along with slow ones")
def look(case: Case) -> Iterator[Finding]:
    """Compare rows of the field that were evaluated with those that some row needed."""
    needed = float(np.nansum(case.each["n_f_evals"]))
    evaluated = float(case.line["n_rows_evaluated"])
    steps = case.n_steps
    if not evaluated > 0 or case.batch < 4 or str(case.start.get("stepping")) == "joint":
        return
    wasted = 1 - needed / evaluated
    middle = float(np.median(steps))
    if wasted < WASTED or steps.max() < max(UNEVEN * middle, FEWEST):
        return
    rows = case.worst(steps, np.arange(case.batch))
    compiled = str(case.start.get("engine")) == "compiled"
    can = case.explicit and not compiled and not case.spec.get("gradient")
    yield Finding(
        evidence=(
            f"{percent(wasted)} of the evaluated rows had ended already: row {rows[0]} took "
            f"{steps.max():.0f} attempts, the median row {middle:.0f}"
        ),
        certainty="measured",
        advice=(
            'Use engine="compiled", where a row that has ended leaves its place to others; or '
            if can
            else "Solve rows of like cost together: "
        )
        + "sort the batch by cost and solve it in slices, `batch_size=..`, so that slow rows wait "
        "for each other only.",
        rows=rows,
        numbers={"wasted": wasted, "slowest": float(steps.max()), "median": middle},
        change={"engine": "compiled"} if can else None,
        weight=wasted,
    )
