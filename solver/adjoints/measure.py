"""What a backward pass keeps and costs, counted while it runs."""

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor


class _Packed:
    """A tensor in a graph; tells its meter when the graph lets go of it."""

    def __init__(self, meter: "GraphMeter", tensor: Tensor):
        """Enter the meter."""
        self.tensor, self._meter = tensor.detach(), meter
        meter.enter(tensor)

    def __del__(self) -> None:
        """Leave the meter."""
        self._meter.leave(self.tensor)


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


def allocator_peak(call: Callable[[], Any], device: torch.device) -> int:
    """Return the most bytes that `call` had allocated at once, over what there was before.

    Sees everything, workspaces and gradients included. On the CPU the profiler listens to every
    allocation, which makes the call ten times slower.
    """
    if device.type == "cuda":
        watch = Stopwatch(device)
        call()
        peak = watch.stop()[1]
        assert peak is not None
        return peak
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        call()
    assert profile.profiler is not None
    results = profile.profiler.kineto_results
    assert results is not None
    events = [e for e in results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()  # pyright: ignore[reportAttributeAccessIssue]
        peak = max(peak, now)
    return peak
