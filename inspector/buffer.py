"""From tensors of a solve to columns on the host, without a wait in the solver's thread."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inspector.schema import STEP_COLUMNS, Column
from solver.hooks import StepBlock

_DTYPES = {code: np.dtype(code) for code in ("i2", "i4", "u1", "f4", "f8")}
_STEP_DTYPES = {column.name: column.dtype for column in STEP_COLUMNS}
_TAKEN = ("t", "dt", "error_ratio", "accepted", "running")


class Copy:
    """Tensors on their way to the host.

    What is on the host already is taken as it is. From a CUDA device the copy is queued behind the
    work under way, and only `arrays` waits for it.

    Args:
        tensors: detached and never written to again.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._events: list[Any] = []
        self._tensors = dict(tensors)
        devices = {tensor.device for tensor in tensors.values() if tensor.device.type != "cpu"}
        for device in devices:
            wait = device.type != "cuda"
            for name, tensor in self._tensors.items():
                if tensor.device == device:
                    self._tensors[name] = tensor.to("cpu", non_blocking=not wait)
            if not wait:
                event = torch.cuda.Event()
                event.record(torch.cuda.current_stream(device))
                self._events.append(event)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the tensors as numpy, once they have arrived."""
        for event in self._events:
            event.synchronize()
        return {name: to_numpy(tensor) for name, tensor in self._tensors.items()}


class StepRows:
    """The rows of one StepBlock, as a writer takes them.

    On the host nothing is done before `columns` is called in the writer's thread, not even
    measuring the statistics. From a device everything is copied at once, behind the work under way.

    Args:
        steps: attempts of the whole batch.
        statistics: columns to keep besides those all steps have.
        instances: those to keep, ascending; None for all.
    """

    def __init__(
        self, steps: StepBlock, statistics: tuple[Column, ...], instances: np.ndarray | None
    ) -> None:
        attempts, batch = steps.running.shape
        self.attempts = (steps.first, steps.first + attempts)
        self.rows = attempts * (batch if instances is None else len(instances))
        self._steps: StepBlock | None = steps
        self._copy: Copy | None = None
        self._statistics = statistics
        self._instances = instances
        if steps.running.device.type != "cpu":
            self._copy, self._steps = Copy(_grids(steps, statistics)), None

    def counted(self) -> int:
        """Return how many rows there are."""
        if self._copy is not None:
            running = self._copy.arrays()["running"]
        else:
            assert self._steps is not None
            running = to_numpy(self._steps.running)
        kept = running if self._instances is None else running[:, self._instances]
        return int(np.count_nonzero(kept))

    def columns(self) -> tuple[dict[str, np.ndarray], bool]:
        """Return name -> `(rows,)` and whether every kept instance was running in every attempt."""
        if self._steps is not None:
            found = _grids(self._steps, self._statistics)
            grids = {name: to_numpy(tensor) for name, tensor in found.items()}
        else:
            assert self._copy is not None
            grids = self._copy.arrays()
        if self._instances is not None:
            grids = {name: grid[:, self._instances] for name, grid in grids.items()}
        running = grids.pop("running")
        full = bool(running.all())
        attempt, position = _positions(*running.shape)
        where = None if full else np.flatnonzero(running)
        if where is not None:
            attempt, position = attempt[where], position[where]
        instance = position if self._instances is None else self._instances[position]
        columns = {"attempt": attempt + np.int32(self.attempts[0])}
        columns["instance"] = as_dtype(instance, _DTYPES["i4"])
        dtypes = _STEP_DTYPES | {column.name: column.dtype for column in self._statistics}
        with np.errstate(over="ignore"):  # beyond float32 is infinite
            for name, grid in grids.items():
                flat = grid.reshape(-1)
                columns[name] = as_dtype(
                    flat if where is None else flat[where], _DTYPES[dtypes[name]]
                )
        return columns, full


def _grids(steps: StepBlock, statistics: tuple[Column, ...]) -> dict[str, Tensor]:
    """Return what is kept of a block, `(n, B)` each; measures the statistics."""
    grids = {name: getattr(steps, name) for name in _TAKEN}
    for column in statistics:
        grids[column.name] = steps.columns[column.name]
    return grids


class StateRows:
    """Accepted states of a few instances, as a writer takes them.

    Args:
        first: number of the first attempt; -1 for the initial state.
        taken: `(n, R)` bool, whether the step was accepted.
        t: `(n, R)` time of each state.
        y: `(n, R, D)`.
        instances: `(R,)`.
    """

    def __init__(
        self, first: int, taken: Tensor, t: Tensor, y: Tensor, instances: np.ndarray
    ) -> None:
        self.attempts = (first, first + len(taken))
        self.rows = taken.numel()
        flat = torch.view_as_real(y).flatten(-2) if y.is_complex() else y
        self._copy = Copy({"taken": taken, "t": t, "y": flat})
        self._instances = instances

    def counted(self) -> int:
        """Return how many states there are."""
        return int(np.count_nonzero(self._copy.arrays()["taken"]))

    def columns(self) -> tuple[dict[str, np.ndarray], bool]:
        """Return name -> `(rows,)`, `y` as `(rows, D)`; states are never taken as complete."""
        grids = self._copy.arrays()
        attempt, position = np.nonzero(grids["taken"])
        y = grids["y"][attempt, position]
        return {
            "attempt": (attempt + self.attempts[0]).astype("i4"),
            "instance": self._instances[position].astype("i4"),
            "t": grids["t"][attempt, position].astype("f8"),
            "y": y if y.dtype.itemsize in (4, 8) else y.astype("f4"),
        }, False


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Return a tensor as numpy, without a copy if it is on the host and numpy has its type."""
    try:
        return tensor.numpy()
    except (TypeError, RuntimeError):  # on a device, with a gradient, or bfloat16
        tensor = tensor.detach().cpu()
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def as_dtype(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Convert to a column's type; a NaN becomes the smallest whole number there is."""
    if values.dtype == dtype:
        return values
    if values.dtype.kind == "f" and dtype.kind in "iu":
        values = np.where(np.isfinite(values), values, np.iinfo(dtype).min)
    return values.astype(dtype)


@lru_cache(maxsize=8)
def _positions(attempts: int, kept: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the attempt and the position of each element of a flat `(attempts, kept)` grid."""
    attempt, position = np.indices((attempts, kept), "i4")
    return attempt.reshape(-1), position.reshape(-1)
