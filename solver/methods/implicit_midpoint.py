"""The implicit midpoint rule."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.methods import DiagonallyImplicit
from solver.methods.tableau import ButcherTableau


@final
@dataclass(frozen=True)
class ImplicitMidpoint(DiagonallyImplicit):
    """Implicit midpoint rule, fixed steps, A-stable and symplectic: keeps quadratic invariants."""

    name: ClassVar[str] = "implicit_midpoint"
    title: ClassVar[str] = "Implicit midpoint"
    tableau: ClassVar[ButcherTableau] = ButcherTableau(
        source="Hairer & Wanner II (2nd ed.), section IV.3; Gauss (1814), one node",
        order=2,
        error_order=None,
        c=(0, "1/2"),
        a=(
            (),
            (0, "1/2"),
        ),
        b=(0, 1),
    )
