"""Numbers of a run in plain words: what dominated a row, how long, how much, how many."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from app.controls.numbers import short
from app.frames import floats, ints, where

NOTHING = "\u2013"  # en dash, where there is no value
TIMES = "\u00d7"
THIN_SPACE = "\u202f"

LIMITS: Mapping[str, str] = {
    "accuracy": "accuracy",
    "dt_min": "the smallest step allowed",
    "dt_max": "the largest step allowed",
    "end of span": "the end of the span",
    "event": "an event",
    "jump": "a jump in the right-hand side",
    "non-finite": "values that were not finite",
    "first step": "the first guess",
    "Newton": "implicit equations that were not solved",
    "stability": "the stability of the method",
}
STATUSES: Mapping[str, str] = {
    "RUNNING": "still solving",
    "SUCCESS": "reached its end",
    "NON_FINITE_START": "began at a value that is not finite",
    "REACHED_DT_MIN": "needed steps smaller than allowed",
    "REACHED_MAX_STEPS": "used up its attempts",
    "NON_FINITE": "met values that are not finite",
    "TIME_RESOLUTION": "needed steps smaller than its time can resolve",
    "INTERRUPTED": "was broken off",
    "EVENT": "was ended by an event",
    "NOT_CONVERGED": "found no solution of its implicit equations",
}


def count(value: float | None) -> str:
    """Return a whole number with thin spaces between thousands; a dash for none."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{round(value):,}".replace(",", THIN_SPACE)


def times(ratio: float | None) -> str:
    """Return a ratio as `4.1x`, with a proper times sign; a dash where there is none."""
    if ratio is None or not math.isfinite(ratio):
        return NOTHING
    return f"{ratio:.2g}{TIMES}" if ratio < 99.5 else f"{count(ratio)}{TIMES}"


def percent(share: float | None) -> str:
    """Return a share in [0, 1] as whole percent; small ones do not vanish."""
    if share is None or not math.isfinite(share):
        return NOTHING
    if 0 < share < 0.0095:
        return "< 1 %"
    return f"{100 * share:.0f} %"


def size(value: float | None) -> str:
    """Return bytes in a readable unit."""
    if value is None or not math.isfinite(value):
        return NOTHING
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return ""


def duration(seconds: float | None) -> str:
    """Return seconds in a readable unit."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 90:
        return f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


def against_median(instances: pd.DataFrame, row: int, column: str) -> tuple[float, float]:
    """Return a row's value of a column and its ratio to the batch median; NaN for none."""
    values = floats(instances, column)
    known = values[~np.isnan(values)]
    at = np.flatnonzero(ints(instances, "instance") == row)
    own = float(values[at[0]]) if len(at) else math.nan
    middle = float(np.median(known)) if len(known) else math.nan
    return own, own / middle if middle else math.nan


def limiter_counts(steps: pd.DataFrame, labels: Mapping[int, str]) -> dict[str, float]:
    """Return the share of attempts by what limited them, largest first; empty if not recorded."""
    if steps.empty or "limiter" not in steps:
        return {}
    return {labels.get(code, f"code {code}"): share for code, share in shares_of(steps, "limiter")}


def shares_of(steps: pd.DataFrame, column: str) -> list[tuple[int, float]]:
    """Return each code in a column with its share of the attempts, the largest first."""
    codes, counts = np.unique(ints(steps, column), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(int(codes[i]), float(counts[i] / len(steps))) for i in order]


def row_in_words(
    row: int,
    instances: pd.DataFrame,
    steps: pd.DataFrame,
    labels: Mapping[int, str],
    *,
    parameter: str | None = None,
    components: Sequence[str] = (),
) -> str:
    """Say what dominated a row: attempts, refusals, limiter, worst component, how it ended.

    Args:
        instances: of the solve: `instance`, `n_steps`, `n_rejected`, `status_name`, `t_reached`.
        steps: attempts of this row.
        labels: code -> word of the limiter statistic.
        parameter: what sets this row apart, such as `mu = 50`.
        components: names of the state's components; their index where the list is shorter.
    """
    name = f"Row {row}" + (f" ({parameter})" if parameter else "")
    own = where(instances, instances["instance"] == row)
    attempts, ratio = against_median(instances, row, "n_steps")
    if own.empty or not attempts:
        return f"{name} has not taken a step."
    words = [f"{name} took {count(attempts)} attempts"]
    if len(instances) > 1 and math.isfinite(ratio):
        words[0] += (
            ", as many as the batch median"
            if abs(ratio - 1) < 0.005
            else (f", {times(ratio)} the batch median")
        )
    refused = floats(own, "n_rejected")[0] / attempts
    words.append("none was refused" if refused == 0 else f"{percent(refused)} were refused")
    limits = {
        name: share for name, share in limiter_counts(steps, labels).items() if name != "first step"
    }
    if limits:
        cause, share = next(iter(limits.items()))
        much = "all of them" if share > 0.995 else percent(share)
        words.append(f"steps were limited by {LIMITS.get(cause, cause)} in {much}")
    if "limiting_component" in steps and len(steps):
        shares = shares_of(steps, "limiting_component")
        worst, share = shares[0]
        if worst >= 0 and len(shares) > 1:
            label = components[worst] if worst < len(components) else f"component {worst}"
            words.append(f"{label} made most of the error in {percent(share)}")
    sentence = "; ".join(words) + "."
    status = str(own["status_name"].tolist()[0])
    if status not in ("SUCCESS", "RUNNING"):
        at = short(float(floats(own, "t_reached")[0]))
        sentence += f" It {STATUSES.get(status, status.lower())} and ended at t = {at}."
    return sentence
