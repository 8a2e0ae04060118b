"""Columns of a solve as numpy arrays: the way from segments to every table and figure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inspector.schema import ID_COLUMNS, STEP_COLUMNS
from inspector.store.reader import Batch

if TYPE_CHECKING:
    from inspector.run import Run

_MOST_ATTEMPTS = 1 << 24  # in one batch
_DTYPES = {column.name: column.dtype for column in (*ID_COLUMNS, *STEP_COLUMNS)}


class Part(NamedTuple):
    """Some consecutive rows of one solve.

    A full part has every recorded instance in every attempt, so it can be reshaped to
    `(high - low, instances)`; its `attempt` and `instance` need not be read for that.
    """

    low: int  # attempts low..high-1
    high: int
    full: bool
    columns: dict[str, np.ndarray]


def parts(
    run: "Run",
    solve: int,
    columns: Sequence[str],
    attempts: tuple[int, int] | None = None,
    kind: str = "steps",
) -> Iterator[Part]:
    """Yield the stored rows of a solve batch by batch, by attempt; damaged ones are left out.

    Args:
        columns: names to read; those a batch lacks are missing from its part.
        attempts: half-open range; batches that lie outside are not read, others come whole.
    """
    for segment, batches in run.places(solve, kind):
        for batch, found in segment.load(_inside(batches, attempts), columns):
            yield Part(batch.low, batch.high, batch.full, found)


def _inside(batches: list[Batch], attempts: tuple[int, int] | None) -> list[Batch]:
    """Return the batches that have something of a range of attempts."""
    if attempts is None:
        return batches
    return [batch for batch in batches if batch.high > attempts[0] and batch.low < attempts[1]]


def read(
    run: "Run",
    solve: int,
    columns: Sequence[str],
    instances: int | Iterable[int] | None = None,
    attempts: tuple[int, int] | None = None,
    kind: str = "steps",
) -> dict[str, np.ndarray]:
    """Return columns of a solve, `(rows,)` each; a column that is nowhere stored is all NaN.

    Args:
        instances: one or more rows of the batch, None for all.
        attempts: half-open range, None for all.
    """
    needed = [*columns]
    needed += [
        name
        for name, used in (("instance", instances is not None), ("attempt", attempts is not None))
        if used and name not in needed
    ]
    chosen = None if instances is None else np.atleast_1d(np.asarray(_listed(instances), "i8"))
    pieces: list[dict[str, np.ndarray]] = []
    for part in parts(run, solve, needed, attempts, kind):
        keep = None
        if chosen is not None:
            one = part.columns["instance"]
            keep = one == chosen[0] if len(chosen) == 1 else np.isin(one, chosen)
        if attempts is not None and (part.low < attempts[0] or part.high > attempts[1]):
            inside = (part.columns["attempt"] >= attempts[0]) & (
                part.columns["attempt"] < attempts[1]
            )
            keep = inside if keep is None else keep & inside
        piece = part.columns
        pieces.append(
            piece if keep is None else {name: values[keep] for name, values in piece.items()}
        )
    return {name: _joined(name, pieces) for name in columns}


class Grid(NamedTuple):
    """Some consecutive attempts of a solve, `(n, M)` for its `M` recorded instances."""

    first: int
    running: np.ndarray | None  # (n, M) bool; None where all were
    columns: dict[str, np.ndarray]  # (n, M) each; NaN or 0 where an instance was not running


def grids(
    run: "Run", solve: int, columns: Sequence[str], attempts: tuple[int, int] | None = None
) -> Iterator[Grid]:
    """Yield columns as grids, in order of attempt; an attempt that is nowhere stored is left out.

    The columns of a grid are in the order of `recorded_instances`. Batches in which nobody is
    missing are only reshaped: neither the instance nor the attempt of their rows is read.
    """
    instances = recorded_instances(run, solve)
    place = np.full(int(instances.max(initial=0)) + 1, -1, "i8")
    place[instances] = np.arange(len(instances))
    for segment, batches in run.places(solve, "steps"):
        for full, same in groupby(_inside(batches, attempts), key=lambda batch: batch.full):
            needed = [*columns] if full else [*columns, "attempt", "instance"]
            for batch, found in segment.load([*same], needed):
                shape = (batch.high - batch.low, len(instances))
                if shape[0] > _MOST_ATTEMPTS:
                    continue  # a damaged number
                grid = (
                    _reshaped(batch.low, shape, found)
                    if full
                    else _placed(batch, shape, place, found)
                )
                if grid is not None:
                    yield _cut(grid, attempts)


def _reshaped(first: int, shape: tuple[int, int], found: dict[str, np.ndarray]) -> Grid | None:
    if any(values.size != shape[0] * shape[1] for values in found.values()):
        return None
    return Grid(first, None, {name: values.reshape(shape) for name, values in found.items()})


def _placed(
    batch: Batch, shape: tuple[int, int], place: np.ndarray, found: dict[str, np.ndarray]
) -> Grid | None:
    attempt, instance = found.pop("attempt") - batch.low, found.pop("instance")
    if instance.max(initial=0) >= len(place) or attempt.min(initial=0) < 0:
        return None
    where = attempt.astype("i8") * shape[1] + place[instance]
    running = np.zeros(shape, bool)
    running.reshape(-1)[where] = True
    columns = {}
    for name, values in found.items():
        grid = np.full(shape, np.nan if values.dtype.kind == "f" else 0, values.dtype)
        grid.reshape(-1)[where] = values
        columns[name] = grid
    return Grid(batch.low, running, columns)


def _cut(grid: Grid, attempts: tuple[int, int] | None) -> Grid:
    """Leave out the attempts of a grid that nobody asked for."""
    if attempts is None:
        return grid
    keep = slice(max(attempts[0] - grid.first, 0), max(attempts[1] - grid.first, 0))
    columns = {name: values[keep] for name, values in grid.columns.items()}
    running = None if grid.running is None else grid.running[keep]
    return Grid(grid.first + keep.start, running, columns)


def recorded_instances(run: "Run", solve: int) -> np.ndarray:
    """Return the instances whose steps are kept, `(M,)` ascending; from the rows if need be."""
    known = run.solve_state(solve).recorded
    if known is not None:
        return known
    found: set[int] = set()
    for part in parts(run, solve, ["instance"]):
        found.update(np.unique(part.columns["instance"]).tolist())
    return np.array(sorted(found), "i4")


def attempts_stored(run: "Run", solve: int) -> int:
    """Return one more than the number of the last stored attempt; 0 if there is none."""
    return max((batches[-1].high for _, batches in run.places(solve)), default=0)


def _joined(name: str, pieces: Sequence[dict[str, np.ndarray]]) -> np.ndarray:
    """Put the pieces of a column together; rows of a piece that lacks it are NaN."""
    dtype = _DTYPES.get(name, "f4")
    if all(name in piece for piece in pieces):
        return np.concatenate([piece[name] for piece in pieces]) if pieces else np.empty(0, dtype)
    lengths = [len(next(iter(piece.values()), ())) for piece in pieces]
    filled = [
        piece[name] if name in piece else np.full(length, np.nan, "f4")
        for piece, length in zip(pieces, lengths, strict=True)
    ]
    return np.concatenate(filled)


def _listed(instances: int | Iterable[int]) -> list[int] | int:
    return instances if isinstance(instances, int | np.integer) else list(instances)
