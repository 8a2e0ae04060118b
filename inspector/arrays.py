"""Columns of a solve as numpy arrays: the way from segments to every table and figure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inspector.schema import ID_COLUMNS, STEP_COLUMNS
from inspector.store.reader import Batch

if TYPE_CHECKING:
    from inspector.run import Run

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
    """Yield the stored rows of a solve batch by batch, in order of attempt; damaged ones are left out.

    Args:
        columns: names to read; those a batch lacks are missing from its part.
        attempts: half-open range; batches that lie outside are not read, others come whole.
    """
    for segment, batches in run.places(solve, kind):
        wanted: list[Batch] = batches
        if attempts is not None:
            wanted = [
                batch for batch in batches if batch.high > attempts[0] and batch.low < attempts[1]
            ]
        for batch, arrays in segment.load(wanted, columns):
            yield Part(batch.low, batch.high, batch.full, arrays)


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


def grid(
    run: "Run", solve: int, column: str, attempts: tuple[int, int] | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield `(first attempt, (n, M))` blocks of a column, NaN where an instance was not running.

    `M` is the number of recorded instances, in the order of `recorded_instances`.
    """
    instances = recorded_instances(run, solve)
    place = None
    for part in parts(run, solve, [column, "attempt", "instance"], attempts):
        values = part.columns.get(column)
        if values is None or part.high <= part.low or part.high - part.low > 1 << 24:
            continue
        shape = (part.high - part.low, len(instances))
        if part.full and values.size == shape[0] * shape[1]:
            block = values.reshape(shape)
        else:
            if place is None:
                place = np.zeros(int(instances[-1]) + 1 if len(instances) else 1, "i8")
                place[instances] = np.arange(len(instances))
            block = np.full(shape, np.nan, "f4" if values.dtype.itemsize < 8 else "f8")
            block[part.columns["attempt"] - part.low, place[part.columns["instance"]]] = values
        if attempts is not None:
            first, last = max(part.low, attempts[0]), min(part.high, attempts[1])
            yield first, block[first - part.low : last - part.low]
        else:
            yield part.low, block


def recorded_instances(run: "Run", solve: int) -> np.ndarray:
    """Return the instances whose steps are kept, `(M,)` ascending; read from the rows if need be."""
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
