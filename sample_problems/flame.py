"""A ball of flame that grows, then burns steadily."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help


@final
@dataclass(frozen=True, kw_only=True)
class Flame(SampleProblem):
    """Flame propagation: the radius creeps, explodes at about t = 1/delta, then stays at 1."""

    name: ClassVar[str] = "flame"
    title: ClassVar[str] = "Flame: a spark that catches, then burns steadily"
    question: ClassVar[str] = "Why do steps stay small once nothing moves any more?"
    latex: ClassVar[str] = r"\dot r = r^2 - r^3, \quad r(0) = \delta"
    source: ClassVar[str] = (
        "O'Malley (1991), Singular Perturbation Methods; Shampine & Moler (2003)"
    )
    components: ClassVar[tuple[str, ...]] = ("radius",)
    phase: ClassVar[tuple[int, int] | None] = None
    t1: ClassVar[float] = 400.0
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "delta", "low": 0.004, "high": 0.1, "scale": "log",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.PID, presets.STABILISED, presets.SMOOTH,
    )  # fmt: skip

    delta: Annotated[float, Bounds(1e-5, 0.5, scale="log"), Help("radius at the start")] = 0.01

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return what burns on the surface less what the volume uses up."""
        return y * y * (1 - y)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with a spark of radius delta."""
        return p["delta"][:, None].clone()
