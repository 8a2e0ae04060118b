"""A driven beam between two magnets."""

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
class Duffing(SampleProblem):
    """Duffing oscillator; a stronger drive makes it hop between its two wells."""

    name: ClassVar[str] = "duffing"
    title: ClassVar[str] = "Duffing: a driven beam between two magnets"
    question: ClassVar[str] = "What do steps look like when the drive turns motion chaotic?"
    latex: ClassVar[str] = (
        r"\ddot x = -\delta \dot x - \alpha x - \beta x^3 + \gamma \cos(\omega t)"
    )
    source: ClassVar[str] = "Duffing (1918); Guckenheimer & Holmes (1983), sec. 2.2"
    components: ClassVar[tuple[str, ...]] = ("x", "v")
    t1: ClassVar[float] = 60.0
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "gamma", "low": 0.2, "high": 0.65, "scale": "linear",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.SMOOTH, presets.TIGHT,
    )  # fmt: skip

    delta: Annotated[float, Bounds(0.0, 2.0), Help("friction")] = 0.3
    alpha: Annotated[float, Bounds(-5.0, 5.0), Help("linear stiffness; below 0: two wells")] = -1.0
    beta: Annotated[float, Bounds(0.0, 10.0), Help("cubic stiffness")] = 1.0
    gamma: Annotated[float, Bounds(0.0, 5.0), Help("strength of the drive")] = 0.5
    omega: Annotated[float, Bounds(0.1, 5.0), Help("angular frequency of the drive")] = 1.2

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return velocity and force."""
        x, v = y.unbind(-1)
        drive = p["gamma"] * (p["omega"] * t).cos().to(y.dtype)
        return torch.stack([v, drive - p["delta"] * v - x * (p["alpha"] + p["beta"] * x * x)], -1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start at a random point of the square from -1 to 1."""
        shape = (len(p["gamma"]), 2)
        return 2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1
