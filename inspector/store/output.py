"""The files of one writer: everything it puts on the disk, counted, whatever the disk does."""

import contextlib
import time
import traceback
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from inspector.schema import SCHEMA_VERSION, STATE_NAMES, STEP_COLUMNS, Column
from inspector.store import process
from inspector.store.budget import Budget
from inspector.store.files import number, read_json, write_json
from inspector.store.lines import LineFile
from inspector.store.segments import ROWS_PER_SEGMENT, SegmentWriter

HEARTBEAT_SECONDS = 2.0
CLOCK_SECONDS = 5.0  # a clock this far behind is worth a word
RETRY_SECONDS = 1.0  # between two tries to open a segment after an error

_COUNTS = (
    *("solves", "scalars", "iterations", "rows", "rows_thinned"),
    *("rows_dropped", "rows_lost", "lines_lost", "errors"),
)

Kind = Literal["steps", "states"]
Status = Literal["finished", "failed", "cancelled", "interrupted"]


class Block(Protocol):
    """Rows on their way to the disk; turned into numpy by the writer's thread."""

    @property
    def attempts(self) -> tuple[int, int]:
        """Half-open range of attempts."""
        ...

    @property
    def rows(self) -> int:
        """The most rows it can have, known without a look at the data."""
        ...

    def counted(self) -> int:
        """Return how many rows there are; may wait for a device."""
        ...

    def columns(self) -> tuple[Mapping[str, np.ndarray], bool]:
        """Return name -> `(rows,)` for all but `solve`, and whether no instance is missing."""
        ...


