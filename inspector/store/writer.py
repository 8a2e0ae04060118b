"""Writes a run from a thread of its own: nothing it meets on the disk ever reaches the solver."""

import contextlib
import logging
import os
import queue
import secrets
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from inspector.schema import SCHEMA_VERSION, STATE_NAMES, STEP_COLUMNS, Column
from inspector.store import process
from inspector.store.files import read_json, write_json
from inspector.store.lines import LineFile
from inspector.store.segments import ROWS_PER_SEGMENT, SegmentWriter

FLUSH_ATTEMPTS = 12  # a kill costs these and what is tried while they are written: at most 16
FLUSH_ROWS = 4_096
FLUSH_SECONDS = 0.25
HEARTBEAT_SECONDS = 2.0
RETRY_SECONDS = 1.0  # between two tries to open a segment after an error
QUEUE_ROWS = 1 << 22  # about 250 MB with every statistic
CLOSE_SECONDS = 60.0

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

    def columns(self) -> tuple[Mapping[str, np.ndarray], bool]:
        """Return name -> `(rows,)` for all but `solve`, and whether no instance is missing."""
        ...


class RunWriter:
    """One process that records into one run.

    Rows and lines are handed to a thread, which writes them after `FLUSH_ATTEMPTS` attempts,
    `FLUSH_ROWS` rows or `FLUSH_SECONDS`, whichever is first. An error of the disk is reported by
    one warning, counted,
    and written down as soon as that is possible again. A run that already exists is continued: this
    writer adds its own files and leaves the others alone.

    Args:
        path: folder of the run; made if missing.
        spec, note, versions, parameters: for `run.json` of a new run.
        flush: `"always"` writes every block before `steps` returns.
        on_full: what happens when the disk cannot keep up: rows are dropped and counted, or the
            solver waits.
        rank: of this process among those that train together.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        spec: Mapping[str, Any] | None = None,
        note: str = "",
        versions: Mapping[str, str] | None = None,
        parameters: Mapping[str, Any] | None = None,
        flush: Literal["auto", "always"] = "auto",
        on_full: Literal["drop", "block"] = "drop",
        rank: int = 0,
    ) -> None:
        self.path = Path(path)
        self.token = f"r{rank}-{secrets.token_hex(4)}"
        self.counts = dict.fromkeys(
            ("solves", "scalars", "rows", "rows_dropped", "rows_lost", "lines_lost", "errors"), 0
        )
        self._pid = os.getpid()
        self._always = flush == "always"
        self._block_when_full = on_full == "block"
        self._started = self._last_time = time.time()
        self._solve = -1
        self._columns: dict[int, tuple[Column, ...]] = {}
        self._tally: dict[int, list[int]] = {}  # rows recorded, dropped, lost of solves under way
        self._described: Mapping[str, Any] = {}
        self._segments: dict[Kind, SegmentWriter] = {}
        self._segment_number = 0
        self._retry_at = 0.0
        self._lines = {
            "solves": LineFile(self.path / "solves" / f"{self.token}.jsonl"),
            "scalars": LineFile(self.path / "scalars" / f"{self.token}.jsonl"),
            "events": LineFile(self.path / "events.jsonl", make_folder=False),
        }
        self._problem: str | None = None
        self._problem_told = self._warned = False
        self._beat = 0.0
        self._closed = False
        self._status: Status = "finished"

        self._lock = (
            threading.RLock()
        )  # order of what is handed over; of all writing when flush="always"
        self._room = threading.Condition(self._lock)
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._waiting_rows = 0
        self._pending: list[tuple[Kind, int, Block]] = []
        self._pending_attempts = self._pending_rows = 0

        about = {
            "spec": spec,
            "note": note,
            "versions": versions or {},
            "parameters": parameters or {},
        }
        self._guard(self._make_run, about)
        self._guard(self._write_own_record)
        self._thread: threading.Thread | None = None
        if not self._always:
            self._thread = threading.Thread(target=self._work, name="run-writer", daemon=True)
            self._thread.start()
        self._warn()

    # What the recording side calls. None of these raises for anything that happens on the disk.

    @property
    def closed(self) -> bool:
        """Whether nothing is recorded any more; also true in a forked child of the process."""
        return self._closed or os.getpid() != self._pid

    def start_solve(self, settings: Mapping[str, Any], statistics: Sequence[Column] = ()) -> int:
        """Begin a solve and return its number within this writer.

        Args:
            settings: of the solve, for its `start` line.
            statistics: columns its steps have besides those that all steps have.
        """
        if self.closed:
            return -1
        with self._lock:
            self._solve += 1
            number = self._solve
            self._last_time = max(
                time.time(), self._last_time
            )  # a clock set back must not reorder solves
            started = self._last_time
            self._submit(lambda: self._on_start(number, started, settings, tuple(statistics)))
        self._warn()
        return number

    def steps(self, solve: int, block: Block, kind: Kind = "steps") -> None:
        """Take over a block of rows of a solve."""
        if self.closed:
            return
        if self._always:
            with self._lock:
                self._write_blocks([(kind, solve, block)])
        else:
            with self._lock:
                if self._waiting_rows + block.rows > QUEUE_ROWS and not self._make_room(
                    solve, block.rows
                ):
                    return
                self._waiting_rows += block.rows
                self._pending.append((kind, solve, block))
                if kind == "steps":
                    self._pending_attempts += block.attempts[1] - block.attempts[0]
                    self._pending_rows += block.rows
                if self._pending_attempts >= FLUSH_ATTEMPTS or self._pending_rows >= FLUSH_ROWS:
                    self._hand_over()
        if self._problem is not None:
            self._warn()

    def end_solve(
        self, solve: int, end: Mapping[str, Any], rows: Mapping[str, Any] | None = None
    ) -> None:
        """End a solve.

        Args:
            solve: as returned by `start_solve`.
            end: totals, for its `end` line.
            rows: name -> value of each instance `(B,)`, for its `rows` line.
        """
        if self.closed:
            return
        now = time.time()
        with self._lock:
            self._hand_over()
            self._submit(lambda: self._on_end(solve, now, end, rows))
        self._warn()

    def scalars(self, iteration: int, values: Mapping[str, float | Callable[[], float]]) -> None:
        """Record named numbers; one that is a callable is asked for its value in the thread."""
        if self.closed:
            return
        now, solves = time.time(), self._solve + 1

        def write() -> None:
            self._line(
                "scalars",
                *(
                    {
                        "iteration": iteration,
                        "name": name,
                        "value": value() if callable(value) else value,
                        "time": now,
                        "solve": solves,
                    }
                    for name, value in values.items()
                ),
            )

        with self._lock:
            self._submit(write)
        self._warn()

    def event(self, kind: str, text: str, **data: Any) -> None:
        """Record something that happens rarely."""
        if self.closed:
            return
        record = {"time": time.time(), "kind": kind, "text": text, "writer": self.token, **data}
        with self._lock:
            self._submit(lambda: self._line("events", record))
        self._warn()

    def set_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Add to the `parameters` of the run: name -> one number for each instance."""
        if self.closed:
            return
        with self._lock:
            self._submit(lambda: self._on_parameters(parameters))
        self._warn()

    def flush(self, timeout: float = CLOSE_SECONDS) -> bool:
        """Wait until all that was handed over is in the files.

        Returns:
            Whether it is, and nothing was dropped or lost so far.
        """
        if not self.closed and self._thread is not None:
            done = threading.Event()
            with self._lock:
                self._hand_over()
                self._submit(done.set)
            if not done.wait(timeout):
                return False
        self._warn()
        return not any(self.counts[name] for name in ("rows_dropped", "rows_lost", "lines_lost"))

    def close(self, status: Status = "finished") -> None:
        """Write what is left and end the run with a status; a second call does nothing."""
        if self.closed:
            return
        with self._lock:
            self._hand_over()
            self._closed = True
            self._status = status
        if self._thread is None:
            self._guard(self._finish)
        else:
            self._queue.put(None)
            self._thread.join(CLOSE_SECONDS)
        self._warn()

    # Between the two threads.

    def _submit(self, work: Callable[[], None]) -> None:
        """Do a piece of work in the order it came; the lock is held."""
        if self._always:
            self._guard(work)
        else:
            self._queue.put(work)

    def _hand_over(self) -> None:
        """Queue the pending blocks; the lock is held."""
        if self._pending:
            blocks, self._pending = self._pending, []
            self._pending_attempts = self._pending_rows = 0
            self._queue.put(lambda: self._write_blocks(blocks))

    def _make_room(self, solve: int, rows: int) -> bool:
        """Wait for room in the queue, or count the rows as dropped; the lock is held."""
        if self._block_when_full:
            self._hand_over()
            return self._room.wait_for(
                lambda: self._waiting_rows == 0 or self._waiting_rows + rows <= QUEUE_ROWS
            )
        tally = self._tally.setdefault(solve, [0, 0, 0])
        if not tally[1]:
            record = {"time": time.time(), "kind": "drop", "writer": self.token, "solve": solve}
            text = f"the disk could not keep up: rows of solve {solve} are missing"
            self._submit(lambda: self._line("events", record | {"text": text}))
        tally[1] += rows
        self.counts["rows_dropped"] += rows
        return False

    def _work(self) -> None:
        """Run of the thread: until told to stop, whatever goes wrong."""
        while True:
            try:
                work = self._queue.get(timeout=FLUSH_SECONDS)
            except queue.Empty:
                with self._lock:
                    self._hand_over()
                self._guard(self._heartbeat)
                continue
            if work is None:
                self._guard(self._finish)
                return
            self._guard(work)
            work = None  # frees the tensors now, not after the next wait
            if time.monotonic() - self._beat > HEARTBEAT_SECONDS:
                self._guard(self._heartbeat)

    def _guard(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do a piece of work; an error is noted and goes no further."""
        try:
            work(*arguments)
        except Exception as error:
            self._note_problem(_explain(error))

    def _note_problem(self, text: str) -> None:
        self.counts["errors"] += 1
        if self._problem is None:
            self._problem = text

    def _warn(self) -> None:
        """Report the first problem, once, in the thread of the caller."""
        if self._problem is None or self._warned:
            return
        self._warned = True
        text = (
            f"the recorder cannot write to {str(self.path)!r}: {self._problem}. The solve goes on; "
            "what could not be written is counted, and writing is tried again."
        )
        try:
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        except RuntimeWarning:  # warnings made errors must not end a training either
            logging.getLogger(__name__).error(text)

    # What the thread does.

    def _make_run(self, about: Mapping[str, Any]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / "run.json"
        if file.exists():
            return
        write_json(
            file,
            {
                "schema": SCHEMA_VERSION,
                "id": self.path.absolute().name,
                "created": self._started,
                "status": "running",
                "writers": [self.token],
                **about,
            },
        )

    def _own_record(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA_VERSION,
            "writer": self.token,
            **process.identity(),
            "started": self._started,
            "heartbeat": time.time(),
            "ended": None,
            "status": "running",
            "problem": self._problem,
            **self.counts,
        }

    def _write_own_record(self, **changes: Any) -> None:
        folder = self.path / "writers"
        if not folder.is_dir():
            folder.mkdir()
        self._beat = time.monotonic()
        write_json(folder / f"{self.token}.json", self._own_record() | changes)

    def _heartbeat(self) -> None:
        if time.monotonic() - self._beat > HEARTBEAT_SECONDS:
            self._beat = time.monotonic()
            self._tell_problem()
            self._write_own_record()

    def _tell_problem(self) -> None:
        """Put the first problem among the events, as soon as the disk takes it."""
        if self._problem is not None and not self._problem_told:
            record = {
                "time": time.time(),
                "kind": "io_error",
                "writer": self.token,
                "text": self._problem,
            }
            self._lines["events"].append(record)
            self._problem_told = True

    def _line(self, name: str, *records: Mapping[str, Any]) -> None:
        try:
            self._lines[name].append(*records)
        except BaseException:
            self.counts["lines_lost"] += len(records)
            raise
        if name == "scalars":
            self.counts["scalars"] += len(records)

    def _on_parameters(self, parameters: Mapping[str, Any]) -> None:
        file = self.path / "run.json"
        record, damage = read_json(file)
        if damage is None:
            known = record.get("parameters") or {}
            write_json(file, record | {"parameters": {**known, **parameters}})

    def _on_start(
        self,
        solve: int,
        started: float,
        settings: Mapping[str, Any],
        statistics: tuple[Column, ...],
    ) -> None:
        self._columns[solve] = (*STEP_COLUMNS, *statistics)
        self._tally.setdefault(solve, [0, 0, 0])
        records: list[Mapping[str, Any]] = []
        described = {column.name: column.describe() for column in statistics}
        if described != self._described:
            records.append({"kind": "columns", "columns": described})
        start = {name: compact(value) for name, value in settings.items()}
        self._line(
            "solves", *records, {"kind": "start", "solve": solve, "started": started, **start}
        )
        self._described = described
        self.counts["solves"] += 1

    def _on_end(
        self, solve: int, ended: float, end: Mapping[str, Any], rows: Mapping[str, Any] | None
    ) -> None:
        recorded, dropped, lost = self._tally.pop(solve, [0, 0, 0])
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
        self._line("solves", *records)

    def _write_blocks(self, blocks: list[tuple[Kind, int, Block]]) -> None:
        """Write blocks, those of one solve as one batch."""
        groups: dict[tuple[Kind, int], list[Block]] = {}
        for kind, solve, block in blocks:
            groups.setdefault((kind, solve), []).append(block)
        try:
            for (kind, solve), group in groups.items():
                self._guard(self._write_batch, kind, solve, group)
        finally:
            if not self._always:
                with self._lock:
                    self._waiting_rows -= sum(block.rows for _, _, block in blocks)
                    if self._block_when_full:
                        self._room.notify_all()

    def _write_batch(self, kind: Kind, solve: int, blocks: list[Block]) -> None:
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
                self._tally.setdefault(solve, [0, 0, 0])[0 if stored else 2] += rows
                self.counts["rows" if stored else "rows_lost"] += rows

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
            self._note_problem(_explain(error))
            self._retry_at = time.monotonic() + RETRY_SECONDS
            broken = self._segments.pop(kind, None)
            if broken is not None:
                broken.close()
            return False
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

    def _finish(self) -> None:
        for segment in self._segments.values():
            segment.close(whole=True)
        self._segments.clear()
        for solve, (recorded, dropped, lost) in self._tally.items():
            with contextlib.suppress(OSError):
                totals = {"rows_recorded": recorded, "rows_dropped": dropped, "rows_lost": lost}
                self._line("solves", {"kind": "open", "solve": solve, **totals})
        with contextlib.suppress(OSError):
            self._tell_problem()
        try:
            self._write_own_record(status=self._status, ended=time.time())
            record, damage = read_json(self.path / "run.json")
            if damage is None:
                writers = [*record.get("writers", ()), self.token]
                changes = {
                    "status": self._status,
                    "writers": sorted(set(writers), key=writers.index),
                }
                write_json(self.path / "run.json", record | changes)
        finally:
            for lines in self._lines.values():
                lines.close()


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
