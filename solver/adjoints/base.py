"""How gradients get through a solve."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from solver.dense import DenseRecord
from solver.loop import Outcome, Problem
from solver.outputs import Outputs
from solver.recording import Recorder

# Solves a problem out of autograd's graph, its steps going to what comes last; returns how rows
# ended, and outputs inside steps.
Solve = Callable[[Problem, Outputs | None, Recorder | None, Any], tuple[Outcome, Tensor | None]]


@dataclass(frozen=True)
class Adjoint(ABC):
    """A gradient mode: a frozen settings object, one a file."""

    name: ClassVar[str]
    title: ClassVar[str]

    @property
    def needs_steps_only(self) -> bool:
        """Whether accepted steps are all it needs of a solve, so that any engine may make them."""
        return False

    def follow(
        self,
        problem: Problem,
        outputs: Outputs | None,
        recorder: Recorder | None,
        solve: Solve,
    ) -> tuple[Outcome, Tensor | None]:
        """Like `integrate`, where steps are made by `solve`; only if `needs_steps_only`."""
        raise TypeError(f"adjoint {self.name!r} needs more than steps")

    @abstractmethod
    def integrate(
        self,
        problem: Problem,
        outputs: Outputs | None,
        dense: DenseRecord | None,
        recorder: Recorder | None,
        *,
        graph: bool,
    ) -> tuple[Outcome, Tensor | None]:
        """Solve, and return how rows ended and their outputs `(B, T, D)`, None without outputs."""
