"""Antibodies that go into a tumour."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help

GRID = 40


@final
@dataclass(frozen=True, kw_only=True)
class MedicalAkzo(SampleProblem):
    """Medical Akzo Nobel: diffusion on a half line, mapped to 40 points, and binding.

    Antibodies are given at the boundary until t = 5.
    """

    name: ClassVar[str] = "medical_akzo"
    title: ClassVar[str] = "Medical Akzo: antibodies go into a tissue"
    question: ClassVar[str] = "What does a supply that stops at a known time do to the steps?"
    latex: ClassVar[str] = (
        r"u_t = u_{xx} - k u v, \quad v_t = -k u v, \quad u(0, t) = 2 \text{ for } t \le 5"
    )
    source: ClassVar[str] = "Mazzia & Magherini (2008), Test Set for IVP Solvers, problem MEDAKZO"
    components: ClassVar[tuple[str, ...]] = tuple(
        f"{letter}{i}" for i in range(1, GRID + 1) for letter in "uv"
    )
    phase: ClassVar[tuple[int, int] | None] = (GRID // 2, GRID // 2 + 1)
    t1: ClassVar[float] = 20.0
    batch: ClassVar[int] = 8
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "k", "low": 1.0, "high": 1000.0, "scale": "log",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-4
    atol: ClassVar[float] = 1e-7
    method: ClassVar[str] = "rodas5p"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.PID, presets.STABILISED,
    )  # fmt: skip

    k: Annotated[float, Bounds(0.0, 1e4), Help("how fast antibodies bind")] = 100.0
    c: Annotated[float, Bounds(0.5, 20.0), Help("where the mapping has its middle")] = 4.0

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return diffusion on the mapped grid, and binding."""
        u, v = y[:, 0::2], y[:, 1::2]
        dz, square = 1.0 / GRID, p["c"][:, None] ** 2
        zeta = torch.arange(1, GRID + 1, dtype=y.dtype) * dz
        alpha, beta = 2 * (zeta - 1) ** 3 / square, (zeta - 1) ** 4 / square
        supply = torch.where(t <= 5, 2.0, 0.0).to(y.dtype)[:, None]
        before = torch.cat([supply, u[:, :-1]], dim=1)
        after = torch.cat([u[:, 1:], u[:, -1:]], dim=1)  # at its end alpha and beta are 0
        moved = alpha * (after - before) / (2 * dz) + beta * (before - 2 * u + after) / dz**2
        bound = p["k"][:, None] * u * v
        return torch.stack([moved - bound, -bound], dim=2).flatten(1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start without antibodies, every place free."""
        y0 = torch.zeros(len(p["k"]), 2 * GRID, dtype=torch.float64)
        y0[:, 1::2] = 1.0
        return y0

    def jumps(self, p: Parameters) -> Tensor:
        """Return when the supply stops."""
        return torch.full_like(p["k"][:, None], 5.0)
