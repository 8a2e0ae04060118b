"""Which component has the largest share of the error."""

from typing import final

import torch
from torch import Tensor

from solver.statistics.base import Attempts, Statistic


@final
class LimitingComponent(Statistic):
    """Index of the component with the largest share of the error."""

    name, title, unit = "limiting_component", "Limiting component", "index"
    help = "Component i with the largest |error_i| / (atol_i + rtol_i max(|y_i|, |y1_i|))."

    def magnitude(self, dim: int) -> int:
        """Return the last index."""
        return max(dim - 1, 0)

    def measure(self, attempts: Attempts) -> Tensor:
        """Return the flat index, `(n, B)` int64; the first non-finite one where there is any."""
        if attempts.weighted_error.shape[-1] == 0:
            return torch.zeros_like(attempts.limiter)
        return attempts.weighted_error.abs().argmax(dim=-1)
