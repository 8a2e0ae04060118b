"""The accepted steps of a solve: recorded in chunks, read back by number in their row.

Attempts are packed every `CHUNK` of them: refused rows are left out, and times that all rows share
are kept once. Nothing is ever copied into a larger buffer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from solver.methods.base import ReplayingStepper, Stepper
from solver.outputs import Outputs

CHUNK = 32  # attempts packed together, and accepted steps read back together


class Chunk(NamedTuple):
    """`A` attempts, of which `n` rows were accepted, in the order of attempts, then rows."""

    t: Tensor  # (n,), or (A,) where all rows moved and have the same times
    dt: Tensor  # like t
    y: Tensor  # (n, D) state at the start
    moved: Tensor | None  # (A, B) bool, None where every row moved in every attempt
    cut: Tensor | None  # (k,) which of the n ended at a stop, None where none did
    cut_seen: Tensor | None  # (k,) time at which their end was evaluated
    cut_last: Tensor | None  # (k,) bool, the stop was the end of the span
    behind: Tensor | None  # (k,) which of the n began just behind a jump, None where none did
    slopes: Tensor | None  # (n, S, D) slopes of the stages, if they are kept
    choice: Tensor | None = None  # (n,) int16 what the method chose by itself, see `Stepper.choice`


class Window(NamedTuple):
    """Accepted steps `first` to `first + W` of every row; rows with fewer stand still at dt = 0."""

    first: int
    t: Tensor  # (W, B)
    dt: Tensor  # (W, B), 0 where inactive
    seen: Tensor  # (W, B) time at which the end of the step was evaluated
    y: Tensor  # (W, B, D)
    active: Tensor | None  # (W, B) bool, None where all are
    cut: Tensor | None  # (W, B) bool, the step was cut to end at a stop; None where none was
    last: Tensor | None  # (W, B) bool, that stop was the end of the span
    start: Tensor | None  # (W, B) time at which their start was evaluated; None where it is t
    slopes: Tensor | None  # (W, B, S, D)
    choice: Tensor | None = None  # (W, B) int16


class MeshRecord:
    """Collects accepted steps while the loop runs.

    Args:
        like: `(B, D)`, a state.
        outputs: whose values are read off the steps, None without.
        slopes: whether to keep the slopes of all stages.
    """

    def __init__(self, like: Tensor, outputs: Outputs | None, *, slopes: bool = False):
        """Begin with nothing."""
        self._batch, self._outputs, self._keep = len(like), outputs, slopes
        self._pending: list[tuple[Tensor, ...]] = []
        # (B,) bool, rows whose next step begins behind a jump
        self._behind = torch.zeros(len(like), dtype=torch.bool, device=like.device)
        self._slopes: list[Tensor] = []
        self._choices: list[Tensor] = []
        self._blocks: list[tuple[Tensor, ...]] = []
        self.chunks: list[Chunk] = []
        self.count = torch.zeros(len(like), dtype=torch.int64, device=like.device)
        self._output_steps: list[Tensor] = []

    def add(
        self,
        t: Tensor,
        dt: Tensor,
        seen: Tensor,
        y: Tensor,
        moved: Tensor,
        reach: Tensor,
        last: Tensor,
        stepper: Stepper,
    ) -> None:
        """Keep one attempt in which some row moved, before its end is taken over."""
        if self._outputs is not None:
            for rows in self._outputs.rows[len(self._output_steps) :]:
                self._output_steps.append(self.count[rows])
        self.count = self.count + moved
        cut = reach & moved
        self._pending.append((t, dt, seen, y, moved, cut, last, self._behind & moved))
        self._behind = torch.where(moved, cut & ~last, self._behind)
        if self._keep and isinstance(stepper, ReplayingStepper):
            self._slopes.append(stepper.slopes())
        if stepper.choice is not None:
            self._choices.append(stepper.choice.to(torch.int16))
        if len(self._pending) == CHUNK:
            self._pack()

    def _pack(self) -> None:
        if not self._pending:
            return
        parts = [torch.stack(part) for part in zip(*self._pending, strict=True)]
        self._pending = []
        slopes = None
        if self._keep:
            slopes, self._slopes = torch.stack(self._slopes).transpose(1, 2), []
        choice = None
        if self._choices:
            choice, self._choices = torch.stack(self._choices), []
        self._put(parts, slopes, choice)

    def _put(
        self, parts: Sequence[Tensor], slopes: Tensor | None, choice: Tensor | None = None
    ) -> None:
        """Keep `A` attempts, `(A, B)` each, as a chunk; parts as in `_pending`."""
        t, dt, seen, y, moved, cut, last, behind = parts
        every = bool(moved.all())
        chosen = None if every else moved
        shared = every and self._batch > 0
        shared = shared and bool((t == t[:, :1]).all() & (dt == dt[:, :1]).all())
        ends = seen_at = at_end = None
        if bool(cut.any()):
            ends = _packed(cut, chosen).nonzero()[:, 0]
            seen_at = _packed(seen, chosen)[ends]
            at_end = _packed(last, chosen)[ends]
        began = _packed(behind, chosen).nonzero()[:, 0] if bool(behind.any()) else None
        self.chunks.append(
            Chunk(
                t=t[:, 0].clone() if shared else _packed(t, chosen),
                dt=dt[:, 0].clone() if shared else _packed(dt, chosen),
                y=_packed(y, chosen),
                moved=chosen,
                cut=ends,
                cut_seen=seen_at,
                cut_last=at_end,
                behind=began,
                slopes=None if slopes is None else _packed(slopes, chosen).contiguous(),
                choice=None if choice is None else _packed(choice, chosen),
            )
        )

    def add_block(self, t: Tensor, dt: Tensor, moved: Tensor, y: Tensor) -> None:
        """Keep `n` attempts, `(n, B)` and `y (n, B, D)`; no jumps and no slopes among them."""
        self._blocks.append((t, dt, moved, y))

    def end_blocks(self, t: Tensor, arrived: Tensor, ys: Tensor | None) -> None:
        """Take up all blocks.

        Args:
            t: where each row stands at last, `(B,)`.
            arrived: who reached the end of its span, `(B,)` bool.
            ys: outputs inside steps, `(B, T, D)`.
        """
        if not self._blocks:
            return
        starts, dt, moved, y = (torch.cat(part) for part in zip(*self._blocks, strict=True))
        self._blocks = []
        number = moved.cumsum(dim=0) - 1
        self.count = moved.sum(dim=0)
        last = moved & (number == self.count - 1)
        cut = last & arrived
        seen = torch.where(last, t, starts + dt)
        nowhere = torch.zeros_like(cut)
        for first in range(0, len(t) and len(starts), CHUNK):
            parts = (starts, dt, seen, y, moved, cut, cut, nowhere)
            self._put([part[first : first + CHUNK] for part in parts], None)
        if self._outputs is None or ys is None:
            return
        # Ends of the steps of each row: where the next one starts, to the last bit.
        ends = t.new_full((len(t), len(starts) + 1), torch.inf)
        attempt, row = moved.nonzero(as_tuple=True)
        ends[row, number[attempt, row]] = starts[attempt, row]
        ends = torch.cat([ends[:, 1:], ends[:, -1:]], dim=1)
        some = (self.count > 0).nonzero()[:, 0]
        ends[some, self.count[some] - 1] = t[some]
        self._output_steps = [self._outputs.take_all(ys, t, ends.contiguous())]

    @property
    def kept_apart(self) -> int:
        """Bytes of states that are kept, but not in the mesh."""
        return 0

    def finish(self) -> "tuple[Mesh, Tensor | None]":
        """Return the mesh, and for each output value the step it was read off, `(n,)`."""
        self._pack()
        steps = torch.cat(self._output_steps) if self._output_steps else None
        self._outputs = None  # what a record keeps apart must not keep results alive
        return Mesh(self.chunks, self.count), steps


def _packed(values: Tensor, moved: Tensor | None) -> Tensor:
    return values.flatten(0, 1) if moved is None else values[moved]


@dataclass(frozen=True, eq=False)
class Mesh:
    """The accepted steps of every row."""

    chunks: list[Chunk]
    count: Tensor  # (B,) how many each row has

    @property
    def length(self) -> int:
        """Steps of the row that has most."""
        return int(self.count.max()) if self.count.numel() else 0

    def tensors(self) -> list[Tensor]:
        """Return everything kept, for `save_for_backward`."""
        return [tensor for chunk in self.chunks for tensor in chunk if tensor is not None]

    def layout(self) -> list[tuple[bool, ...]]:
        """Return which tensors each chunk has, what `from_tensors` needs."""
        return [tuple(tensor is not None for tensor in chunk) for chunk in self.chunks]

    @staticmethod
    def from_tensors(
        layout: list[tuple[bool, ...]], tensors: Iterator[Tensor], count: Tensor
    ) -> "Mesh":
        """Undo `tensors`."""
        chunks = [Chunk(*(next(tensors) if has else None for has in each)) for each in layout]  # pyright: ignore[reportArgumentType]
        return Mesh(chunks, count)

    def windows_backward(self, t0: Tensor, y0: Tensor, width: int = CHUNK) -> Iterator[Window]:
        """Yield the steps, `width` of them at a time, last ones first.

        Args:
            t0, y0: `(B,)`, `(B, D)`, where a row with fewer steps stands still.
            width: of a window; that with the last steps may have fewer.
        """
        bases = self._bases()
        for first in reversed(range(0, self.length, width)):
            yield self._window(first, min(width, self.length - first), bases, t0, y0)

    def window_of(self, number: int, t0: Tensor, y0: Tensor) -> Window:
        """Return the steps around step `number`, see `windows_backward`."""
        first = number // CHUNK * CHUNK
        return self._window(first, min(CHUNK, self.length - first), self._bases(), t0, y0)

    def _bases(self) -> list[int | Tensor]:
        """Return how many steps came before each chunk: one number while all rows agree."""
        base: int | Tensor = 0
        bases: list[int | Tensor] = []
        for chunk in self.chunks:
            bases.append(base)
            base = base + (
                len(chunk.y) // len(self.count) if chunk.moved is None else chunk.moved.sum(dim=0)
            )
        return bases

    def _place(self, chunk: Chunk, base: int | Tensor) -> Tensor:
        """Return the number of each attempt's step in its row, `(A, B)`, -1 if refused."""
        if chunk.moved is None:
            attempts = len(chunk.y) // len(self.count)
            steps = torch.arange(attempts, device=self.count.device)[:, None]
            return (base + steps).expand(attempts, len(self.count))
        return torch.where(chunk.moved, base + chunk.moved.cumsum(dim=0) - 1, -1)

    def _whole(self, first: int, width: int, bases: list[int | Tensor]) -> Window | None:
        """Return a window that is exactly one chunk, without a copy; None if it is not."""
        for chunk, base in zip(self.chunks, bases, strict=True):
            if not isinstance(base, int) or base > first:
                break
            batch = len(self.count)
            if base < first or chunk.moved is not None or len(chunk.y) != width * batch:
                continue
            if not (chunk.cut is chunk.behind is chunk.slopes is chunk.choice is None):
                break
            t, dt = (each.reshape(width, -1).expand(width, batch) for each in (chunk.t, chunk.dt))
            y = chunk.y.reshape(width, batch, chunk.y.shape[1])
            return Window(first, t, dt, t + dt, y, None, None, None, None, None, None)
        return None

    def _window(
        self,
        first: int,
        width: int,
        bases: list[int | Tensor],
        t0: Tensor,
        y0: Tensor,
    ) -> Window:
        if (whole := self._whole(first, width, bases)) is not None:
            return whole
        batch = len(t0)
        t = t0.expand(width, batch).clone()
        dt, y = torch.zeros_like(t), y0.expand(width, *y0.shape).clone()
        seen, cut = torch.full_like(t, torch.nan), torch.zeros_like(t, dtype=torch.bool)
        last, any_cut, slopes, start = torch.zeros_like(cut), False, None, None
        choice = None
        for chunk, base in zip(self.chunks, bases, strict=True):
            place = self._place(chunk, base)
            inside = (place >= first) & (place < first + width)
            if not bool(inside.any()):
                continue
            pick = (inside if chunk.moved is None else inside[chunk.moved]).flatten()
            attempt, row = inside.nonzero(as_tuple=True)
            at = place[attempt, row] - first
            t[at, row] = _unshared(chunk.t, place, chunk, attempt, pick)
            dt[at, row] = _unshared(chunk.dt, place, chunk, attempt, pick)
            y[at, row] = chunk.y[pick]
            if chunk.slopes is not None:
                if slopes is None:
                    slopes = chunk.slopes.new_zeros((width, batch, *chunk.slopes.shape[1:]))
                slopes[at, row] = chunk.slopes[pick]
            if chunk.choice is not None:
                choice = t.to(torch.int16) * 0 if choice is None else choice
                choice[at, row] = chunk.choice[pick]
            if chunk.behind is not None:
                start = t.clone() if start is None else start
                flags = torch.zeros_like(pick)
                flags[chunk.behind] = True
                starts = flags[pick].nonzero()[:, 0]
                where = at[starts], row[starts]
                start[where] = torch.nextafter(t[where], torch.full_like(t[where], torch.inf))
            if chunk.cut is not None:
                assert chunk.cut_seen is not None
                assert chunk.cut_last is not None
                any_cut = True
                flags = torch.zeros_like(pick)
                flags[chunk.cut] = True
                ends = flags[pick].nonzero()[:, 0]
                mine = pick[chunk.cut]
                seen[at[ends], row[ends]] = chunk.cut_seen[mine]
                last[at[ends], row[ends]] = chunk.cut_last[mine]
                cut[at[ends], row[ends]] = True
        seen = torch.where(cut, seen, t + dt)
        if start is not None:
            start = torch.where(start > t, start, t)
        low = int(self.count.min())
        active = None
        if low < first + width:
            number = first + torch.arange(width, device=t.device)[:, None]
            active = number < self.count
        if not any_cut:
            return Window(first, t, dt, seen, y, active, None, None, start, slopes, choice)
        return Window(first, t, dt, seen, y, active, cut, last, start, slopes, choice)


def _unshared(values: Tensor, place: Tensor, chunk: Chunk, attempt: Tensor, pick: Tensor) -> Tensor:
    """Return `(n,)` times of the chosen entries, of a chunk that may keep one an attempt."""
    shared = chunk.moved is None and place.shape[1] > 1 and len(values) == len(place)
    return values[attempt] if shared else values[pick]
