"""What set the size of a step."""

from collections.abc import Mapping
from typing import ClassVar, final

import torch
from torch import Tensor

from solver.statistics.base import Attempts, Statistic

ACCURACY, DT_MIN, DT_MAX, SPAN, EVENT, JUMP, NON_FINITE, FIRST, NEWTON = range(9)


@final
class Limiter(Statistic):
    """What set the size of the step that was tried."""

    name, title, unit = "limiter", "What limited the step", "code"
    help = (
        "Why the step was not larger: the error of the step before (accuracy), a bound, the end of "
        "the span, a jump, a non-finite trial, unsolved equations, or the rule for the first step."
    )
    labels: ClassVar[Mapping[int, str]] = {
        ACCURACY: "accuracy",
        DT_MIN: "dt_min",
        DT_MAX: "dt_max",
        SPAN: "end of span",
        EVENT: "event",
        JUMP: "jump",
        NON_FINITE: "non-finite",
        FIRST: "first step",
        NEWTON: "Newton",
    }

    def measure(self, attempts: Attempts) -> Tensor:
        """Return the code, `(n, B)` int64."""
        return attempts.limiter


def limiter_codes(
    *,
    failed_before: Tensor,
    first: Tensor,
    t: Tensor,
    dt: Tensor,
    dt_min: Tensor | float | None,
    dt_max: Tensor | float | None,
    reach: Tensor,
    jump: Tensor | None,
    unsolved_before: Tensor | None = None,
) -> Tensor:
    """Return what set the size of attempts, int64 like `dt`.

    Args:
        failed_before: the attempt before was not finite, bool.
        first: it is the first attempt of the solve, bool.
        t, dt: time and size tried.
        dt_min, dt_max: bounds of the size.
        reach: cut to end at a stop, bool.
        jump: that stop is a jump, bool; None if there are none.
        unsolved_before: the attempt before did not solve its implicit equations, bool; None if
            there are none.
    """
    codes = torch.where(failed_before, NON_FINITE, ACCURACY)
    if unsolved_before is not None:
        codes = torch.where(failed_before & unsolved_before, NEWTON, codes)
    codes = torch.where(first, FIRST, codes)
    rounding = 4 * torch.finfo(t.dtype).eps * t.abs()  # of a step that begins at t
    if dt_min is not None:
        codes = torch.where(dt - rounding <= dt_min, DT_MIN, codes)
    if dt_max is not None:
        codes = torch.where(dt + rounding >= dt_max, DT_MAX, codes)
    if jump is None:
        return torch.where(reach, SPAN, codes)
    return torch.where(reach, torch.where(jump, JUMP, SPAN), codes)
