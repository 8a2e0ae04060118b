"""Hands rows to a thread that writes them: nothing it meets on the disk ever reaches the solver."""

import logging
import os
import queue
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from inspector.schema import Column
from inspector.store.budget import Budget
from inspector.store.output import Block, Kind, Output, Status

FLUSH_ATTEMPTS = 12  # a kill costs these and what is tried while they are written: at most 16
FLUSH_ROWS = 4_096
FLUSH_SECONDS = 0.25
# The same for blocks of so many attempts: they come from compiled solves.
FAST_ATTEMPTS, FAST_ROWS, FAST_SECONDS = 32, 1 << 18, 0.05
QUEUE_ROWS = 1 << 22  # about 250 MB with every statistic
CLOSE_SECONDS = 60.0


class RunWriter:
    """One process that records into one run.

    Rows and lines are handed to a thread, which writes them after `FLUSH_ATTEMPTS` attempts,
    `FLUSH_ROWS` rows or `FLUSH_SECONDS`, whichever is first. An error of the disk is reported by
    one warning, counted, and written down as soon as that is possible again. A run that already
    exists is continued: this writer adds its own files and leaves the others alone.

    Args:
        path: folder of the run; made if missing.
        spec, note, tags, versions, parameters: for `run.json` of a new run.
        flush: `"always"` writes every block before `steps` returns.
        on_full: what happens when the disk cannot keep up: rows are dropped and counted, or the
            solver waits.
        rank, world_size: of this process among those that train together.
        budget: how much it may store.
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
        world_size: int = 1,
        tags: Sequence[str] = (),
        budget: Budget | None = None,
    ) -> None:
        self.path = Path(path)
        self.token = f"r{rank}-{secrets.token_hex(4)}"
        self._pid = os.getpid()
        self._always = flush == "always"
        self._waits_when_full = on_full == "block"
        self._last_time = time.time()
        self._solve = -1
        self._warned = self._closed = False
        self._status: Status = "finished"
        # Guards the order of what is handed over, and all writing when there is no thread.
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._waiting_rows = 0
        self._pending: list[tuple[Kind, int, Block]] = []
        self._pending_attempts = self._pending_rows = 0
        self._pending_since = self._later_since = 0.0
        self._later: list[Callable[[], None]] = []
        about: dict[str, Any] = {"spec": spec, "note": note, "tags": list(tags)}
        about |= {"versions": versions or {}, "parameters": parameters or {}}
        place = {"rank": rank, "world_size": world_size}
        self._output = Output(self.path, self.token, about, place, budget)
        self._last_time = max(self._last_time, self._output.latest)
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

    @property
    def counts(self) -> Mapping[str, int]:
        """What was written, dropped and lost so far."""
        return self._output.counts

    @property
    def started(self) -> int:
        """How many solves have begun."""
        return self._solve + 1

    def start_solve(
        self, settings: Callable[[], Mapping[str, Any]], statistics: Sequence[Column] = ()
    ) -> int:
        """Begin a solve and return its number within this writer.

        Args:
            settings: makes those of the solve, for its `start` line, in the thread.
            statistics: columns its steps have besides those that all steps have.
        """
        if self.closed:
            return -1
        with self._lock:
            self._solve += 1
            number = self._solve
            # A clock that is set back must not change the order of solves.
            started = self._last_time = max(time.time(), self._last_time)
            columns = tuple(statistics)
            self._submit(lambda: self._output.start(number, started, settings(), columns))
        self._warn()
        return number

    def steps(self, solve: int, block: Block, kind: Kind = "steps") -> None:
        """Take over a block of rows of a solve."""
        if self.closed:
            return
        with self._lock:
            if self._always:
                self._submit(lambda: self._output.rows(kind, solve, [block]))
            elif self._has_room(solve, block.rows):
                self._waiting_rows += block.rows
                if not self._pending:
                    self._pending_since = time.monotonic()
                self._pending.append((kind, solve, block))
                attempts = block.attempts[1] - block.attempts[0]
                if kind == "steps":
                    self._pending_attempts += attempts
                    self._pending_rows += block.rows
                if attempts > FAST_ATTEMPTS:  # a solve so fast that the thread would be felt
                    late = time.monotonic() - self._pending_since >= FAST_SECONDS
                    due = late or self._pending_rows >= FAST_ROWS
                else:
                    rows = self._pending_rows
                    due = self._pending_attempts >= FLUSH_ATTEMPTS or rows >= FLUSH_ROWS
                if due:
                    self._hand_over()
        self._warn()

    def end_solve(
        self, solve: int, outcome: Callable[[], tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> None:
        """End a solve.

        Args:
            solve: as returned by `start_solve`.
            outcome: makes, in the thread, its totals for its `end` line, and name -> value of each
                instance `(B,)` for its `rows` line, or None.
        """
        now = time.time()
        self._in_order(lambda: self._output.end(solve, now, *outcome()))

    def scalars(self, iteration: int, values: Mapping[str, float | Callable[[], float]]) -> None:
        """Record named numbers; one that is a callable is asked for its value in the thread."""
        about = {"time": time.time(), "solve": self._solve + 1}

        def write() -> None:
            records = (
                {
                    "iteration": iteration,
                    "name": name,
                    "value": value() if callable(value) else value,
                    **about,
                }
                for name, value in values.items()
            )
            self._output.lines("scalars", *records)

        self._in_order(write)

    def add_tags(self, tags: Sequence[str]) -> None:
        """Add to the `tags` of the run."""
        self._in_order(lambda: self._output.tags(tags))

    def line(
        self, name: Literal["solves", "iterations"], make: Callable[[], Mapping[str, Any]]
    ) -> None:
        """Write a line that is made in the thread, where it may wait for a device."""
        self._in_order(lambda: self._output.lines(name, make()))

    def thinned(self, solve: int, rows: int) -> None:
        """Count rows of a solve that were let go on purpose."""
        self._in_order(lambda: self._output.thinned(solve, rows))

    def decided(self, solve: int) -> None:
        """Say that no more rows of a solve that has ended will come."""
        self._in_order(lambda: self._output.decided(solve))

    def event(self, kind: str, text: str, **data: Any) -> None:
        """Record something that happens rarely."""
        record = {"time": time.time(), "kind": kind, "text": text, "writer": self.token, **data}
        self._in_order(lambda: self._output.lines("events", record))

    def set_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Add to the `parameters` of the run: name -> one number for each instance."""
        self._in_order(lambda: self._output.parameters(parameters))

    def flush(self, timeout: float = CLOSE_SECONDS) -> bool:
        """Wait until all that was handed over is in the files.

        Returns:
            Whether it is, and nothing was dropped or lost so far.
        """
        done = threading.Event()
        self._in_order(done.set, now=True)
        if not self.closed and not done.wait(timeout):
            return False
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
            self._output.guard(self._output.finish, status)
        else:
            self._queue.put(None)
            if threading.current_thread() is not self._thread:  # it may hold the last reference
                self._thread.join(CLOSE_SECONDS)
        self._warn()

    # Between the two threads.

    def _in_order(self, work: Callable[[], None], *, now: bool = False) -> None:
        """Do a piece of work after all that was handed over before."""
        if not self.closed:
            with self._lock:
                self._gather()
                self._submit(work)
                if now:
                    self._hand_over()
            self._warn()

    def _submit(self, work: Callable[[], None]) -> None:
        """Keep a piece of work for the thread, or do it if there is none; the lock is held.

        Each time the thread wakes it takes the interpreter from the one that trains, so it gets
        the work of a while at once.
        """
        if self._always:
            self._output.guard(work)
            self._output.guard(self._output.heartbeat)
            return
        if not self._later:
            self._later_since = time.monotonic()
        self._later.append(work)
        if time.monotonic() - self._later_since >= FLUSH_SECONDS:
            self._hand_over()

    def _gather(self) -> None:
        """Put the pending blocks behind the work that waits; the lock is held."""
        if self._pending:
            blocks, self._pending = self._pending, []
            self._pending_attempts = self._pending_rows = 0
            self._submit(lambda: self._write(blocks))

    def _hand_over(self) -> None:
        """Queue all that waits; the lock is held."""
        self._gather()
        if self._later:
            works, self._later = self._later, []
            self._queue.put(lambda: self._do(works))

    def _do(self, works: list[Callable[[], None]]) -> None:
        works.reverse()
        while works:  # tensors are freed as soon as they are written
            self._output.guard(works.pop())

    def _has_room(self, solve: int, rows: int) -> bool:
        """Whether the queue takes more rows; else wait, or count them; the lock is held."""
        if self._waiting_rows + rows <= QUEUE_ROWS:
            return True
        if self._waits_when_full:
            self._hand_over()
            return self._room.wait_for(
                lambda: self._waiting_rows == 0 or self._waiting_rows + rows <= QUEUE_ROWS
            )
        if self._output.drop(solve, rows):
            record = {"time": time.time(), "kind": "drop", "writer": self.token, "solve": solve}
            record["text"] = f"the disk could not keep up: rows of solve {solve} are missing"
            self._submit(lambda: self._output.lines("events", record))
        return False

    def _work(self) -> None:
        """Run of the thread: until told to stop, whatever goes wrong."""
        output = self._output
        while True:
            try:
                work = self._queue.get(timeout=FLUSH_SECONDS)
            except queue.Empty:
                with self._lock:
                    self._hand_over()
            else:
                if work is None:
                    output.guard(output.finish, self._status)
                    return
                output.guard(work)
                del work  # frees the tensors now, not after the next wait
            output.guard(output.heartbeat)

    def _write(self, blocks: list[tuple[Kind, int, Block]]) -> None:
        """Write blocks, those of one solve as one batch."""
        groups: dict[tuple[Kind, int], list[Block]] = {}
        for kind, solve, block in blocks:
            groups.setdefault((kind, solve), []).append(block)
        for (kind, solve), group in groups.items():
            self._output.guard(self._output.rows, kind, solve, group)
        with self._lock:
            self._waiting_rows -= sum(block.rows for _, _, block in blocks)
            if self._waits_when_full:
                self._room.notify_all()

    def _warn(self) -> None:
        """Report the first problem, once, in the thread of the caller."""
        problem = self._output.problem
        if problem is None or self._warned:
            return
        self._warned = True
        text = (
            f"the recorder cannot write to {str(self.path)!r}: {problem}. The solve goes on; "
            "what could not be written is counted, and writing is tried again."
        )
        try:
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        except RuntimeWarning:  # warnings made errors must not end a training either
            logging.getLogger(__name__).error(text)
