"""A chemical clock along a line, with diffusion."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help

GRID = 24


@final
@dataclass(frozen=True, kw_only=True)
class Brusselator1D(SampleProblem):
    """Brusselator with diffusion on 24 points; the fixed ends hold u = 1, v = 3."""

    name: ClassVar[str] = "brusselator_1d"
    title: ClassVar[str] = "Brusselator: chemical waves along a line"
    question: ClassVar[str] = "When does diffusion, not accuracy, set the step size?"
    latex: ClassVar[str] = (
        r"u_t = 1 + u^2 v - 4 u + \alpha u_{xx}, \quad v_t = 3 u - u^2 v + \alpha v_{xx}"
    )
    source: ClassVar[str] = "Hairer & Wanner II (2nd ed.), eq. IV.1.6"
    components: ClassVar[tuple[str, ...]] = tuple(
        f"{letter}{i}" for letter in "uv" for i in range(1, GRID + 1)
    )
    phase: ClassVar[tuple[int, int] | None] = (GRID // 2, GRID + GRID // 2)
    t1: ClassVar[float] = 10.0
    batch: ClassVar[int] = 16
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "alpha", "low": 0.002, "high": 0.1, "scale": "log",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.STABILISED, presets.JOINT,
    )  # fmt: skip

    alpha: Annotated[float, Bounds(0.0, 1.0), Help("diffusion")] = 0.02

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return reaction and diffusion, by central differences."""
        u, v = y[:, :GRID], y[:, GRID:]
        gamma = p["alpha"][:, None] * (GRID + 1) ** 2
        one = torch.ones_like(u[:, :1])
        wide_u = torch.cat([one, u, one], dim=-1)
        wide_v = torch.cat([3 * one, v, 3 * one], dim=-1)
        uuv = u * u * v
        du = 1 + uuv - 4 * u + gamma * (wide_u[:, :-2] - 2 * u + wide_u[:, 2:])
        dv = 3 * u - uuv + gamma * (wide_v[:, :-2] - 2 * v + wide_v[:, 2:])
        return torch.cat([du, dv], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with u = 1 + sin(2 pi x), v = 3."""
        x = torch.arange(1, GRID + 1, dtype=torch.float64) / (GRID + 1)
        y0 = torch.cat([1 + (2 * torch.pi * x).sin(), torch.full_like(x, 3.0)])
        return y0.repeat(len(p["alpha"]), 1)
