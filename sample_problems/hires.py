"""How a plant answers to light, eight substances."""

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
class Hires(SampleProblem):
    """High irradiance responses: a stiff start, then a slow rise and a sudden end of it."""

    name: ClassVar[str] = "hires"
    title: ClassVar[str] = "HIRES: a plant answers to light"
    question: ClassVar[str] = "How far apart are the times at which eight substances move?"
    latex: ClassVar[str] = (
        r"\dot y_1 = -1.71 y_1 + 0.43 y_2 + 8.32 y_3 + 0.0007, \ldots, "
        r"\dot y_8 = -k y_6 y_8 + 1.81 y_7"
    )
    source: ClassVar[str] = "Schaefer (1975); Hairer & Wanner II (2nd ed.), section IV.10"
    components: ClassVar[tuple[str, ...]] = tuple(f"y{i}" for i in range(1, 9))
    phase: ClassVar[tuple[int, int] | None] = (5, 7)
    t1: ClassVar[float] = 321.8122
    batch: ClassVar[int] = 16
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "k", "low": 50.0, "high": 2000.0, "scale": "log",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-4
    atol: ClassVar[float] = 1e-8
    method: ClassVar[str] = "rodas5p"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.PID, presets.STABILISED,
    )  # fmt: skip

    k: Annotated[float, Bounds(1.0, 1e4, scale="log"), Help("rate of the fast reaction")] = 280.0

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the rates."""
        y1, y2, y3, y4, y5, y6, y7, y8 = y.unbind(-1)
        fast = p["k"] * y6 * y8
        return torch.stack(
            [
                -1.71 * y1 + 0.43 * y2 + 8.32 * y3 + 0.0007,
                1.71 * y1 - 8.75 * y2,
                -10.03 * y3 + 0.43 * y4 + 0.035 * y5,
                8.32 * y2 + 1.71 * y3 - 1.12 * y4,
                -1.745 * y5 + 0.43 * y6 + 0.43 * y7,
                -fast + 0.69 * y4 + 1.71 * y5 - 0.43 * y6 + 0.69 * y7,
                fast - 1.81 * y7,
                -fast + 1.81 * y7,
            ],
            dim=-1,
        )

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with the first substance, and a trace of the last."""
        first = torch.tensor([1.0, 0, 0, 0, 0, 0, 0, 0.0057], dtype=p["k"].dtype)
        return first + 0 * p["k"][:, None]
