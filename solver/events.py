"""Events: where a function of time and state crosses zero, and what then becomes of the row."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from torch import Tensor

from solver.errors import InvalidArgument, InvalidType
from solver.norms import Tolerance, rms_norm
from solver.problem import Field, real_dtype

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


class EventRecord:
    """What happened in one solve, batch after batch as the loop found it; everything detached."""

    def __init__(self, batch: int, events: int, device: torch.device):
        """Begin with nothing."""
        self.rows: list[Tensor] = []  # (n,) each
        self.columns: list[Tensor] = []  # (n,) place among the events of its row
        self.tau: list[Tensor] = []  # (n,)
        self.slope: list[Tensor] = []  # (n, D) derivative of the dense output there
        self.number: list[Tensor] = []  # (n,) which event
        self.at_start: list[Tensor] = []  # (n,) bool, the state is that of the start
        self.count = torch.zeros((events, batch), dtype=torch.int64, device=device)
        self.ended_by = torch.full((batch,), -1, dtype=torch.int64, device=device)

    @property
    def width(self) -> int:
        """Most events of any row."""
        return max((int(each.max()) + 1 for each in self.columns if len(each)), default=0)

    def grid(self, parts: list[Tensor], like: Tensor, fill: float | bool) -> Tensor:
        """Return `(B, E, ...)`, `fill` where a row had fewer; `like (B, ...)`."""
        full = like.new_full((len(like), self.width, *like.shape[1:]), fill)
        if parts:
            full[torch.cat(self.rows), torch.cat(self.columns)] = torch.cat(parts).to(full.dtype)
        return full


@dataclass(frozen=True, eq=False)
class EventPlan:
    """The events of a solve, and what has happened."""

    events: tuple[BoundEvent, ...]
    record: EventRecord

    @property
    def applies(self) -> bool:
        """Whether some event changes the state."""
        return any(event.apply is not None for event in self.events)


@dataclass(frozen=True, eq=False)
class EventLog:
    """The events of a solve, those of a row in the order in which they happened.

    Times and states are differentiable if the solve was, by the implicit function theorem; a touch,
    where `g` does not cross zero, has no derivative and counts as standing still.
    """

    times: Tensor  # (B, E), NaN behind a row's last; E is the most that any row had
    states: Any  # (B, E, ...), before `apply`, NaN behind the last
    index: Tensor  # (B, E) int64, place in `events` of what happened, -1 behind the last
    count: Tensor  # (B, n) int64, how often each of the n events happened
    ended_by: Tensor  # (B,) int64, place in `events` of what ended the row, -1 if none did
    names: tuple[str, ...]  # what messages call them


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


def event_log(
    plan: EventPlan, states: Tensor, start: Tensor, direction: Tensor | None, *, graph: bool
) -> EventLog:
    """Lay out what happened.

    Args:
        plan: the events of a solve that is over.
        states: at the times found, `(B, E, D)`, in autograd's graph if there is one.
        start: of every row, `(B,)` tau.
        direction: +1 or -1, `(B,)`; None if every row runs forward.
        graph: whether times and states are to be differentiable.
    """
    record, bare = plan.record, start.detach()
    layout = plan.events[0].field.layout
    tau = record.grid(record.tau, bare, torch.nan)
    number = record.grid(record.number, record.ended_by, -1)
    begun = record.grid(record.at_start, record.ended_by.bool(), False)
    times, ys = [], []
    if graph and record.width:
        slope = record.grid(record.slope, torch.zeros_like(states[:, 0]).detach(), 0.0)
        for column in range(record.width):
            there = number[:, column] >= 0
            at = torch.where(there, tau[:, column], bare)
            y = torch.where(there[:, None], states[:, column], layout.y0.detach())
            for event in plan.events:
                mine = (number[:, column] == event.number) & ~begun[:, column]
                if bool(mine.any()):
                    free, moved = differentiable(event, at.detach(), y, slope[:, column], mine)
                    at = torch.where(mine, free, at)
                    y = torch.where(mine[:, None], moved, y)
            at = torch.where(begun[:, column], start, at)
            times.append(torch.where(there, at, torch.nan))
            ys.append(torch.where(there[:, None], y, torch.nan))
        tau, states = torch.stack(times, dim=1), torch.stack(ys, dim=1)
    return EventLog(
        times=tau if direction is None else tau * direction[:, None],
        states=layout.unflatten(states),
        index=number,
        count=record.count.t().contiguous(),
        ended_by=record.ended_by,
        names=tuple(event.label for event in plan.events),
    )


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


def differentiable(
    event: BoundEvent, tau: Tensor, y: Tensor, slope: Tensor, rows: Tensor
) -> tuple[Tensor, Tensor]:
    """Return time and state of an event as functions of what the solve was given.

    `y(tau)` at the constant time that was found is such a function; the implicit function theorem
    for `g(tau, y(tau)) = 0` gives the derivative of the time, and the state moves along its slope.

    Args:
        event: what happened in `rows (B,)`.
        tau: when, `(B,)`, constant.
        y: state there, `(B, D)`, in autograd's graph.
        slope: its derivative by time, `(B, D)`, constant.

    Raises:
        InvalidArgument: a transform of `torch.func` runs the solve.
    """
    if torch._C._functorch.maybe_current_level() is not None:  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
        raise InvalidArgument(
            "events are given, and torch.func transforms the solve: use torch.autograd for "
            "gradients of a solve with events"
        )
    at, state = tau.detach().requires_grad_(), y.detach().requires_grad_()
    with torch.enable_grad():
        value = event(at, state)
        if not value.requires_grad:
            return tau, y
        by_t, by_y = torch.autograd.grad(value.sum(), (at, state), allow_unused=True)
    rate = torch.zeros_like(tau) if by_t is None else by_t
    if by_y is not None:
        rate = rate + (by_y.conj() * slope).real.sum(dim=1)
    crosses = rows & (rate != 0) & rate.isfinite()
    by_value = torch.where(crosses, -1 / torch.where(crosses, rate, 1.0), 0.0)
    return _Moved.apply(event(tau, y), y, tau.detach(), by_value, slope)


class _Moved(torch.autograd.Function):
    """Time and state of an event, which move with the value of `g` at the constant time."""

    @staticmethod
    def forward(
        ctx: Any, value: Tensor, y: Tensor, tau: Tensor, by_value: Tensor, slope: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(by_value, slope, value, y)
        ctx.save_for_forward(by_value, slope)
        return tau.clone(), y.clone()

    @staticmethod
    def backward(ctx: Any, *by: Any) -> Any:
        by_value, slope, *made_of = ctx.saved_tensors
        by_tau, by_y = by
        by_time = by_tau + (by_y.conj() * slope).real.sum(dim=1).to(by_tau.dtype)
        by_time = by_time * by_value
        if torch.is_grad_enabled():  # a graph of this pass is asked for
            by_time, by_y = (_Never.apply(each, *made_of) for each in (by_time, by_y))
        return by_time, by_y, None, None, None

    @staticmethod
    def jvp(ctx: Any, *by: Any) -> Any:
        by_value, slope = ctx.saved_tensors[:2]
        value, y = by[:2]
        moved = torch.zeros_like(by_value) if value is None else value * by_value
        y = torch.zeros_like(slope) if y is None else y
        return moved, y + moved.to(real_dtype(slope.dtype))[:, None] * slope


class _Never(torch.autograd.Function):
    """A gradient that must not be differentiated again: how events curve is not followed."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *made_of: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *by: Any) -> Any:
        raise RuntimeError("times and states of events cannot be differentiated twice")
