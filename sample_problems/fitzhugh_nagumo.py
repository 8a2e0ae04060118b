"""A nerve cell that fires or stays quiet."""

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
class FitzHughNagumo(SampleProblem):
    """FitzHugh-Nagumo model of a neuron; enough current makes it fire again and again."""

    name: ClassVar[str] = "fitzhugh_nagumo"
    title: ClassVar[str] = "FitzHugh-Nagumo: neurons that fire or stay quiet"
    question: ClassVar[str] = "Can one tell from the steps alone which neurons fire?"
    latex: ClassVar[str] = (
        r"\dot v = v - \tfrac{1}{3} v^3 - w + I, \quad \dot w = \varepsilon (v + a - b w)"
    )
    source: ClassVar[str] = (
        "FitzHugh (1961), Biophys. J. 1, 445-466; Nagumo et al. (1962), Proc. IRE 50, 2061-2070"
    )
    components: ClassVar[tuple[str, ...]] = ("voltage", "recovery")
    t1: ClassVar[float] = 100.0
    batch: ClassVar[int] = 48
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "current", "low": 0.0, "high": 1.6, "scale": "linear",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.SMOOTH, presets.LOW_ORDER,
    )  # fmt: skip

    a: Annotated[float, Bounds(-2.0, 2.0), Help("offset of the recovery")] = 0.7
    b: Annotated[float, Bounds(0.0, 2.0), Help("decay of the recovery")] = 0.8
    eps: Annotated[float, Bounds(0.001, 1.0, scale="log"), Help("speed of the recovery")] = 0.08
    current: Annotated[float, Bounds(-1.0, 3.0), Help("current fed in")] = 0.5

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the rates of voltage and recovery."""
        v, w = y.unbind(-1)
        dv = v - v**3 / 3 - w + p["current"]
        return torch.stack([dv, p["eps"] * (v + p["a"] - p["b"] * w)], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start at (-1, 1)."""
        one = torch.ones_like(p["current"])
        return torch.stack([-one, one], dim=-1)
