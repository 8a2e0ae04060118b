"""A circuit switched on and off."""

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
class Discontinuous(SampleProblem):
    """A capacitor charged by a square wave; the field jumps at every half period."""

    name: ClassVar[str] = "discontinuous"
    title: ClassVar[str] = "Switched circuit: a field that jumps"
    question: ClassVar[str] = (
        "How many steps are refused at a jump, and how many if it is announced?"
    )
    latex: ClassVar[str] = (
        r"\tau \dot y = s(t) - y, \quad "
        r"s(t) = \pm 1 \text{ in turn, for half a period } T/2 \text{ each}"
    )
    source: ClassVar[str] = (
        "Hairer, Norsett & Wanner I (2nd ed.), sec. II.6, discontinuous equations"
    )
    components: ClassVar[tuple[str, ...]] = ("voltage",)
    phase: ClassVar[tuple[int, int] | None] = None
    t1: ClassVar[float] = 4.0
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "period", "low": 0.4, "high": 3.0, "scale": "linear",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.preset("announced", "Jumps announced", parameters={"announce_jumps": True}),
        presets.preset("blind", "Jumps found blindly", parameters={"announce_jumps": False}),
        presets.INTEGRAL,
        presets.SMOOTH,
    )

    tau: Annotated[float, Bounds(0.01, 10.0, scale="log"), Help("time of charging")] = 0.5
    period: Annotated[float, Bounds(0.1, 10.0), Help("period T of the square wave")] = 1.0
    announce_jumps: Annotated[bool, Help("tell the solver when the field jumps")] = False

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return (s - y) / tau."""
        wave = 1 - 2 * halves_passed(t, p["period"].to(t.dtype)).remainder(2).to(y.dtype)
        return (wave[:, None] - y) / p["tau"][:, None]

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start uncharged."""
        return torch.zeros_like(p["tau"])[:, None]

    def switching_times(self, p: Parameters) -> Tensor:
        """Return every multiple of half a period before `t1`, `(B, J)`, NaN behind the last."""
        period = p["period"].double()[:, None]
        count = int((2 * self.t1 / period).max().ceil())
        number = torch.arange(1, count + 1, dtype=torch.float64, device=period.device)
        times = number * period / 2
        # To the last bit the first time that the field counts as behind the switch.
        up = times.nextafter(torch.full_like(times, torch.inf))
        times = torch.where(halves_passed(times, period) < number, up, times)
        for _ in range(3):
            down = times.nextafter(torch.zeros_like(times))
            times = torch.where(halves_passed(down, period) < number, times, down)
        return torch.where(times < self.t1, times, torch.nan)

    def jumps(self, p: Parameters) -> Tensor | None:
        """Return the switching times if they are to be announced."""
        return self.switching_times(p) if self.announce_jumps else None

    def exact(self, t: Tensor, y0: Tensor, p: Parameters) -> Tensor:
        """Return the sum of the exponential answers to each switch so far."""
        tau, t = p["tau"].double(), t.double()
        since = t[:, None] - torch.cat(
            [torch.zeros_like(t)[:, None], self.switching_times(p)], dim=1
        )  # (B, 1 + J) time since each switch
        size = torch.full_like(since, 2.0)  # how far the target moves at each switch
        size[:, 0] = 1.0
        size[:, 1::2] *= -1
        answer = torch.where(since > 0, size * -torch.expm1(-since / tau[:, None]), 0.0)
        y = y0[:, 0].double() * (-t / tau).exp() + answer.sum(dim=1)
        return y[:, None].to(y0.dtype)


def halves_passed(t: Tensor, period: Tensor) -> Tensor:
    """Return how many half periods are over."""
    return (2 * t / period).floor()
