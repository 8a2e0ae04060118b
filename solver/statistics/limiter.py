"""What set the size of a step."""

from collections.abc import Mapping
from typing import ClassVar, final

from torch import Tensor

from solver.statistics.base import Attempts, Statistic

ACCURACY, DT_MIN, DT_MAX, SPAN, EVENT, JUMP, NON_FINITE, FIRST = range(8)


@final
class Limiter(Statistic):
    """What set the size of the step that was tried."""

    name, title, unit = "limiter", "What limited the step", "code"
    help = (
        "Why the step was not larger: the error of the step before (accuracy), a bound, the end of "
        "the span, a jump, a non-finite trial, or the rule for the first step."
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
    }

    def measure(self, attempts: Attempts) -> Tensor:
        """Return the code, `(n, B)` int64."""
        return attempts.limiter
