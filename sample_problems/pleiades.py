"""Seven stars in a plane."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help

START_X = (3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0)
START_Z = (3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0)
START_VX = (0.0, 0.0, 0.0, 0.0, 0.0, 1.75, -1.5)
START_VZ = (0.0, 0.0, 0.0, -1.25, 1.0, 0.0, 0.0)


@final
@dataclass(frozen=True, kw_only=True)
class Pleiades(SampleProblem):
    """Seven bodies of mass 1 to 7 that attract each other, with several close encounters."""

    name: ClassVar[str] = "pleiades"
    title: ClassVar[str] = "Pleiades: seven stars that nearly collide"
    question: ClassVar[str] = "Which star sets the step size at each encounter?"
    latex: ClassVar[str] = (
        r"\ddot{\mathbf q}_i = G \sum_{j \ne i} m_j\,"
        r"\frac{\mathbf q_j - \mathbf q_i}{|\mathbf q_j - \mathbf q_i|^3}, \quad m_j = j"
    )
    source: ClassVar[str] = (
        "Hairer, Norsett & Wanner I (2nd ed.), sec. II.10; Mazzia & Magherini, "
        "Test Set for IVP Solvers, release 2.4"
    )
    components: ClassVar[tuple[str, ...]] = tuple(
        f"{letter}{star}" for letter in ("x", "z", "vx", "vz") for star in range(1, 8)
    )
    phase: ClassVar[tuple[int, int] | None] = (0, 7)
    t1: ClassVar[float] = 3.0
    batch: ClassVar[int] = 16
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "gravity", "low": 0.5, "high": 1.5, "scale": "linear",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-6
    atol: ClassVar[float] = 1e-8
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.TIGHT, presets.JOINT,
    )  # fmt: skip

    gravity: Annotated[float, Bounds(0.0, 3.0), Help("constant of gravity G")] = 1.0

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return velocities and attractions; all 49 pairs at once, a star's own being 0."""
        x, z, vx, vz = y.unflatten(-1, (4, 7)).unbind(-2)  # (B, 7) each
        dx, dz = x[:, None] - x[:, :, None], z[:, None] - z[:, :, None]  # (B, i, j), from i to j
        itself = torch.eye(7, dtype=y.dtype, device=y.device)
        mass = torch.arange(1, 8, dtype=y.dtype, device=y.device)
        pull = p["gravity"][:, None, None] * mass / (dx * dx + dz * dz + itself) ** 1.5
        return torch.cat([vx, vz, (pull * dx).sum(-1), (pull * dz).sum(-1)], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start as in the literature, in every instance."""
        y0 = torch.tensor(START_X + START_Z + START_VX + START_VZ, dtype=torch.float64)
        return y0.repeat(len(p["gravity"]), 1)
