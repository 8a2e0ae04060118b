"""Heun's method with Euler's inside."""

from typing import final

from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.methods.tableau import ButcherTableau


@final
class HeunEuler(ExplicitRungeKutta):
    """Heun-Euler 2(1): the smallest pair with an error estimate, two stages."""

    name = "heun_euler"
    title = "Heun-Euler 2(1)"
    tableau = ButcherTableau(
        source="Heun (1900), Z. Math. Phys. 45, 23-38, with Euler's method embedded",
        order=2,
        error_order=1,
        c=(0, 1),
        a=((), (1,)),
        b=("1/2", "1/2"),
        b_hat=(1, 0),
    )
