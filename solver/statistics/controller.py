"""What the controller did: its factor, the parts it is made of, and whether a limit cut it."""

from collections.abc import Mapping
from typing import ClassVar, final

import torch
from torch import Tensor

from solver.statistics.base import Attempts, Statistic


@final
class Factor(Statistic):
    """What the tried step was multiplied by to give the next."""

    name, title, unit = "factor", "Controller factor", "1"
    help = "The next step over the one tried, after the controller's limits; below 1 it shrinks."
    log = True

    def measure(self, attempts: Attempts) -> Tensor:
        """Return the factor, `(n, B)`."""
        return attempts.factor


class _Share(Statistic):
    unit = "log10"
    signed = True
    key: str

    def measure(self, attempts: Attempts) -> Tensor:
        """Return log10 of this part of the unlimited factor, `(n, B)`."""
        return attempts.shares[self.key]


@final
class ShareP(_Share):
    """Proportional part of the controller's factor."""

    name, title, key = "share_p", "P share", "p"
    help = "log10 of the proportional part: -(kP / k) (log e_n - log e_(n-1))."


@final
class ShareI(_Share):
    """Integral part of the controller's factor."""

    name, title, key = "share_i", "I share", "i"
    help = "log10 of the integral part: -(kI / k) log e_n."


@final
class ShareD(_Share):
    """Derivative part of the controller's factor."""

    name, title, key = "share_d", "D share", "d"
    help = "log10 of the derivative part: -(kD / k) (log e_n - 2 log e_(n-1) + log e_(n-2))."


@final
class Clamped(Statistic):
    """Whether a limit cut the controller's factor."""

    name, title, unit = "clamped", "Clamp hit", "code"
    help = "-1: the factor was raised to the smallest allowed, 1: cut to the largest, 0: neither."
    labels: ClassVar[Mapping[int, str]] = {-1: "raised", 0: "free", 1: "cut"}
    signed = True

    def measure(self, attempts: Attempts) -> Tensor:
        """Return -1, 0 or 1, `(n, B)` int64."""
        free = attempts.controller.unlimited_factor(
            attempts.error_ratio, attempts.error_order, attempts.history
        ).nan_to_num(nan=0.0)
        near = 1e-6 if free.dtype == torch.float64 else 1e-4
        cut = (attempts.factor < free * (1 - near)).long()
        return cut - (attempts.factor > free * (1 + near)).long()
