"""What the small files of a run say: its writers, their solves, how far each one is."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from inspector.schema import STEP_COLUMNS, Column, column_from_json
from inspector.store import process
from inspector.store.files import number, read_json
from inspector.store.reader import Damage, LazyLine, LineTail


@dataclass
class WriterState:
    """One process that records, or recorded, into the run."""

    token: str
    record: Mapping[str, Any] = field(default_factory=dict)
    heartbeat: float = 0.0
    damage: str | None = None
    status: str = "interrupted"

    def refresh(self, path: Path) -> None:
        """Read its file again and see whether it is alive."""
        self.record, self.damage = read_json(path)
        try:
            self.heartbeat = path.stat().st_mtime
        except OSError:
            self.heartbeat = 0.0
        self.status = str(self.record.get("status", "interrupted"))
        if self.status == "running" and not process.is_alive(self.record, self.heartbeat):
            self.status = "interrupted"

    @property
    def alive(self) -> bool:
        """Whether it may still write."""
        return self.status == "running"

    @property
    def last_sign(self) -> float:
        """When it was last known to be at work, seconds since 1970."""
        ended = number(self.record.get("ended"))
        return ended if ended == ended else max(number(self.record.get("heartbeat")), 0.0)

    def news(self) -> tuple[Any, ...]:
        """Return what matters to a reader: all but the time of the last heartbeat."""
        return self.status, {
            name: value for name, value in self.record.items() if name != "heartbeat"
        }

    def count(self, name: str) -> int:
        """Return one of its counts, such as `rows_dropped`; 0 if not known."""
        value = self.record.get(name)
        return value if isinstance(value, int) else 0


@dataclass
class SolveState:
    """One solve: what its lines say, and under which number its rows are stored."""

    writer: str
    local: int  # number within the writer
    started: float = float("nan")
    start: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] | None = None
    rows: LazyLine | None = None
    samples: LazyLine | None = None
    backward: list[dict[str, Any]] = field(default_factory=list)
    thinned: int = 0  # rows let go on purpose

    @property
    def batch(self) -> int:
        """Number of instances; 0 when its first line is lost."""
        value = self.start.get("batch")
        return value if isinstance(value, int) and value >= 0 else 0

    @property
    def recorded(self) -> np.ndarray | None:
        """Instances whose steps are kept, None when that is not known."""
        chosen = self.start.get("instances")
        if isinstance(chosen, list | int):  # one instance alone is written as its number
            return np.atleast_1d(np.asarray(chosen, "i4"))
        return np.arange(self.batch, dtype="i4") if self.start else None


def spread(value: Any, size: int, missing: float = np.nan) -> np.ndarray:
    """Return `(size,)` of a recorded value: one number for all instances, or a list of them."""
    if isinstance(value, list):
        try:
            found = np.array(value, "f8").reshape(-1)
        except (TypeError, ValueError):
            found = np.array([number(item) for item in value], "f8")
        return found if len(found) == size else np.full(size, missing, "f8")
    return np.full(size, missing if value is None else number(value), "f8")


class SolveLines:
    """The `solves/<w>.jsonl` of one writer."""

    def __init__(self, path: Path, name: str) -> None:
        self.writer = path.stem
        self.tail = LineTail(path, name)
        self.solves: dict[int, SolveState] = {}
        self.columns: dict[str, Column] = {}

    def refresh(self) -> bool:
        """Read what is new; returns whether anything is."""
        records, again = self.tail.new()
        if again:
            self.solves, self.columns = {}, {}
        for record in records:
            if isinstance(record, LazyLine):
                setattr(self._solve(record.solve), record.kind, record)
                continue
            kind, local = record.get("kind"), record.get("solve")
            if kind == "columns" and isinstance(record.get("columns"), dict):
                for name, about in record["columns"].items():
                    self.columns[name] = column_from_json(
                        name, about if isinstance(about, dict) else {}
                    )
            elif isinstance(local, int) and 0 <= local < 1 << 31:
                solve = self._solve(local)
                if kind == "start":
                    solve.start = record
                    solve.started = number(record.get("started"))
                elif kind == "end":
                    solve.end = record
                elif kind == "backward":
                    solve.backward.append(record)
                elif kind == "thinned":
                    solve.thinned += int(number(record.get("rows")))
                elif kind == "late" and solve.end is not None:
                    solve.end["rows_recorded"] = record.get("rows_recorded")
        return bool(records) or again

    def _solve(self, local: int) -> SolveState:
        solve = self.solves.get(local)
        if solve is None:
            solve = self.solves[local] = SolveState(self.writer, local)
        return solve


def in_order(lines: Mapping[str, SolveLines], further: Mapping[str, set[int]]) -> list[SolveState]:
    """Return all solves in the order they began; a solve whose lines are lost keeps its place.

    Args:
        lines: writer -> its lines.
        further: writer -> numbers of solves that are known from segments alone.
    """
    keyed = []
    for writer in sorted({*lines, *further}):
        solves = dict(lines[writer].solves) if writer in lines else {}
        for local in further.get(writer, ()):
            solves.setdefault(local, SolveState(writer, local))
        if not solves:
            continue
        began = min((s.started for s in solves.values() if s.started == s.started), default=0.0)
        for local in (
            range(max(solves) + 1) if len(solves) <= max(solves) < 10_000_000 else sorted(solves)
        ):
            solve = solves.get(local) or SolveState(writer, local)
            began = max(began, solve.started) if solve.started == solve.started else began
            keyed.append((began, writer, local, solve))
    keyed.sort(key=lambda item: item[:3])
    return [solve for *_, solve in keyed]


def rank_of(writer: str) -> int:
    """Return the rank of a writer, which is part of its name; 0 where that is no rank."""
    rank = writer.partition("-")[0].removeprefix("r")
    return int(rank) if rank.isdigit() else 0


def overall_status(
    writers: Mapping[str, WriterState],
    meta: Mapping[str, Any],
    anything: bool,
    sessions: Mapping[str, int],
) -> str:
    """Return the status of a run: what its last writers say, not those before a resume.

    These are all of the last session, and who was still seen when one of them started.
    """
    if any(writer.alive for writer in writers.values()):
        return "running"
    if not writers:
        status = str(meta.get("status", ""))
        status = "interrupted" if status in ("", "running") else status
        return status if anything else "empty"
    latest = max(process.started(writer.record) for writer in writers.values())
    session = max(sessions.get(token, 0) for token in writers)
    last = {
        writer.status
        for token, writer in writers.items()
        if writer.last_sign >= latest or sessions.get(token, 0) == session
    }
    found = last or {writer.status for writer in writers.values()}
    for status in ("failed", "interrupted", "cancelled"):
        if status in found:
            return status if anything or status != "interrupted" else "empty"
    return "finished" if anything else "empty"


def writer_damage(writers: Mapping[str, WriterState]) -> list[Damage]:
    """Return what is wrong with the writers' own files."""
    return [
        Damage(f"writers/{token}.json", writer.damage)
        for token, writer in writers.items()
        if writer.damage is not None
    ]


def base_columns() -> dict[str, dict[str, Any]]:
    """Columns every run has, as `Run.columns` gives them."""
    return {column.name: column.describe() for column in STEP_COLUMNS}


def now() -> float:
    """Seconds since 1970."""
    return time.time()
