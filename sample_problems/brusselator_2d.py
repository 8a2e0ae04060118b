"""A chemical clock on a square, with diffusion."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help

GRID = 12
LIT = 1.1  # when the source is switched on


@final
@dataclass(frozen=True, kw_only=True)
class Brusselator2D(SampleProblem):
    """Brusselator with diffusion on a periodic square; a source in a disc from t = 1.1 on.

    `field` takes squares of any size: `(B, 2 n^2)`, u on all points, then v.
    """

    name: ClassVar[str] = "brusselator_2d"
    title: ClassVar[str] = "Brusselator: chemical waves on a square"
    question: ClassVar[str] = "When is a linear system better solved without its matrix?"
    latex: ClassVar[str] = (
        r"u_t = 1 + u^2 v - 4.4 u + \alpha \Delta u + g, \quad "
        r"v_t = 3.4 u - u^2 v + \alpha \Delta v"
    )
    source: ClassVar[str] = "Hairer & Wanner II (2nd ed.), section IV.10, BRUSS-2D"
    components: ClassVar[tuple[str, ...]] = tuple(
        f"{letter}{i}_{j}" for letter in "uv" for i in range(GRID) for j in range(GRID)
    )
    phase: ClassVar[tuple[int, int] | None] = (GRID // 2, GRID * GRID + GRID // 2)
    t1: ClassVar[float] = 11.5
    batch: ClassVar[int] = 4
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "alpha", "low": 0.01, "high": 0.2, "scale": "log",
    }  # fmt: skip
    method: ClassVar[str] = "rkc2"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.STABILISED, presets.JOINT,
    )  # fmt: skip

    alpha: Annotated[float, Bounds(0.0, 1.0), Help("diffusion")] = 0.1

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return reaction, diffusion by five points, and the source."""
        n = math.isqrt(y.shape[1] // 2)
        u, v = (part.unflatten(1, (n, n)) for part in y.chunk(2, dim=1))
        alpha = (p["alpha"] * n * n)[:, None, None]
        x = torch.arange(n, dtype=y.dtype) / n
        inside = (x[:, None] - 0.3) ** 2 + (x - 0.6) ** 2 <= 0.01
        source = (t >= LIT).to(y.dtype)[:, None, None] * 5 * inside
        uuv = u * u * v
        du = 1 + uuv - 4.4 * u + alpha * _laplace(u) + source
        dv = 3.4 * u - uuv + alpha * _laplace(v)
        return torch.cat([du.flatten(1), dv.flatten(1)], dim=1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with a ridge along each side."""
        return self.ridges(GRID).repeat(len(p["alpha"]), 1)

    @staticmethod
    def ridges(n: int) -> Tensor:
        """Return the start on `n^2` points, `(1, 2 n^2)`."""
        x = torch.arange(n, dtype=torch.float64) / n
        ridge = x * (1 - x) ** 1.5
        u, v = 22 * ridge.expand(n, n), 27 * ridge[:, None].expand(n, n)
        return torch.cat([u.flatten(), v.flatten()])[None]

    def jumps(self, p: Parameters) -> Tensor:
        """Return when the source is switched on."""
        return torch.full_like(p["alpha"][:, None], LIT)


def _laplace(u: Tensor) -> Tensor:
    """Return what the four neighbours have more, `(B, n, n)`, on a torus."""
    around = u.roll(1, 1) + u.roll(-1, 1) + u.roll(1, 2) + u.roll(-1, 2)
    return around - 4 * u
