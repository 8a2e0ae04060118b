"""Continuous adjoint of the whole batch as one system, as most solvers have it."""

from dataclasses import dataclass
from typing import ClassVar, final

from solver.adjoints.backsolve import Backsolve
from solver.errors import InvalidArgument
from solver.loop import Problem


@final
@dataclass(frozen=True, kw_only=True)
class Joint(Backsolve):
    """All rows, and without `seminorm` the parameters' integrals, are one system with one step.

    The hardest row decides about the steps of all. Spans may differ: each is run through in the
    same share of time.
    """

    name: ClassVar[str] = "joint"
    title: ClassVar[str] = "Joint continuous adjoint"
    joint = True

    def prepare(self, problem: Problem) -> None:
        """Refuse jumps, which every row would have at another place.

        Raises:
            InvalidArgument: the problem has jumps.
        """
        if problem.times.stops is not None:
            raise InvalidArgument(
                'adjoint is "joint": jump_t needs steps of each row, as adjoint="continuous" has'
            )
