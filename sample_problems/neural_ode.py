"""A vector field learnt from data by a small neural network."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor

from sample_problems import presets
from sample_problems.base import Parameters, SampleProblem
from solver.bounds import Bounds, Help

WEIGHTS = Path(__file__).with_suffix(".json")


@final
@dataclass(frozen=True, kw_only=True)
class NeuralODE(SampleProblem):
    """A network with one hidden layer that has learnt a spiral; weights by `train_neural_ode`."""

    name: ClassVar[str] = "neural_ode"
    title: ClassVar[str] = "Neural ODE: a spiral learnt from data"
    question: ClassVar[str] = "How many steps does a learnt field cost, and where?"
    latex: ClassVar[str] = (
        r"\dot{\mathbf y} = s\,\big(W_2 \tanh(W_1 \mathbf y^3 + \mathbf b_1) + \mathbf b_2\big)"
    )
    source: ClassVar[str] = (
        "Chen, Rubanova, Bettencourt & Duvenaud (2018), NeurIPS; trained by "
        "python -m sample_problems.train_neural_ode"
    )
    components: ClassVar[tuple[str, ...]] = ("x", "y")
    t1: ClassVar[float] = 25.0
    batch: ClassVar[int] = 64
    spread: ClassVar[Mapping[str, Any]] = {
        "parameter": "radius", "low": 0.3, "high": 2.0, "scale": "linear",
    }  # fmt: skip
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.INTEGRAL, presets.SMOOTH, presets.TIGHT,
    )  # fmt: skip

    speed: Annotated[float, Bounds(0.1, 10.0, scale="log"), Help("factor on the field")] = 1.0
    radius: Annotated[float, Bounds(0.0, 2.5), Help("distance from the middle at the start")] = 2.0

    def field(self, t: Tensor, y: Tensor, p: Parameters) -> Tensor:
        """Return the network's output times `speed`."""
        w1, b1, w2, b2 = weights(y.dtype, y.device)
        hidden = torch.addmm(b1, y**3, w1).tanh()
        return p["speed"][:, None] * torch.addmm(b2, hidden, w2)

    def start(self, p: Parameters, generator: torch.Generator) -> Tensor:
        """Start in a random direction from the middle."""
        radius = p["radius"]
        turn = torch.rand(len(radius), generator=generator, dtype=torch.float64)
        angle = 2 * torch.pi * turn
        return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1)


@cache
def weights(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, ...]:
    """Return W1^T (2, H), b1 (H,), W2^T (H, 2), b2 (2,) from the file beside this one."""
    stored = json.loads(WEIGHTS.read_text("utf-8"))
    return tuple(
        torch.tensor(stored[name], dtype=dtype, device=device) for name in ("w1", "b1", "w2", "b2")
    )
