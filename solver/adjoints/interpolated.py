"""Continuous adjoint along the dense output of the solve."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.adjoints.backsolve import Backsolve
from solver.loop import Problem


@final
@dataclass(frozen=True, kw_only=True)
class Interpolated(Backsolve):
    """Cotangents of each row are solved backward; states are read off the steps' polynomials.

    Stable where the solution cannot be traced back, at the price of keeping the polynomials of all
    steps, one state for each degree and step.
    """

    name: ClassVar[str] = "interpolated"
    title: ClassVar[str] = "Interpolated adjoint"
    keeps_dense = True

    def prepare(self, problem: Problem) -> None:
        """Nothing is refused."""
