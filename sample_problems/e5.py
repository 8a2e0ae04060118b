"""Chemical pyrolysis: rates over twenty decades."""

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
class E5(SampleProblem):
    """Pyrolysis in four substances of tiny amounts; to t = 1e5, where the first half is used up."""

    name: ClassVar[str] = "e5"
    title: ClassVar[str] = "E5: amounts from 1e-3 to 1e-25"
    question: ClassVar[str] = "What does the absolute tolerance hide?"
    latex: ClassVar[str] = (
        r"\dot y_1 = -A y_1 - B y_1 y_3, \ \dot y_2 = A y_1 - M C y_2 y_3, \ "
        r"\dot y_3 = A y_1 - B y_1 y_3 - M C y_2 y_3 + C y_4, \ \dot y_4 = B y_1 y_3 - C y_4"
    )
    source: ClassVar[str] = "Datta (1967); Enright, Hull & Lindberg (1975), BIT 15, problem E5"
    components: ClassVar[tuple[str, ...]] = ("y1", "y2", "y3", "y4")
    phase: ClassVar[tuple[int, int] | None] = (0, 2)
    t1: ClassVar[float] = 1e5
    batch: ClassVar[int] = 8
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "C", "low": 1e2, "high": 1e4, "scale": "log",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-4
    atol: ClassVar[float] = 1e-15
    method: ClassVar[str] = "radau5"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.PID, presets.STABILISED,
    )  # fmt: skip

    A: Annotated[float, Bounds(1e-12, 1e-6, scale="log"), Help("slow decay")] = 7.89e-10
    B: Annotated[float, Bounds(1e5, 1e9, scale="log"), Help("exchange")] = 1.1e7
    C: Annotated[float, Bounds(10.0, 1e5, scale="log"), Help("return")] = 1.13e3
    M: Annotated[float, Bounds(1e4, 1e8, scale="log"), Help("ratio of fast rates")] = 1e6

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the rates."""
        y1, y2, y3, y4 = y.unbind(-1)
        born, used, met = p["A"] * y1, p["B"] * y1 * y3, p["M"] * p["C"] * y2 * y3
        back = p["C"] * y4
        return torch.stack(
            [-born - used, born - met, born - used - met + back, used - back], dim=-1
        )

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with a little of the first substance."""
        first = torch.tensor([1.76e-3, 0.0, 0.0, 0.0], dtype=p["A"].dtype)
        return first + 0 * p["A"][:, None]
