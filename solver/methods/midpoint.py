"""The explicit midpoint rule."""

from typing import final

from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.methods.tableau import ButcherTableau


@final
class Midpoint(ExplicitRungeKutta):
    """Explicit midpoint rule (Runge's method), two stages, fixed steps."""

    name = "midpoint"
    title = "Midpoint"
    tableau = ButcherTableau(
        source="Runge (1895), Math. Ann. 46, 167-178",
        order=2,
        error_order=None,
        c=(0, "1/2"),
        a=((), ("1/2",)),
        b=(0, 1),
    )
