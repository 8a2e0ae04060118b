"""Solitary waves learnt through their energy."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from sample_problems._energy import CELLS, EnergyProblem

A, B = -6.0, 1.0


@final
@dataclass(frozen=True, kw_only=True)
class KdVEnergy(EnergyProblem):
    """Korteweg-de Vries equation, `u_t = D(-a/2 u^2 + b D2 u)`: two solitary waves that collide."""

    name: ClassVar[str] = "kdv_hnn"
    title: ClassVar[str] = "KdV: waves learnt through their energy"
    question: ClassVar[str] = "What does each adjoint cost on a smooth, long-range field?"
    latex: ClassVar[str] = (
        r"\dot u = D \nabla H_\theta(u), \quad "
        r"H = \sum \big(u^3 - \tfrac12 u_x^2\big)\,\Delta x \text{ to be learnt}"
    )
    source: ClassVar[str] = (
        "Matsubara, Miyatake & Yaguchi (2021), NeurIPS; data as in Matsubara, Ishikawa & Yaguchi "
        "(2020), NeurIPS"
    )
    t1: ClassVar[float] = 1e-2
    seed_of_data: ClassVar[int] = 1
    dt: ClassVar[float] = 1e-3
    width: ClassVar[float] = 10.0

    def beginnings(self, count: int, generator: torch.Generator) -> Tensor:
        """Return two waves each, of random height and place; half of them mirrored."""
        share = torch.rand(5, count, 1, generator=generator, dtype=torch.float64)
        x = torch.arange(CELLS, dtype=torch.float64) * self.dx
        place = 0.2 + 0.1 * share[2]
        places = (place, place + 0.2 + 0.3 * share[3])
        u = torch.zeros(count, CELLS, dtype=torch.float64)
        for part, at in zip(share[:2], places, strict=True):
            k = 0.5 + 1.5 * part
            u = u + (-6 / A) * 2 * (k / torch.cosh(k * (x - self.width * at))) ** 2
        return torch.where(share[4] < 0.5, u.flip(-1), u)

    def gradient(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return `-a/2 (u^2 + u v + v^2)/3 + b D2 (u + v)/2`."""
        linear = B / 2 * self.second_difference(torch.eye(CELLS, dtype=u.dtype))
        values = -A / 6 * (u * u + u * v + v * v) + B / 2 * self.second_difference(u + v)
        return values, torch.diag_embed(-A / 6 * (u + 2 * v)) + linear

    def operator(self, values: Tensor) -> Tensor:
        """Return the central difference."""
        return self.central_difference(values)

    def energy(self, u: Tensor) -> Tensor:
        """Return the true energy, `(N, 50) -> (N,)`."""
        ahead, behind = u.roll(-1, -1) - u, u - u.roll(1, -1)
        slope = (ahead**2 + behind**2) / (2 * self.dx**2)
        return (-A / 6 * u**3 - B / 2 * slope).sum(-1) * self.dx
