"""Heun's method."""

from typing import final

from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.methods.tableau import ButcherTableau


@final
class Heun(ExplicitRungeKutta):
    """Heun's method (explicit trapezoidal rule), two stages, fixed steps.

    The same step with an error estimate is `HeunEuler`.
    """

    name = "heun"
    title = "Heun"
    tableau = ButcherTableau(
        source="Heun (1900), Z. Math. Phys. 45, 23-38",
        order=2,
        error_order=None,
        c=(0, 1),
        a=((), (1,)),
        b=("1/2", "1/2"),
    )
