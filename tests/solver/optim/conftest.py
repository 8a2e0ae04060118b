"""What the optimizer tests share: tensors of all kinds, their gradients, and plain references."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from solver.optim import buckets

SHAPES = [(64,), (33, 7), (1,), (), (5, 4, 3, 3), (3000,), (0,), (41, 43)]


class PlainAdamW:
    """One tensor at a time, one line a formula; `torch.optim.AdamW` without its engineering."""

    def __init__(
        self, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, maximize=False
    ) -> None:
        self.lr, self.betas, self.eps = lr, betas, eps
        self.weight_decay, self.sign = weight_decay, -1 if maximize else 1
        self.state: dict[int, Any] = {}

    def step(self, i: int, x: Tensor, g: Tensor) -> Tensor:
        """Return the new value of tensor `i`."""
        (b1, b2), g = self.betas, self.sign * g
        t, m, v = self.state.get(i, (0, torch.zeros_like(x), torch.zeros_like(x)))
        t, m, v = t + 1, b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        self.state[i] = t, m, v
        x = x - self.lr * self.weight_decay * x
        return x - self.lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + self.eps)

    def end_step(self) -> None:
        """Nothing is counted for all tensors."""


class PlainLion(PlainAdamW):
    """The sign of a blend of the momentum before the step and the gradient."""

    def __init__(self, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False) -> None:
        super().__init__(lr, betas, 0.0, weight_decay, maximize)

    def step(self, i: int, x: Tensor, g: Tensor) -> Tensor:
        """Return the new value of tensor `i`."""
        (b1, b2), g = self.betas, self.sign * g
        m = self.state.get(i, torch.zeros_like(x))
        self.state[i] = b2 * m + (1 - b2) * g
        x = x - self.lr * self.weight_decay * x
        return x - self.lr * torch.sign(b1 * m + (1 - b1) * g)


class PlainMADGRAD:
    """Dual averaging from the start of each tensor; one count for all of them."""

    def __init__(
        self, lr=1e-2, momentum=0.9, weight_decay=0.0, eps=1e-6, decouple_decay=False,
        maximize=False,
    ) -> None:  # fmt: skip
        self.gamma, self.c, self.eps = (lr + eps if lr else 0.0), 1 - momentum, eps
        self.weight_decay, self.decouple = weight_decay, decouple_decay
        self.sign = -1 if maximize else 1
        self.state: dict[int, Any] = {}
        self.k = 0

    def step(self, i: int, x: Tensor, g: Tensor) -> Tensor:
        """Return the new value of tensor `i`."""
        lam = self.gamma * math.sqrt(self.k + 1)
        nu, s, start = self.state.get(i, (torch.zeros_like(x), torch.zeros_like(x), x.clone()))
        if self.c == 1:  # the start follows the iterate, which somebody may have moved
            start = x + s / (nu ** (1 / 3) + self.eps)
        g = self.sign * g
        if not self.decouple:
            g = g + self.weight_decay * x
        nu, s = nu + lam * g * g, s + lam * g
        self.state[i] = nu, s, start
        z = start - s / (nu ** (1 / 3) + self.eps)
        new = (1 - self.c) * x + self.c * z
        return new - self.gamma * self.weight_decay * x if self.decouple else new

    def end_step(self) -> None:
        """Count the step."""
        self.k += 1


class References(NamedTuple):
    """What tests need and cannot import."""

    plain: dict[str, Callable[..., Any]]
    tensors: Callable[..., list[Tensor]]
    give_gradients: Callable[..., None]
    train: Callable[..., list[Tensor]]
    train_plain: Callable[..., list[Tensor]]


def tensors(dtype: torch.dtype = torch.float64, shapes: Any = SHAPES) -> list[Tensor]:
    """Return parameters, the same in each call; the second last one is transposed in storage."""
    generator = torch.Generator().manual_seed(3)
    found = [torch.randn(s, dtype=dtype, generator=generator) for s in shapes]
    found = [t.t().contiguous().t() if t.shape == (33, 7) else t for t in found]
    return [t.requires_grad_() for t in found]


def gradient(step: int, i: int, x: Tensor) -> Tensor | None:
    """Return the gradient of tensor `i` in a step; now and then there is none."""
    if (step + i) % 7 == 3:
        return None
    return (0.3 + step / 50) * noise(1000 * step + i, x.shape, x.dtype) + 0.1 * x.detach()


@cache
def noise(seed: int, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """Return normal noise."""
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def give_gradients(params: list[Tensor], step: int) -> None:
    """Set `grad` of all parameters."""
    for i, p in enumerate(params):
        p.grad = gradient(step, i, p)


def train(
    optimizer: torch.optim.Optimizer, params: list[Tensor], steps: range = range(20)
) -> list[Tensor]:
    """Take steps, and return the parameters."""
    for step in steps:
        give_gradients(params, step)
        optimizer.step()
    return params


def train_plain(reference: Any, params: list[Tensor], steps: range = range(20)) -> list[Tensor]:
    """Take the same steps with a reference."""
    values = [p.detach().clone() for p in params]
    for step in steps:
        for i, x in enumerate(values):
            g = gradient(step, i, x)
            if g is not None:
                values[i] = reference.step(i, x, g)
        reference.end_step()
    return values


@pytest.fixture
def ref() -> References:
    plain = {"AdamW": PlainAdamW, "Lion": PlainLion, "MADGRAD": PlainMADGRAD}
    return References(plain, tensors, give_gradients, train, train_plain)


@pytest.fixture(autouse=True)
def _small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small tensors already be cut into several runs and pieces."""
    monkeypatch.setattr(buckets, "RUN_CPU", 8192)
