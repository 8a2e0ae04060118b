"""The same oscillator many times, each at another place of its cycle."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help
from solver.solve import solve_ivp


@final
@dataclass(frozen=True, kw_only=True)
class VanDerPolPhases(SampleProblem):
    """Van der Pol oscillators with shifted phases: at any time some of them jump."""

    name: ClassVar[str] = "van_der_pol_phases"
    title: ClassVar[str] = "Van der Pol: the same oscillator at shifted phases"
    question: ClassVar[str] = "How many steps does one step size for the whole batch waste?"
    latex: ClassVar[str] = r"\ddot x = \mu\,(1 - x^2)\,\dot x - x"
    source: ClassVar[str] = "Lienen & Guennemann (2022), torchode, section 4"
    components: ClassVar[tuple[str, ...]] = ("x", "v")
    t1: ClassVar[float] = 60.0
    batch: ClassVar[int] = 64
    rtol: ClassVar[float] = 1e-5
    atol: ClassVar[float] = 1e-5
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "turn", "low": 0.0, "high": 1.0, "scale": "linear",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.JOINT,
    )  # fmt: skip

    mu: Annotated[float, Bounds(0.1, 100.0, scale="log"), Help("strength of the friction")] = 25.0
    turn: Annotated[
        float, Bounds(0.0, 1.0), Help("how far along its cycle it starts; 0 is at (2, 0)")
    ] = 0.0

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return (v, mu (1 - x^2) v - x)."""
        x, v = y.unbind(-1)
        return torch.stack([v, p["mu"] * (1 - x * x) * v - x], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start where (2, 0) leads to after a part of a cycle."""
        y0 = torch.stack([torch.full_like(p["mu"], 2.0), torch.zeros_like(p["mu"])], dim=-1)
        ahead = p["turn"] * period(p["mu"])
        sol = solve_ivp(self.field, y0, t0=0.0, t1=ahead, args=p, rtol=1e-8, atol=1e-10)
        return sol.ys[:, -1]


def period(mu: Tensor) -> Tensor:
    """Return how long a cycle takes, `(B,)`; up to a tenth off where mu is about 2.

    Leading terms of Dorodnicyn (1947) for large mu, of Lindstedt's series for small.
    """
    large = (3 - 2 * math.log(2)) * mu + 7.0143 * mu ** (-1 / 3)
    return torch.where(mu < 2, 2 * math.pi * (1 + mu * mu / 16), large)
