"""Convection in three numbers, the first strange attractor."""

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
class Lorenz(SampleProblem):
    """Lorenz system; starts lie within a thousandth of each other and drift apart."""

    name: ClassVar[str] = "lorenz"
    title: ClassVar[str] = "Lorenz: weather that forgets where it came from"
    question: ClassVar[str] = "Do rows that settle need fewer steps than rows that stay chaotic?"
    latex: ClassVar[str] = (
        r"\dot x = \sigma (y - x), \quad \dot y = x (\rho - z) - y, \quad \dot z = x y - \beta z"
    )
    source: ClassVar[str] = "Lorenz (1963), J. Atmos. Sci. 20, 130-141"
    components: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    phase: ClassVar[tuple[int, int] | None] = (0, 2)
    t1: ClassVar[float] = 20.0
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "rho", "low": 5.0, "high": 40.0, "scale": "linear",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.SMOOTH, presets.TIGHT,
    )  # fmt: skip

    sigma: Annotated[float, Bounds(0.0, 50.0), Help("Prandtl number")] = 10.0
    rho: Annotated[float, Bounds(0.0, 250.0), Help("Rayleigh number, in units of the critical")] = (
        28.0
    )
    beta: Annotated[float, Bounds(0.0, 10.0), Help("shape of the convection rolls")] = 8 / 3

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the three rates."""
        a, b, c = y.unbind(-1)
        return torch.stack(
            [p["sigma"] * (b - a), a * (p["rho"] - c) - b, a * b - p["beta"] * c], dim=-1
        )

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start at (1, 1, 1), moved by up to a thousandth."""
        shape = (len(p["rho"]), 3)
        return 1 + 1e-3 * (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1)
