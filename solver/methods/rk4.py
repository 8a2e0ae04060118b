"""The classical Runge-Kutta method."""

from typing import final

from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.methods.tableau import ButcherTableau


@final
class RK4(ExplicitRungeKutta):
    """The classical fourth-order method, four stages, fixed steps."""

    name = "rk4"
    title = "Classical Runge-Kutta 4"
    tableau = ButcherTableau(
        source="Kutta (1901), Z. Math. Phys. 46, 435-453",
        order=4,
        error_order=None,
        c=(0, "1/2", "1/2", 1),
        a=((), ("1/2",), (0, "1/2"), (0, 0, 1)),
        b=("1/6", "1/3", "1/3", "1/6"),
    )
