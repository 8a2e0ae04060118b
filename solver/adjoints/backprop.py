"""Backpropagation straight through the solver."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from solver.adjoints.base import Adjoint
from solver.adjoints.followed import solve_followed
from solver.dense import DenseRecord
from solver.loop import Outcome, Problem
from solver.outputs import Outputs
from solver.recording import Recorder


@final
@dataclass(frozen=True)
class Backprop(Adjoint):
    """Autograd follows every accepted step; memory grows with steps times stages times network.

    Step sizes are constants to autograd: the mesh moves with t0, and the last step of each row
    takes up a change of t1. This is the exact derivative of the steps that were taken.
    """

    name: ClassVar[str] = "backprop"
    title: ClassVar[str] = "Backpropagation"

    def integrate(
        self,
        problem: Problem,
        outputs: Outputs | None,
        dense: DenseRecord | None,
        recorder: Recorder | None,
        *,
        graph: bool,
    ) -> tuple[Outcome, Tensor | None]:
        """Run the loop, with autograd's graph if one is wanted."""
        return solve_followed(problem, outputs, dense, recorder, graph=graph, checkpoints=False)
