"""A star in a galaxy, orderly or chaotic."""

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
class HenonHeiles(SampleProblem):
    """Henon-Heiles potential; orbits turn chaotic as the energy nears 1/6, above which they
    leave."""

    name: ClassVar[str] = "henon_heiles"
    title: ClassVar[str] = "Henon-Heiles: stars on orderly and chaotic orbits"
    question: ClassVar[str] = "Does the step size tell an orderly orbit from a chaotic one?"
    latex: ClassVar[str] = (
        r"H = \tfrac12 (p_x^2 + p_y^2) + \tfrac12 (x^2 + y^2) + x^2 y - \tfrac13 y^3"
    )
    source: ClassVar[str] = "Henon & Heiles (1964), Astron. J. 69, 73-79"
    components: ClassVar[tuple[str, ...]] = ("x", "y", "px", "py")
    t1: ClassVar[float] = 100.0
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "energy", "low": 0.02, "high": 0.166, "scale": "linear",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-6
    atol: ClassVar[float] = 1e-8
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.SMOOTH, presets.TIGHT,
    )  # fmt: skip

    energy: Annotated[float, Bounds(0.01, 0.1666), Help("energy; orbits can leave above 1/6")] = (
        0.125
    )

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return velocity and force."""
        q1, q2, p1, p2 = y.unbind(-1)
        return torch.stack([p1, p2, -q1 - 2 * q1 * q2, -q2 - q1 * q1 + q2 * q2], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start on x = 0 near y = 0, in a random direction, with the energy given."""
        energy = p["energy"]
        shape = (2, len(energy))
        one, two = 2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1
        q2 = 0.1 * one
        speed = (2 * (energy - q2**2 / 2 + q2**3 / 3)).sqrt()
        angle = 1.2 * two
        return torch.stack(
            [torch.zeros_like(q2), q2, speed * angle.cos(), speed * angle.sin()], dim=-1
        )
