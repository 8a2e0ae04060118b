"""Two fluids that part."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help

GRID = 32


@final
@dataclass(frozen=True, kw_only=True)
class CahnHilliard(SampleProblem):
    """Cahn-Hilliard equation on a ring of 32 points: the mean stays, the energy falls."""

    name: ClassVar[str] = "cahn_hilliard"
    title: ClassVar[str] = "Cahn-Hilliard: two fluids part"
    question: ClassVar[str] = "What do fourth derivatives cost an explicit method?"
    latex: ClassVar[str] = r"u_t = \partial_{xx} (u^3 - u - q\, u_{xx})"
    source: ClassVar[str] = "Cahn & Hilliard (1958), J. Chem. Phys. 28(2); Furihata (2001)"
    components: ClassVar[tuple[str, ...]] = tuple(f"u{i}" for i in range(1, GRID + 1))
    phase: ClassVar[tuple[int, int] | None] = (0, GRID // 4)
    t1: ClassVar[float] = 0.1
    batch: ClassVar[int] = 16
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "q", "low": 2e-4, "high": 5e-3, "scale": "log",
    }  # fmt: skip
    method: ClassVar[str] = "rodas5p"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.STABILISED, presets.JOINT,
    )  # fmt: skip

    q: Annotated[
        float, Bounds(1e-5, 0.1, scale="log"), Help("square of how wide the borders are")
    ] = 1e-3

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the second difference of the potential."""
        return _second(y**3 - y - p["q"][:, None] * _second(y))

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start nearly mixed, with random waves about the mean."""
        shape = (len(p["q"]), 4)
        heights = 0.1 * torch.randn(shape, generator=generator, dtype=torch.float64)
        x = torch.arange(GRID, dtype=torch.float64) / GRID
        k = torch.arange(1, 5, dtype=torch.float64)[:, None]
        return heights @ torch.cos(2 * torch.pi * k * x + k)


def _second(u: Tensor) -> Tensor:
    """Return the second difference over the squared mesh width, `(B, D)`, on a ring."""
    return (u.roll(1, 1) - 2 * u + u.roll(-1, 1)) * u.shape[1] ** 2