class Output:
    """Writes a run's files, from one thread at a time. Only `guard` keeps errors from the caller.

    Args:
        path: folder of the run; made if missing.
        token: names the writer.
        about: `spec, note, tags, versions, parameters`, for the `run.json` of a new run.
        place: `rank, world_size` of this process among those that train together.
        budget: how much it may store.
    """

    def __init__(
        self,
        path: Path,
        token: str,
        about: Mapping[str, Any],
        place: Mapping[str, Any] | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.path = path
        self.token = token
        self.counts: dict[str, int] = dict.fromkeys(_COUNTS, 0)
        self.problem: str | None = None  # the first one
        self._problem_told = False
        self._place = dict(place or {})
        self._budget = budget or Budget(None, None)
        self._units: dict[int, Hashable] = {}  # solves under way -> what is kept or let go as one
        self._unit: Hashable = None  # of the open segments, where there is a budget
        self._started = time.time()
        self._beat = 0.0
        self._columns: dict[int, tuple[Column, ...]] = {}
        self._tally: dict[int, list[int]] = {}  # rows recorded, dropped, lost of solves under way
        self._late: dict[int, int] = {}  # rows written after the end of their solve
        self._described: Mapping[str, Any] = {}
        self._segments: dict[Kind, SegmentWriter] = {}
        self._segment_number = 0
        self._retry_at = 0.0
        self._lines = {
            "solves": LineFile(path / "solves" / f"{token}.jsonl"),
            "scalars": LineFile(path / "scalars" / f"{token}.jsonl"),
            "iterations": LineFile(path / "iterations" / f"{token}.jsonl"),
            "events": LineFile(path / "events.jsonl", make_folder=False),
        }
        self._after: list[str] = []
        self.latest = 0.0  # time that writers before this one have seen
        self.guard(self._look_at_others)
        self.guard(self._make_run, about)
        self.guard(self._write_own_record)

    def guard(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do a piece of work; an error is noted and goes no further."""
        try:
            work(*arguments)
        except Exception as error:
            self._note_problem(error)

    def heartbeat(self) -> None:
        """Show, if it is time to, that this writer is alive."""
        if time.monotonic() - self._beat > HEARTBEAT_SECONDS:
            self._beat = time.monotonic()
            self._tell_problem()
            self._write_own_record()

    def lines(self, name: str, *records: Mapping[str, Any]) -> None:
        """Append lines to `solves`, `scalars`, `iterations` or `events`."""
        try:
            self._lines[name].append(*records)
        except BaseException:
            self.counts["lines_lost"] += len(records)
            raise
        if name in ("scalars", "iterations"):
            self.counts[name] += len(records)

    def drop(self, solve: int, rows: int) -> bool:
        """Count rows that nobody had time to write; returns whether they are the solve's first."""
        tally = self._tally.setdefault(solve, [0, 0, 0])
        tally[1] += rows
        self.counts["rows_dropped"] += rows
        return tally[1] == rows

    def parameters(self, parameters: Mapping[str, Any]) -> None:
        """Add to the `parameters` of the run."""
        file = self.path / "run.json"
        record, damage = read_json(file)
        if damage is None:
            known = record.get("parameters") or {}
            write_json(file, record | {"parameters": {**known, **parameters}})

    def tags(self, tags: Sequence[str]) -> None:
        """Add to the `tags` of the run."""
        file = self.path / "run.json"
        record, damage = read_json(file)
        if damage is None:
            known = record.get("tags") or []
            write_json(file, record | {"tags": list(dict.fromkeys([*known, *tags]))})

    def start(
        self,
        solve: int,
        started: float,
        settings: Mapping[str, Any],
        statistics: tuple[Column, ...],
    ) -> None:
        """Begin a solve."""
        self._columns[solve] = (*STEP_COLUMNS, *statistics)
        self._tally.setdefault(solve, [0, 0, 0])
        self._begin_unit(solve, settings)
        records: list[Mapping[str, Any]] = []
        described = {column.name: column.describe() for column in statistics}
        if described != self._described:
            records.append({"kind": "columns", "columns": described})
        settings = {name: compact(value) for name, value in settings.items()}
        start = {"kind": "start", "solve": solve, "started": started, **settings}
        self.lines("solves", *records, start)
        self._described = described
        self.counts["solves"] += 1

    def end(
        self, solve: int, ended: float, end: Mapping[str, Any], rows: Mapping[str, Any] | None
    ) -> None:
        """End a solve."""
        recorded, dropped, lost = self._tally.pop(solve, [0, 0, 0])
        if self._budget.limited:
            failed, slowest = int(end.get("n_failed") or 0), int(end.get("n_attempts") or 0)
            self._budget.ended(self._units.get(solve), failed, slowest)
        if not end.get("held"):
            self._columns.pop(solve, None)
        records: list[Mapping[str, Any]] = []
        if rows is not None:
            compacted = {name: compact(value) for name, value in rows.items()}
            records.append({"kind": "rows", "solve": solve, **compacted})
        totals = {"rows_recorded": recorded, "rows_dropped": dropped, "rows_lost": lost}
        records.append({"kind": "end", "solve": solve, "ended": ended, **end, **totals})
        for kind, segment in list(self._segments.items()):
            if segment.rows >= ROWS_PER_SEGMENT // 2:
                self._segments.pop(kind).close(whole=True)
        self.lines("solves", *records)

    def rows(self, kind: Kind, solve: int, blocks: Sequence[Block]) -> None:
        """Write blocks of one solve as one batch."""
        rows, stored = sum(block.rows for block in blocks), False
        try:
            columns, full = _joined(blocks)
            rows = len(columns["attempt"])
            if rows:
                columns["solve"] = np.full(rows, solve, "i4")
                attempts = (int(columns["attempt"][0]), int(columns["attempt"][-1]) + 1)
                stored = self._append(kind, solve, columns, attempts, full)
        finally:
            if kind == "steps":
                if solve in self._tally:
                    self._tally[solve][0 if stored else 2] += rows
                elif stored:  # written after its end was told
                    self._late[solve] = self._late.get(solve, 0) + rows
                self.counts["rows" if stored else "rows_lost"] += rows

    def thinned(self, solve: int, rows: int) -> None:
        """Count rows of a solve that were let go on purpose, at most so many."""
        self.counts["rows_thinned"] += rows
        self.lines("solves", {"kind": "thinned", "solve": solve, "rows": rows})

    def decided(self, solve: int) -> None:
        """Say that no more rows of a solve that has ended will come."""
        self._columns.pop(solve, None)
        late = self._late.pop(solve, 0)
        if late:
            self.lines("solves", {"kind": "late", "solve": solve, "rows_recorded": late})

    def finish(self, status: Status) -> None:
        """Close everything and say how the run ended."""
        for segment in self._segments.values():
            segment.close(whole=True)
        self._segments.clear()
        for solve, (recorded, dropped, lost) in self._tally.items():
            totals = {"rows_recorded": recorded, "rows_dropped": dropped, "rows_lost": lost}
            with contextlib.suppress(OSError):
                self.lines("solves", {"kind": "open", "solve": solve, **totals})
        with contextlib.suppress(OSError):
            self._tell_problem()
        try:
            self._write_own_record(status=status, ended=time.time())
            record, damage = read_json(self.path / "run.json")
            if damage is None:
                writers = list(dict.fromkeys([*record.get("writers", ()), self.token]))
                write_json(self.path / "run.json", record | {"status": status, "writers": writers})
        finally:
            for lines in self._lines.values():
                lines.close()

    def _make_run(self, about: Mapping[str, Any]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / "run.json"
        if not file.exists():
            record = {
                "schema": SCHEMA_VERSION,
                "id": self.path.absolute().name,
                "status": "running",
            }
            record |= {"created": self._started, "writers": [self.token]}
            write_json(file, {**record, **about}, new=True)

    def _look_at_others(self) -> None:
        """Learn which writers were there before, and how far their clocks had come."""
        for file in sorted((self.path / "writers").glob("[!.]*.json")):
            self._after.append(file.stem)
            record = read_json(file)[0]
            for name in ("started", "heartbeat", "ended"):
                seen = number(record.get(name))
                self.latest = max(self.latest, seen if seen == seen else 0.0)
        behind = self.latest - self._started
        if behind > CLOCK_SECONDS:
            text = f"the clock stands {behind:.0f} s behind what earlier writers of this run saw"
            record = {"time": self._started, "kind": "clock", "writer": self.token, "text": text}
            self.lines("events", record)

    def _begin_unit(self, solve: int, settings: Mapping[str, Any]) -> None:
        """Make room for the steps of a solve, if there is a budget."""
        if not self._budget.limited:
            return
        unit = settings.get("unit")
        self._units[solve] = unit
        for old in list(self._units)[:-1000]:
            del self._units[old]
        if unit == self._unit:
            return
        self._unit = unit
        for kind in list(self._segments):
            self._segments.pop(kind).close(whole=True)
        self._budget.unit(unit)
        for gone in self._budget.make_room():
            for one, rows in gone.rows.items():
                self.counts["rows"] -= rows
                self.thinned(one, rows)
            for file in gone.files:
                for path in (file.with_suffix(".arrows"), file.with_suffix(".index")):
                    path.unlink(missing_ok=True)

    def _write_own_record(self, **changes: Any) -> None:
        folder = self.path / "writers"
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
        self._beat = time.monotonic()
        record = {
            "schema": SCHEMA_VERSION,
            "writer": self.token,
            **process.identity(),
            **self._place,
            "after": self._after,
            "started": self._started,
            "heartbeat": time.time(),
            "ended": None,
            "status": "running",
            "problem": self.problem,
            **self.counts,
        }
        write_json(folder / f"{self.token}.json", record | changes)

    def _note_problem(self, error: Exception) -> None:
        self.counts["errors"] += 1
        if self.problem is None:
            self.problem = _explain(error)

    def _tell_problem(self) -> None:
        """Put the first problem among the events, as soon as the disk takes it."""
        if self.problem is not None and not self._problem_told:
            record = {"time": time.time(), "kind": "io_error", "writer": self.token}
            self._lines["events"].append(record | {"text": self.problem})
            self._problem_told = True

    def _append(
        self,
        kind: Kind,
        solve: int,
        columns: Mapping[str, np.ndarray],
        attempts: tuple[int, int],
        full: bool,
    ) -> bool:
        """Append a batch to the open segment; after an error a new one is tried, not at once."""
        if time.monotonic() < self._retry_at:
            return False
        try:
            segment = self._segment(kind, solve, columns)
            segment.append(columns, solve, attempts, full)
        except Exception as error:
            self._note_problem(error)
            self._retry_at = time.monotonic() + RETRY_SECONDS
            broken = self._segments.pop(kind, None)
            if broken is not None:
                broken.close()
            return False
        if self._budget.limited:
            rows = len(columns["attempt"]) if kind == "steps" else 0
            unit = self._units.get(solve)
            self._budget.add(unit, solve, rows, segment.path, segment.size)
        if segment.rows >= ROWS_PER_SEGMENT:
            self._segments.pop(kind).close(whole=True)
        return True

    def _segment(self, kind: Kind, solve: int, columns: Mapping[str, np.ndarray]) -> SegmentWriter:
        """Return the open segment if it has these columns, else a new one."""
        wanted = (
            self._columns.get(solve, STEP_COLUMNS) if kind == "steps" else _state_columns(columns)
        )
        segment = self._segments.get(kind)
        if segment is not None and segment.columns == wanted:
            return segment
        if segment is not None:
            self._segments.pop(kind).close(whole=True)
        name = f"{self.token}-{self._segment_number:06d}-s{solve:06d}"
        self._segment_number += 1
        segment = SegmentWriter(self.path / kind, name, wanted)
        self._segments[kind] = segment
        return segment


def _joined(blocks: Sequence[Block]) -> tuple[dict[str, np.ndarray], bool]:
    """Return the columns of consecutive blocks as one, and whether no instance is missing."""
    parts = [block.columns() for block in blocks]
    columns = dict(parts[0][0])
    if len(parts) > 1:
        columns = {name: np.concatenate([part[name] for part, _ in parts]) for name in columns}
    no_gap = all(a.attempts[1] == b.attempts[0] for a, b in pairwise(blocks))  # none was dropped
    return columns, no_gap and all(full for _, full in parts)


def _explain(error: Exception) -> str:
    """Say what went wrong: the disk in a few words, a fault of ours with its traceback."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "".join(traceback.format_exception(error)).strip()


def compact(value: Any) -> Any:
    """Return an array whose elements are all the same as that one value."""
    array = value if isinstance(value, np.ndarray) else None
    if array is None or array.ndim != 1 or len(array) == 0:
        return value
    first = array[0]
    same = np.all(array == first) or (array.dtype.kind == "f" and np.all(np.isnan(array)))
    return first if same else array


def _state_columns(columns: Mapping[str, np.ndarray]) -> tuple[Column, ...]:
    """Columns of a states segment, with `y` as wide as the data."""
    base = {column.name: column for column in STEP_COLUMNS}
    y = columns["y"]
    listed = Column(
        "y", f"{'f4' if y.dtype.itemsize == 4 else 'f8'}[{y.shape[1]}]", "", "state at t"
    )
    return tuple(base.get(name, listed) for name in STATE_NAMES)
