"""Batches of 64 with a spread, on which step counts are compared with other solvers.

Each is `(field, y0 (64, D), t1)` with t0 = 0; made of exact formulas, so that a peer gets the same.
"""

import importlib.util
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

_spec = importlib.util.spec_from_file_location(
    "equations", Path(__file__).with_name("equations.py")
)
assert _spec
assert _spec.loader
equations = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(equations)

BATCH = 64


class Spread(NamedTuple):
    """An initial value problem `y' = field(t, y)` on [0, t1] for every row."""

    field: equations.Field
    y0: Tensor
    t1: float


def spread() -> Tensor:
    """Return 0 .. 1 in 64 steps, float64."""
    return torch.arange(BATCH, dtype=torch.float64) / (BATCH - 1)


def van_der_pol() -> Spread:
    """Mu from 0.5 to 10, spaced by equal factors."""
    mu = 0.5 * 20 ** spread()
    y0 = torch.tensor([2.0, 0.0], dtype=torch.float64).repeat(BATCH, 1)
    return Spread(lambda t, y: equations.van_der_pol(t, y, mu), y0, 20.0)


def lorenz() -> Spread:
    """Rho from 20 to 40, short enough that chaos does not hide the counts."""
    rho = 20 + 20 * spread()
    y0 = torch.ones(BATCH, 3, dtype=torch.float64)
    return Spread(lambda t, y: equations.lorenz(t, y, 10.0, rho), y0, 5.0)


def brusselator() -> Spread:
    """Eight points on the line, diffusion from 0.002 to 0.02, a wave as start."""
    alpha = 0.002 + 0.018 * spread()
    x = torch.arange(1, 9, dtype=torch.float64) / 9
    wave = torch.cat((1 + torch.sin(2 * torch.pi * x), torch.full_like(x, 3.0)))
    y0 = wave.repeat(BATCH, 1)
    return Spread(lambda t, y: equations.brusselator_1d(t, y, alpha), y0, 10.0)


def pleiades() -> Spread:
    """Start places stretched by 1 to 1.1."""
    places = [3, 3, -1, -3, 2, -2, 2, 3, -3, 2, 0, 0, -4, 4]
    speeds = [0, 0, 0, 0, 0, 1.75, -1.5, 0, 0, 0, -1.25, 1, 0, 0]
    stretch = 1 + 0.1 * spread()[:, None]
    y0 = torch.cat(
        (
            stretch * torch.tensor(places, dtype=torch.float64),
            torch.tensor(speeds, dtype=torch.float64).repeat(BATCH, 1),
        ),
        dim=1,
    )
    return Spread(equations.pleiades, y0, 3.0)


SPREADS = {
    "van_der_pol": van_der_pol,
    "lorenz": lorenz,
    "brusselator": brusselator,
    "pleiades": pleiades,
}
