"""The trapezoidal rule."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import DiagonallyImplicit
from solver.methods.tableau import ButcherTableau


@final
@dataclass(frozen=True)
class Trapezoid(DiagonallyImplicit):
    """Trapezoidal rule, fixed steps, A-stable, not damped at infinity."""

    name: ClassVar[str] = "trapezoid"
    title: ClassVar[str] = "Trapezoidal rule"
    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        source="Crank & Nicolson (1947), Proc. Camb. Phil. Soc. 43(1)",
        order=2,
        error_order=None,
        c=(0, 1),
        a=(
            (),
            ("1/2", "1/2"),
        ),
        b=("1/2", "1/2"),
    )
