"""Partial differential equations on a ring, learnt through their energy: what both problems share.

Data come from a discrete gradient scheme, which keeps (or never raises) the energy exactly.
Matsubara, Ishikawa & Yaguchi (2020), NeurIPS, "Deep energy-based modeling of discrete-time
physics"; Furihata (1999), J. Comput. Phys. 156.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from sample_problems import presets
from sample_problems.base import Batch, LossProblem
from solver.bounds import Help

CELLS = 50
NEWTON_TOLERANCE = 1e-10
NEWTON_STEPS = 20


class Size(NamedTuple):
    """How much is learnt from, by how wide a network."""

    channels: int
    trajectories: int
    steps: int  # of each trajectory
    ahead: int  # samples from the start of a solve to its end


SIZES = {"miniature": Size(64, 16, 60, 10), "paper": Size(200, 100, 500, 1)}


class EnergyNetwork(nn.Module):
    """A convolution over three neighbours and two over single cells, with tanh between them.

    Args:
        channels: width.
        operator: what is applied to the derivative of the energy, `(B, 50) -> (B, 50)`.
        energy: whether the outputs are added up to an energy that is differentiated, as in the
            model called HNN++; else they are the field themselves.
    """

    def __init__(self, channels: int, operator: Callable[[Tensor], Tensor], energy: bool) -> None:
        super().__init__()
        # Convolutions as products of matrices, channels last: the same, and quicker on a CPU.
        self.first = nn.Linear(3, channels)
        self.second = nn.Linear(channels, channels)
        self.last = nn.Linear(channels, 1, bias=False)
        self.operator, self.energy = operator, energy
        for layer in (self.first, self.second, self.last):
            nn.init.orthogonal_(layer.weight)
        for layer in (self.first, self.second):
            nn.init.zeros_(layer.bias)

    def cells(self, u: Tensor) -> Tensor:
        """Return the network's output in each cell, `(B, 50) -> (B, 50)`."""
        around = torch.stack([u.roll(1, -1), u, u.roll(-1, -1)], dim=-1)
        hidden = torch.tanh(self.second(torch.tanh(self.first(around))))
        return self.last(hidden)[..., 0]

    def forward(self, t: Tensor, u: Tensor) -> Tensor:
        """Return du/dt, `(B, 50)`."""
        if not self.energy:
            return self.cells(u)
        wanted = torch.is_grad_enabled()
        with torch.enable_grad():
            state = u if u.requires_grad else u.detach().requires_grad_()
            energy = self.cells(state).sum()
            (slope,) = torch.autograd.grad(energy, state, create_graph=wanted)
        return self.operator(slope)


