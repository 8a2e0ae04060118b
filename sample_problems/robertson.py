"""Three reactions, each far faster than the one before."""

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
class Robertson(SampleProblem):
    """Robertson's reactions over a short span; an explicit method crawls though little happens."""

    name: ClassVar[str] = "robertson"
    title: ClassVar[str] = "Robertson: a stiff reaction, explicit methods suffer"
    question: ClassVar[str] = "How does stiffness look when the method is the wrong one?"
    latex: ClassVar[str] = (
        r"\dot a = -k_1 a + k_2 b c, \quad \dot b = k_1 a - k_2 b c - k_3 b^2, \quad "
        r"\dot c = k_3 b^2"
    )
    source: ClassVar[str] = "Robertson (1966); Hairer & Wanner II (2nd ed.), eq. IV.1.4"
    components: ClassVar[tuple[str, ...]] = ("a", "b", "c")
    phase: ClassVar[tuple[int, int] | None] = (0, 2)
    t1: ClassVar[float] = 2.0
    batch: ClassVar[int] = 24
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "k3", "low": 1e4, "high": 3e7, "scale": "log",
    }  # fmt: skip
    atol: ClassVar[float] = 1e-8
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.STABILISED, presets.LOW_ORDER, presets.JOINT,
    )  # fmt: skip

    k1: Annotated[float, Bounds(0.0, 1.0), Help("slow reaction")] = 0.04
    k2: Annotated[float, Bounds(0.0, 1e5), Help("fast reaction")] = 1e4
    k3: Annotated[float, Bounds(1.0, 1e8, scale="log"), Help("very fast reaction")] = 3e7

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the rates; they add up to 0."""
        a, b, c = y.unbind(-1)
        slow, fast, very_fast = p["k1"] * a, p["k2"] * b * c, p["k3"] * b * b
        return torch.stack([fast - slow, slow - fast - very_fast, very_fast], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with all of the first substance."""
        one, zero = torch.ones_like(p["k3"]), torch.zeros_like(p["k3"])
        return torch.stack([one, zero, zero], dim=-1)
