"""What a statistic is: pure tensor code that turns recorded attempts into one column."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from solver.controllers.base import Controller


class Probe(NamedTuple):
    """What tells how stiff steps are; see `Stepper.probe`."""

    vectors: Tensor  # (m, R, B, E)
    dt: Tensor  # (m, B) sizes of the steps looked at
    spread: Callable[[Tensor], Tensor]  # (m, B) of these -> (n, B), what stands for each attempt


@dataclass(frozen=True, eq=False)
class Attempts:
    """`n` consecutive attempts of the whole batch, detached; what statistics measure."""

    t: Tensor  # (n, B) time at the start, running forward
    dt: Tensor  # (n, B) size tried, not negative
    error_ratio: Tensor  # (n, B)
    accepted: Tensor  # (n, B) bool
    running: Tensor  # (n, B) bool
    weighted_error: Tensor  # (n, B, D) error over tolerance, of each component
    limiter: Tensor  # (n, B) int64, what set the size of the step, see `limiter.py`
    factor: Tensor  # (n, B) what the controller multiplied the step by
    history: Any  # the controller's history before each attempt, leaves (n, B)
    controller: Controller[Any]
    error_order: int
    probe: "Probe | None" = None  # of the steps' slopes, if wanted
    choice: Tensor | None = None  # (n, B) int64, see `Stepper.choice`
    counted: Tensor | None = None  # (n, 4, B), see `solver.methods.base.Counts.kept`

    @cached_property
    def shares(self) -> Mapping[str, Tensor]:
        """log10 of the P, I and D part of the factor, `(n, B)` each, worked out once."""
        return self.controller.shares(self.error_ratio, self.error_order, self.history)


class Statistic(ABC):
    """One number for each instance and attempt."""

    name: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str]
    help: ClassVar[str]  # what it is, with its formula, one or two sentences
    labels: ClassVar[Mapping[int, str]] = {}  # for codes: what each number means
    signed: ClassVar[bool] = False  # whether 0 is the neutral middle of its scale
    log: ClassVar[bool] = False  # whether it is best seen on a logarithmic scale
    needs: ClassVar[frozenset[str]] = frozenset()  # "probe", "counted": what costs extra

    def magnitude(self, dim: int) -> int | None:
        """Return how large a code can get with `dim` components; None if that is not known."""
        return max(map(abs, self.labels), default=None)

    def __eq__(self, other: object) -> bool:
        """Two are equal if they are of one class and have the same settings."""
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        """Return the same for equal ones."""
        return hash((type(self), self.name))

    @abstractmethod
    def measure(self, attempts: Attempts) -> Tensor:
        """Return `(n, B)`, elementwise along the attempts."""
