"""Watches the events of a solve step by step: finds them, cuts steps short, changes states."""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from solver.dense import horner
from solver.event_log import EventPlan, differentiable
from solver.event_roots import NODES, Crossing, crossings, fine_values
from solver.events import BoundEvent
from solver.problem import real_dtype

if TYPE_CHECKING:
    from solver.outputs import Outputs


class Step(NamedTuple):
    """An accepted step, all rows."""

    t: Tensor  # (B,) its start
    dt: Tensor  # (B,)
    y: Tensor  # (B, D) state there
    polynomial: Tensor  # (degree, B, D) its dense output

    def state(self, theta: Tensor) -> Tensor:
        """Return the state at `theta (B,)`, `(B, D)`."""
        return horner(self.y, self.polynomial, theta)

    def slope(self, theta: Tensor) -> Tensor:
        """Return the derivative of the dense output by time at `theta (B,)`, `(B, D)`."""
        coefficients = self.polynomial.detach()
        powers = torch.arange(1, len(coefficients) + 1, device=theta.device)
        weighted = coefficients * powers[:, None, None]
        by_theta = horner(weighted[0], weighted[1:], theta) if len(weighted) > 1 else weighted[0]
        dt = torch.where(self.dt > 0, self.dt, 1.0)
        return by_theta.to(self.y.dtype) / dt.to(real_dtype(self.y.dtype))[:, None]


