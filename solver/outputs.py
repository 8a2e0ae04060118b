"""Collects the states asked for by t_eval while the loop passes them."""

import torch
from torch import Tensor

from solver.dense import horner
from solver.event_log import EventRecord
from solver.times import Times


class Outputs:
    """States at the output times; a step costs nothing but one comparison until it passes one.

    Outputs at the ends of a span are the start and the end state themselves.

    Args:
        times: with `outputs (B, T)`.
        differ: whether gradients w.r.t. output times are wanted apart from those w.r.t. t0 and t1;
        then
            outputs at the ends are read off the polynomials too.
        events: where events are recorded, whose states are outputs too, in columns behind the rest.
    """

    def __init__(self, times: Times, differ: bool, events: EventRecord | None = None):
        """Sort outputs into start, inside and end."""
        assert times.outputs is not None
        self._times, self._tau, self._events = times, times.outputs, events
        bare, start, end = self._tau.detach(), times.start.detach(), times.end.detach()
        empty = (end <= start)[:, None]  # a span of length zero is all start
        self._at_start = (bare <= start[:, None]) & (empty | (not differ))
        self._at_end = (bare >= end[:, None]) & bare.isfinite() & ~self._at_start & (not differ)
        self._search = torch.where(self._at_start, -torch.inf, bare)
        self._search = torch.where(self._at_end, torch.inf, self._search).contiguous()
        self._index = self._at_start.sum(dim=1)
        self._next = self._look_up(self._index)
        self.rows: list[Tensor] = []  # rows of the outputs of one step, for every step with some
        self._columns: list[Tensor] = []
        self._values: list[Tensor] = []

    def detached(self) -> "Outputs":
        """Return the same outputs, none taken yet, out of autograd's graph."""
        bare = object.__new__(Outputs)
        bare.__dict__.update(self.__dict__)
        bare._tau, bare.rows, bare._columns, bare._values = self._tau.detach(), [], [], []
        return bare

    def of_rows(self, chosen: Tensor) -> "Outputs":
        """Return the outputs of the rows `chosen (n,)` still to be taken."""
        part = object.__new__(Outputs)
        part.__dict__.update(self.__dict__)
        part._times = self._times._replace(start=self._times.start[chosen])
        part._tau, part._search = self._tau[chosen], self._search[chosen].contiguous()
        part._index, part._next = self._index[chosen], self._next[chosen]
        part.rows, part._columns, part._values = [], [], []
        return part

    def take_over(self, chosen: Tensor, part: "Outputs") -> None:
        """Take over the outputs of `of_rows`."""
        self.rows += [chosen[rows] for rows in part.rows]
        self._columns += part._columns
        self._values += part._values
        self._index = self._index.index_copy(0, chosen, part._index)
        self._next = self._next.index_copy(0, chosen, part._next)

    @property
    def inside(self) -> bool:
        """Whether any output must be read off a step's polynomial."""
        return bool(self._next.isfinite().any())

    @property
    def tau(self) -> Tensor:
        """Output times of every row in the direction of integration, `(B, T)`, then events'."""
        if self._events is None:
            return self._tau
        start = self._times.start.detach()
        return torch.cat([self._tau, self._events.grid(self._events.tau, start, torch.inf)], dim=1)

    @property
    def search(self) -> Tensor:
        """Times of outputs inside steps, `(B, T)`, -inf at the start, +inf at the end."""
        return self._search

    @property
    def reached(self) -> Tensor:
        """Column of each row's next output, `(B,)` int64."""
        return self._index

    def empty(self, like: Tensor, more: int = 0) -> Tensor:
        """Return outputs not yet reached, `(B, T + more, D)` NaN like the states `like (B, D)`."""
        shape = (len(like), self._tau.shape[1] + more, like.shape[1])
        return torch.full(shape, torch.nan, dtype=like.dtype, device=like.device)

    def _look_up(self, index: Tensor) -> Tensor:
        last = self._search.shape[1] - 1
        if last < 0:
            return torch.full_like(self._times.start, torch.inf)
        there = self._search.gather(1, index.clamp(max=last)[:, None])[:, 0]
        return torch.where(index <= last, there, torch.inf)

    def passed(self, moved: Tensor, t_next: Tensor) -> Tensor:
        """Return which rows passed an output in the step just accepted, `(B,)` bool."""
        return moved & (self._next <= t_next)

    def take(
        self, hit: Tensor, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, polynomial: Tensor
    ) -> None:
        """Evaluate all outputs that the rows `hit` passed, in one call."""
        new = torch.searchsorted(self._search, t_next.detach()[:, None], right=True)[:, 0]
        count = torch.where(hit, new - self._index, 0)
        rows = torch.arange(len(count), device=count.device).repeat_interleave(count)
        before = count.cumsum(0) - count
        columns = torch.arange(len(rows), device=count.device) - before[rows] + self._index[rows]
        theta = (self._tau[rows, columns] - t[rows]) / dt[rows]
        self._values.append(horner(y[rows], polynomial[:, rows], theta))
        self.rows.append(rows)
        self._columns.append(columns)
        self._index = torch.where(hit, new, self._index)
        self._next = self._look_up(self._index)

    def take_all(self, ys: Tensor, t: Tensor, ends: Tensor) -> Tensor:
        """Take the outputs of all steps, `ys (B, T, D)`, of a solve that has ended.

        Args:
            ys: values of the outputs inside steps, in the order of time.
            t: where each row stands, `(B,)`.
            ends: of its steps, `(B, K)`, +inf behind the last.

        Returns:
            The number of the step of each, `(n,)`.
        """
        inside = self._search.isfinite() & (self._search <= t[:, None])
        rows, columns = inside.nonzero(as_tuple=True)
        self.rows, self._columns = [rows], [columns]
        self._values = [ys[rows, columns]]
        return torch.searchsorted(ends, self._search)[rows, columns]

    def take_events(self, rows: Tensor, columns: Tensor, values: Tensor) -> None:
        """Take the states `(n, D)` at events, `columns` counted from a row's first event."""
        self._values.append(values)
        self.rows.append(rows)
        self._columns.append(columns + self._tau.shape[1])

    def inner(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows, columns `(n,)` and values `(n, D)` of the outputs read off polynomials."""
        if not self.rows:
            none = self._index[:0]
            return none, none, self._times.start.new_zeros(0)
        return torch.cat(self.rows), torch.cat(self._columns), torch.cat(self._values)

    def finish(
        self, y0: Tensor, y_end: Tensor, success: Tensor, values: Tensor | None = None
    ) -> Tensor:
        """Return `(B, T, D)`, NaN where a row never arrived or had no output; behind it events.

        Args:
            y0, y_end: states at the ends, `(B, D)`.
            success: which rows arrived, `(B,)`.
            values: what to take for the values of `inner()`, None for these themselves.
        """
        width = 0 if self._events is None else self._events.width
        asked = self._tau.shape[1]
        ys = self.empty(y0, width)
        if self.rows:
            rows, columns, taken = self.inner()
            ys = ys.index_put((rows, columns), taken if values is None else values)
        at_events = ys[:, asked:]
        ys = self.put_ends(ys[:, :asked], y0, y_end, success)
        if self._events is None:
            return ys
        begun = self._events.grid(self._events.at_start, self._at_start.new_zeros(len(y0)), False)
        return torch.cat([ys, torch.where(begun[:, :, None], y0[:, None], at_events)], dim=1)

    def put_ends(self, ys: Tensor, y0: Tensor, y_end: Tensor, success: Tensor) -> Tensor:
        """Return outputs `ys (B, T, D)` with those at the ends, in the order asked for."""
        at_end = (self._at_end & success[:, None])[:, :, None]
        ys = torch.where(at_end, y_end[:, None], ys)
        ys = torch.where(self._at_start[:, :, None], y0[:, None], ys)
        if self._times.columns is not None:
            back = self._times.columns.argsort(dim=1)
            ys = ys.gather(1, back[:, :, None].expand_as(ys))
        return ys
