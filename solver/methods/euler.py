"""Euler's method."""

from typing import final

from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.methods.tableau import ButcherTableau


@final
class Euler(ExplicitRungeKutta):
    """Explicit Euler, one stage, fixed steps: the method to compare others with."""

    name = "euler"
    title = "Euler"
    tableau = ButcherTableau(
        source="Euler (1768), Institutionum calculi integralis I, sect. 2, ch. 7",
        order=1,
        error_order=None,
        c=(0,),
        a=((),),
        b=(1,),
    )
