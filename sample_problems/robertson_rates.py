"""Rates of three reactions found from what was seen of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor, nn

from sample_problems import presets
from sample_problems.base import Batch, LossProblem
from solver.bounds import Bounds, Help
from solver.solve import solve_ivp

RATES = (0.04, 1e4, 3e7)
POINTS = 12  # times at which an experiment is looked at, its start left out
FIRST = 3e-4  # the first of them
LEAST = (1e-3, 1e-7, 1e-3)  # amounts below which errors are no longer relative


class Reactions(nn.Module):
    """Robertson's reactions, with the logarithms of their rates as parameters."""

    def __init__(self, rates: Sequence[float]) -> None:
        super().__init__()
        self.log_rates = nn.Parameter(torch.tensor(rates, dtype=torch.float64).log())

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        """Return dy/dt, `(B, 3)`."""
        a, b, c = y.unbind(-1)
        k = self.log_rates.exp()
        slow, fast, very_fast = k[0] * a, k[1] * b * c, k[2] * b * b
        return torch.stack([fast - slow, slow - fast - very_fast, very_fast], dim=-1)


@final
@dataclass(frozen=True, kw_only=True)
class RobertsonRates(LossProblem):
    """Three rates that lie nine decades apart, each guessed wrong at first, learnt together."""

    name: ClassVar[str] = "robertson_rates"
    title: ClassVar[str] = "Robertson: rates found from experiments"
    question: ClassVar[str] = "Which gradient modes work where the field is stiff?"
    latex: ClassVar[str] = (
        r"\dot a = -k_1 a + k_2 b c, \quad \dot b = k_1 a - k_2 b c - k_3 b^2, \quad "
        r"\dot c = k_3 b^2, \quad L(\log k) = \mathrm{mean}\,"
        r"\lVert (\mathbf y(t_j) - \mathbf y_j) / \mathbf y_j \rVert^2"
    )
    source: ClassVar[str] = (
        "Robertson (1966); Hairer & Wanner II (2nd ed.), eq. IV.1.4; scaled as in Kim, Ji, Deng, "
        "Ma & Rackauckas (2021), Chaos 31, 093122"
    )
    components: ClassVar[tuple[str, ...]] = ("a", "b", "c")
    phase: ClassVar[tuple[int, int] | None] = (0, 2)
    t1: ClassVar[float] = 1e3
    batch: ClassVar[int] = 16
    method: ClassVar[str] = "rodas5p"
    rtol: ClassVar[float] = 1e-3
    atol: ClassVar[float] = 1e-8
    measure: ClassVar[str] = "largest relative error of a rate"
    goal: ClassVar[float | None] = 0.03
    optimizer: ClassVar[str] = "adam"
    learning_rate: ClassVar[float] = 0.1
    schedule: ClassVar = "cosine"
    iterations: ClassVar[int] = 200
    pool: ClassVar[int] = 64
    dtype: ClassVar[str] = "float64"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.JOINT,
        presets.preset("radau5", "A fully implicit method", method="radau5"),
    )  # fmt: skip

    guess: Annotated[int, Bounds(1, 100), Help("factor by which a rate may be wrong at first")] = 3

    def network(self) -> nn.Module:
        """Return the reactions with rates that are guessed, not learnt yet."""
        off = (2 * torch.rand(len(RATES), dtype=torch.float64) - 1) * math.log(self.guess)
        return Reactions((off.exp() * torch.tensor(RATES, dtype=torch.float64)).tolist())

    def draw(
        self, size: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """Return experiments with different mixtures of the first and the last substance."""
        share = torch.rand(size, generator=generator, dtype=torch.float64) ** 6
        y0 = torch.stack([1 - share, torch.zeros_like(share), share], dim=1)
        first, last = math.log10(FIRST), math.log10(self.t1)
        times = torch.logspace(first, last, POINTS, dtype=torch.float64)
        times = nn.functional.pad(times, (1, 0))
        with torch.no_grad():
            truth = solve_ivp(Reactions(RATES), y0, times, method="rodas5p", rtol=1e-7, atol=1e-12)
        return Batch(y0.to(dtype), times.to(dtype), truth.ys.to(dtype))

    def test_batch(self, dtype: torch.dtype = torch.float64) -> Batch:
        """Return other experiments."""
        return self.draw(16, torch.Generator().manual_seed(2**31), dtype)

    def loss(self, ys: Tensor, batch: Batch) -> Tensor:
        """Return the mean square of the relative distances from what was seen."""
        assert batch.target is not None
        scale = batch.target.abs() + torch.tensor(LEAST, dtype=ys.dtype)
        return ((ys - batch.target) / scale).square().mean()

    def evaluate(self, model: nn.Module, **options: Any) -> float:
        """Return by how much the worst rate is wrong, as a part of the true one."""
        assert isinstance(model, Reactions)
        found = model.log_rates.detach().double().exp()
        return float((found / torch.tensor(RATES, dtype=torch.float64) - 1).abs().max())
