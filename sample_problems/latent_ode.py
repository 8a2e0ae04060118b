"""Series seen at irregular times, each told by where a hidden state begins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor, nn

from sample_problems import presets
from sample_problems.base import Batch, LossProblem
from solver.bounds import Bounds, Help

LATENT = 6  # components of the hidden state, as many as this problem's states have
SHOWN, LATER = 16, 8  # times that the encoder sees, and later ones that are to be foretold
NOISE = 0.02  # standard deviation of what is seen


class Model(nn.Module):
    """Encoder, field and decoder.

    The encoder reads a series backward in time, as differences of time and values, by a gated
    recurrent unit; the decoder is linear.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.encoder = nn.GRU(2, hidden, batch_first=True)
        self.to_latent = nn.Linear(hidden, LATENT)
        self.field = nn.Sequential(
            nn.Linear(LATENT, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, LATENT),
        )  # fmt: skip
        self.decoder = nn.Linear(LATENT, 1)

    def slope(self, t: Tensor, z: Tensor, series: Tensor | None = None) -> Tensor:
        """Return dz/dt, `(B, 6)`; the series has no part in it."""
        return self.field(z)

    def start(self, series: Tensor) -> Tensor:
        """Return the hidden states at time 0, `(B, 6)`, of series `(B, SHOWN, 2)`."""
        _, last = self.encoder(series.flip(1))
        return self.to_latent(last[0])


@final
@dataclass(frozen=True, kw_only=True)
class LatentOde(LossProblem):
    """Damped swings of different frequency: from their first part, what comes is foretold."""

    name: ClassVar[str] = "latent_ode"
    title: ClassVar[str] = "Latent ODE: irregular series"
    question: ClassVar[str] = "Which series are dear, when each has times of its own?"
    latex: ClassVar[str] = (
        r"\mathbf z(0) = \mathrm{enc}_\theta(t_j, x_j), \quad "
        r"\dot{\mathbf z} = g_\theta(\mathbf z), \quad "
        r"L = \mathrm{mean}\,\big(\mathrm{dec}_\theta(\mathbf z(t_j)) - x_j\big)^2"
    )
    source: ClassVar[str] = (
        "Chen, Rubanova, Bettencourt & Duvenaud (2018), NeurIPS, section 5; "
        "Rubanova, Chen & Duvenaud (2019), NeurIPS"
    )
    components: ClassVar[tuple[str, ...]] = tuple(f"z{i}" for i in range(LATENT))
    t1: ClassVar[float] = 6.0
    batch: ClassVar[int] = 64
    rtol: ClassVar[float] = 1e-3
    atol: ClassVar[float] = 1e-3
    measure: ClassVar[str] = "test MSE of later values"
    goal: ClassVar[float | None] = 0.04
    learning_rate: ClassVar[float] = 1e-2
    schedule: ClassVar = "cosine"
    iterations: ClassVar[int] = 400
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.LOW_ORDER, presets.TIGHT, presets.JOINT,
    )  # fmt: skip

    hidden: Annotated[int, Bounds(2, 512, scale="log"), Help("width of encoder and field")] = 32

    def network(self) -> nn.Module:
        """Return encoder, field and decoder."""
        return Model(self.hidden)

    def fields(self, model: nn.Module) -> Sequence[Callable[..., Any]]:
        """Return the field of the hidden state."""
        assert isinstance(model, Model)
        return [model.slope]

    def draw(
        self, size: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """Return series, each at its own times; `y0` is the first value, for lack of an encoder."""
        share = torch.rand(3, size, 1, generator=generator, dtype=torch.float64)
        frequency, phase, height = 1 + share[0], 2 * torch.pi * share[1], 0.5 + share[2]
        gaps = 0.1 + torch.rand(size, SHOWN + LATER - 1, generator=generator, dtype=torch.float64)
        times = nn.functional.pad(gaps.cumsum(1), (1, 0))
        times = self.t1 * times / times[:, -1:]
        x = height * (-0.1 * times).exp() * (frequency * times + phase).cos()
        x = x + NOISE * torch.randn(x.shape, generator=generator, dtype=torch.float64)
        y0 = nn.functional.pad(x[:, :1], (0, LATENT - 1))
        series = torch.stack([times.diff(dim=1, prepend=times[:, :1]), x], dim=2)[:, :SHOWN]
        return Batch(y0.to(dtype), times.to(dtype), x.to(dtype), series.to(dtype))

    def test_batch(self, dtype: torch.dtype = torch.float64) -> Batch:
        """Return other series."""
        return self.draw(256, torch.Generator().manual_seed(2**31), dtype)

    def begin(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the hidden states that the encoder makes of what it is shown."""
        assert isinstance(model, Model)
        return model.start(batch.args)

    def seen(self, model: nn.Module, ys: Tensor) -> Tensor:
        """Return the values `(B, T, 1)` of hidden states."""
        assert isinstance(model, Model)
        return model.decoder(ys)

    def loss(self, ys: Tensor, batch: Batch) -> Tensor:
        """Return the mean squared error, of what was shown and of what came later."""
        assert batch.target is not None
        return (ys[..., 0] - batch.target).square().mean()

    def test_measure(self, ys: Tensor, batch: Batch) -> Tensor:
        """Return the mean squared error of what came later, noise included."""
        assert batch.target is not None
        return (ys[..., 0] - batch.target)[:, SHOWN:].square().mean()