class EventWatch:
    """The events of one solve, and on which side of zero every row is.

    `look` is called with every attempt that moved some row; what it found stands in the attributes
    until the next: `t_next` and `y1`, the ends of the steps that go on from there; `cut (B,)`, the
    rows whose step was cut short; `ended` and `restarted`, which of these end and which go on from
    a changed state. The last three are None where no row is meant.
    """

    def __init__(self, plan: EventPlan, outputs: "Outputs", like: Tensor, *, graph: bool):
        """Stand before the start of `like (B, D)`."""
        self._events, self._record, self._outputs = plan.events, plan.record, outputs
        self._graph = graph
        batch, count = len(like), len(plan.events)
        real = real_dtype(like.dtype)
        self._little = torch.finfo(real).eps ** 0.5
        self._side = torch.zeros((count, batch), dtype=real, device=like.device)
        self._value = self._side
        plan.record.count = torch.zeros((count, batch), dtype=torch.int64, device=like.device)
        self._columns = torch.zeros(batch, dtype=torch.int64, device=like.device)
        # Rows that begin here: a crossing no further away than rounding is the one they come from.
        self._fresh = torch.ones(batch, dtype=torch.bool, device=like.device)
        self._unsure = True  # whether some row may stand on zero
        self.t_next = self.y1 = like
        self.cut: Tensor | None = None
        self.ended: Tensor | None = None
        self.restarted: Tensor | None = None
        self._own = sum(event.own for event in plan.events)  # evaluate the field in every step
        self.evals = self._columns  # (B,) evaluations of the field for the last look
        self._fired = self._side.bool()  # (E, B) what cut the last step short
        plan.record.ended_by = torch.full_like(self._columns, -1)

    def begin(self, t: Tensor, y: Tensor, running: Tensor) -> None:
        """Take up the side of every row; end those that have an event at their start."""
        t, y = t.detach(), y.detach()
        with torch.no_grad():
            self._value = torch.stack([event(t, y) for event in self._events])
            self._side = self._value.sign().nan_to_num()
            done = torch.zeros_like(running)
            for e, event in enumerate(self._events):
                if event.at_start:
                    here = running & ~done & (self._value[e] <= 0)
                    self._record.ended_by = torch.where(here, e, self._record.ended_by)
                    self._record.count[e] += here
                    done = done | here
            if bool(done.any()):
                rows = done.nonzero()[:, 0]
                none = torch.zeros_like(y[rows])
                self._keep(rows, self._record.ended_by[rows], t[rows], none, start=True)
                self.ended = done

    def look(
        self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor, moved: Tensor,
        polynomial: Tensor,
    ) -> Tensor:  # fmt: skip
        """Look for events in the step just accepted; return where it ends now, `(B,)`.

        Args:
            t, dt, t_next: start, size and end, `(B,)`.
            y, y1: states at both, `(B, D)`.
            moved: rows that took it, `(B,)` bool.
            polynomial: its dense output.
        """
        self.t_next, self.y1 = t_next, y1
        self.cut = self.ended = self.restarted = None
        self.evals = self._own * moved.long()
        step = Step(t, dt, y, polynomial)
        with torch.no_grad():
            bare = Step(t.detach(), dt.detach(), y.detach(), polynomial.detach())
            values = self._values(bare, t_next.detach(), y1.detach())
            grid, fine = fine_values(values)  # (2 M + 1, E, B)
            begin = torch.zeros_like(bare.t)
            if self._unsure:
                begin = self._take_sides(bare, moved)
            hits = ((fine * self._side < 0) | (fine == 0))[1:].any(dim=0) & moved
            if bool(hits.any()):
                self._meet(step, bare, (grid, fine), begin, moved, hits)
            self._value = torch.where(moved, values[-1], self._value)
            self._fresh = self._fresh & ~moved
        if self.cut is not None:
            self._go_on(values, moved)
        return self.t_next

    def _values(self, step: Step, t_next: Tensor, y1: Tensor) -> Tensor:
        """Return all events at the nodes of a step, `(5, E, B)`."""
        events, first = self._events, self._value
        last = torch.stack([event(t_next, y1) for event in events])
        part = torch.arange(1, NODES, dtype=step.t.dtype, device=step.t.device) / NODES
        times = torch.addcmul(step.t, part[:, None], step.dt)
        polynomial = step.polynomial
        powers = part[:, None] ** torch.arange(1, len(polynomial) + 1, device=part.device)
        rises = torch.tensordot(powers.to(polynomial.dtype), polynomial, dims=1)
        states = (step.y + rises).to(step.y.dtype)
        between = torch.lerp(first, last, part[:, None, None]) if self._own else None
        inner = []
        for n, (at, y) in enumerate(zip(times.unbind(0), states.unbind(0), strict=True)):
            seen = (
                event(at, y) if between is None or not event.own else between[n, e]
                for e, event in enumerate(events)
            )
            inner.append(torch.stack(tuple(seen)))
        return torch.stack([first, *inner, last])

    def _take_sides(self, step: Step, moved: Tensor) -> Tensor:
        """Let rows that stand on zero be on the side to which they move; return a place there."""
        little = torch.full_like(step.t, self._little)
        sides = []
        for e, event in enumerate(self._events):
            side = self._side[e]
            if not event.own and bool(((side == 0) & moved).any()):
                toward = (_value(event, step, little) - self._value[e]).sign().nan_to_num()
                side = torch.where((side == 0) & moved, toward, side)
            sides.append(side)
        before, self._side = self._side, torch.stack(sides)
        stood = ((before == 0) & (self._side != 0)).any(dim=0)
        self._unsure = bool((self._side == 0).any())
        return torch.where(stood, little, 0.0)

    def _meet(
        self, step: Step, bare: Step, seen: tuple[Tensor, Tensor], begin: Tensor, moved: Tensor,
        hits: Tensor,
    ) -> None:  # fmt: skip
        """Locate the events of a step, keep those that happen, and cut steps at the first stop."""
        grid, fine = seen
        eps = torch.finfo(bare.t.dtype).eps
        size = torch.maximum(bare.t.abs(), (bare.t + bare.dt).abs())
        dt = torch.where(bare.dt > 0, bare.dt, 1.0)
        width = (2 * eps * size / dt).clamp(min=4 * eps, max=0.1)
        limit = torch.full_like(bare.t, torch.inf)
        met: list[tuple[int, Crossing]] = []
        sides = list(self._side)
        for e, rows in enumerate(hits):
            if not bool(rows.any()):
                continue
            search = _Search(self._events[e], bare, self._record.count[e], self._fresh, 2 * width)
            crossed, sides[e] = crossings(
                search.value, grid[:, e], fine[:, e], sides[e], begin, width, rows, search.enough
            )
            met += [(e, crossing) for crossing in crossed]
            limit = torch.minimum(limit, search.stop)
            if self._events[e].own:
                self.evals = self.evals + search.calls * rows.long()
        self._side = torch.where(moved, torch.stack(sides), self._side)
        self._unsure = self._unsure or bool((self._side == 0).any())
        self._settle(step, bare, met, limit, width, moved)

    def _settle(
        self, step: Step, bare: Step, met: list[tuple[int, Crossing]], limit: Tensor, width: Tensor,
        moved: Tensor,
    ) -> None:  # fmt: skip
        """Keep what happened up to the first stop of every row, in order of time."""
        rows, numbers, places = [], [], []
        self._fired = torch.zeros_like(self._fired)
        cut = moved & limit.isfinite()
        for e, crossing in met:
            happens = crossing.there & (crossing.theta <= limit + 2 * width)
            self._record.count[e] += happens
            which = happens.nonzero()[:, 0]
            rows.append(which)
            numbers.append(torch.full_like(which, e))
            places.append(torch.minimum(crossing.theta, limit)[which])
            at_cut = happens & cut & (crossing.theta >= limit - 2 * width)
            self._fired[e] |= at_cut
        if rows:
            self._order(step, bare, torch.cat(rows), torch.cat(numbers), torch.cat(places))
        if not bool(cut.any()):
            return
        self.cut = cut
        theta = torch.where(cut, limit, 0.0)
        at = torch.addcmul(bare.t, theta, bare.dt)
        self._at_cut = at, bare.slope(theta)
        with torch.set_grad_enabled(self._graph):
            self.t_next = torch.where(cut, at, self.t_next)
            free = torch.where(cut, (at - step.t) / torch.where(cut, step.dt, 1.0), 0.0)
            self.y1 = torch.where(cut[:, None], step.state(free), self.y1)
        done = torch.zeros_like(cut)
        for e, event in enumerate(self._events):
            ends = self._fired[e] & (self._record.count[e] >= event.limit)
            self._record.ended_by = torch.where(ends & ~done, e, self._record.ended_by)
            done = done | ends
        on = cut & ~done
        self.ended = done if bool(done.any()) else None
        self.restarted = on if bool(on.any()) else None

    def _order(self, step: Step, bare: Step, rows: Tensor, numbers: Tensor, theta: Tensor) -> None:
        """Keep the events of a step, those of a row in order of time."""
        order = theta.argsort(stable=True)
        order = order[rows[order].argsort(stable=True)]
        rows, numbers, theta = rows[order], numbers[order], theta[order]
        if not len(rows):
            return
        tau = torch.addcmul(bare.t[rows], theta, bare.dt[rows])
        part = Step(bare.t[rows], bare.dt[rows], bare.y[rows], bare.polynomial[:, rows])
        with torch.set_grad_enabled(self._graph):
            place = (tau - step.t[rows]) / step.dt[rows]
            states = horner(step.y[rows], step.polynomial[:, rows], place)
        columns = self._keep(rows, numbers, tau, part.slope(theta), start=False)
        self._outputs.take_events(rows, columns, states)

    def _keep(
        self, rows: Tensor, numbers: Tensor, tau: Tensor, slope: Tensor, *, start: bool
    ) -> Tensor:
        """Put events, sorted by row, into the record; return their columns."""
        record = self._record
        count = torch.bincount(rows, minlength=len(self._columns))
        before = (count.cumsum(0) - count)[rows]
        columns = torch.arange(len(rows), device=rows.device) - before + self._columns[rows]
        self._columns = self._columns + count
        record.rows.append(rows)
        record.columns.append(columns)
        record.tau.append(tau)
        record.slope.append(slope)
        record.number.append(numbers)
        record.at_start.append(torch.full_like(rows, start, dtype=torch.bool))
        return columns

    def _go_on(self, values: Tensor, moved: Tensor) -> None:
        """Change the states of the rows that go on, and see on which side they are now."""
        on = self.restarted
        if on is None:
            return
        at, y = self.t_next, self.y1
        for e, event in enumerate(self._events):
            mine = self._fired[e] & on
            if event.apply is None or not bool(mine.any()):
                continue
            if self._graph:
                found, slope = self._at_cut
                moved_t, moved_y = differentiable(
                    event, torch.where(on, found, at.detach()), y, slope, mine
                )
                at = torch.where(mine, moved_t, at)
                y = torch.where(mine[:, None], moved_y, y)
            with torch.set_grad_enabled(self._graph):
                y = torch.where(mine[:, None], event.change(at, y), y)
        self.t_next, self.y1 = at, y
        with torch.no_grad():
            bare_t, bare_y = at.detach(), y.detach()
            new = torch.stack([event(bare_t, bare_y) for event in self._events])
            noise = self._little * values.abs().amax(dim=0)
            stands = self._fired & (new.abs() <= noise)
            side = torch.where(stands, 0.0, new.sign().nan_to_num())
            self._side = torch.where(on, side, self._side)
            self._value = torch.where(on, new, self._value)
            self._fresh = self._fresh | on
            self._unsure = self._unsure or bool((self._side == 0).any())


