"""Growth that is infinite before its time is up."""

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
class BlowUp(SampleProblem):
    """y' = y^2 ends at t = 1/y(0); rows that start high fail before `t1`, the others go on."""

    name: ClassVar[str] = "blow_up"
    title: ClassVar[str] = "Blow-up: some rows have no solution to the end"
    question: ClassVar[str] = "What happens to the others when a row fails?"
    latex: ClassVar[str] = r"\dot y = y^2, \quad y(t) = \frac{y_0}{1 - y_0 t}"
    source: ClassVar[str] = "Hairer, Norsett & Wanner I (2nd ed.), sec. I.10"
    components: ClassVar[tuple[str, ...]] = ("y",)
    phase: ClassVar[tuple[int, int] | None] = None
    t1: ClassVar[float] = 1.0
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "start_value", "low": 0.2, "high": 1.8, "scale": "linear",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.SMOOTH, presets.JOINT,
    )  # fmt: skip

    start_value: Annotated[float, Bounds(-5.0, 5.0), Help("y at the start; fails at t = 1/y")] = 0.5

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return y^2."""
        return y * y

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start at the value given."""
        return p["start_value"][:, None].clone()

    def exact(self, t: Tensor, y0: Tensor, p: Parameters) -> Tensor:
        """Return y0 / (1 - y0 t), NaN from the blow-up on."""
        rest = 1 - y0 * t[:, None]
        return torch.where(rest > 0, y0 / rest, torch.nan)
