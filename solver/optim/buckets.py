"""Parameters that move together: their state in flat buffers, cut into runs that fit the cache."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol, final

import torch
from torch import Tensor

from solver.optim import lists
from solver.optim.watched import Flag, WatchedDict

# Every tensor starts on a full vector of the processor and is computed by full vectors, so that its
# rounding (that of `pow`, for one) does not depend on which neighbours share its buffer.
ALIGNMENT = 64  # elements
# Bytes of a list in one run: on the CPU small enough to stay in the cache from the first operation
# to the last, elsewhere large enough for few launches and small enough for the scratch to be cheap.
RUN_CPU, RUN_DEVICE = 1 << 19, 1 << 26

get_grad = attrgetter("grad")


class Beginning(Protocol):
    """Fills the `view` of a state entry that a parameter does not have yet; it holds zeros."""

    def __call__(self, key: str, view: Tensor, param: Tensor, state: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class Layout:
    """How the tensors of a group are to be kept and moved.

    Args:
        keys: state entries shaped like the parameter.
        counters: state entries that count, one number a parameter.
        flat: gradients are gathered into a flat scratch; False: the update takes lists as they are.
        together: many tensors in one run; False: each has its own.
        counters_on_device: keep the counters beside the parameters, not on the host.
    """

    keys: tuple[str, ...]
    counters: tuple[str, ...]
    flat: bool = True
    together: bool = True
    counters_on_device: bool = False


@final
@dataclass(slots=True)
class Run:
    """Neighbours moved by one set of flat operations: whole tensors, or a piece of a large one.

    `L` is the length of the run with the padding between its tensors.

    Args:
        first, last: members `first` to `last - 1` of the bucket.
        piece: the elements of the one member, in order of storage; None for whole tensors.
        params: real views of the members, which an update writes to.
        grad, work: scratch, `(L,)`, shared with other runs.
        grad_views, work_views: the members' places in them, shaped like `params`.
        state: the members' part of each flat state buffer, `(L,)`.
        state_views: the same as real tensors shaped like `params`.
    """

    first: int
    last: int
    piece: tuple[int, int] | None
    params: list[Tensor]
    grad: Tensor
    work: Tensor
    grad_views: list[Tensor]
    work_views: list[Tensor]
    state: dict[str, Tensor]
    state_views: dict[str, list[Tensor]]

    def own(self, tensors: list[Tensor]) -> list[Tensor]:
        """Return this run's part of a list that has one tensor for each member of the bucket."""
        if self.piece is None:
            whole = self.first == 0 and self.last == len(tensors)
            return tensors if whole else tensors[self.first : self.last]
        low, high = self.piece
        return [tensors[self.first].reshape(-1)[low:high]]

    def gather(self, tensors: list[Tensor]) -> Tensor:
        """Copy this run's part of `tensors` into the scratch `grad`, and return it."""
        lists.copy_(self.grad_views, self.own(tensors))
        return self.grad

    def read(self, tensors: list[Tensor]) -> Tensor:
        """Return this run's part of `tensors`, `(L,)`, not to be written to.

        Pieces of large tensors are not copied.
        """
        if self.piece is not None:
            (own,) = self.own(tensors)
            if len(own) == len(self.grad) and own.dtype == self.grad.dtype:
                return own
        return self.gather(tensors)


@final
@dataclass(slots=True)
class Span:
    """Neighbours with a gradient and with the same counts.

    Args:
        first, last: members `first` to `last - 1` of the bucket.
        counts: the value of each counter before the step that is being taken.
        tensors: the counters themselves, `(last - first,)` each.
        heads: the first element of each, 0-d.
        runs: what the span is cut into.
        sums: runs for sums over many tensors, the same in list and in loop form.
    """

    first: int
    last: int
    counts: dict[str, int]
    tensors: dict[str, Tensor]
    heads: dict[str, Tensor]
    runs: list[Run] = field(default_factory=list)
    sums: list[Run] = field(default_factory=list)


# First member of a run and the one after its last, piece, first element and the one after its last.
Cut = tuple[int, int, tuple[int, int] | None, int, int]


