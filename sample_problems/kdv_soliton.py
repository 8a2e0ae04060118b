"""A solitary wave in a shallow canal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help

GRID = 64
LENGTH = 20.0
START = 5.0  # where the crest is at t = 0


@final
@dataclass(frozen=True, kw_only=True)
class KdVSoliton(SampleProblem):
    """Korteweg-de Vries equation on a ring of 64 points; a wave of height c/2 travels at speed
    c."""

    name: ClassVar[str] = "kdv_soliton"
    title: ClassVar[str] = "KdV: solitary waves, the taller the faster"
    question: ClassVar[str] = "Does a taller, faster wave cost more steps?"
    latex: ClassVar[str] = (
        r"u_t = -6 u u_x - u_{xxx}, \quad "
        r"u(x, 0) = \tfrac{c}{2}\, \mathrm{sech}^2\big(\tfrac{\sqrt c}{2} (x - 5)\big)"
    )
    source: ClassVar[str] = (
        "Korteweg & de Vries (1895); Zabusky & Kruskal (1965), Phys. Rev. Lett. 15; "
        "differences of Furihata (1999), J. Comput. Phys. 156"
    )
    components: ClassVar[tuple[str, ...]] = tuple(f"u{i}" for i in range(GRID))
    phase: ClassVar[tuple[int, int] | None] = (GRID // 4, GRID // 2)
    t1: ClassVar[float] = 2.0
    batch: ClassVar[int] = 16
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "speed", "low": 0.5, "high": 5.0, "scale": "linear",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.STABILISED, presets.TIGHT,
    )  # fmt: skip

    speed: Annotated[float, Bounds(0.1, 10.0), Help("speed c; the height is c/2")] = 2.0

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return -d/dx (3 u^2 + u_xx) by central differences; keeps mass and energy of the ring."""
        dx = LENGTH / GRID
        second = (y.roll(-1, -1) - 2 * y + y.roll(1, -1)) / dx**2
        flux = 3 * y * y + second
        return (flux.roll(1, -1) - flux.roll(-1, -1)) / (2 * dx)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with one crest at x = 5 and its two images round the ring."""
        x = torch.arange(GRID, dtype=torch.float64) * (LENGTH / GRID) - START
        c = p["speed"][:, None]
        images = (1 / ((x + turn * LENGTH) * c.sqrt() / 2).cosh() ** 2 for turn in (-1, 0, 1))
        return c / 2 * torch.stack(list(images)).sum(0)
