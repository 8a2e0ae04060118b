"""Fehlberg's pair of order 4 and 5."""

from typing import final

from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.methods.tableau import ButcherTableau


@final
class Fehlberg45(ExplicitRungeKutta):
    """Fehlberg 4(5), six stages; goes on with the fourth-order value, as Fehlberg meant it.

    The interpolant is the quartic that fulfils the order conditions for every theta with the stages
    at hand (the sixth left out) and the slope at the end of the step, its one extra stage.
    """

    name = "fehlberg45"
    title = "Fehlberg 4(5)"
    tableau = ButcherTableau(
        source="Fehlberg (1969), NASA TR R-315, table III",
        order=4,
        error_order=4,
        c=(0, "1/4", "3/8", "12/13", 1, "1/2"),
        a=(
            (),
            ("1/4",),
            ("3/32", "9/32"),
            ("1932/2197", "-7200/2197", "7296/2197"),
            ("439/216", -8, "3680/513", "-845/4104"),
            ("-8/27", 2, "-3544/2565", "1859/4104", "-11/40"),
        ),
        b=("25/216", 0, "1408/2565", "2197/4104", "-1/5", 0),
        b_hat=("16/135", 0, "6656/12825", "28561/56430", "-9/50", "2/55"),
        extra_c=(1,),
        extra_a=(("25/216", 0, "1408/2565", "2197/4104", "-1/5"),),
        interpolant=(
            (1, "-19/8", "239/108", "-13/18"),
            (0, 0, 0, 0),
            (0, "1024/285", "-2560/513", "1664/855"),
            (0, "-2197/456", "24167/2052", "-2197/342"),
            (0, "21/10", -5, "27/10"),
            (0, 0, 0, 0),
            (0, "3/2", -4, "5/2"),
        ),
        interpolant_order=4,
    )
