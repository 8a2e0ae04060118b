"""A satellite between the earth and the moon."""

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
class Arenstorf(SampleProblem):
    """Restricted three-body problem; with the speed as it comes, a closed orbit with four loops."""

    name: ClassVar[str] = "arenstorf"
    title: ClassVar[str] = "Arenstorf: a satellite looping round earth and moon"
    question: ClassVar[str] = "What happens to the step size at each close pass of the moon?"
    latex: ClassVar[str] = (
        r"\ddot x = x + 2\dot y - \mu' \frac{x+\mu}{D_1} - \mu \frac{x-\mu'}{D_2}, \quad "
        r"\ddot y = y - 2\dot x - \mu' \frac{y}{D_1} - \mu \frac{y}{D_2}, \quad "
        r"D_{1,2} = \big((x + \mu, x - \mu')^2 + y^2\big)^{3/2}, \quad \mu' = 1 - \mu"
    )
    source: ClassVar[str] = "Arenstorf (1963); Hairer, Norsett & Wanner I (2nd ed.), eq. II.0.1"
    components: ClassVar[tuple[str, ...]] = ("x", "y", "vx", "vy")
    t1: ClassVar[float] = 17.065216560157962559  # one period
    batch: ClassVar[int] = 16
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "speed", "low": -2.0018, "high": -2.0013, "scale": "linear",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-7
    atol: ClassVar[float] = 1e-9
    method: ClassVar[str] = "dopri5"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.SMOOTH, presets.TIGHT,
    )  # fmt: skip

    mu: Annotated[float, Bounds(0.001, 0.5), Help("mass of the moon in that of both")] = 0.012277471
    distance: Annotated[float, Bounds(0.9, 1.1), Help("x at the start")] = 0.994
    speed: Annotated[float, Bounds(-2.5, -1.5), Help("vy at the start")] = -2.00158510637908252240

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return velocity and acceleration in the turning frame."""
        x1, x2, v1, v2 = y.unbind(-1)
        moon = p["mu"]
        earth = 1 - moon
        to_earth, to_moon = x1 + moon, x1 - earth
        pull_earth = earth / (to_earth**2 + x2**2) ** 1.5
        pull_moon = moon / (to_moon**2 + x2**2) ** 1.5
        a1 = x1 + 2 * v2 - pull_earth * to_earth - pull_moon * to_moon
        a2 = x2 - 2 * v1 - (pull_earth + pull_moon) * x2
        return torch.stack([v1, v2, a1, a2], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start beside the moon, across its line to the earth."""
        zero = torch.zeros_like(p["speed"])
        return torch.stack([p["distance"], zero, zero, p["speed"]], dim=-1)
