"""The stabilized method of Runge, Kutta and Chebyshev."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from solver.methods.base import Method
from solver.norms import Tolerance
from solver.problem import Field
from solver.stabilized import StabilizedStepper


@final
@dataclass(frozen=True)
class RKC2(Method):
    """Runge-Kutta-Chebyshev, order 2: explicit, for mildly stiff problems whose spectrum is real.

    Diffusion on a grid above all: s stages are stable to about 0.65 s^2 along the negative real
    axis, and every row takes as many as its spectral radius asks for. No linear systems. Sommeijer,
    Shampine & Verwer (1998), J. Comput. Appl. Math. 88, 315-326.
    """

    name: ClassVar[str] = "rkc2"
    title: ClassVar[str] = "Runge-Kutta-Chebyshev 2"

    @property
    def order(self) -> int:
        """Order of the step."""
        return 2

    @property
    def error_order(self) -> int | None:
        """Order of the error estimate."""
        return 2

    @property
    def dense_order(self) -> int:
        """Order of the dense output, a cubic through states of order 2."""
        return 2

    def stepper(
        self,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None = None,
        exact: bool = True,
    ) -> StabilizedStepper:
        """Make the working state of one solve."""
        return StabilizedStepper(field, like, time_dtype, graph=graph, tolerance=tolerance)
