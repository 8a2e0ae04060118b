"""Chemistry of polluted air, twenty substances."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help

# Rate, what reacts, what it becomes; substances as numbered in the source.
REACTIONS: tuple[tuple[float, tuple[int, ...], tuple[int, ...]], ...] = (
    (0.35, (1,), (2, 3)),
    (26.6, (2, 4), (1,)),
    (1.23e4, (5, 2), (6, 1)),
    (8.6e-4, (7,), (8, 5, 5)),
    (8.2e-4, (7,), (8,)),
    (1.5e4, (7, 6), (8, 5)),
    (1.3e-4, (9,), (10, 5, 8)),
    (2.4e4, (9, 6), (11,)),
    (1.65e4, (11, 2), (10, 1, 12)),
    (9.0e3, (11, 1), (13,)),
    (0.022, (13,), (11, 1)),
    (1.2e4, (10, 2), (14, 1)),
    (1.88, (14,), (7, 5)),
    (1.63e4, (1, 6), (15,)),
    (4.8e6, (3,), (4,)),
    (3.5e-4, (4,), (16,)),
    (0.0175, (4,), (3,)),
    (1.0e8, (16,), (6, 6)),
    (4.44e11, (16,), (3,)),
    (1.24e3, (17, 6), (18, 5)),
    (2.1, (19,), (2,)),
    (5.78, (19,), (1, 3)),
    (0.0474, (1, 4), (19,)),
    (1.78e3, (19, 1), (20,)),
    (3.12, (20,), (1, 19)),
)
NAMES = (
    "NO2", "NO", "O3P", "O3", "HO2", "OH", "HCHO", "CO", "ALD", "MEO2", "C2O3", "CO2", "PAN",
    "CH3O", "HNO3", "O1D", "SO2", "SO4", "NO3", "N2O5",
)  # fmt: skip
START = {2: 0.2, 4: 0.04, 7: 0.1, 8: 0.3, 9: 0.01, 17: 0.007}


@final
@dataclass(frozen=True, kw_only=True)
class Pollution(SampleProblem):
    """Twenty-five reactions whose rates lie fifteen powers of ten apart."""

    name: ClassVar[str] = "pollution"
    title: ClassVar[str] = "Pollution: chemistry of the air"
    question: ClassVar[str] = "Which of twenty substances sets the step?"
    latex: ClassVar[str] = (
        r"\dot y = \sum_{j=1}^{25} s_j r_j(y), \quad r_1 = k_1 y_1, \; r_2 = k_2 y_2 y_4, \ldots"
    )
    source: ClassVar[str] = "Verwer (1994), SIAM J. Sci. Comput. 15(5), 1243-1250"
    components: ClassVar[tuple[str, ...]] = NAMES
    phase: ClassVar[tuple[int, int] | None] = (0, 3)
    t1: ClassVar[float] = 60.0
    batch: ClassVar[int] = 16
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "light", "low": 0.1, "high": 3.0, "scale": "log",
    }  # fmt: skip
    rtol: ClassVar[float] = 1e-5
    atol: ClassVar[float] = 1e-9
    method: ClassVar[str] = "rodas5p"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.INTEGRAL, presets.PID, presets.STABILISED,
    )  # fmt: skip

    light: Annotated[
        float, Bounds(0.01, 10.0, scale="log"), Help("factor on the splitting of NO2 by light")
    ] = 1.0

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return what all reactions together make of each substance."""
        rates = torch.tensor([rate for rate, _, _ in REACTIONS], dtype=y.dtype)
        r = rates * y[:, FIRST] * torch.where(ALONE, 1.0, y[:, SECOND])
        bright = torch.cat([p["light"][:, None] * r[:, :1], r[:, 1:]], dim=1)
        return bright @ CHANGES.to(y.dtype)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start with six substances."""
        y0 = torch.zeros(len(NAMES), dtype=torch.float64)
        for number, amount in START.items():
            y0[number - 1] = amount
        return y0.repeat(len(p["light"]), 1)


def _changes() -> Tensor:
    """Return how many of each substance a reaction makes, `(25, 20)`."""
    changes = torch.zeros(len(REACTIONS), len(NAMES), dtype=torch.float64)
    for j, (_, used, made) in enumerate(REACTIONS):
        for number in used:
            changes[j, number - 1] -= 1
        for number in made:
            changes[j, number - 1] += 1
    return changes


CHANGES = _changes()
FIRST = [used[0] - 1 for _, used, _ in REACTIONS]
SECOND = [used[-1] - 1 for _, used, _ in REACTIONS]
ALONE = torch.tensor([len(used) == 1 for _, used, _ in REACTIONS])
