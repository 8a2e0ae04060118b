"""The method of Radau, IIA, of order 5."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from solver.implicit.collocation import CollocationTableau
from solver.implicit.methods import Collocation


@final
@dataclass(frozen=True)
class Radau5(Collocation):
    """Radau IIA with three stages, order 5(3), L-stable, stiffly accurate.

    The most robust one for stiff problems, from rough to tight tolerances.
    """

    name: ClassVar[str] = "radau5"
    title: ClassVar[str] = "Radau IIA 5"
    numbers: ClassVar[CollocationTableau] = CollocationTableau(
        source="Ehle (1969); Hairer & Wanner (1996), Solving ODEs II (2nd ed.), section IV.8",
        order=5,
        error_order=3,
        c=((4 - math.sqrt(6)) / 10, (4 + math.sqrt(6)) / 10, 1),
        gamma=1 / (3 + 3 ** (2 / 3) - 3 ** (1 / 3)),
        error=((-13 - 7 * math.sqrt(6)) / 3, (-13 + 7 * math.sqrt(6)) / 3, -1 / 3),
    )
