"""Who still runs, how the others ended, and what each row needed."""

import torch
from torch import Tensor

from solver.status import Status
from solver.step import resolvable, smallest_and_stretch
from solver.times import Times

TALLY_EVERY = 64  # attempts whose masks are kept before they are added up


class Rows:
    """Who still runs, how the others ended, and what each needed."""

    def __init__(self, times: Times):
        """Let every row run that has a span."""
        start, end = times.start.detach(), times.end.detach()
        self._far = torch.maximum(start.abs(), end.abs())
        self.stretch = torch.ones_like(start)
        self._smallest = self.stretch
        self.running = start < end
        zero = torch.zeros_like(start, dtype=torch.int64)
        self.status, self.n_steps, self.n_accepted = zero, zero.clone(), zero.clone()
        self.component, self.extra_evals = zero - 1, zero.clone()
        self.last_dt = torch.full_like(start, torch.nan)
        self.ended_on_accept = self.running.logical_not()
        self._pending: list[tuple[Tensor, Tensor]] = []

    def tally(self, running: Tensor, moved: Tensor) -> None:
        """Count one attempt."""
        self._pending.append((running, moved))
        if len(self._pending) >= TALLY_EVERY:
            self.add_up()

    def add_up(self) -> None:
        """Add pending masks to the counts."""
        if self._pending:
            running, moved = zip(*self._pending, strict=True)
            self.n_steps = self.n_steps + torch.stack(running).sum(dim=0)
            self.n_accepted = self.n_accepted + torch.stack(moved).sum(dim=0)
            self._pending = []

    def take_up(self, whole: "Rows", chosen: Tensor) -> None:
        """Go on with the rows `chosen (n,)` of a larger batch; counts begin anew."""
        self.stretch, self._smallest = whole.stretch[chosen], whole._smallest[chosen]
        self.running = whole.running[chosen]

    def put_back(self, part: "Rows", chosen: Tensor) -> None:
        """Take over from `take_up` how the rows `chosen (n,)` have ended, and their counts."""
        self.add_up()
        part.add_up()
        for name in ("n_steps", "n_accepted", "extra_evals"):
            setattr(self, name, getattr(self, name).index_add(0, chosen, getattr(part, name)))
        for name in ("running", "status", "component", "last_dt", "ended_on_accept"):
            setattr(self, name, getattr(self, name).index_copy(0, chosen, getattr(part, name)))

    def fail(
        self, rows: Tensor, status: Tensor | Status, component: Tensor, dt: Tensor, moved: Tensor
    ) -> None:
        """End `rows (B,)` with `status`."""
        self.status = torch.where(rows, torch.as_tensor(status, device=rows.device), self.status)
        self.component = torch.where(rows, component, self.component)
        self.last_dt = torch.where(rows, dt, self.last_dt)
        self.ended_on_accept = torch.where(rows, moved, self.ended_on_accept)
        self.running = self.running & ~rows

    def settle(self, first_dt: Tensor, span: Tensor, fixed: bool) -> None:
        """Say how small a step may get and how far one may be stretched, given the first, `(B,)`.

        A step may be stretched a little to land on its end rather than leave a crumb; `fixed` ones
        by what rounding may have moved them.
        """
        self._smallest, self.stretch = smallest_and_stretch(first_dt, span, self._far, fixed)

    def floor(self, t: Tensor) -> Tensor:
        """Return the smallest step the time dtype resolves at `t`, `(B,)`."""
        return resolvable(t, self._smallest)
