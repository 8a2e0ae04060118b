"""A flow that learns eight normal distributions on a circle."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from sample_problems._flow import Flow

RADIUS = 2.0
WIDTH = 0.2  # standard deviation of each


@final
@dataclass(frozen=True, kw_only=True)
class FlowGaussians(Flow):
    """Eight normal distributions evenly on a circle: the flow has to tear the plane apart."""

    name: ClassVar[str] = "flow_gaussians"
    title: ClassVar[str] = "Continuous normalizing flow: eight Gaussians"
    question: ClassVar[str] = "What does it cost to tear one cloud into eight?"

    def points(self, count: int, generator: torch.Generator) -> Tensor:
        """Return points of the mixture."""
        which = torch.randint(0, 8, (count,), generator=generator)
        angle = which.double() * (torch.pi / 4)
        middle = RADIUS * torch.stack([angle.cos(), angle.sin()], dim=1)
        return middle + WIDTH * torch.randn(count, 2, generator=generator, dtype=torch.float64)