@dataclass(frozen=True, kw_only=True)
class EnergyProblem(LossProblem):
    """Predicts a later sample of a field on a ring of 50 cells from an earlier one."""

    components: ClassVar[tuple[str, ...]] = tuple(f"u{i}" for i in range(CELLS))
    phase: ClassVar[tuple[int, int] | None] = (CELLS // 4, CELLS // 2)
    batch: ClassVar[int] = 16
    method: ClassVar[str] = "dopri5"
    rtol: ClassVar[float] = 1e-6
    atol: ClassVar[float] = 1e-6
    measure: ClassVar[str] = "test MSE"
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.LOW_ORDER, presets.TIGHT,
        presets.preset("paper", "As large as published", parameters={"size": "paper"}),
        presets.preset("plain", "Without an energy", parameters={"model_of": "field"}),
    )  # fmt: skip
    seed_of_data: ClassVar[int] = 0
    dt: ClassVar[float]  # between samples
    width: ClassVar[float]  # of the ring

    size: Annotated[
        Literal["miniature", "paper"],
        Help("channels, trajectories, steps, samples ahead: 64, 16, 60, 10 or 200, 100, 500, 1"),
    ] = "miniature"
    model_of: Annotated[
        Literal["energy", "field"], Help("whether the network gives an energy or the field itself")
    ] = "energy"

    @abstractmethod
    def beginnings(self, count: int, generator: torch.Generator) -> Tensor:
        """Return states that trajectories start from, `(count, 50)`, float64."""

    @abstractmethod
    def gradient(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return the discrete gradient of the energy between two states and its slope in `v`.

        Args:
            u, v: `(N, 50)`.

        Returns:
            `(N, 50)`, and `(N, 50, 50)` its Jacobian by `v`.
        """

    @abstractmethod
    def operator(self, values: Tensor) -> Tensor:
        """Apply the operator that makes a flow of the energy's gradient, on the last dimension."""

    def network(self) -> nn.Module:
        """Return the energy's network, orthogonal at first."""
        return EnergyNetwork(SIZES[self.size].channels, self.operator, self.model_of == "energy")

    def trajectories(self) -> Tensor:
        """Return the data, `(trajectories, steps + 1, 50)`; the last ones are for tests."""
        return _trajectories(type(self)(size=self.size))

    def kept_apart(self) -> int:
        """Return how many trajectories are for tests."""
        return max(2, SIZES[self.size].trajectories // 10)

    def draw(
        self, size: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """Return samples of the training trajectories and those that follow them."""
        data, ahead = self.trajectories()[: -self.kept_apart()], SIZES[self.size].ahead
        row = torch.randint(0, len(data), (size,), generator=generator)
        at = torch.randint(0, data.shape[1] - ahead, (size,), generator=generator)
        return self._batch(data[row, at], data[row, at + ahead], dtype)

    def test_batch(self, dtype: torch.dtype = torch.float64) -> Batch:
        """Return samples of the other trajectories, evenly in time."""
        data, ahead = self.trajectories()[-self.kept_apart() :], SIZES[self.size].ahead
        at = torch.arange(0, data.shape[1] - ahead, ahead)
        start, end = (data[:, which].flatten(0, 1) for which in (at, at + ahead))
        return self._batch(start, end, dtype)

    def loss(self, ys: Tensor, batch: Batch) -> Tensor:
        """Return the mean squared error of the sample predicted."""
        assert batch.target is not None
        return (ys[:, -1] - batch.target).square().mean()

    def _batch(self, start: Tensor, end: Tensor, dtype: torch.dtype) -> Batch:
        span = torch.tensor([0.0, SIZES[self.size].ahead * self.dt], dtype=dtype)
        return Batch(start.to(dtype), span, end.to(dtype))

    @property
    def dx(self) -> float:
        """Width of a cell."""
        return self.width / CELLS

    def second_difference(self, values: Tensor) -> Tensor:
        """Return the second derivative by three points, on the last dimension."""
        return (values.roll(-1, -1) - 2 * values + values.roll(1, -1)) / self.dx**2

    def central_difference(self, values: Tensor) -> Tensor:
        """Return the first derivative by two points, on the last dimension."""
        return (values.roll(-1, -1) - values.roll(1, -1)) / (2 * self.dx)


@lru_cache(maxsize=4)
def _trajectories(problem: EnergyProblem) -> Tensor:
    """Step with the discrete gradient, `v = u + dt Op(grad(u, v))`, by Newton's iteration."""
    size = SIZES[problem.size]
    generator = torch.Generator().manual_seed(problem.seed_of_data)
    states = [problem.beginnings(size.trajectories, generator)]
    eye = torch.eye(CELLS, dtype=torch.float64)
    with torch.no_grad():
        for _ in range(size.steps):
            u = v = states[-1]
            for _ in range(NEWTON_STEPS):
                gradient, jacobian = problem.gradient(u, v)
                residual = v - u - problem.dt * problem.operator(gradient)
                applied = problem.operator(jacobian.mT).mT
                change = torch.linalg.solve(eye - problem.dt * applied, residual)
                v = v - change
                if change.abs().max() < NEWTON_TOLERANCE:
                    break
            else:
                raise RuntimeError(f"{problem.name}: Newton's iteration did not converge")
            states.append(v)
    return torch.stack(states, dim=1)
