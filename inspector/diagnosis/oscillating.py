"""Accepting and refusing in turn."""

from collections.abc import Iterator

import numpy as np

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case, named, percent

REFUSED = 0.3  # share of a row's attempts
LOST = 0.05  # share of all attempts, below which it does not matter
FEWEST = 30
RHYTHM = 0.9  # of the changes between accepted and refused that there can be at most


@rule("oscillating", title="Steps are accepted and refused in turn")
def look(case: Case) -> Iterator[Finding]:
    """Look for rows in which refusals come in a rhythm: the controller overshoots each time."""
    if not len(case.starts):
        return
    accepted = case.accepted
    same_row = np.r_[case.instance[1:] == case.instance[:-1], False]
    changes = np.r_[accepted[1:] != accepted[:-1], False] & same_row
    steps = np.maximum(case.lengths, 2)
    refused = case.per_row(~accepted) / steps
    turned = case.per_row(changes) / (steps - 1)
    by_chance = 2 * refused * (1 - refused)
    most = 2 * np.minimum(refused, 1 - refused)
    arrived = case.each["status"][case.stepping_rows] <= 0  # others shrink to a singularity
    struck = (steps >= FEWEST) & (refused >= REFUSED) & (turned > RHYTHM * most) & arrived
    if not struck.any():
        return
    rows = case.worst(np.where(struck, refused * steps, -1.0))[: int(struck.sum())]
    share = float((refused * steps)[struck].sum() / steps.sum())
    if share < LOST:
        return
    marked = changes & np.isin(case.instance, case.stepping_rows[struck])
    yield Finding(
        evidence=(
            f"{named(case.stepping_rows[struck].tolist(), len(case.starts)).capitalize()} had "
            f"{percent(float(refused[struck].mean()))} of the attempts refused, in a rhythm: the "
            f"verdict changed {turned[struck].mean():.2f} times an attempt, "
            f"{by_chance[struck].mean():.2f} would be chance"
        ),
        certainty="measured",
        advice=(
            "The controller asks for too much again after each refusal. Give it memory: PI with "
            "small gains, or a digital filter such as H211b, follows the error smoothly."
        ),
        rows=rows,
        times=case.stretch(marked, rows[0]),
        numbers={"refused": share, "changes": float(turned[struck].mean())},
        change={"controller": STEADY},
        weight=share,
    )


STEADY = {"name": "digital_filter", "filter": "h211b"}
