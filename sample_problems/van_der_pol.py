"""An oscillator whose friction changes sign."""

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
class VanDerPol(SampleProblem):
    """Van der Pol oscillator; with a large `mu` it creeps, then jumps, and turns stiff."""

    name: ClassVar[str] = "van_der_pol"
    title: ClassVar[str] = "Van der Pol: oscillators from gentle to stiff"
    question: ClassVar[str] = "How many more steps does a stiff row need than a gentle one?"
    latex: ClassVar[str] = r"\ddot x = \mu\,(1 - x^2)\,\dot x - x"
    source: ClassVar[str] = "van der Pol (1926), Phil. Mag. 2, 978-992"
    components: ClassVar[tuple[str, ...]] = ("x", "v")
    t1: ClassVar[float] = 20.0
    batch: ClassVar[int] = 64
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "mu", "low": 0.5, "high": 50.0, "scale": "log",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.STABILISED, presets.JOINT,
    )  # fmt: skip

    mu: Annotated[float, Bounds(0.0, 1000.0, scale="linear"), Help("strength of the friction")] = (
        5.0
    )

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return (v, mu (1 - x^2) v - x)."""
        x, v = y.unbind(-1)
        return torch.stack([v, p["mu"] * (1 - x * x) * v - x], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start near the limit cycle, at (2, 0)."""
        return torch.stack([torch.full_like(p["mu"], 2.0), torch.zeros_like(p["mu"])], dim=-1)
