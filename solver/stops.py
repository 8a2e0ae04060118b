"""Where the next attempt of each row may go at most: its next jump or its end."""

import torch
from torch import Tensor

from solver.times import Times


class Stops:
    """Known jumps of the vector field are stepped on exactly and never looked across.

    Just before a jump the field is evaluated at the last float before it, just behind at the next.
    """

    def __init__(self, times: Times, end: Tensor):
        """Aim every row at its first jump, or at its end if it has none."""
        self.jumps = times.stops is not None
        self._stops, self._end, self.now = times.stops, end, end
        self._index = torch.zeros_like(end, dtype=torch.int64)
        if self.jumps:
            self._aim()

    def _aim(self) -> None:
        assert self._stops is not None
        last = self._stops.shape[1] - 1
        there = self._stops.gather(1, self._index.clamp(max=last)[:, None])[:, 0]
        inside = (self._index <= last) & (there < self._end.detach())
        self.now = torch.where(inside, there, self._end)

    def seen_from_left(self, t_next: Tensor, reach: Tensor) -> Tensor:
        """Return the time at which the end of an attempt is evaluated, `(B,)`."""
        if not self.jumps:
            return t_next
        before = torch.nextafter(t_next.detach(), torch.full_like(t_next.detach(), -torch.inf))
        return torch.where(reach & (self.now.detach() < self._end.detach()), before, t_next)

    def limit(self) -> Tensor:
        """Return the last time of each row at which its side of the next stop is seen, `(B,)`."""
        if not self.jumps:
            return self.now.detach()
        return self.seen_from_left(self.now, torch.ones_like(self._index, dtype=torch.bool))

    def from_here(self, t: Tensor) -> "Stops":
        """Aim every row at the first stop after `t (B,)`."""
        if self.jumps:
            assert self._stops is not None
            self._index = torch.searchsorted(self._stops, t[:, None], right=True)[:, 0]
            self._aim()
        return self

    def pass_on(self, crossed: Tensor, t: Tensor) -> Tensor:
        """Aim the rows `crossed (B,)` at their next stop; return times just behind the jump."""
        assert self._stops is not None
        past = torch.searchsorted(self._stops, t.detach()[:, None], right=True)[:, 0]
        self._index = torch.where(crossed, past, self._index)  # jumps given twice are one
        self._aim()
        behind = torch.nextafter(t.detach(), torch.full_like(t.detach(), torch.inf))
        return torch.where(crossed, behind, t)

    def leave(self, gone: Tensor, t: Tensor) -> None:
        """Let failed rows stand where they are."""
        self._end = torch.where(gone, t, self._end)
        self.now = torch.where(gone, t, self.now)
