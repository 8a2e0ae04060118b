"""Events: where a function of time and state crosses zero, and what then becomes of the row."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from torch import Tensor

from solver.errors import InvalidArgument, InvalidType
from solver.event_log import EventPlan, EventRecord
from solver.norms import Tolerance, rms_norm
from solver.problem import Field

Direction = Literal["both", "rising", "falling"]
NEVER = 2**62  # an event that counts this far never ends a row


class EventRule(ABC):
    """Something a solve watches for in every row: an `Event`, or a `SteadyState`."""

    name: str  # in messages; "" for its number

    @abstractmethod
    def bind(self, field: Field, number: int) -> "BoundEvent":
        """Return what the loop asks in a solve of `field`."""


@final
@dataclass(frozen=True, eq=False)
class Event(EventRule):
    """Happens where `g(t, y)` crosses zero, in every row at its own time.

    A crossing is a change of sign seen as the row is integrated, whichever way time runs. It is
    found on the dense output, to the resolution of the time dtype, also where `g` crosses zero
    twice within a step; a `g` that touches zero happens if the numerical solution reaches it. A
    row that starts on zero has no event there. Five places of each step are looked at: bound steps
    by `dt_max` where `g` swings more often than the solution does.

    Args:
        g: `g(t, y)`, or `g(t, y, args)` if the solve has `args`, with `t (B,)` and `y` as the
            vector field gets them; returns `(B,)`, real, or bool for a condition that becomes true
            (rising) or false. Row i may depend on row i only. Where it is NaN nothing happens.
        direction: "rising" for crossings from below zero to above, "falling", or "both";
            or 1, -1, 0.
        terminal: whether the row ends there; a number n ends it at its n-th event of this kind.
        apply: `apply(t, y)` or `apply(t, y, args)` returns the state to go on from, like `y`; only
            rows that have the event take it over. None leaves the state alone.
        name: for messages.

    Raises:
        InvalidArgument, InvalidType: a setting is not allowed.
    """

    g: Callable[..., Tensor]
    direction: Direction | int = "both"
    terminal: bool | int = False
    apply: Callable[..., Any] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        """Check the settings."""
        if not callable(self.g):
            raise InvalidType(f"Event(g={self.g!r}): must be callable as g(t, y)")
        if self.apply is not None and not callable(self.apply):
            raise InvalidType(f"Event(apply={self.apply!r}): must be callable as apply(t, y)")
        if not isinstance(self.terminal, int) or self.terminal < 0:
            raise InvalidArgument(
                f"Event(terminal={self.terminal!r}): must be True, False or the number of events "
                "after which a row ends"
            )
        _direction(self.direction)

    def bind(self, field: Field, number: int) -> "BoundEvent":
        """Return what the loop asks in a solve of `field`."""
        return BoundEvent(
            name=self.name,
            number=number,
            field=field,
            value=self.g,
            apply=self.apply,
            limit=int(self.terminal) or NEVER,
            rising=_direction(self.direction) >= 0,
            falling=_direction(self.direction) <= 0,
        )


@final
@dataclass(frozen=True, eq=False)
class SteadyState(EventRule):
    """Ends a row where `f` is so small that the state has come to rest.

    That is where the root mean square of `f / (atol + rtol |y|)` falls to 1; a row that starts at
    rest ends at once. Costs an evaluation of the vector field in every accepted step.

    Args:
        rtol, atol: rate of change of the state that counts as none, relative and absolute.
        name: for messages.
    """

    rtol: float = 1e-3
    atol: float = 1e-6
    name: str = "steady state"

    def __post_init__(self) -> None:
        """Check the tolerances."""
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise InvalidArgument(
                    f"SteadyState({name}={value!r}): must be a finite number, not negative"
                )
        if self.rtol == self.atol == 0:
            raise InvalidArgument("SteadyState(rtol=0, atol=0): one of them must be positive")

    def bind(self, field: Field, number: int) -> "BoundEvent":
        """Return what the loop asks in a solve of `field`."""
        tolerance = Tolerance(self.rtol, self.atol)

        def value(tau: Tensor, y: Tensor) -> Tensor:
            return rms_norm(field(tau, y) / tolerance.scale(y.abs())) - 1

        return BoundEvent(
            name=self.name,
            number=number,
            field=field,
            value=value,
            apply=None,
            limit=1,
            rising=False,
            falling=True,
            own=True,
        )


@dataclass(frozen=True, eq=False)
class BoundEvent:
    """An event of one solve, as the loop asks it: flat states, time in the row's direction."""

    name: str
    number: int  # its place in `events`
    field: Field
    value: Callable[..., Any]
    apply: Callable[..., Any] | None
    limit: int  # how many of it end a row
    rising: bool
    falling: bool
    own: bool = False  # a steady state: `value(tau, y)` evaluates the field, in flat states

    @property
    def at_start(self) -> bool:
        """Whether it happens at the start of a row that begins below zero."""
        return self.own

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"event {self.number}" + (f" ({self.name})" if self.name else "")

    def __call__(self, tau: Tensor, y: Tensor) -> Tensor:
        """Evaluate for all rows, `(B,), (B, D) -> (B,)` in the time dtype; +-1 for conditions.

        Raises:
            InvalidType, InvalidArgument: what `g` returns is no real tensor `(B,)`.
        """
        value = self.value(tau, y) if self.own else self.value(*self.field.arguments(tau, y))
        if not isinstance(value, Tensor):
            raise InvalidType(f"g of {self.label} returned a {type(value).__name__}: must be (B,)")
        if value.shape != tau.shape:
            if value.shape != (*tau.shape, 1):
                raise InvalidArgument(
                    f"g of {self.label} returned shape {tuple(value.shape)}: must be "
                    f"{tuple(tau.shape)}, a number for each row"
                )
            value = value[:, 0]
        if value.is_complex():
            raise InvalidType(f"g of {self.label} returned {value.dtype}: must be real or bool")
        if value.dtype == torch.bool:
            return torch.where(value, 1.0, -1.0).to(tau.dtype)
        return value.to(tau.dtype)

    def change(self, tau: Tensor, y: Tensor) -> Tensor:
        """Return the state to go on from in all rows, `(B, D)`."""
        assert self.apply is not None
        try:
            return self.field.layout.flatten_slope(self.apply(*self.field.arguments(tau, y)))
        except (InvalidArgument, InvalidType) as error:
            text = str(error).replace("f returned", "returned", 1)
            raise type(error)(f"apply of {self.label} {text}") from error


