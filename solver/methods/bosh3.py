"""The pair of Bogacki and Shampine."""

from typing import final

from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.methods.tableau import ButcherTableau


@final
class Bosh3(ExplicitRungeKutta):
    """Bogacki-Shampine 3(2). Four stages, of which an accepted step pays three (FSAL)."""

    name = "bosh3"
    title = "Bogacki-Shampine 3(2)"
    tableau = ButcherTableau(
        source="Bogacki & Shampine (1989), Appl. Math. Lett. 2(4), 321-325",
        order=3,
        error_order=2,
        c=(0, "1/2", "3/4", 1),
        a=((), ("1/2",), (0, "3/4"), ("2/9", "1/3", "4/9")),
        b=("2/9", "1/3", "4/9", 0),
        b_hat=("7/24", "1/4", "1/3", "1/8"),
    )
