"""How gradients get through a solve."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from solver.dense import DenseRecord
from solver.loop import Outcome, Problem
from solver.outputs import Outputs
from solver.recording import Recorder


@dataclass(frozen=True)
class Adjoint(ABC):
    """A gradient mode: a frozen settings object, one a file."""

    name: ClassVar[str]
    title: ClassVar[str]

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
