"""What a step-size controller is: pure, frozen, its history goes in and comes out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from torch import Tensor

H = TypeVar("H")


class Proposal(NamedTuple, Generic[H]):
    """A controller's verdict on one attempt."""

    accept: Tensor  # (B,) bool
    factor: Tensor  # (B,) what the tried step is multiplied by
    history: H


class Controller(ABC, Generic[H]):
    """Decides whether an attempt is accepted and how large the next one is.

    Subclasses are frozen dataclasses, one a file. Everything is elementwise, so `ratio` and the history
    may have leading dimensions `(n, B)`.
    """

    name: ClassVar[str]  # lower case, what `controller="..."` looks up
    title: ClassVar[str]  # shown to people
    adaptive: ClassVar[bool] = True  # False: takes every step, needs no error estimate
    presets: ClassVar[Mapping[str, tuple[Mapping[str, Any], str]]] = {}  # name -> (settings, source)

    @abstractmethod
    def init(self, like: Tensor) -> H:
        """Return the history before the first step, for `like (B,)` of the control dtype."""

    @abstractmethod
    def propose(self, ratio: Tensor, error_order: int, history: H) -> Proposal[H]:
        """Judge one attempt.

        Args:
            ratio: error over tolerance, `(B,)`; at most 1 is within tolerance; NaN and inf are refused.
            error_order: order of the error estimate; gains are divided by `error_order + 1`.
            history: what this method returned for the attempt before.
        """

    @abstractmethod
    def shares(self, ratio: Tensor, error_order: int, history: H) -> Mapping[str, Tensor]:
        """Return log10 of the P, I and D part of the unlimited factor, keys `p`, `i`, `d`."""

    @abstractmethod
    def unlimited_factor(self, ratio: Tensor, error_order: int, history: H) -> Tensor:
        """Return the factor before any clamp or limiter, `(B,)`."""

    @abstractmethod
    def steady_error_ratio(self, error_order: int) -> float:
        """Return the error ratio at which the step size stays as it is (factor 1), in (0, 1]."""
