"""Warmth spreading along a rod."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help

GRID = 32
MODES = 6


@final
@dataclass(frozen=True, kw_only=True)
class Heat1D(SampleProblem):
    """Heat equation on 32 points between cold ends; stability, not accuracy, limits explicit
    steps."""

    name: ClassVar[str] = "heat_1d"
    title: ClassVar[str] = "Heat equation: warmth spreading along a rod"
    question: ClassVar[str] = "Why do steps stay small long after the solution is smooth?"
    latex: ClassVar[str] = r"u_t = \kappa\, u_{xx}, \quad u(0, t) = u(1, t) = 0"
    source: ClassVar[str] = "Hairer, Norsett & Wanner I (2nd ed.), sec. I.6"
    components: ClassVar[tuple[str, ...]] = tuple(f"u{i}" for i in range(1, GRID + 1))
    phase: ClassVar[tuple[int, int] | None] = (GRID // 4, GRID // 2)
    t1: ClassVar[float] = 0.5
    batch: ClassVar[int] = 32
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "diffusivity", "low": 0.01, "high": 1.0, "scale": "log",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.STABILISED, presets.PID, presets.JOINT,
    )  # fmt: skip

    diffusivity: Annotated[float, Bounds(0.0, 2.0), Help("how fast warmth spreads")] = 0.2

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the second difference over the squared mesh width."""
        cold = torch.zeros_like(y[:, :1])
        wide = torch.cat([cold, y, cold], dim=-1)
        second = wide[:, :-2] - 2 * y + wide[:, 2:]
        return p["diffusivity"][:, None] * (GRID + 1) ** 2 * second

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with six sine waves of random height, the shorter the lower."""
        shape = (len(p["diffusivity"]), MODES)
        heights = torch.randn(shape, generator=generator, dtype=torch.float64)
        k = torch.arange(1, MODES + 1, dtype=torch.float64)
        return (heights / k) @ sines(torch.float64)[:MODES]

    def exact(self, t: Tensor, y0: Tensor, p: Parameters) -> Tensor:
        """Return the solution on the grid: each sine wave decays by itself."""
        waves = sines(y0.dtype)
        k = torch.arange(1, GRID + 1, dtype=y0.dtype)
        rate = 4 * (GRID + 1) ** 2 * (k * torch.pi / (2 * (GRID + 1))).sin() ** 2
        heights = y0 @ waves * (2 / (GRID + 1))
        return (heights * (-(p["diffusivity"] * t)[:, None] * rate).exp()) @ waves


def sines(dtype: torch.dtype) -> Tensor:
    """Return sin(k pi x_i), `(k, i)`, all waves the grid can hold."""
    i = torch.arange(1, GRID + 1, dtype=dtype)
    return (i[:, None] * i * (torch.pi / (GRID + 1))).sin()
