"""The implicit method of Euler."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import DiagonallyImplicit
from solver.methods.tableau import ButcherTableau


@final
@dataclass(frozen=True)
class ImplicitEuler(DiagonallyImplicit):
    """Implicit Euler, fixed steps, L-stable; the first of its two stages costs nothing."""

    name: ClassVar[str] = "implicit_euler"
    title: ClassVar[str] = "Implicit Euler"
    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        source="Euler (1768); Hairer & Wanner II (2nd ed.), eq. IV.3.3",
        order=1,
        error_order=None,
        c=(0, 1),
        a=(
            (),
            (0, 1),
        ),
        b=(0, 1),
    )