def read_events(events: Any, field: Field) -> EventPlan | None:
    """Return what to watch for: None, one event or several, plain callables among them.

    Raises:
        InvalidType: something is no event.
    """
    if events is None:
        return None
    if isinstance(events, EventRule) or callable(events):
        events = (events,)
    if not isinstance(events, Sequence):
        raise InvalidType(f"events is a {type(events).__name__}: must be an Event or several")
    bound = tuple(_as_rule(each).bind(field, number) for number, each in enumerate(events))
    layout = field.layout
    record = EventRecord(layout.batch, len(bound), layout.device)
    return EventPlan(bound, record) if bound else None


def _as_rule(event: Any) -> EventRule:
    """Return a plain callable as an Event, with its attributes `terminal` and `direction`."""
    if isinstance(event, EventRule):
        return event
    if isinstance(event, type) or not callable(event):
        raise InvalidType(f"events holds {event!r}: must be Event objects or callables g(t, y)")
    settings: dict[str, Any] = {
        name: getattr(event, name) for name in ("terminal", "direction") if hasattr(event, name)
    }
    g: Callable[..., Any] = event
    return Event(g, **settings)


def _direction(direction: object) -> int:
    signs: dict[object, int] = {"both": 0, "rising": 1, "falling": -1}
    if isinstance(direction, str) and direction in signs:
        return signs[direction]
    if isinstance(direction, int | float):
        return (direction > 0) - (direction < 0)
    raise InvalidArgument(
        f"Event(direction={direction!r}): must be 'both', 'rising' or 'falling', or 0, 1 or -1"
    )
