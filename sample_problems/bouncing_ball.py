"""A ball that loses speed at every bounce: events that change the state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help
from solver.events import Event


@final
@dataclass(frozen=True, kw_only=True)
class BouncingBall(SampleProblem):
    """A ball falls, and where it meets the ground its speed is turned round and reduced.

    Bounces come ever faster, infinitely many in a finite time; one slower than a thousandth of the
    first leaves the ball lying on the ground.
    """

    name: ClassVar[str] = "bouncing_ball"
    title: ClassVar[str] = "Bouncing ball: events change the state"
    question: ClassVar[str] = "Where do steps end at a bounce, each row at its own time?"
    latex: ClassVar[str] = r"\ddot x = -g, \quad x = 0 \text{ falling}: \; \dot x \to -e\,\dot x"
    source: ClassVar[str] = "Shampine & Thompson (2000), Comput. Math. Appl. 39, 43-54"
    components: ClassVar[tuple[str, ...]] = ("x", "v")
    t1: ClassVar[float] = 8.0
    batch: ClassVar[int] = 32
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "e", "low": 0.6, "high": 0.95, "scale": "linear",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.STABILISED,
    )  # fmt: skip

    e: Annotated[float, Bounds(0.5, 1.0), Help("share of the speed kept at a bounce")] = 0.8
    g: Annotated[float, Bounds(0.1, 50.0, scale="log"), Help("gravity")] = 9.81
    height: Annotated[float, Bounds(0.1, 100.0, scale="log"), Help("where it is let go")] = 5.0

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return (v, -g), or nothing for a ball that lies still."""
        x, v = y.unbind(-1)
        return torch.stack([v, torch.where((x > 0) | (v != 0), -p["g"], 0.0)], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start at rest above the ground."""
        return torch.stack([p["height"], torch.zeros_like(p["height"])], dim=-1)

    def events(self) -> tuple[Event, ...]:
        """Return the bounce."""
        return (Event(_height, "falling", apply=_bounced, name="bounce"),)


def _height(t: Tensor, y: Tensor, p: Parameters) -> Tensor:
    return y[:, 0]


def _bounced(t: Tensor, y: Tensor, p: Parameters) -> Tensor:
    v = -p["e"] * y[:, 1]
    v = torch.where(v < 1e-3 * (2 * p["g"] * p["height"]).sqrt(), 0.0, v)
    return torch.stack([torch.zeros_like(v), v], dim=-1)
