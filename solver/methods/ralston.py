"""Ralston's second-order method."""

from typing import final

from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.methods.tableau import ButcherTableau


@final
class Ralston(ExplicitRungeKutta):
    """Ralston's method, fixed steps: the smallest bound on the error of two stages of order 2."""

    name = "ralston"
    title = "Ralston"
    tableau = ButcherTableau(
        source="Ralston (1962), Math. Comp. 16, 431-437",
        order=2,
        error_order=None,
        c=(0, "2/3"),
        a=((), ("2/3",)),
        b=("1/4", "3/4"),
    )
