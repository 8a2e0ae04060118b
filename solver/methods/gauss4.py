"""The method of Gauss of order 4."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.collocation import CollocationTableau
from solver.implicit.methods import Collocation


@final
@dataclass(frozen=True)
class Gauss4(Collocation):
    """Gauss method with two stages, order 4, fixed steps, A-stable and symplectic."""

    name: ClassVar[str] = "gauss4"
    title: ClassVar[str] = "Gauss 4"
    numbers: ClassVar[CollocationTableau] = CollocationTableau(
        source="Kuntzmann (1961), Butcher (1964); Hairer, Norsett & Wanner I, table II.7.1",
        order=4,
        error_order=None,
        c=((3 - math.sqrt(3)) / 6, (3 + math.sqrt(3)) / 6),
    )
