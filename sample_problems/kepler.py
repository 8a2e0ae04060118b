"""A planet and its sun."""

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
class Kepler(SampleProblem):
    """Kepler's problem in units of the semi-major axis; one orbit takes 2 pi."""

    name: ClassVar[str] = "kepler"
    title: ClassVar[str] = "Kepler: planets from round to comet-like orbits"
    question: ClassVar[str] = "How do steps shrink when a comet passes close to the sun?"
    latex: ClassVar[str] = r"\ddot{\mathbf q} = -\,\mathbf q / |\mathbf q|^3"
    source: ClassVar[str] = (
        "Kepler (1609); problems D1-D5 of Hull et al. (1972), SIAM J. Numer. Anal. 9"
    )
    components: ClassVar[tuple[str, ...]] = ("x", "y", "vx", "vy")
    t1: ClassVar[float] = 18.84955592153876  # three orbits
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "eccentricity", "low": 0.0, "high": 0.95, "scale": "linear",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-6
    atol: ClassVar[float] = 1e-9
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.SMOOTH, presets.TIGHT,
    )  # fmt: skip

    eccentricity: Annotated[float, Bounds(0.0, 0.99), Help("0 is a circle, 1 a parabola")] = 0.5

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return velocity and attraction."""
        q, v = y[:, :2], y[:, 2:]
        return torch.cat([v, -q / (q * q).sum(-1, keepdim=True) ** 1.5], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start nearest to the sun."""
        e = p["eccentricity"]
        zero = torch.zeros_like(e)
        return torch.stack([1 - e, zero, zero, ((1 + e) / (1 - e)).sqrt()], dim=-1)

    def exact(self, t: Tensor, y0: Tensor, p: Parameters) -> Tensor:
        """Return the point on the ellipse; Newton's method gives E - e sin E = t."""
        e = p["eccentricity"]
        t = t.remainder(2 * torch.pi)
        anomaly = torch.where(e > 0.8, torch.full_like(t, torch.pi), t)
        for _ in range(60):
            anomaly = anomaly - (anomaly - e * anomaly.sin() - t) / (1 - e * anomaly.cos())
        b = (1 - e * e).sqrt()
        rate = 1 / (1 - e * anomaly.cos())
        x, y = anomaly.cos() - e, b * anomaly.sin()
        return torch.stack([x, y, -rate * anomaly.sin(), rate * b * anomaly.cos()], dim=-1)
