"""What a method chose by itself in an attempt."""

from typing import final

import torch
from torch import Tensor

from solver.statistics.base import Attempts, Statistic


@final
class Choice(Statistic):
    """The choice of methods that have one: which of two, how many stages, what order."""

    name, title, unit = "choice", "Method's own choice", "index"
    help = (
        "What the method chose by itself: 0 explicit or 1 stiff (auto), the number of stages "
        "(rkc2), the order (bdf); 0 for methods that choose nothing."
    )

    def measure(self, attempts: Attempts) -> Tensor:
        """Return it, `(n, B)` int64."""
        return torch.zeros_like(attempts.limiter) if attempts.choice is None else attempts.choice
