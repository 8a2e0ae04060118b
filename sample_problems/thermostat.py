"""A room with a heater that is switched at two temperatures: events that change the field."""

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
class Thermostat(SampleProblem):
    """A room cools towards the outside; a heater goes on below one temperature, off above another.

    The heater is a component of the state that only events change: 1 while it is on.
    """

    name: ClassVar[str] = "thermostat"
    title: ClassVar[str] = "Thermostat: a heater that events switch"
    question: ClassVar[str] = "How much of the work goes into the moments of switching?"
    latex: ClassVar[str] = (
        r"\dot T = -k\,(T - T_o) + q\,s, \quad s \to 1 \text{ at } T_c - b,\; s \to 0 \text{ at } "
        r"T_c + b"
    )
    source: ClassVar[str] = "Branicky (1998), IEEE Trans. Automat. Control 43(1), 31-45, example 2"
    components: ClassVar[tuple[str, ...]] = ("T", "heater")
    t1: ClassVar[float] = 20.0
    batch: ClassVar[int] = 32
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "outside", "low": -10.0, "high": 15.0, "scale": "linear",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.STABILISED,
    )  # fmt: skip

    outside: Annotated[float, Bounds(-30.0, 18.0), Help("temperature outside")] = 5.0
    loss: Annotated[float, Bounds(0.01, 5.0, scale="log"), Help("rate of cooling")] = 0.3
    power: Annotated[
        float, Bounds(20.0, 100.0), Help("warming by the heater in a unit of time")
    ] = 25.0
    centre: Annotated[float, Bounds(18.5, 25.0), Help("temperature wanted")] = 20.0
    band: Annotated[float, Bounds(0.05, 3.0, scale="log"), Help("how far it may be off")] = 0.5

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return (-k (T - T_o) + q s, 0)."""
        room, heater = y.unbind(-1)
        warming = p["power"] * heater - p["loss"] * (room - p["outside"])
        return torch.stack([warming, torch.zeros_like(room)], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start at the temperature wanted, with the heater off."""
        return torch.stack([p["centre"], torch.zeros_like(p["centre"])], dim=-1)

    def events(self) -> tuple[Event, ...]:
        """Return the two switches."""
        return (
            Event(_too_cold, "falling", apply=_on, name="on"),
            Event(_too_warm, "rising", apply=_off, name="off"),
        )


def _too_cold(t: Tensor, y: Tensor, p: Parameters) -> Tensor:
    return y[:, 0] - (p["centre"] - p["band"])


def _too_warm(t: Tensor, y: Tensor, p: Parameters) -> Tensor:
    return y[:, 0] - (p["centre"] + p["band"])


def _on(t: Tensor, y: Tensor, p: Parameters) -> Tensor:
    return torch.stack([y[:, 0], torch.ones_like(y[:, 1])], dim=-1)


def _off(t: Tensor, y: Tensor, p: Parameters) -> Tensor:
    return torch.stack([y[:, 0], torch.zeros_like(y[:, 1])], dim=-1)
