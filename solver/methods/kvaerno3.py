"""The pair of Kvaerno of order 3 and 2."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import DiagonallyImplicit
from solver.methods.tableau import ButcherTableau


@final
@dataclass(frozen=True)
class Kvaerno3(DiagonallyImplicit):
    """Kvaerno 3(2), four stages, L-stable, as is its embedded method."""

    name: ClassVar[str] = "kvaerno3"
    title: ClassVar[str] = "Kvaerno 3(2)"
    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        source="Kvaerno (2004), BIT Numer. Math. 44(3), 489-502",
        order=3,
        error_order=2,
        c=(0, "0.871733043016917998832038902387113685", 1, 1),
        a=(
            (),
            ("0.435866521508458999416019451193556843", "0.435866521508458999416019451193556843"),
            (
                "0.490563388421780570628467958466544690",
                "0.0735700900697604299555125903398984672",
                "0.435866521508458999416019451193556843",
            ),
            (
                "0.308809969976746523348162469886700511",
                "1.49056338842178057062846795846654469",
                "-1.23523987990698609339264987954680204",
                "0.435866521508458999416019451193556843",
            ),
        ),
        b=(
            "0.308809969976746523348162469886700511",
            "1.49056338842178057062846795846654469",
            "-1.23523987990698609339264987954680204",
            "0.435866521508458999416019451193556843",
        ),
        b_hat=(
            "0.490563388421780570628467958466544690",
            "0.0735700900697604299555125903398984672",
            "0.435866521508458999416019451193556843",
            0,
        ),
    )
