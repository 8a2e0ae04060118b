"""Right-hand sides of the reference cases, written from the `equation` lines of their files.

Every function takes `t (B,)`, `y (B, D)` and the case's parameters by name, each a float or a
tensor `(B,)`, and returns `(B, D)`. `FIELDS` finds it by the file's name.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Field = Callable[..., Tensor]


def columns(*values: Tensor) -> Tensor:
    """Return the components `(B,)` side by side, `(B, D)`."""
    return torch.stack(values, dim=-1)


def column(value: Any) -> Any:
    """Return a parameter ready to multiply `(B, D)`."""
    return value[:, None] if isinstance(value, Tensor) and value.ndim == 1 else value


def arenstorf(t: Tensor, y: Tensor, mu: Any) -> Tensor:
    """Restricted three-body problem in rotating coordinates."""
    x, z, vx, vz = y.unbind(-1)
    earth = 1 - mu
    d1 = ((x + mu) ** 2 + z**2) ** 1.5
    d2 = ((x - earth) ** 2 + z**2) ** 1.5
    ax = x + 2 * vz - earth * (x + mu) / d1 - mu * (x - earth) / d2
    az = z - 2 * vx - earth * z / d1 - mu * z / d2
    return columns(vx, vz, ax, az)


def van_der_pol(t: Tensor, y: Tensor, mu: Any) -> Tensor:
    """Van der Pol's oscillator."""
    x, v = y.unbind(-1)
    return columns(v, mu * (1 - x**2) * v - x)


def brusselator_1d(t: Tensor, y: Tensor, alpha: Any) -> Tensor:
    """Brusselator with diffusion on a line, boundary values 1 and 3."""
    n = y.shape[-1] // 2
    u, v = y[:, :n], y[:, n:]
    gamma = column(alpha) * (n + 1) ** 2
    reaction = u**2 * v
    du = 1 + reaction - 4 * u + gamma * second_difference(u, 1.0)
    dv = 3 * u - reaction + gamma * second_difference(v, 3.0)
    return torch.cat((du, dv), dim=-1)


def second_difference(u: Tensor, boundary: float) -> Tensor:
    """Return `u_(i-1) - 2 u_i + u_(i+1)` with the same value beyond both ends."""
    wide = torch.nn.functional.pad(u, (1, 1), value=boundary)
    return wide[:, :-2] - 2 * u + wide[:, 2:]


def cahn_hilliard(t: Tensor, y: Tensor, p: Any, q: Any, r: Any, N: int) -> Tensor:
    """Cahn-Hilliard equation on a ring."""

    def laplace(w: Tensor) -> Tensor:
        return N**2 * (w.roll(-1, -1) - 2 * w + w.roll(1, -1))

    return laplace(p * y + r * y**3 + q * laplace(y))


def curtiss_hirschfelder(t: Tensor, y: Tensor, lam: Any) -> Tensor:
    """Fast approach to a slow solution."""
    return -lam * (y - t.cos()[:, None])


def detest_a1(t: Tensor, y: Tensor) -> Tensor:
    """Exponential decay."""
    return -y


def detest_a3(t: Tensor, y: Tensor) -> Tensor:
    """An oscillatory problem with explicit time."""
    return y * t.cos()[:, None]


def detest_a5(t: Tensor, y: Tensor) -> Tensor:
    """A spiral curve."""
    return (y - t[:, None]) / (y + t[:, None])


def detest_b2(t: Tensor, y: Tensor) -> Tensor:
    """A linear chemical reaction."""
    a, b, c = y.unbind(-1)
    return columns(-a + b, a - 2 * b + c, b - c)


def detest_b4(t: Tensor, y: Tensor) -> Tensor:
    """The integral surface of a torus."""
    a, b, c = y.unbind(-1)
    r = torch.sqrt(a**2 + b**2)
    return columns(-b - a * c / r, a - b * c / r, a / r)


def detest_c1(t: Tensor, y: Tensor) -> Tensor:
    """A radioactive decay chain."""
    before = torch.nn.functional.pad(y[:, :-1], (1, 0))
    decays = torch.ones(y.shape[-1], dtype=y.dtype)
    decays[-1] = 0
    return before - decays * y


def detest_c3(t: Tensor, y: Tensor) -> Tensor:
    """A parabolic equation by differences."""
    return second_difference(y, 0.0)


def kepler(t: Tensor, y: Tensor, **ignored: Any) -> Tensor:
    """Two bodies in the plane."""
    x, z, vx, vz = y.unbind(-1)
    cube = (x**2 + z**2) ** 1.5
    return columns(vx, vz, -x / cube, -z / cube)


def detest_e1(t: Tensor, y: Tensor) -> Tensor:
    """Bessel's equation of order one half, shifted."""
    x, v = y.unbind(-1)
    return columns(v, -(v / (t + 1) + (1 - 0.25 / (t + 1) ** 2) * x))


