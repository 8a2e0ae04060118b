"""What a step-size controller is: pure, frozen, its history goes in and comes out."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from torch import Tensor

from solver.errors import InvalidArgument, UnknownController

H = TypeVar("H")


class Proposal(NamedTuple, Generic[H]):
    """A controller's verdict on one attempt."""

    accept: Tensor  # (B,) bool
    factor: Tensor  # (B,) what the tried step is multiplied by
    history: H


class Controller(ABC, Generic[H]):
    """Decides whether an attempt is accepted and how large the next one is.

    Subclasses are frozen dataclasses, one a file. Everything is elementwise, so `ratio` and the
    history may have leading dimensions `(n, B)`. The history is a tuple of tensors with one entry
    a row, and it moves on acceptance only.
    """

    name: ClassVar[str]  # lower case, what `controller="..."` looks up
    title: ClassVar[str]  # shown to people
    adaptive: ClassVar[bool] = True  # False: takes every step, needs no error estimate
    presets: ClassVar[Mapping[str, tuple[Mapping[str, Any], str]]] = {}  # name: settings, source

    # How the steady error ratio follows from the settings, for a reader without torch:
    # "gains": setting[safety] ** (k / icoeff), where icoeff is a number or the name of a setting.
    steady: ClassVar[Mapping[str, Any]]

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Return the controller with the published settings `name`, some of them changed.

        Raises:
            UnknownController: there is no such preset.
            InvalidArgument: a changed setting is outside its bounds.
        """
        key = normalised(name)
        for known, (settings, _) in cls.presets.items():
            if normalised(known) == key:
                return cls.with_settings({**settings, **changes})
        raise UnknownController.among(name, cls.presets)

    @classmethod
    def with_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Return the controller with these settings, by name.

        Raises:
            InvalidArgument: a setting is outside its bounds, or there is no such setting.
        """
        known = [field.name for field in cls._fields()]
        for name in settings:
            if name not in known:
                raise InvalidArgument(
                    f"{cls.__name__} has no setting {name!r}: it has {', '.join(known) or 'none'}"
                )
        return cls(**settings)

    @abstractmethod
    def init(self, like: Tensor) -> H:
        """Return the history before the first step, for `like (B,)` of the control dtype."""

    @abstractmethod
    def propose(self, ratio: Tensor, error_order: int, history: H) -> Proposal[H]:
        """Judge one attempt.

        Args:
            ratio: error over tolerance, `(B,)`; at most 1 is within tolerance; NaN and inf are
                refused.
            error_order: order of the error estimate; gains are divided by `error_order + 1`.
            history: what this method returned for the attempt before.
        """

    @abstractmethod
    def shares(self, ratio: Tensor, error_order: int, history: H) -> Mapping[str, Tensor]:
        """Return log10 of the parts of the unlimited factor, keys `p`, `i`, `d`, maybe more.

        All parts and log10 of the safety factor add up to log10 of the unlimited factor.
        """

    @abstractmethod
    def unlimited_factor(self, ratio: Tensor, error_order: int, history: H) -> Tensor:
        """Return the factor before any clamp or limiter, `(B,)`."""

    @abstractmethod
    def steady_error_ratio(self, error_order: int) -> float:
        """Return the error ratio at which the step size stays as it is (factor 1), in (0, 1]."""

    @classmethod
    def _fields(cls) -> tuple[dataclasses.Field[Any], ...]:
        return dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]

    def settings(self) -> dict[str, Any]:
        """Return name and settings as plain JSON values."""
        values = {field.name: getattr(self, field.name) for field in self._fields()}
        return {"name": self.name, **values}


def normalised(name: str) -> str:
    """Return `name` in lower case without dots, dashes, underscores, spaces: `"pi42"`."""
    return "".join(letter for letter in name.lower() if letter not in "._- ")
