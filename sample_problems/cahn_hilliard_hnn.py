"""Two phases that part, learnt through their energy."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from sample_problems._energy import CELLS, EnergyProblem

GAMMA = 5e-4


@final
@dataclass(frozen=True, kw_only=True)
class CahnHilliardEnergy(EnergyProblem):
    """Cahn-Hilliard equation, `u_t = D2(-u + u^3 - g D2 u)`: small noise grows into two phases."""

    name: ClassVar[str] = "cahn_hilliard_hnn"
    title: ClassVar[str] = "Cahn-Hilliard: phases learnt through their energy"
    question: ClassVar[str] = "What does each adjoint cost on a stiff field that needs more steps?"
    latex: ClassVar[str] = (
        r"\dot u = D^2 \nabla H_\theta(u), \quad H = \sum \big(-\tfrac12 u^2 + \tfrac14 u^4 "
        r"+ \tfrac{\gamma}{2} u_x^2\big)\,\Delta x \text{ to be learnt}"
    )
    source: ClassVar[str] = (
        "Matsubara, Miyatake & Yaguchi (2021), NeurIPS; data as in Matsubara, Ishikawa & Yaguchi "
        "(2020), NeurIPS"
    )
    t1: ClassVar[float] = 1e-3
    dt: ClassVar[float] = 1e-4
    width: ClassVar[float] = 1.0

    def beginnings(self, count: int, generator: torch.Generator) -> Tensor:
        """Return noise in each cell."""
        noise = torch.rand(count, CELLS, generator=generator, dtype=torch.float64)
        return 0.1 * noise - 0.05

    def gradient(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return `-(u + v)/2 + (v^3 + v^2 u + v u^2 + u^3)/4 - g D2 (u + v)/2`."""
        eye = torch.eye(CELLS, dtype=u.dtype)
        linear = -eye / 2 - GAMMA / 2 * self.second_difference(eye)
        cubic = (v**3 + v**2 * u + v * u**2 + u**3) / 4
        values = -(u + v) / 2 + cubic - GAMMA / 2 * self.second_difference(u + v)
        return values, torch.diag_embed((3 * v**2 + 2 * u * v + u**2) / 4) + linear

    def operator(self, values: Tensor) -> Tensor:
        """Return the second difference."""
        return self.second_difference(values)

    def energy(self, u: Tensor) -> Tensor:
        """Return the true energy, `(N, 50) -> (N,)`."""
        ahead, behind = u.roll(-1, -1) - u, u - u.roll(1, -1)
        slope = (ahead**2 + behind**2) / (2 * self.dx**2)
        return (-(u**2) / 2 + u**4 / 4 + GAMMA / 2 * slope).sum(-1) * self.dx