def detest_e3(t: Tensor, y: Tensor, w: Any) -> Tensor:
    """Duffing's equation."""
    x, v = y.unbind(-1)
    return columns(v, x**3 / 6 - x + 2 * torch.sin(w * t))


def detest_e5(t: Tensor, y: Tensor) -> Tensor:
    """A pursuit."""
    _, v = y.unbind(-1)
    return columns(v, torch.sqrt(1 + v**2) / (25 - t))


def detest_f2(t: Tensor, y: Tensor) -> Tensor:
    """A source that switches at every whole time."""
    rate = torch.where(t.floor() % 2 == 0, 1.5, 0.5)
    return 55 - rate[:, None] * y


def detest_f4(t: Tensor, y: Tensor) -> Tensor:
    """A narrow bump, then another equation."""
    s = t[:, None] - 5
    bump = -2 / 21 - 120 * s / (1 + 4 * s**2) ** 16
    return torch.where(t[:, None] <= 10, bump, -2 * y)


def fitzhugh_nagumo(t: Tensor, y: Tensor, a: Any, b: Any, eps: Any, I: Any) -> Tensor:  # noqa: E741
    """A model neuron."""
    v, w = y.unbind(-1)
    return columns(v - v**3 / 3 - w + I, eps * (v + a - b * w))


def henon_heiles(t: Tensor, y: Tensor) -> Tensor:
    """A star's orbit in a galaxy."""
    x, z, vx, vz = y.unbind(-1)
    return columns(vx, vz, -x - 2 * x * z, -z - x**2 + z**2)


def kdv(t: Tensor, y: Tensor, alpha: Any, beta: Any, L: Any, N: int) -> Tensor:
    """Korteweg-de Vries equation on a ring."""
    dx = L / N
    g = alpha / 2 * y**2 + beta * (y.roll(-1, -1) - 2 * y + y.roll(1, -1)) / dx**2
    return (g.roll(-1, -1) - g.roll(1, -1)) / (2 * dx)


def lorenz(t: Tensor, y: Tensor, sigma: Any, rho: Any, beta: Any = 8 / 3) -> Tensor:
    """Lorenz's model of convection."""
    a, b, c = y.unbind(-1)
    return columns(sigma * (b - a), a * (rho - c) - b, a * b - beta * c)


def lotka_volterra(t: Tensor, y: Tensor, a: Any, b: Any, c: Any, d: Any) -> Tensor:
    """Prey and predators."""
    prey, predators = y.unbind(-1)
    return columns(a * prey - b * prey * predators, -c * predators + d * prey * predators)


def pleiades(t: Tensor, y: Tensor) -> Tensor:
    """Seven stars in the plane, masses 1 to 7."""
    x, z, vx, vz = y.split(7, dim=-1)
    dx, dz = x[:, None, :] - x[:, :, None], z[:, None, :] - z[:, :, None]  # (B, i, j)
    square = dx**2 + dz**2 + torch.eye(7, dtype=y.dtype)
    pull = torch.arange(1, 8, dtype=y.dtype) / square**1.5
    return torch.cat((vx, vz, (pull * dx).sum(-1), (pull * dz).sum(-1)), dim=-1)


def rabi(t: Tensor, y: Tensor, delta: Any, Omega: Any) -> Tensor:
    """Two levels in a driving field, complex."""
    a, b = y.unbind(-1)
    return -1j * columns(delta / 2 * a + Omega / 2 * b, Omega / 2 * a - delta / 2 * b)


def riccati(t: Tensor, y: Tensor) -> Tensor:
    """Blows up in finite time."""
    return y**2


FIELDS: dict[str, Field] = {
    "arenstorf_1": arenstorf,
    "batch_a3_own_times_32": detest_a3,
    "batch_vdp_64": van_der_pol,
    "brusselator_1d": brusselator_1d,
    "cahn_hilliard_32": cahn_hilliard,
    "curtiss_hirschfelder": curtiss_hirschfelder,
    "detest_a1": detest_a1,
    "detest_a3": detest_a3,
    "detest_a5": detest_a5,
    "detest_b2": detest_b2,
    "detest_b4": detest_b4,
    "detest_c1": detest_c1,
    "detest_c3": detest_c3,
    "detest_d1": kepler,
    "detest_d3": kepler,
    "detest_d5": kepler,
    "detest_e1": detest_e1,
    "detest_e3": detest_e3,
    "detest_e5": detest_e5,
    "detest_f2": detest_f2,
    "detest_f4": detest_f4,
    "fitzhugh_nagumo": fitzhugh_nagumo,
    "henon_heiles": henon_heiles,
    "kdv_soliton": kdv,
    "lorenz_short": lorenz,
    "lotka_volterra_backward": lotka_volterra,
    "pleiades": pleiades,
    "rabi": rabi,
    "riccati_blowup": riccati,
}
