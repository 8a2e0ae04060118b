"""A chemical clock with sudden changes of colour."""

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
class Oregonator(SampleProblem):
    """Belousov and Zhabotinsky's reaction: long rests, sudden jumps."""

    name: ClassVar[str] = "oregonator"
    title: ClassVar[str] = "Oregonator: a clock that jumps"
    question: ClassVar[str] = "How do steps shrink and grow again at every jump?"
    latex: ClassVar[str] = (
        r"\dot y_1 = s (y_2 + y_1 (1 - q y_1 - y_2)), \quad "
        r"\dot y_2 = (y_3 - (1 + y_1) y_2) / s, \quad \dot y_3 = w (y_1 - y_3)"
    )
    source: ClassVar[str] = "Field & Noyes (1974); Hairer & Wanner II (2nd ed.), section IV.10"
    components: ClassVar[tuple[str, ...]] = ("HBrO2", "Br", "Ce")
    phase: ClassVar[tuple[int, int] | None] = (1, 2)
    t1: ClassVar[float] = 360.0
    batch: ClassVar[int] = 16
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "s", "low": 20.0, "high": 120.0, "scale": "log",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-4
    atol: ClassVar[float] = 1e-6
    method: ClassVar[str] = "rodas5p"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.PID, presets.STABILISED,
    )  # fmt: skip

    s: Annotated[float, Bounds(5.0, 500.0), Help("ratio of the fast times")] = 77.27
    q: Annotated[float, Bounds(1e-7, 1e-3, scale="log"), Help("where it rests")] = 8.375e-6
    w: Annotated[float, Bounds(0.01, 2.0), Help("slow rate")] = 0.161

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the rates."""
        y1, y2, y3 = y.unbind(-1)
        s, q, w = p["s"], p["q"], p["w"]
        return torch.stack(
            [s * (y2 + y1 * (1 - q * y1 - y2)), (y3 - (1 + y1) * y2) / s, w * (y1 - y3)], dim=-1
        )

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with 1, 2 and 3."""
        first = torch.tensor([1.0, 2.0, 3.0], dtype=p["s"].dtype)
        return first + 0 * p["s"][:, None]
