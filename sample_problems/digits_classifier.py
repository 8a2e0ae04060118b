"""Handwritten digits told apart by where a flow carries them."""

import base64
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, final

import torch
from torch import Tensor, nn

from sample_problems import presets
from sample_problems.base import Batch, LossProblem
from solver.bounds import Bounds, Help

DATA = Path(__file__).with_suffix(".json")
PIXELS, CLASSES, KEPT_APART = 64, 10, 360
MOST = 16.0  # pixels are whole numbers from 0 to 16


@cache
def digits() -> tuple[Tensor, Tensor]:
    """Return all images, `(1797, 64)` from 0 to 1, and the digits `(1797,)` that they show.

    In an order of their own, always the same; the last `KEPT_APART` are for tests.
    """
    stored = json.loads(DATA.read_text("utf-8"))
    pixels = bytearray(lzma.decompress(base64.b64decode(stored["pixels"])))
    images = torch.frombuffer(pixels, dtype=torch.uint8).reshape(-1, PIXELS)
    labels = torch.tensor([int(digit) for digit in stored["labels"]])
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return images[order].to(torch.float64) / MOST, labels[order]


class Network(nn.Module):
    """Three layers on pixels, scores and time."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        width = PIXELS + CLASSES
        self.layers = nn.Sequential(
            nn.Linear(width + 1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, width),
        )  # fmt: skip

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        """Return dy/dt, `(B, 74)`."""
        return self.layers(torch.cat([y, t.to(y.dtype)[:, None]], dim=1))


@final
@dataclass(frozen=True, kw_only=True)
class DigitsClassifier(LossProblem):
    """Pixels flow together with ten scores that begin at 0; the largest one names the digit."""

    name: ClassVar[str] = "digits_classifier"
    title: ClassVar[str] = "Neural ODE: digits told apart"
    question: ClassVar[str] = "Do images that are hard to read take more steps?"
    latex: ClassVar[str] = (
        r"\frac{d}{dt} (\mathbf x, \mathbf s) = g_\theta(\mathbf x, \mathbf s, t), \quad "
        r"\mathbf s(0) = 0, \quad L = -\mathrm{mean}\,\log \mathrm{softmax}(\mathbf s(1))_d"
    )
    source: ClassVar[str] = (
        "Chen, Rubanova, Bettencourt & Duvenaud (2018), NeurIPS, section 3, with further "
        "components as in Dupont, Doucet & Teh (2019), NeurIPS; images: Alpaydin & Kaynak (1998)"
    )
    components: ClassVar[tuple[str, ...]] = (
        *(f"x{i}" for i in range(PIXELS)), *(f"score of {d}" for d in range(CLASSES)),
    )  # fmt: skip
    phase: ClassVar[tuple[int, int] | None] = (PIXELS, PIXELS + 1)
    t1: ClassVar[float] = 1.0
    batch: ClassVar[int] = 128
    rtol: ClassVar[float] = 1e-3
    atol: ClassVar[float] = 1e-3
    measure: ClassVar[str] = "test share misread"
    goal: ClassVar[float | None] = 0.03
    learning_rate: ClassVar[float] = 3e-3
    schedule: ClassVar = "cosine"
    iterations: ClassVar[int] = 400
    pool: ClassVar[int] = 1797 - KEPT_APART
    presets: ClassVar[tuple[Mapping[str, Any], ...]] = (
        presets.PID, presets.LOW_ORDER, presets.TIGHT, presets.JOINT,
    )  # fmt: skip

    hidden: Annotated[int, Bounds(2, 1024, scale="log"), Help("width of the hidden layers")] = 128

    def network(self) -> nn.Module:
        """Return a network with two hidden layers."""
        return Network(self.hidden)

    def draw(
        self, size: int, generator: torch.Generator, dtype: torch.dtype = torch.float64
    ) -> Batch:
        """Return images to train on; none comes twice before each came once."""
        parts, missing = [], size
        while missing > 0:
            parts.append(torch.randperm(self.pool, generator=generator)[:missing])
            missing -= len(parts[-1])
        return self._batch(torch.cat(parts), dtype)

    def test_batch(self, dtype: torch.dtype = torch.float64) -> Batch:
        """Return the images kept apart."""
        return self._batch(torch.arange(self.pool, self.pool + KEPT_APART), dtype)

    def loss(self, ys: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross entropy, in nats."""
        assert batch.target is not None
        return nn.functional.cross_entropy(ys[:, -1, PIXELS:], batch.target.long())

    def test_measure(self, ys: Tensor, batch: Batch) -> Tensor:
        """Return the share of images whose digit has not the largest score."""
        assert batch.target is not None
        return (ys[:, -1, PIXELS:].argmax(1) != batch.target.long()).double().mean()

    def _batch(self, which: Tensor, dtype: torch.dtype) -> Batch:
        images, labels = digits()
        y0 = nn.functional.pad(images[which], (0, CLASSES)).to(dtype)
        times = torch.tensor([self.t0, self.t1], dtype=dtype)
        return Batch(y0, times, labels[which].to(dtype))
