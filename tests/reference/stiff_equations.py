"""Right-hand sides of the stiff reference cases, written from the `equation` lines of their files.

Every function takes `t (B,)`, `y (B, D)` and the case's parameters by name, and returns `(B, D)`.
`FIELDS` finds it by the file's name.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Field = Callable[..., Tensor]


def columns(*values: Tensor) -> Tensor:
    """Return the components `(B,)` side by side, `(B, D)`."""
    return torch.stack(values, dim=-1)


def flame(t: Tensor, y: Tensor, delta: float) -> Tensor:
    """A ball of flame; delta is its size at the start."""
    return y**2 - y**3


def heat(t: Tensor, y: Tensor, N: int) -> Tensor:
    """Heat equation on a line whose ends are kept at 0."""
    wide = torch.nn.functional.pad(y, (1, 1))
    return (N + 1) ** 2 * (wide[:, :-2] - 2 * y + wide[:, 2:])


def hires(t: Tensor, y: Tensor, **p: float) -> Tensor:
    """High irradiance responses of plants, eight substances."""
    y1, y2, y3, y4, y5, y6, y7, y8 = y.unbind(-1)
    fast = p["k280"] * y6 * y8
    return columns(
        -p["a"] * y1 + p["b"] * y2 + p["c"] * y3 + p["d"],
        p["a"] * y1 - 8.75 * y2,
        -p["e"] * y3 + p["b"] * y4 + p["f"] * y5,
        p["c"] * y2 + p["a"] * y3 - p["g"] * y4,
        -p["h"] * y5 + p["b"] * y6 + p["b"] * y7,
        -fast + p["i"] * y4 + p["a"] * y5 - p["b"] * y6 + p["i"] * y7,
        fast - p["j"] * y7,
        -fast + p["j"] * y7,
    )


def medical_akzo(t: Tensor, y: Tensor, k: float, c: float) -> Tensor:
    """Antibodies that go into a tissue, by the method of lines."""
    u, v = y[:, 0::2], y[:, 1::2]
    count = u.shape[1]
    dz = 1.0 / count
    zeta = torch.arange(1, count + 1, dtype=y.dtype) * dz
    alpha, beta = 2 * (zeta - 1) ** 3 / c**2, (zeta - 1) ** 4 / c**2
    left = torch.where(t <= 5, 2.0, 0.0).to(y.dtype)[:, None]
    before = torch.cat([left, u[:, :-1]], dim=1)
    after = torch.cat([u[:, 1:], u[:, -1:]], dim=1)  # its last entry has alpha = beta = 0
    moved = alpha * (after - before) / (2 * dz) + beta * (before - 2 * u + after) / dz**2
    eaten = k * u * v
    return torch.stack([moved - eaten, -eaten], dim=2).flatten(1)


def oregonator(t: Tensor, y: Tensor, s: float, q: float, w: float) -> Tensor:
    """Belousov and Zhabotinsky's reaction."""
    y1, y2, y3 = y.unbind(-1)
    return columns(s * (y2 + y1 * (1 - q * y1 - y2)), (y3 - (1 + y1) * y2) / s, w * (y1 - y3))


def robertson(t: Tensor, y: Tensor, k1: float, k2: float, k3: float) -> Tensor:
    """Three reactions of very different speed."""
    y1, y2, y3 = y.unbind(-1)
    slow, fast, very_fast = k1 * y1, k2 * y2 * y3, k3 * y2**2
    return columns(fast - slow, slow - fast - very_fast, very_fast)


def sdetest_a2(t: Tensor, y: Tensor) -> Tensor:
    """A linear chain with stiff ends."""
    first = -1800 * y[:, :1] + 900 * y[:, 1:2]
    middle = y[:, :-2] - 2 * y[:, 1:-1] + y[:, 2:]
    last = 1000 * y[:, -2:-1] - 2000 * y[:, -1:] + 1000
    return torch.cat([first, middle, last], dim=1)


def sdetest_b5(t: Tensor, y: Tensor, alpha: float, r6: float) -> Tensor:
    """Eigenvalues near the imaginary axis."""
    y1, y2, y3, y4, y5, y6 = y.unbind(-1)
    return columns(-10 * y1 + alpha * y2, -alpha * y1 - 10 * y2, -4 * y3, -y4, -0.5 * y5, -r6 * y6)


def sdetest_c3(t: Tensor, y: Tensor, beta: float) -> Tensor:
    """Nonlinear coupling from slow to fast."""
    y1, y2, y3, y4 = y.unbind(-1)
    two = y1**2 + y2**2
    return columns(
        -y1 + 2,
        -10 * y2 + beta * y1**2,
        -40 * y3 + 4 * beta * two,
        -100 * y4 + 10 * beta * (two + y3**2),
    )


def sdetest_d4(t: Tensor, y: Tensor, c: float) -> Tensor:
    """Reaction kinetics."""
    y1, y2, y3 = y.unbind(-1)
    a, b = c * y1 + 1000 * y1 * y3, 2500 * y2 * y3
    return columns(-a, -b, -a - b)


def sdetest_e3(t: Tensor, y: Tensor, a: float, b: float) -> Tensor:
    """Reactor kinetics."""
    y1, y2, y3 = y.unbind(-1)
    return columns(-(55 + y3) * y1 + 65 * y2, a * (y1 - y2), b * y1)


def van_der_pol(t: Tensor, y: Tensor, mu: float) -> Tensor:
    """Van der Pol's oscillator."""
    x, v = y.unbind(-1)
    return columns(v, mu * (1 - x**2) * v - x)


FIELDS: dict[str, Field] = {
    "flame_1e-4": flame,
    "heat_1d_128": heat,
    "hires": hires,
    "medical_akzo": medical_akzo,
    "oregonator": oregonator,
    "robertson_long": robertson,
    "sdetest_a2": sdetest_a2,
    "sdetest_b5": sdetest_b5,
    "sdetest_c3": sdetest_c3,
    "sdetest_d4": sdetest_d4,
    "sdetest_e3": sdetest_e3,
    "vdp_mu1000": van_der_pol,
}
