"""The files of a run, followed while they grow: what there is, where it is, what is damaged."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.schema import SCHEMA_VERSION
from inspector.store.files import read_json, without_collection
from inspector.store.reader import Batch, Damage, LineTail, Segment
from inspector.store.state import (
    SolveLines,
    SolveState,
    WriterState,
    in_order,
    overall_status,
    rank_of,
    writer_damage,
)

Place = tuple[Segment, list[Batch]]


class RunFolder:
    """Base of `Run`: everything but its tables. Nothing here raises for what the files hold.

    Args:
        path: folder of the run.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.id = self.path.absolute().name
        self.meta: dict[str, Any] = {}
        self._meta_damage: str | None = None
        self._writers: dict[str, WriterState] = {}
        self._lines: dict[str, SolveLines] = {}
        self._scalars: dict[str, tuple[LineTail, list[dict[str, Any]]]] = {}
        self._iterations: dict[str, tuple[LineTail, list[dict[str, Any]]]] = {}
        self._events: tuple[LineTail, list[dict[str, Any]]] = self._tail("events.jsonl")
        self._segments: dict[str, dict[str, Segment]] = {"steps": {}, "states": {}}
        self._segments_read = {"steps": False, "states": False}
        self._solves: list[SolveState] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._by_solve: dict[str, dict[tuple[str, int], list[Place]]] = {"steps": {}, "states": {}}
        self.version = 0  # grows with every refresh that finds something new
        self.refresh()

    @property
    def status(self) -> str:
        """`running`, `finished`, `failed`, `cancelled`, `interrupted` (killed) or `empty`."""
        logged = (*self._scalars.values(), *self._iterations.values())
        anything = bool(self._solves) or any(records for _, records in logged)
        sessions = self.sessions()
        return overall_status(self._writers, self.meta, anything, sessions)

    @property
    def live(self) -> bool:
        """Whether more may come."""
        return any(writer.alive for writer in self._writers.values())

    @property
    def writers(self) -> Mapping[str, WriterState]:
        """Token -> what is known of each writer."""
        return self._writers

    @property
    def lines(self) -> Mapping[str, SolveLines]:
        """Token -> what each writer says of its solves."""
        return self._lines

    @property
    def damage(self) -> list[Damage]:
        """What was found damaged so far; `verify` looks at everything."""
        found = []
        version = self.meta.get("schema")
        if self._meta_damage is not None:
            found.append(Damage("run.json", self._meta_damage))
        elif version != SCHEMA_VERSION:
            known = f"this version reads {SCHEMA_VERSION}"
            found.append(
                Damage("run.json", f"has schema version {version!r}; {known} and may miss things")
            )
        found += writer_damage(self._writers)
        tails = [(lines.tail, token) for token, lines in self._lines.items()]
        for files in (self._scalars, self._iterations):
            tails += [(tail, token) for token, (tail, _) in files.items()]
        for tail, token in tails:
            found += tail.damage(self._alive(token))
        found += self._events[0].damage(self.live)
        for segments in self._segments.values():
            for segment in segments.values():
                found += segment.found.values()
        return found + self._missing_lines() + self._missing_rows()

    def verify(self) -> list[Damage]:
        """Read every byte of the run and return `damage`."""
        for kind, names in (("steps", ["attempt"]), ("states", ["attempt"])):
            self._read_segments(kind)
            for segment in self._segments[kind].values():
                for _ in segment.load(segment.batches, names):
                    pass
        return self.damage

    def refresh(self) -> bool:
        """Look for what was written since the last look; returns whether there is anything new."""
        with without_collection():
            return self._refresh()

    def _refresh(self) -> bool:
        new = self._refresh_meta()
        for name in self._listed("solves", ".jsonl"):
            if name not in self._lines:
                self._lines[name] = SolveLines(
                    self.path / "solves" / f"{name}.jsonl", f"solves/{name}.jsonl"
                )
        for lines in self._lines.values():
            new |= lines.refresh()
        for folder, files in (("scalars", self._scalars), ("iterations", self._iterations)):
            for name in self._listed(folder, ".jsonl"):
                if name not in files:
                    files[name] = self._tail(f"{folder}/{name}.jsonl")
        for tail, records in (*self._scalars.values(), *self._iterations.values(), self._events):
            fresh, again = tail.new()
            if again:
                records.clear()
            records += [record for record in fresh if isinstance(record, dict)]
            new |= bool(fresh) or again
        for kind in ("steps", "states"):
            new |= self._refresh_segments(kind)
        if new:
            self._order_solves()
        self.version += new
        return new

    @property
    def n_solves(self) -> int:
        """Number of solves known."""
        return len(self._solves)

    def solve_state(self, solve: int) -> SolveState:
        """Return what the lines say of a solve.

        Raises:
            KeyError: there is no such solve.
        """
        if not 0 <= solve < len(self._solves):
            there = f"0 to {len(self._solves) - 1}" if self._solves else "no solve yet"
            raise KeyError(f"solve={solve!r}: the run {self.id!r} has {there}")
        return self._solves[solve]

    def places(self, solve: int, kind: str = "steps") -> list[Place]:
        """Return where the rows of a solve are: segments and their batches, ordered by attempt.

        Raises:
            KeyError: there is no such solve.
        """
        state = self.solve_state(solve)
        self._read_segments(kind)
        return self._by_solve[kind].get((state.writer, state.local), [])

    def sessions(self) -> dict[str, int]:
        """Writer -> which start of the training it belongs to, from 0.

        Ranks that start together are one session; a rank that starts again begins the next. The
        order is what each writer saw when it came, not what clocks said, where that is known.
        """
        tokens = {*self._writers, *self._lines, *self._scalars, *self._iterations}

        def place(token: str) -> tuple[int, float, str]:
            record = self._writers[token].record if token in self._writers else {}
            after = record.get("after")
            seen = len(after) if isinstance(after, list) else 0
            return seen, float(record.get("started") or 0.0), token

        found: dict[str, int] = {}
        session, ranks = 0, set[int]()
        for token in sorted(tokens, key=place):
            rank = rank_of(token)
            if rank in ranks:
                session, ranks = session + 1, set()
            ranks.add(rank)
            found[token] = session
        return found

    def raw_scalars(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield `(writer, record)` of every logged number."""
        for token, (_, records) in self._scalars.items():
            for record in records:
                yield token, record

    def raw_iterations(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield `(writer, record)` of every iteration that has ended."""
        for token, (_, records) in self._iterations.items():
            for record in records:
                yield token, record

    def raw_events(self) -> Sequence[Mapping[str, Any]]:
        """Return the events as written."""
        return self._events[1]

    def number_of(self, writer: str, local: int) -> int:
        """Return the number in the run of a solve as its writer counts it; -1 if there is none."""
        return self._numbers.get((writer, local), -1)

    def is_live(self, solve: int) -> bool:
        """Whether a solve has not ended and its writer is alive."""
        state = self.solve_state(solve)
        return state.end is None and self._alive(state.writer)

    # How it is found.

    def _alive(self, token: str) -> bool:
        writer = self._writers.get(token)
        return writer is not None and writer.alive

    def _tail(self, name: str) -> tuple[LineTail, list[dict[str, Any]]]:
        return LineTail(self.path / name, name), []

    def _listed(self, folder: str, ending: str) -> list[str]:
        try:
            names = os.listdir(self.path / folder)
        except OSError:
            return []
        return sorted(
            name[: -len(ending)] for name in names if name.endswith(ending) and name[0] != "."
        )

    def _refresh_meta(self) -> bool:
        meta, self._meta_damage = read_json(self.path / "run.json")
        before = {token: writer.news() for token, writer in self._writers.items()}
        names = self._listed("writers", ".json")
        self._writers = {name: self._writers.get(name, WriterState(name)) for name in names}
        for name, writer in self._writers.items():
            writer.refresh(self.path / "writers" / f"{name}.json")
        after = {token: writer.news() for token, writer in self._writers.items()}
        new = meta != self.meta or before != after
        self.meta = meta
        return new

    def _refresh_segments(self, kind: str) -> bool:
        """Notice new segments by name; look into them only if someone has asked for rows before."""
        known = self._segments[kind]
        there = self._listed(kind, ".arrows")
        names = {*there, *self._listed(kind, ".index")}
        new = False
        for name in sorted(names - known.keys()):
            known[name] = Segment(self.path / kind / f"{name}.arrows", f"{kind}/{name}.arrows")
            new = True
        for name in known.keys() - names:
            del known[name]
            new = True
        if self._segments_read[kind]:
            changed = [segment.refresh(self._alive(segment.writer)) for segment in known.values()]
            if any(changed) or new:
                self._index_solves(kind)
                return True
        return new

    def _read_segments(self, kind: str) -> None:
        if not self._segments_read[kind]:
            self._segments_read[kind] = True
            for segment in self._segments[kind].values():
                segment.refresh(self._alive(segment.writer))
            self._index_solves(kind)
            self._order_solves()

    def _index_solves(self, kind: str) -> None:
        places: dict[tuple[str, int], list[Place]] = {}
        for _, segment in sorted(self._segments[kind].items()):
            grouped: dict[int, list[Batch]] = {}
            for batch in segment.batches:
                grouped.setdefault(batch.solve, []).append(batch)
            for local, batches in grouped.items():
                places.setdefault((segment.writer, local), []).append((segment, batches))
        self._by_solve[kind] = places

    def _order_solves(self) -> None:
        further: dict[str, set[int]] = {}
        for name, segment in self._segments["steps"].items():
            first = name.rpartition("-s")[2]
            if first.isdigit() and segment.writer:
                further.setdefault(segment.writer, set()).add(int(first))
        for writer, local in self._by_solve["steps"]:
            further.setdefault(writer, set()).add(local)
        self._solves = in_order(self._lines, further)
        self._numbers = {(one.writer, one.local): at for at, one in enumerate(self._solves)}

    def _missing_lines(self) -> list[Damage]:
        """Files and lines that others vouch for and that are not there."""
        named = self.meta.get("writers")
        tokens = {*self._lines, *self._scalars, *self._iterations}
        tokens |= {*(named if isinstance(named, list) else ())}
        unknown = sorted(tokens - self._writers.keys(), key=str)
        found = [Damage(f"writers/{token}.json", "is missing") for token in unknown]
        for token, writer in self._writers.items():
            lines = self._lines.get(token)
            began = sum(bool(solve.start) for solve in lines.solves.values()) if lines else 0
            logged = len(self._scalars[token][1]) if token in self._scalars else 0
            ended = len(self._iterations[token][1]) if token in self._iterations else 0
            there_are = (("solves", began), ("scalars", logged), ("iterations", ended))
            for name, there in there_are:
                if there < writer.count(name):
                    lost = (
                        f"{writer.count(name) - there} of {writer.count(name)} {name} are missing"
                    )
                    found.append(Damage(f"{name}/{token}.jsonl", lost))
        return found

    def _missing_rows(self) -> list[Damage]:
        """Rows that a solve's last line vouches for and that are in no file, once rows are read."""
        if not self._segments_read["steps"]:
            return []
        found = []
        for number, state in enumerate(self._solves):
            promised = (state.end or {}).get("rows_recorded")
            if isinstance(promised, int) and not state.thinned:
                places = self._by_solve["steps"].get((state.writer, state.local), ())
                missing = promised - sum(batch.rows for _, batches in places for batch in batches)
                if missing > 0:
                    found.append(
                        Damage(
                            "steps", f"{missing} of {promised} rows of solve {number} are missing"
                        )
                    )
        return found
