"""What implicit steps cost: iterations, Jacobians and factorizations of each attempt."""

from typing import ClassVar, final

import torch
from torch import Tensor

from solver.statistics.base import Attempts, Statistic


class _Counted(Statistic):
    needs: ClassVar[frozenset[str]] = frozenset({"counted"})
    unit = "index"  # a whole number
    place: int

    def measure(self, attempts: Attempts) -> Tensor:
        """Return the count of each attempt, `(n, B)` int64; 0 for explicit methods."""
        if attempts.counted is None:
            return torch.zeros_like(attempts.limiter)
        return attempts.counted[:, self.place]


@final
class JacobianEvals(_Counted):
    """Jacobians evaluated for an attempt."""

    name, title, place = "jac_evals", "Jacobians", 1
    help = "How often df/dy was evaluated for this attempt; implicit methods keep it while they can"


@final
class Factorizations(_Counted):
    """Matrices factored for an attempt."""

    name, title, place = "factorizations", "LU factorizations", 3
    help = (
        "How many matrices were factored for this attempt; a method with real and complex systems "
        "counts each."
    )


@final
class NewtonIterations(_Counted):
    """Newton iterations of an attempt, over all its stages."""

    name, title, place = "newton_iterations", "Newton iterations", 2
    help = "Newton iterations of this attempt over all its stages; 0 for methods without."
