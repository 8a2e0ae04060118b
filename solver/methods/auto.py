"""Explicit where a row is not stiff, implicit where it is."""

from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar, final

import torch
from torch import Tensor

from solver.implicit.methods import ImplicitMethod
from solver.methods.rodas5p import Rodas5P
from solver.methods.tsit5 import Tsit5
from solver.norms import Tolerance
from solver.problem import Field
from solver.switching import SwitchingStepper


@final
@dataclass(frozen=True)
class Auto(ImplicitMethod):
    """Tsitouras 5(4) until a row turns out to be stiff, then Rodas5P, and back.

    Every row switches by itself, as often as it has to. The statistic `choice` says which of the
    two took an attempt. The settings are those of the Jacobian, for stiff steps. Petzold (1983),
    SIAM J. Sci. Stat. Comput. 4(1), on switching; how stiffness is told, see `SwitchingStepper`.
    """

    name: ClassVar[str] = "auto"
    title: ClassVar[str] = "Automatic: Tsitouras 5 or Rodas5P"

    @property
    def order(self) -> int:
        """Order of the step, of either method."""
        return 5

    @property
    def error_order(self) -> int | None:
        """Order of the error estimate, of either method."""
        return 4

    @property
    def dense_order(self) -> int:
        """Order of the dense output, of either method."""
        return 4

    def stepper(
        self,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None = None,
        exact: bool = True,
    ) -> SwitchingStepper:
        """Make the working state of one solve."""
        options = {"graph": graph, "tolerance": tolerance, "exact": exact}
        explicit, stiff = Tsit5(), Rodas5P(self.jacobian, self.structure, self.linear)
        *_, before, last = explicit.tableau.exact.a
        apart = [float(p - q) for p, q in zip_longest(last, before, fillvalue=0)]
        return SwitchingStepper(
            explicit.stepper(field, like, time_dtype, **options),
            stiff.stepper(field, like, time_dtype, **options),
            [*apart, *[0] * (explicit.stages - len(apart))],
            like,
            tolerance,
        )
