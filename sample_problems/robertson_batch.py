"""Robertson's reactions over a long time, rates of six decades in one batch."""

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
class RobertsonBatch(SampleProblem):
    """Robertson's reactions to t = 1e6, each row with another rate of the fastest one."""

    name: ClassVar[str] = "robertson_batch"
    title: ClassVar[str] = "Robertson, long: rates of six decades in one batch"
    question: ClassVar[str] = "What does it cost if every row has its own stiffness?"
    latex: ClassVar[str] = (
        r"\dot a = -k_1 a + k_2 b c, \quad \dot b = k_1 a - k_2 b c - k_3 b^2, \quad "
        r"\dot c = k_3 b^2"
    )
    source: ClassVar[str] = "Robertson (1966); Hairer & Wanner II (2nd ed.), eq. IV.1.4"
    components: ClassVar[tuple[str, ...]] = ("a", "b", "c")
    phase: ClassVar[tuple[int, int] | None] = (0, 2)
    t1: ClassVar[float] = 1e6
    batch: ClassVar[int] = 32
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "k3", "low": 30.0, "high": 3e7, "scale": "log",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-5
    atol: ClassVar[float] = 1e-10
    method: ClassVar[str] = "rodas5p"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.PID, presets.STABILISED,
    )  # fmt: skip

    k1: Annotated[float, Bounds(0.0, 1.0), Help("slow reaction")] = 0.04
    k2: Annotated[float, Bounds(0.0, 1e5), Help("fast reaction")] = 1e4
    k3: Annotated[float, Bounds(1.0, 1e8, scale="log"), Help("very fast reaction")] = 3e7

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the rates; they add up to 0."""
        a, b, c = y.unbind(-1)
        slow, fast, very_fast = p["k1"] * a, p["k2"] * b * c, p["k3"] * b * b
        return torch.stack([fast - slow, slow - fast - very_fast, very_fast], dim=-1)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with all of the first substance."""
        first = torch.tensor([1.0, 0.0, 0.0], dtype=p["k3"].dtype)
        return first + 0 * p["k3"][:, None]