@final
class Bucket:
    """Parameters of one group, device and dtype that have had a gradient, and their state.

    `states` are what the optimizer keeps from here on: dicts whose entries are views into the flat
    buffers, so in-place changes of either are seen by both, and which tell when they are written
    to. Complex tensors are kept as pairs of reals; half precision has its
    state in float32.
    """

    def __init__(
        self,
        positions: list[int],
        params: list[Tensor],
        states: list[dict[str, Any]],
        layout: Layout,
        begin: Beginning,
    ) -> None:
        first = params[0]
        self.positions, self.params, self.layout = positions, params, layout
        self.device, self.dtype = first.device, first.dtype
        self.is_complex = first.is_complex()
        real = first.dtype.to_real()
        self.narrow = real in (torch.float16, torch.bfloat16)
        self.math_dtype = torch.float32 if self.narrow else real
        self.spans: list[Span] = []

        self._reals = [as_real(p) for p in params]
        self._pointers = list(map(Tensor.data_ptr, params))
        self._dense = list(map(is_dense, params))
        length = RUN_CPU if self.device.type == "cpu" else RUN_DEVICE
        self._limit = length // self.math_dtype.itemsize
        self._divisible = list(map(Tensor.is_contiguous, params))
        self.contiguous = all(self._divisible)
        # Whether gradients can be of another dtype, by `grad_dtype` or left from an earlier one.
        self.any_grad_dtype = not all(map(has_own_grad_dtype, params))
        self._sizes = list(map(Tensor.numel, self._reals))
        self._offsets = [0]
        for size in self._sizes:
            padded = -(-size // ALIGNMENT) * ALIGNMENT
            self._offsets.append(self._offsets[-1] + padded)

        self._flats: dict[str, Tensor] = {}
        self._views: dict[str, list[Tensor]] = {}
        self.entries: dict[str, list[Tensor]] = {}
        for key in layout.keys:
            self._keep_entries(key, states, begin)
        self._counter_tensors: dict[str, Tensor] = {}
        for name in layout.counters:
            self._keep_counters(name, states)
        self._versions = {n: t._version for n, t in self._counter_tensors.items()}
        self._state_written = Flag()
        self.states = [WatchedDict.of(state, self._state_written) for state in states]
        self._one = torch.ones(())  # adding a 0-d tensor costs a third of adding a number
        self._scratch = self._new(0), self._new(0)
        self._numbers: dict[float, Tensor] = {}
        self._rest: dict[str, list[int]] | None = None  # counts of the members outside the spans

    def _new(self, length: int) -> Tensor:
        return torch.zeros(length, dtype=self.math_dtype, device=self.device)

    def _keep_entries(self, key: str, states: list[dict[str, Any]], begin: Beginning) -> None:
        """Move one state entry of all members into a new flat buffer."""
        flat = self._new(self._offsets[-1])
        views = self._places(flat, 0, len(self.params), 0)
        entries = [torch.view_as_complex(v) for v in views] if self.is_complex else views
        for param, state, entry in zip(self.params, states, entries, strict=True):
            if isinstance(state.get(key), Tensor):
                entry.copy_(state[key])
            else:
                begin(key, entry, param, state)
            state[key] = entry
        self._flats[key], self._views[key], self.entries[key] = flat, views, entries

    def _keep_counters(self, name: str, states: list[dict[str, Any]]) -> None:
        """Move one counter of all members into a vector of which each entry is an element.

        float32 holds whole numbers up to 2**24 and is what `torch.optim` uses.
        """
        device = self.device if self.layout.counters_on_device else torch.device("cpu")
        counter = torch.zeros(len(self.params), dtype=torch.float32, device=device)
        entries = list(counter.unbind())
        for state, entry in zip(states, entries, strict=True):
            if name in state:
                entry.copy_(torch.as_tensor(state[name], dtype=torch.float32).reshape(()))
            state[name] = entry
        self._counter_tensors[name], self.entries[name] = counter, entries

    def _places(self, flat: Tensor, first: int, last: int, start: int) -> list[Tensor]:
        """Return views into `flat` shaped like members `first` to `last - 1`.

        Args:
            start: the offset that `flat[0]` has in the bucket.
        """
        views = []
        for i in range(first, last):
            low = self._offsets[i] - start
            part, real = flat[low : low + self._sizes[i]], self._reals[i]
            # Laid out in storage like the parameter, unless that has gaps or overlaps.
            dense = self._dense[i]
            views.append(
                part.as_strided(real.shape, real.stride()) if dense else part.view(real.shape)
            )
        return views

    def intact(self) -> bool:
        """Whether parameters and state entries are still those this bucket was made for."""
        if self._state_written.raised:
            return False
        return list(map(Tensor.data_ptr, self.params)) == self._pointers  # else `p.data` is new

    def counted_elsewhere(self) -> bool:
        """Whether somebody else wrote to the counters."""
        for name, version in self._versions.items():
            if self._counter_tensors[name]._version != version:
                return True
        return False

    def tick(self, span: Span, name: str) -> None:
        """Add 1 to a counter of the members of `span`."""
        span.tensors[name].add_(self._one)
        span.counts[name] += 1
        self._versions[name] = self._counter_tensors[name]._version

    def count(self, span: Span, name: str) -> float | Tensor:
        """Return a counter of `span`: a number, or, kept on the device, a 0-d tensor."""
        if not self.layout.counters_on_device:
            return span.counts[name]
        return span.heads[name].to(self.math_dtype)

    def number(self, value: float) -> Tensor:
        """Return `value` as a 0-d tensor of the host: three times faster to multiply with."""
        found = self._numbers.get(value)
        if found is None:
            if len(self._numbers) > 100:  # a schedule changes them in every step
                self._numbers.clear()
            found = self._numbers[value] = torch.tensor(value, dtype=self.math_dtype)
        return found

    def cut(self, moving: Sequence[bool], *, reread: bool) -> None:
        """Cut the members that move into spans and runs.

        Args:
            moving: which members, one entry each.
            reread: take the counts from their tensors (which waits for the device, if they are
                there) and not from the spans.
        """
        counts = self._counts(reread=reread)
        self._versions = {n: t._version for n, t in self._counter_tensors.items()}
        spans = []
        for first, last in stretches(moving, counts):
            parts = {n: t[first:last] for n, t in self._counter_tensors.items()}
            at = {n: values[first] for n, values in counts.items()}
            heads = {n: part[0] for n, part in parts.items()}
            spans.append(Span(first, last, at, parts, heads))
        self._rest = counts
        cuts = [self._cuts(span, together=self.layout.together) for span in spans]
        sums = cuts if self.layout.together else [self._cuts(s, together=True) for s in spans]
        if self.layout.flat:
            needed = max((b - a for c in (*cuts, *sums) for *_, a, b in c), default=0)
            if len(self._scratch[0]) < needed:
                self._scratch = self._new(needed), self._new(needed)
        for span, own, summed in zip(spans, cuts, sums, strict=True):
            span.runs = [self._run(*cut) for cut in own]
            span.sums = span.runs if own is summed else [self._run(*cut) for cut in summed]
        self.spans = spans

    def _counts(self, *, reread: bool) -> dict[str, list[int]]:
        counts = self._rest
        if reread or counts is None:
            return {n: [int(x) for x in t.tolist()] for n, t in self._counter_tensors.items()}
        for span in self.spans:
            for name, value in span.counts.items():
                counts[name][span.first : span.last] = [value] * (span.last - span.first)
        return counts

    def _cuts(self, span: Span, *, together: bool) -> list[Cut]:
        """Return the runs of a span that have elements."""
        return [cut for cut in self._all_cuts(span, together=together) if cut[-1] > cut[-2]]

    def _all_cuts(self, span: Span, *, together: bool) -> Iterator[Cut]:
        offsets = self._offsets
        limit = self._limit if self.layout.flat else max(offsets[-1], 1)
        start = span.first
        for i in range(span.first, span.last):
            large = self._sizes[i] > limit and self._divisible[i]
            full = offsets[i + 1] - offsets[start] > limit or not together
            if (large or full) and i > start:
                yield start, i, None, offsets[start], offsets[i]
                start = i
            if large:
                for low in range(0, self._sizes[i], limit):
                    high = min(low + limit, self._sizes[i])
                    padded = min(offsets[i] + low + limit, offsets[i + 1])
                    yield i, i + 1, (low, high), offsets[i] + low, padded
                start = i + 1
        if start < span.last:
            yield start, span.last, None, offsets[start], offsets[span.last]

    def _run(self, first: int, last: int, piece: tuple[int, int] | None, a: int, b: int) -> Run:
        grad, work = (s[: b - a] for s in self._scratch)
        state = {key: flat[a:b] for key, flat in self._flats.items()}
        if piece is None:
            params = self._reals[first:last]
            places = [self._places(s, first, last, a) if len(s) else [] for s in (grad, work)]
            views = {key: v[first:last] for key, v in self._views.items()}
        else:
            low, high = piece
            params = [self._reals[first].view(-1)[low:high]]
            places = [[s[: high - low]] for s in (grad, work)]
            views = {key: [s[: high - low]] for key, s in state.items()}
        return Run(first, last, piece, params, grad, work, places[0], places[1], state, views)

    def real_gradients(self, grads: list[Any], *, contiguous: bool) -> list[Any]:
        """Return the gradients of the members as real tensors that `Run.own` can cut.

        Args:
            contiguous: all of them are known to be.
        """
        if self.is_complex:
            grads = [g if g is None else torch.view_as_real(g.resolve_conj()) for g in grads]
        if contiguous:
            return grads
        return [
            g.contiguous() if g is not None and divisible and size > self._limit else g
            for g, divisible, size in zip(grads, self._divisible, self._sizes, strict=True)
        ]


def as_real(tensor: Tensor) -> Tensor:
    """Return a complex tensor as pairs of reals, another as it is."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def has_own_grad_dtype(param: Tensor) -> bool:
    """Whether the gradient of a parameter has, and will have, the dtype of the parameter."""
    wrong = param.grad is not None and param.grad.dtype != param.dtype
    return not wrong and getattr(param, "grad_dtype", param.dtype) == param.dtype


def is_dense(tensor: Tensor) -> bool:
    """Whether the elements lie in storage without gaps and overlaps, in whatever order."""
    return torch.empty_like(tensor, device="meta").stride() == tensor.stride()


def stretches(
    moving: Sequence[bool], counts: Mapping[str, Sequence[int]]
) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of neighbours that move and have equal counts."""
    total, i = len(moving), 0
    while i < total:
        j = i + 1
        if moving[i]:
            while j < total and moving[j] and all(c[j] == c[i] for c in counts.values()):
                j += 1
            yield i, j
        i = j
