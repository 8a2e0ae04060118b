"""Van der Pol's oscillator, very stiff."""

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
class VanDerPolStiff(SampleProblem):
    """Relaxation oscillation: the state creeps for hundreds of times, then jumps."""

    name: ClassVar[str] = "van_der_pol_stiff"
    title: ClassVar[str] = "Van der Pol, stiff: creep and jump"
    question: ClassVar[str] = "How many decades of step size does one period take?"
    latex: ClassVar[str] = r"\dot x = v, \quad \dot v = \mu (1 - x^2) v - x"
    source: ClassVar[str] = "van der Pol (1926); Hairer & Wanner II (2nd ed.), section IV.10"
    components: ClassVar[tuple[str, ...]] = ("x", "v")
    phase: ClassVar[tuple[int, int] | None] = (0, 1)
    t1: ClassVar[float] = 2000.0
    batch: ClassVar[int] = 8
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "mu", "low": 500.0, "high": 1000.0, "scale": "log",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-4
    atol: ClassVar[float] = 1e-8
    method: ClassVar[str] = "radau5"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.PID, presets.STABILISED,
    )  # fmt: skip

    mu: Annotated[float, Bounds(10.0, 1e5, scale="log"), Help("stiffness")] = 1000.0

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return velocity and acceleration."""
        x, v = y.unbind(-1)
        return torch.stack([v, p["mu"] * (1 - x * x) * v - x], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start at rest at x = 2."""
        first = torch.tensor([2.0, 0.0], dtype=p["mu"].dtype)
        return first + 0 * p["mu"][:, None]
