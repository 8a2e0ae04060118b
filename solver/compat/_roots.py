"""Numbers beside a number, and where a function of one number changes sign."""

import math
import struct
from collections.abc import Callable

import torch


def first_zero(
    f: Callable[[float], float], a: float, b: float, f_a: float, f_b: float, width: float
) -> float:
    """Return a zero of `f` between `a` and `b`, to `width`, by the ITP method.

    Oliveira & Takahashi (2020), ACM Trans. Math. Softw. 47(1), with kappa_2 = 2.

    Args:
        f_a, f_b: values at both ends, of different signs.
        width: resolution wanted.
    """
    if f_b == 0:
        return b
    side, kappa = math.copysign(1.0, f_a), 0.2 / (b - a)
    reach = width * 2.0 ** max(math.ceil(math.log2((b - a) / width)), 0)
    while b - a > width:
        middle = (a + b) / 2
        secant = (a * f_b - b * f_a) / (f_b - f_a) if f_b != f_a else middle
        secant = secant if a <= secant <= b else middle
        push = kappa * (b - a) ** 2
        x = middle
        if push <= abs(middle - secant):
            x = secant + math.copysign(push, middle - secant)
        room = max(reach - (b - a) / 2, 0.0)
        x = min(max(x, middle - room), middle + room)
        x = min(max(x, a + width / 2), b - width / 2)
        value = f(x)
        if value == 0:
            return x
        if value * side > 0:
            a, f_a = x, value
        else:
            b, f_b = x, value
        reach /= 2
    return b


def beside(t: float, sign: float, dtype: torch.dtype) -> float:
    """Return the next number of a dtype above `t`, or below for a negative sign."""
    if dtype == torch.float64:
        return math.nextafter(t, sign * math.inf)
    if dtype != torch.float32 or not math.isfinite(t):
        return t
    near: float = struct.unpack("f", struct.pack("f", t))[0]
    if near == 0.0:
        return sign * 2.0**-149
    bits: int = struct.unpack("i", struct.pack("f", near))[0]
    bits += 1 if (near > 0) == (sign > 0) else -1
    return struct.unpack("f", struct.pack("i", bits))[0]
