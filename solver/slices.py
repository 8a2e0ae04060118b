"""Large batches: solved slice after slice, or each process its own, and put together again."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map

from solver.errors import InvalidArgument, InvalidType
from solver.event_log import EventLog
from solver.hooks import Hook
from solver.solution import Solution, Stats

PER_ROW = {"t0", "t1", "dt0", "dt_min", "dt_max", "max_steps"}  # `(B,)` where they are no numbers
GRIDS = {"t_eval", "t_eval_mask", "jump_t"}  # `(B, n)` where rows differ
Solve = Callable[..., Solution]


def batch_of(y0: Any) -> int:
    """Return the number of rows of `y0`."""
    leaves = tree_flatten(y0)[0]
    if not leaves or not isinstance(leaves[0], Tensor) or leaves[0].ndim == 0:
        raise InvalidType("y0 must be a tensor (B, ...) or a pytree of them to be cut into slices")
    return leaves[0].shape[0]


def rows_of(given: Mapping[str, Any], rows: slice, batch: int) -> dict[str, Any]:
    """Return the arguments of `solve_ivp` for some rows.

    Tensors in `args` whose first axis is as long as the batch belong to rows; others are shared.

    Args:
        given: arguments by name, `y0` among them.
        rows: which rows.
        batch: how many there are in all.
    """

    def cut(leaf: Any) -> Any:
        own = isinstance(leaf, Tensor) and leaf.ndim > 0 and leaf.shape[0] == batch
        return leaf[rows] if own else leaf

    out = dict(given)
    out["y0"] = tree_map(lambda leaf: leaf[rows], given["y0"])
    if "args" in given:
        out["args"] = tree_map(cut, given["args"])
    for name in given.keys() & PER_ROW:
        out[name] = cut(given[name])
    for name in given.keys() & GRIDS:
        value = given[name]
        out[name] = cut(value) if isinstance(value, Tensor) and value.ndim == 2 else value
    dim = sum(leaf[0].numel() for leaf in tree_flatten(given["y0"])[0]) if batch else 0
    for name in given.keys() & {"rtol", "atol"}:
        value = given[name]
        if isinstance(value, Tensor) and value.ndim == 1 and batch == dim:
            continue  # `(D,)` goes before `(B,)`
        out[name] = cut(value)
    return out


def solve_in_slices(
    solve: Solve, f: Callable[..., Any], given: Mapping[str, Any], size: Any, hooks: Sequence[Hook]
) -> Solution:
    """Solve `size` rows at a time, so that memory is bounded by a slice and the solution.

    Every slice is a solve of its own to the hooks, which are told the progress after each.

    Raises:
        InvalidArgument: `size` is no whole number of at least 1.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidArgument(f"batch_size is {size!r}: must be a whole number of at least 1")
    batch = batch_of(given["y0"])
    parts = []
    for first in range(0, max(batch, 1), size):
        rows = slice(first, min(first + size, batch))
        parts.append(solve(f, hooks=hooks, **rows_of(given, rows, batch)))
        for hook in hooks:
            hook.on_progress(rows.stop, batch)
    return join(parts)


def solve_sharded(
    f: Callable[..., Any], y0: Any, t_eval: Any = None, *, group: Any = None, **options: Any
) -> Solution:
    """Solve a batch with all processes of a `torch.distributed` group, each its share of rows.

    Every process calls this with the same arguments and gets the whole solution, without gradients.
    Hooks see the rows of their own process.

    Args:
        f, y0, t_eval, options: as for `solve_ivp`.
        group: process group; None for the default one.

    Raises:
        InvalidArgument: `torch.distributed` is not initialised, or a dense output is asked for.
    """
    import torch.distributed as dist

    from solver.solve import solve_ivp

    if not dist.is_available() or not dist.is_initialized():
        raise InvalidArgument(
            "solve_sharded needs a process group: call torch.distributed.init_process_group first, "
            "or start the program with torchrun"
        )
    if options.get("dense"):
        raise InvalidArgument("dense is True: a sharded solution has outputs only")
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    batch = batch_of(y0)
    bounds = [batch * i // world for i in range(world + 1)]
    given = {"y0": y0, "t_eval": t_eval, **options}
    problem: Exception | None = None
    own: Solution | None = None
    try:
        with torch.no_grad():
            own = solve_ivp(f, **rows_of(given, slice(bounds[rank], bounds[rank + 1]), batch))
    except Exception as error:  # the others wait for this process, whatever happened to it
        problem = error
    parts: list[Any] = [None] * world
    dist.all_gather_object(parts, own if problem is None else repr(problem), group=group)
    if problem is not None:
        raise problem
    for place, part in enumerate(parts):
        if not isinstance(part, Solution):
            raise InvalidArgument(f"process {place} could not solve its rows: {part}")
    return join(parts)


def join(parts: Sequence[Solution]) -> Solution:
    """Put the solutions of consecutive rows together."""
    if len(parts) == 1:
        return parts[0]

    def cat(name: str) -> Any:
        return tree_map(lambda *leaves: torch.cat(leaves), *(getattr(s, name) for s in parts))

    names = ("ts", "ys", "status", "t_reached", "y_reached", "component", "last_dt")
    dense = None
    if parts[0].dense is not None:
        dense = _JoinedDense([part.dense for part in parts], [len(part.status) for part in parts])
    events = [part.events for part in parts if part.events is not None]
    return Solution(
        **{name: cat(name) for name in names},
        stats=_join_stats([part.stats for part in parts]),
        dense=dense,  # pyright: ignore[reportArgumentType]
        events=_join_events(events) if events else None,
    )


def _join_stats(parts: Sequence[Stats]) -> Stats:
    joined: dict[str, Any] = {}
    for field in dataclasses.fields(Stats):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], Tensor):
            joined[field.name] = torch.cat(values)
        else:
            joined[field.name] = values[0] if isinstance(values[0], str) else sum(values)
    return Stats(**joined)


def _join_events(parts: Sequence[EventLog]) -> EventLog:
    width = max(part.times.shape[1] for part in parts)

    def wide(tensor: Tensor, fill: float) -> Tensor:
        shape = (tensor.shape[0], width - tensor.shape[1], *tensor.shape[2:])
        return torch.cat([tensor, tensor.new_full(shape, fill)], dim=1)

    nan = float("nan")
    states = [tree_map(lambda leaf: wide(leaf, nan), part.states) for part in parts]
    return EventLog(
        times=torch.cat([wide(part.times, nan) for part in parts]),
        states=tree_map(lambda *leaves: torch.cat(leaves), *states),
        index=torch.cat([wide(part.index, -1) for part in parts]),
        count=torch.cat([part.count for part in parts]),
        ended_by=torch.cat([part.ended_by for part in parts]),
        names=parts[0].names,
    )


class _JoinedDense:
    """Dense outputs of consecutive rows, evaluated together."""

    def __init__(self, parts: Sequence[Any], sizes: Sequence[int]):
        self._parts, self._sizes = parts, sizes

    def __call__(self, t: Any) -> Any:
        """Evaluate every row, see `DenseOutput`."""
        per_row = isinstance(t, Tensor) and t.ndim == 2 and t.shape[0] == sum(self._sizes)
        pieces = t.split(list(self._sizes)) if per_row else [t] * len(self._parts)
        values = [part(piece) for part, piece in zip(self._parts, pieces, strict=True)]
        return tree_map(lambda *leaves: torch.cat(leaves), *values)
