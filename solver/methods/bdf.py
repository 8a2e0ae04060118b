"""Backward differentiation formulas of variable order."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from solver.implicit.methods import ImplicitMethod
from solver.implicit.multistep import BdfStepper
from solver.norms import Tolerance
from solver.problem import Field


@final
@dataclass(frozen=True)
class BDF(ImplicitMethod):
    """Backward differentiation formulas, orders 1 to 5, every row with its own order and steps.

    Few evaluations a step, for stiff problems whose field is expensive. A step needs those before,
    so gradients go through adjoint="backprop" alone. Curtiss & Hirschfelder (1952), PNAS 38(3);
    Hairer, Norsett & Wanner I (2nd ed.), section III.5, with unequal steps.
    """

    name: ClassVar[str] = "bdf"
    title: ClassVar[str] = "BDF, order 1 to 5"

    @property
    def order(self) -> int:
        """Order of the first step; later ones go up to 5."""
        return 1

    @property
    def error_order(self) -> int | None:
        """Order of error that the controller counts with; errors are handed over accordingly."""
        return 1

    @property
    def dense_order(self) -> int:
        """Order of the dense output of the first step."""
        return 1

    def stepper(
        self,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None = None,
        exact: bool = True,
    ) -> BdfStepper:
        """Make the working state of one solve."""
        return BdfStepper(
            field,
            like,
            time_dtype,
            graph=graph,
            tolerance=tolerance,
            exact=exact,
            setup=self.setup,
        )
