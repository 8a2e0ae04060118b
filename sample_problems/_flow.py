"""Continuous normalizing flows in the plane: what their problems share."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from sample_problems import presets
from sample_problems.base import Batch, LossProblem
from solver.bounds import Bounds, Help


class FlowField(nn.Module):
    """Velocity of a point and the rate of its log density, by a network with tanh layers.

    The Jacobian of the velocity is carried through the layers beside the values, so the rate is an
    ordinary function of the parameters and autograd needs no second pass.
    """

    def __init__(self, hidden: int, layers: int) -> None:
        super().__init__()
        widths = [3, *[hidden] * layers]  # two coordinates and time
        self.layers = nn.ModuleList(
            nn.Linear(width, further) for width, further in pairwise(widths)
        )
        self.last = nn.Linear(hidden, 2)

    def forward(self, t: Tensor, y: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return d/dt of `(x, y, log density gained)`, `(B, 3)`.

        Args:
            noise: `(B, 2)`, estimate the trace of the Jacobian J by `noise . J noise` (Hutchinson);
                None for the trace itself.
        """
        values = torch.cat([y[:, :2], t.to(y.dtype)[:, None]], dim=1)
        if noise is None:
            along = torch.eye(2, dtype=y.dtype, device=y.device).expand(len(y), 2, 2)
        else:
            along = noise.to(y.dtype)[:, None]
        slopes = nn.functional.pad(along, (0, 1))  # (B, directions, 3), time stands still
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            values = torch.tanh(layer(values))
            slopes = (slopes @ layer.weight.T) * (1 - values * values)[:, None]
        trace = ((slopes @ self.last.weight.T) * along).sum(dim=(1, 2))
        return torch.cat([self.last(values), trace[:, None]], dim=1)


@dataclass(frozen=True, kw_only=True)
class Flow(LossProblem):
    """Learns a density: points flow to a normal distribution, and what the flow makes of volumes
    gives the density at each of them."""

    latex: ClassVar[str] = (
        r"\dot{\mathbf x} = g_\theta(\mathbf x, t), \quad "
        r"\frac{d}{dt} \ell = \mathrm{tr}\,\frac{\partial g_\theta}{\partial \mathbf x}, \quad "
        r"L = -\mathrm{mean}\big(\log N(\mathbf x(1)) + \ell(1)\big)"
    )
    source: ClassVar[str] = (
        "Chen, Rubanova, Bettencourt & Duvenaud (2018), NeurIPS; "
        "Grathwohl, Chen, Bettencourt, Sutskever & Duvenaud (2019), ICLR"
    )
    components: ClassVar[tuple[str, ...]] = ("x", "y", "log density gained")
    t1: ClassVar[float] = 1.0
    batch: ClassVar[int] = 128
    method: ClassVar[str] = "dopri5"
    rtol: ClassVar[float] = 1e-5
    atol: ClassVar[float] = 1e-5
    measure: ClassVar[str] = "test NLL, nats"
    learning_rate: ClassVar[float] = 5e-3
    iterations: ClassVar[int] = 200
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.LOW_ORDER, presets.TIGHT,
        presets.preset("deep", "Three flows in a row", parameters={"flows": 3}),
        presets.preset("trace", "Trace estimated", parameters={"trace": "hutchinson"}),
    )  # fmt: skip

    flows: Annotated[int, Bounds(1, 3), Help("flows M, one solved after the other")] = 1
    trace: Annotated[
        Literal["exact", "hutchinson"], Help("trace of the Jacobian, or one random estimate of it")
    ] = "exact"
    hidden: Annotated[int, Bounds(2, 1024, scale="log"), Help("width of each hidden layer")] = 64
    layers: Annotated[int, Bounds(1, 6), Help("hidden layers")] = 3

    @abstractmethod
    def points(self, count: int, generator: torch.Generator) -> Tensor:
        """Return points of the density to be learnt, `(count, 2)`, float64."""

    def network(self) -> nn.Module:
        """Return a network for each flow."""
        return nn.ModuleList(FlowField(self.hidden, self.layers) for _ in range(self.flows))

    def fields(self, model: nn.Module) -> Sequence[Callable[..., Any]]:
        """Return the flows in order."""
        assert isinstance(model, nn.ModuleList)
        return list(model)

    def draw(
        self, size: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """Return points, and signs for the estimate of the trace if it is to be estimated."""
        points = self.points(size, generator)
        noise = None
        if self.trace == "hutchinson":
            signs = torch.randint(0, 2, (size, 2), generator=generator)
            noise = (2 * signs - 1).to(dtype)
        y0 = nn.functional.pad(points, (0, 1)).to(dtype)
        return Batch(y0, torch.tensor([self.t0, self.t1], dtype=dtype), args=noise)

    def test_batch(self, dtype: torch.dtype = torch.float64) -> Batch:
        """Return other points; their traces are never estimated."""
        points = self.points(512, torch.Generator().manual_seed(2**31))
        y0 = nn.functional.pad(points, (0, 1)).to(dtype)
        return Batch(y0, torch.tensor([self.t0, self.t1], dtype=dtype))

    def loss(self, ys: Tensor, batch: Batch) -> Tensor:
        """Return the mean negative log density, in nats."""
        end = ys[:, -1]
        square = end[:, :2].square().sum(dim=1)
        return (square / 2 + math.log(2 * math.pi) - end[:, 2]).mean()
