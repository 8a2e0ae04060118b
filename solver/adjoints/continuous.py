"""Continuous adjoint, every row with its own backward solve."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.adjoints.backsolve import Backsolve
from solver.loop import Problem


@final
@dataclass(frozen=True, kw_only=True)
class Continuous(Backsolve):
    """States and cotangents of each row are solved backward with steps of its own.

    Without `seminorm` every row integrates its own share of the parameters' gradients under error
    control, at the price of a product with the Jacobian for each row and of P numbers a row; with
    it they are integrated once for all rows beside the solve.
    """

    name: ClassVar[str] = "continuous"
    title: ClassVar[str] = "Continuous adjoint"

    def prepare(self, problem: Problem) -> None:
        """Nothing is refused."""
