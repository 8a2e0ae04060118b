"""A single accepted step, its cotangents, and who takes them back."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor


class Step(NamedTuple):
    """One accepted step of every row, and the outputs read off it."""

    t: Tensor  # (B,)
    dt: Tensor  # (B,), 0 in rows that stand still
    start: Tensor | None  # (B,) time at which its start was evaluated, None where that is t
    seen: Tensor  # (B,) time at which its end was evaluated
    y: Tensor  # (B, D) state at its start
    active: Tensor | None  # (B,) bool, None where all are
    slopes: Tensor | None  # (B, S, D), if they were kept
    rows: Tensor | None  # (n,) rows of the outputs read off this step, None without any
    tau: Tensor | None  # (n,) their times
    cotangent: Tensor | None  # (n, D) derivative of the loss by them
    choice: Tensor | None = None  # (B,) what the method chose by itself


class StepCotangents(NamedTuple):
    """Derivatives of the loss by what a step was made from; times are None unless asked for."""

    y: Tensor  # (B, D)
    t: Tensor | None  # (B,)
    dt: Tensor | None
    seen: Tensor | None
    tau: Tensor | None  # (n,)


class StepReverser(ABC):
    """Takes cotangents from the end of a step to its start."""

    curious = False  # whether it wants to `learn` even if nobody watches
    width = 0  # steps it takes back together, by `reverse_window`; 0: single ones

    @property
    @abstractmethod
    def graphs_at_once(self) -> int:
        """How many evaluations of the vector field have their graph at the same time."""

    @abstractmethod
    def reverse(self, step: Step, cotangent: Tensor) -> StepCotangents:
        """Take `cotangent (B, D)` of the state at the end to the start."""

    def reverse_window(self, steps: Step, width: int, cotangent: Tensor) -> StepCotangents | None:
        """Take `width` steps back, laid out as one of `width * B` rows; None if it cannot."""
        return None

    def learn(self, graph_bytes: int) -> None:  # noqa: B027
        """Take up what the graphs of the first step reversed kept at most."""
