"""A spiral to be learnt from pieces of its trajectories."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor, nn

from sample_problems import presets
from sample_problems.base import Batch, LossProblem
from solver.bounds import Bounds, Help
from solver.solve import solve_ivp

SPIRAL = ((-0.1, 2.0), (-2.0, -0.1))  # d/dt (x, y) = (x^3, y^3) A
REACH = 2.2  # radius of the disc that trajectories start in
POINTS = 8  # times at which a trajectory is seen, its start among them


class Network(nn.Module):
    """W2 tanh(W1 y^3 + b1) + b2."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        """Return dy/dt, `(B, 2)`."""
        return self.layers(y**3)


@final
@dataclass(frozen=True, kw_only=True)
class NeuralSpiral(LossProblem):
    """A network with one hidden layer learns a spiral; every row is seen at its own times."""

    name: ClassVar[str] = "neural_spiral"
    title: ClassVar[str] = "Neural ODE: learning a spiral"
    question: ClassVar[str] = "What does a gradient through a trajectory cost, and how right is it?"
    latex: ClassVar[str] = (
        r"\dot{\mathbf y} = W_2 \tanh(W_1 \mathbf y^3 + \mathbf b_1) + \mathbf b_2, \quad "
        r"L = \mathrm{mean}\,\lVert \mathbf y(t_k) - \mathbf y_k \rVert^2"
    )
    source: ClassVar[str] = "Chen, Rubanova, Bettencourt & Duvenaud (2018), NeurIPS, section 5.1"
    components: ClassVar[tuple[str, ...]] = ("x", "y")
    t1: ClassVar[float] = 1.0
    batch: ClassVar[int] = 64
    measure: ClassVar[str] = "test MSE"
    goal: ClassVar[float | None] = 0.02
    learning_rate: ClassVar[float] = 1e-2
    iterations: ClassVar[int] = 300
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.LOW_ORDER, presets.TIGHT,
        presets.preset("wide", "Ten times wider", parameters={"hidden": 320}),
    )  # fmt: skip

    hidden: Annotated[int, Bounds(2, 1024, scale="log"), Help("width of the hidden layer")] = 32

    def network(self) -> nn.Module:
        """Return a network with one hidden layer."""
        return Network(self.hidden)

    def draw(
        self, size: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """Return pieces of true trajectories that start all over a disc, at irregular times."""
        turn, share = torch.rand(2, size, generator=generator, dtype=torch.float64)
        angle, radius = 2 * torch.pi * turn, REACH * share.sqrt()
        y0 = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
        gaps = 0.1 + torch.rand(size, POINTS - 1, generator=generator, dtype=torch.float64)
        times = nn.functional.pad(gaps.cumsum(1), (1, 0))
        times = self.t1 * times / times[:, -1:]
        with torch.no_grad():
            truth = solve_ivp(spiral, y0, times, method="dopri5", rtol=1e-7, atol=1e-8).ys
        return Batch(y0.to(dtype), times.to(dtype), truth.to(dtype))

    def test_batch(self, dtype: torch.dtype = torch.float64) -> Batch:
        """Return other pieces."""
        return self.draw(128, torch.Generator().manual_seed(2**31), dtype)

    def loss(self, ys: Tensor, batch: Batch) -> Tensor:
        """Return the mean squared distance from the truth."""
        assert batch.target is not None
        return (ys - batch.target).square().mean()


def spiral(t: Tensor, y: Tensor) -> Tensor:
    """Return the true field, `(B, 2)`."""
    return y**3 @ torch.tensor(SPIRAL, dtype=y.dtype)
