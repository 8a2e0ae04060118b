"""What happened in a solve with events, and its derivatives."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from solver.errors import InvalidArgument
from solver.problem import real_dtype

if TYPE_CHECKING:
    from solver.events import BoundEvent


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

    events: "tuple[BoundEvent, ...]"
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


def differentiable(
    event: "BoundEvent", tau: Tensor, y: Tensor, slope: Tensor, rows: Tensor
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
