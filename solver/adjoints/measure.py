"""What a backward pass keeps and costs, counted while it runs."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


class _Packed:
    """A tensor in a graph; tells its meter when the graph lets go of it."""

    def __init__(self, meter: "GraphMeter", tensor: Tensor):
        """Enter the meter."""
        self._tensor, self._meter = tensor.detach(), meter
        self._version = tensor._version
        meter.enter(tensor)

    @property
    def tensor(self) -> Tensor:
        """What was saved.

        Raises:
            RuntimeError: it was changed in place since; autograd does not look behind hooks.
        """
        if self._tensor._version != self._version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: a tensor of shape {tuple(self._tensor.shape)} is at version "
                f"{self._tensor._version}; expected version {self._version}"
            )
        return self._tensor

    def __del__(self) -> None:
        """Leave the meter."""
        self._meter.leave(self._tensor)


class GraphMeter:
    """Counts the bytes that autograd's graphs keep: storages, each once, `ignored` ones left out.

    Args:
        ignored: tensors whose storages do not count, such as parameters.
    """

    def __init__(self, ignored: Iterable[Tensor] = ()):
        """Start at nothing."""
        self._ignored = {tensor.untyped_storage().data_ptr() for tensor in ignored}
        self._uses: dict[int, int] = {}  # while a storage is kept its address is its own
        self.now = self.peak = 0

    def watching(self) -> AbstractContextManager[Any]:
        """Count what is saved inside this context."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, lambda packed: packed.tensor)

    def _pack(self, tensor: Tensor) -> _Packed:
        return _Packed(self, tensor)

    def enter(self, tensor: Tensor) -> None:
        """Count the storage of `tensor` if it is new."""
        storage = tensor.untyped_storage()
        key = storage.data_ptr()
        if key in self._ignored:
            return
        uses = self._uses.get(key, 0)
        self._uses[key] = uses + 1
        if not uses:
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)

    def leave(self, tensor: Tensor) -> None:
        """Undo `enter`."""
        storage = tensor.untyped_storage()
        key = storage.data_ptr()
        if key not in self._uses:
            return
        self._uses[key] -= 1
        if not self._uses[key]:
            del self._uses[key]
            self.now -= storage.nbytes()


def graph_bytes(call: Callable[[], Any], ignored: Iterable[Tensor]) -> tuple[Any, int | None]:
    """Return what `call` returns and the most bytes its graphs kept.

    None for the bytes if what is called cannot be watched, as with `torch.func` inside.
    """
    meter = GraphMeter(ignored)
    try:
        with meter.watching():
            return call(), meter.peak
    except RuntimeError as error:
        if "saved tensor hooks" not in str(error):
            raise
        return call(), None


class Stopwatch:
    """Seconds, and on CUDA the most memory allocated, since it was made."""

    def __init__(self, device: torch.device):
        """Start."""
        self._cuda = device if device.type == "cuda" else None
        if self._cuda is not None:
            torch.cuda.synchronize(self._cuda)
            torch.cuda.reset_peak_memory_stats(self._cuda)
            self._before = torch.cuda.memory_allocated(self._cuda)
        self._began = time.perf_counter()

    def stop(self) -> tuple[float, int | None]:
        """Return seconds, and bytes allocated at the peak over those at the start (CUDA only)."""
        if self._cuda is None:
            return time.perf_counter() - self._began, None
        torch.cuda.synchronize(self._cuda)
        peak = torch.cuda.max_memory_allocated(self._cuda) - self._before
        return time.perf_counter() - self._began, peak


@dataclass(frozen=True)
class MemoryTrace:
    """Memory allocated over what there was before, by the phases of a call."""

    seconds: list[float]  # since the start; a thinned sequence, peaks kept
    bytes: list[int]
    phases: list[tuple[str, float]]  # name, seconds at which it began
    peak: int


Mark = Callable[[str], None]


def memory_trace(
    call: Callable[[Mark], Any], device: torch.device, points: int = 400
) -> MemoryTrace:
    """Follow what `call` has allocated; it calls its argument with the name of each phase.

    Sees everything, workspaces and gradients included. On the CPU the profiler listens to every
    allocation, which makes the call ten times slower; on CUDA one value a phase is known, its peak.
    """
    if device.type == "cuda":
        return _cuda_trace(call, device)
    marks: list[str] = []

    def mark(phase: str) -> None:
        marks.append(phase)
        with torch.profiler.record_function(f"{_MARK}{len(marks) - 1}"):
            pass

    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        mark("start")
        call(mark)
    assert profile.profiler is not None
    results = profile.profiler.kineto_results
    assert results is not None
    begins: dict[str, int] = {}
    changes: list[tuple[int, int]] = []
    for event in results.events():
        name = event.name()
        if name == "[memory]":
            changes.append((event.start_ns(), event.nbytes()))  # pyright: ignore[reportAttributeAccessIssue]
        elif name.startswith(_MARK):
            begins[name] = event.start_ns()
    first = min(begins.values())
    seconds, levels, now = [0.0], [0], 0
    for began, size in sorted(changes, key=lambda change: change[0]):
        now += size
        seconds.append((began - first) * 1e-9)
        levels.append(now)
    phases = [(name, (begins[f"{_MARK}{i}"] - first) * 1e-9) for i, name in enumerate(marks)]
    kept = _peaks(levels, points)
    return MemoryTrace(
        [seconds[i] for i in kept], [levels[i] for i in kept], phases[1:], max(levels)
    )


_MARK = "stepscope mark "


def _cuda_trace(call: Callable[[Mark], Any], device: torch.device) -> MemoryTrace:
    names: list[str] = []
    found: list[tuple[float, int]] = []
    watch = Stopwatch(device)
    began = time.perf_counter()

    def mark(phase: str) -> None:
        peak = watch.stop()[1] or 0
        if names:
            found.append((time.perf_counter() - began, peak))
        names.append(phase)
        torch.cuda.reset_peak_memory_stats(device)

    call(mark)
    mark("end")
    starts = [0.0, *(second for second, _ in found)]
    levels = [level for _, level in found]
    seconds = [second for i in range(len(levels)) for second in starts[i : i + 2]]
    both = [level for level in levels for _ in range(2)]
    return MemoryTrace(
        seconds, both, list(zip(names[:-1], starts, strict=False)), max(levels, default=0)
    )


def _peaks(levels: Sequence[int], points: int) -> list[int]:
    """Return at most `points` positions: first, last, the lowest and highest of each bucket."""
    if len(levels) <= points:
        return list(range(len(levels)))
    size = -(-len(levels) // max(1, (points - 2) // 2))
    kept = {0, len(levels) - 1}
    for low in range(0, len(levels), size):
        bucket = range(low, min(low + size, len(levels)))
        kept |= {min(bucket, key=levels.__getitem__), max(bucket, key=levels.__getitem__)}
    return sorted(kept)


def allocator_peak(call: Callable[[], Any], device: torch.device) -> int:
    """Return the most bytes that `call` had allocated at once, over what there was before."""
    return memory_trace(lambda mark: (mark("all"), call()), device).peak
