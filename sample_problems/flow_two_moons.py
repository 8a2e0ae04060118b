"""A flow that learns two half moons."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from sample_problems._flow import Flow

WIDTH = 0.1  # standard deviation across a moon


@final
@dataclass(frozen=True, kw_only=True)
class FlowTwoMoons(Flow):
    """Two half circles that reach into each other, blurred."""

    name: ClassVar[str] = "flow_two_moons"
    title: ClassVar[str] = "Continuous normalizing flow: two moons"
    question: ClassVar[str] = "At which tolerance does a continuous adjoint's gradient go wrong?"
    goal: ClassVar[float | None] = 2.3

    def points(self, count: int, generator: torch.Generator) -> Tensor:
        """Return points on either moon, of about zero mean and unit size."""
        angle = torch.pi * torch.rand(count, generator=generator, dtype=torch.float64)
        lower = torch.rand(count, generator=generator, dtype=torch.float64) < 0.5
        x = torch.where(lower, 1 - angle.cos(), angle.cos())
        y = torch.where(lower, 0.5 - angle.sin(), angle.sin())
        blur = WIDTH * torch.randn(count, 2, generator=generator, dtype=torch.float64)
        return 1.5 * (torch.stack([x - 0.5, y - 0.25], dim=1) + blur)
