"""The place where a function of one number changes sign."""

import math
from collections.abc import Callable


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
