"""What is written about a solve, taken from what the solver tells."""

import dataclasses
import os
import platform
import resource
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inspector.buffer import Copy, to_numpy
from inspector.schema import COUNTS, MEANT_TO_END, QUANTILES, Column
from solver.hooks import SolveEnd, SolveInfo
from solver.solution import Solution
from solver.statistics.base import Statistic
from solver.status import Status

MOST_MESSAGES = 100  # of failed instances, for each solve
MOST_WORST = 5  # slowest rows named in the last line of a solve


def column(statistic: Statistic) -> Column:
    """Return how a statistic is stored: codes as `i2`, indices as `i4`, all else as `f4`."""
    dtype = "i2" if statistic.labels else "i4" if statistic.unit == "index" else "f4"
    return Column(
        statistic.name,
        dtype,
        statistic.unit,
        statistic.help,
        {int(code): word for code, word in statistic.labels.items()},
        title=statistic.title,
        signed=statistic.signed,
        log=statistic.log,
    )


def settings(info: SolveInfo) -> dict[str, Any]:
    """Return what is known of a solve, for its `start` line."""
    names = (
        *("batch", "dim", "dtype", "time_dtype", "device", "method", "method_order", "error_order"),
        *("controller", "controller_settings", "adjoint", "engine", "stepping"),
        *("stability", "compile_seconds"),
    )
    settings = {name: getattr(info, name) for name in names}
    for name in ("t0", "t1", "rtol", "atol", "max_steps", "dt_min", "dt_max"):
        value = getattr(info, name)
        settings[name] = _shortest(to_numpy(value)) if isinstance(value, Tensor) else value
    return settings


def _shortest(value: np.ndarray) -> Any:
    """Return a float32 number as the short decimal it was made from: 1e-4, not 9.999999747e-05."""
    return float(str(value[()])) if value.ndim == 0 and value.dtype == np.float32 else value


def outcome(end: SolveEnd) -> Callable[[], tuple[dict[str, Any], dict[str, Any] | None]]:
    """Return what makes the `end` and the `rows` line of a solve, in another thread if need be.

    There are no rows when it was broken off.
    """
    record: dict[str, Any] = {
        "seconds": end.wall_seconds,
        "error": end.error,
        "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if end.solve.device.startswith("cuda"):
        record["allocated_bytes"] = torch.cuda.memory_allocated(end.solve.device)
    solution = end.solution
    if solution is None:
        return lambda: (record, None)
    tensors = {name: getattr(solution.stats, name) for name in COUNTS}
    tensors |= {name: getattr(solution, name) for name in ("status", "component", "t_reached")}
    # The caller may write into what the solve has returned.
    copy = Copy({name: tensor.detach().clone() for name, tensor in tensors.items()})
    bare = _without_graph(solution)
    return lambda: _outcome(record, copy.arrays(), bare)


def _without_graph(solution: Solution) -> Solution:
    """Return what messages are made of; states and what autograd holds are let go at once."""
    events = solution.events
    if events is not None:
        events = dataclasses.replace(events, times=events.times.detach(), states=None)
    return dataclasses.replace(
        solution, ys=None, y_reached=None, dense=None, events=events,
        ts=solution.ts.detach(), t_reached=solution.t_reached.detach(),
        last_dt=solution.last_dt.detach(),
    )  # fmt: skip


def _outcome(
    record: dict[str, Any], rows: dict[str, np.ndarray], solution: Solution
) -> tuple[dict[str, Any], dict[str, Any]]:
    failed = np.flatnonzero(~np.isin(rows["status"], MEANT_TO_END))
    told = [
        *failed[:MOST_MESSAGES],
        *np.flatnonzero(rows["status"] == Status.EVENT)[:MOST_MESSAGES],
    ]
    messages = {str(row): solution.message(int(row)) for row in told}
    codes, counts = np.unique(rows["status"], return_counts=True)
    stats = solution.stats
    record |= {
        "n_attempts": int(rows["n_steps"].max(initial=0)),
        "n_f_calls": stats.n_f_calls,
        "n_rows_evaluated": stats.n_rows_evaluated,
        "n_failed": len(failed),
        "totals": {name: int(rows[name].sum()) for name in COUNTS},
        "statuses": {str(code): int(count) for code, count in zip(codes, counts, strict=True)},
        "f_seconds": stats.f_seconds,
        "quantiles": {name: quantiles(rows[name]) for name in ("n_steps", "n_f_evals")},
    }
    slowest = np.argsort(-rows["n_steps"], kind="stable")[:MOST_WORST]
    record["worst"] = {"rows": slowest, "n_steps": rows["n_steps"][slowest]}
    return record, rows | {"messages": messages}


def quantiles(values: np.ndarray) -> list[float]:
    """Return the `QUANTILES` of values that occur."""
    if not len(values):
        return []
    ranked = np.sort(values)
    return [ranked[round(q * (len(ranked) - 1))].item() for q in QUANTILES]


def scalar(name: str, value: Any) -> float | Callable[[], float]:
    """Return a number now, or a way to get it later that does not wait for a device now.

    Raises:
        TypeError: the value is no number.
    """
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex():
        if value.device.type == "cpu":
            return float(value.detach())
        copy = Copy({"value": value.detach().clone()})
        return lambda: float(copy.arrays()["value"].reshape(()))
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    try:
        if isinstance(value, str | bytes | Tensor):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        shape = f" of shape {tuple(value.shape)}" if isinstance(value, Tensor) else ""
        raise TypeError(
            f"log({name}=...) got a {type(value).__name__}{shape}: must be a number, or a tensor "
            "with one element"
        ) from None


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return per-instance values as lists."""
    return {
        name: to_numpy(value).tolist() if isinstance(value, Tensor) else value
        for name, value in values.items()
    }


def versions() -> dict[str, str]:
    """Return the versions of what records."""
    try:
        own = metadata.version("stepscope")
    except metadata.PackageNotFoundError:
        own = "not installed"
    return {"stepscope": own, "python": platform.python_version(), "torch": str(torch.__version__)}


def place() -> dict[str, int]:
    """Return `rank, world_size` among the processes that train together.

    From torch.distributed if it is set up, else what launchers such as torchrun tell each process.
    """
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return {"rank": distributed.get_rank(), "world_size": distributed.get_world_size()}
    told = (os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1"))
    rank, world_size = (int(text) if text.isdigit() else 0 for text in told)
    return {"rank": rank, "world_size": max(world_size, rank + 1)}