class _Search:
    """Looks for one event in one step."""

    def __init__(self, event: BoundEvent, step: Step, count: Tensor, fresh: Tensor, near: Tensor):
        """Know how often it has happened, `(B,)`, and which rows begin with this step."""
        self._event, self._step, self._count = event, step, count
        self._fresh, self._near = fresh, near
        self.calls = 0
        self.stop = torch.full_like(step.t, torch.inf)  # place of the first that cuts the step

    def value(self, theta: Tensor) -> Tensor:
        """Evaluate the event at `theta (B,)`."""
        self.calls += 1
        return _value(self._event, self._step, theta)

    def enough(self, crossing: Crossing) -> tuple[Tensor, Tensor]:
        """Return where a crossing is an event, and where it cuts the step, `(B,)` bool."""
        event = self._event
        right = crossing.rising if event.rising else torch.zeros_like(crossing.rising)
        if event.falling:
            right = right | ~crossing.rising
        happens = crossing.there & right & ~(self._fresh & (crossing.theta <= self._near))
        self._count = self._count + happens
        stops = happens & ((self._count >= event.limit) | (event.apply is not None))
        self.stop = torch.where(stops, torch.minimum(self.stop, crossing.theta), self.stop)
        return happens, stops


def _value(event: BoundEvent, step: Step, theta: Tensor) -> Tensor:
    return event(torch.addcmul(step.t, theta, step.dt), step.state(theta))
