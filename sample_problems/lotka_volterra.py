"""Predators and their prey."""

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
class LotkaVolterra(SampleProblem):
    """Lotka-Volterra model; `d x - c log x + b y - a log y` stays constant."""

    name: ClassVar[str] = "lotka_volterra"
    title: ClassVar[str] = "Lotka-Volterra: predators and prey"
    question: ClassVar[str] = "Where in a cycle of boom and bust does the solver slow down?"
    latex: ClassVar[str] = r"\dot x = a x - b x y, \quad \dot y = -c y + d x y"
    source: ClassVar[str] = "Lotka (1925); Volterra (1926); Hairer, Norsett & Wanner I, sec. I.1"
    components: ClassVar[tuple[str, ...]] = ("prey", "predators")
    t1: ClassVar[float] = 20.0
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "prey", "low": 0.05, "high": 2.5, "scale": "log",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.SMOOTH, presets.LOW_ORDER,
    )  # fmt: skip

    a: Annotated[float, Bounds(0.0, 5.0), Help("births of prey")] = 1.5
    b: Annotated[float, Bounds(0.0, 5.0), Help("prey eaten by a predator")] = 1.0
    c: Annotated[float, Bounds(0.0, 5.0), Help("deaths of predators")] = 3.0
    d: Annotated[float, Bounds(0.0, 5.0), Help("births of predators for prey eaten")] = 1.0
    prey: Annotated[float, Bounds(0.01, 20.0, scale="log"), Help("prey at the start")] = 2.0
    predators: Annotated[float, Bounds(0.01, 20.0, scale="log"), Help("predators at the start")] = (
        1.0
    )

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return births less deaths."""
        prey, predators = y.unbind(-1)
        return torch.stack(
            [prey * (p["a"] - p["b"] * predators), predators * (p["d"] * prey - p["c"])], dim=-1
        )

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with the numbers given."""
        return torch.stack([p["prey"], p["predators"]], dim=-1)
