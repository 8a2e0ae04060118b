"""Steps that the time's numbers can hardly resolve."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, named

ROOM = 100  # a step of fewer spacings than this is off by a percent or more
FAILED = 5  # status TIME_RESOLUTION


@rule("time_resolution", title="Time is too coarse for the steps")
def look(case: Case) -> Iterator[Finding]:
    """Compare step sizes with the spacing of the time's numbers where they are taken."""
    dtype, eps = str(case.start.get("time_dtype")), case.eps("time_dtype")
    failed = np.flatnonzero(case.each["status"] == FAILED)
    share, times, rows = 0.0, (), tuple(int(row) for row in failed[:8])
    fewest = float("inf")
    if len(case.starts):
        spacing = eps * np.abs(case.t)
        room = np.divide(case.dt, spacing, out=np.full(len(case.t), np.inf), where=spacing > 0)
        coarse = (room < ROOM) & case.accepted
        share, fewest = float(coarse.mean()), float(room.min())
        if share > 0.01 and not len(failed):
            rows = case.worst(case.per_row(coarse))
            times = case.stretch(coarse, rows[0])
    if share <= 0.01 and not len(failed):
        return
    if len(failed):
        what = f"{named(failed.tolist(), case.batch)} ended because no smaller step exists"
    else:
        what = f"steps of {100 * share:.0f} % of the attempts are less than {ROOM} of these apart"
    narrow = dtype == "float32"
    yield Finding(
        evidence=(
            f"Time is {dtype}, whose numbers are {eps:.2g} of their size apart; {what} (the "
            f"smallest was {fewest:.2g})"
        ),
        certainty="measured" if narrow or share > 0.01 else "possible",
        advice=(
            'Hold time in float64, `time_dtype="float64"`; the state may stay as it is.'
            if narrow
            else "Start nearer to t = 0, or look for a singularity there: the steps shrink to it."
        ),
        rows=rows,
        times=times,
        numbers={"eps": eps, "share": share, "smallest": fewest},
        change={"dtype": "float64"} if str(case.start.get("dtype")) == "float32" else None,
        weight=max(0.6 if len(failed) else 0.0, share),
    )
