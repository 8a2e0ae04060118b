"""A recorded run, opened for reading: data frames of what happened, also while it happens."""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import tables
from inspector.schema import SCHEMA_VERSION, STATE_NAMES, STEP_NAMES
from inspector.store.files import read_json
from inspector.store.reader import Batch, Damage, LineTail, Segment
from inspector.store.state import (
    SolveLines,
    SolveState,
    WriterState,
    base_columns,
    in_order,
    overall_status,
    writer_damage,
)

if TYPE_CHECKING:
    import pandas as pd

Place = tuple[Segment, list[Batch]]


def open_run(path: str | os.PathLike[str]) -> "Run":
    """Open a run for reading. Damaged files are named in `Run.damage`, they never raise.

    Raises:
        FileNotFoundError: there is no folder of a run at `path`.
    """
    from inspector.listing import is_run

    if not is_run(path):
        raise FileNotFoundError(f"path={os.fspath(path)!r}: must be the folder of a recorded run")
    return Run(path)


class Run:
    """What was recorded so far; `refresh` looks for more.

    Solves are numbered in the order they began, over all processes that record into the run and
    over every resumption: nothing a later writer adds replaces anything.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.id = self.path.absolute().name
        self.meta: dict[str, Any] = {}
        self._meta_damage: str | None = None
        self._writers: dict[str, WriterState] = {}
        self._lines: dict[str, SolveLines] = {}
        self._scalars: dict[str, tuple[LineTail, list[dict[str, Any]]]] = {}
        self._events: tuple[LineTail, list[dict[str, Any]]] = self._tail("events.jsonl")
        self._segments: dict[str, dict[str, Segment]] = {"steps": {}, "states": {}}
        self._segments_read = {"steps": False, "states": False}
        self._solves: list[SolveState] = []
        self._by_solve: dict[str, dict[tuple[str, int], list[Place]]] = {"steps": {}, "states": {}}
        self._counted: dict[tuple[str, int], tables.LiveCounts] = {}
        self.cache: OrderedDict[Any, Any] = OrderedDict()  # results of `queries`
        self.version = 0  # grows with every refresh that finds something new
        self.refresh()

    # What a run is.

    @property
    def spec(self) -> dict[str, Any] | None:
        """What `stepscope run` takes to do it again, if the run came from there."""
        spec = self.meta.get("spec")
        return spec if isinstance(spec, dict) else None

    @property
    def status(self) -> str:
        """`running`, `finished`, `failed`, `cancelled`, `interrupted` (killed) or `empty`."""
        anything = bool(self._solves) or any(records for _, records in self._scalars.values())
        return overall_status(self._writers, self.meta, anything)

    @property
    def live(self) -> bool:
        """Whether more may come."""
        return any(writer.alive for writer in self._writers.values())

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        """Column name -> `unit`, `help`, `labels` (code -> word) and `dtype`."""
        found = base_columns()
        for lines in self._lines.values():
            found |= {name: column.describe() for name, column in lines.columns.items()}
        return found

    @property
    def lost(self) -> dict[str, int]:
        """`rows_dropped` (disk too slow), `rows_lost`, `lines_lost` and `errors` of the disk."""
        names = ("rows_dropped", "rows_lost", "lines_lost", "errors")
        return {
            name: sum(writer.count(name) for writer in self._writers.values()) for name in names
        }

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
        tails += [(tail, token) for token, (tail, _) in self._scalars.items()]
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
        new = self._refresh_meta()
        for name in self._listed("solves", ".jsonl"):
            if name not in self._lines:
                self._lines[name] = SolveLines(
                    self.path / "solves" / f"{name}.jsonl", f"solves/{name}.jsonl"
                )
        for lines in self._lines.values():
            new |= lines.refresh()
        for name in self._listed("scalars", ".jsonl"):
            if name not in self._scalars:
                self._scalars[name] = self._tail(f"scalars/{name}.jsonl")
        for tail, records in (*self._scalars.values(), self._events):
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

    # What happened.

    def steps(
        self,
        solve: int | None = None,
        instances: int | Iterable[int] | None = None,
        columns: Sequence[str] | None = None,
        attempts: tuple[int, int] | None = None,
    ) -> "pd.DataFrame":
        """Return attempts, one row for each attempt of each instance that took part in it.

        Args:
            solve: its number, None for all.
            instances: one or more rows of the batch, None for all.
            columns: some of `solve, attempt, instance, t, dt, error_ratio, accepted` and the
                statistics.
            attempts: half-open range `(low, high)`.

        Raises:
            KeyError: the run has no such solve.
        """
        return tables.steps_frame(self, "steps", solve, instances, columns, attempts)

    def states(
        self, solve: int | None = None, instances: int | Iterable[int] | None = None
    ) -> "pd.DataFrame":
        """Return sampled trajectories, `solve, instance, t, y0, y1, ...`; empty if none are kept."""
        return tables.states_frame(self, solve, instances)

    def solves(self) -> "pd.DataFrame":
        """Return one row for each instance of each solve.

        `solve, instance, status, status_name, n_steps, n_accepted, n_rejected, n_f_evals, t0, t1,
        t_reached, component, message`; rows of a solve that has not ended are counted from the
        steps so far, with status -1 and `n_f_evals` missing.
        """
        return tables.solves_frame(self)

    def solve_table(self) -> "pd.DataFrame":
        """Return one row for each solve, from the small files alone.

        `solve, batch, dim, method, controller, rtol, atol, stepping, dtype, started, seconds,
        n_attempts, n_f_calls, n_rows_evaluated, n_failed, finished, iteration, n_steps, n_accepted,
        n_rejected, n_f_evals, rows, error`.
        """
        return tables.solve_table(self)

    def instances(self, solve: int = 0) -> "pd.DataFrame":
        """Return one row for each recorded instance of a solve, the one tried most often first.

        `instance, n_steps, n_accepted, n_rejected, accept_share, dt_min, dt_median, dt_max (sizes
        of accepted steps), max_error_ratio, t_reached, status_name, component`, and the parameters
        of the run.

        Raises:
            KeyError: the run has no such solve.
        """
        return tables.instances_frame(self, solve)

    def scalars(self) -> "pd.DataFrame":
        """Return what was logged, `iteration, name, value, time, session`, by iteration and time.

        A run that was resumed may hold an iteration twice. Both are kept, the later one behind;
        `session` counts the writers.
        """
        return tables.scalars_frame(self)

    def events(self) -> "pd.DataFrame":
        """Return `time, kind, text, writer` and a column for every further entry."""
        return tables.events_frame(self)

    def summary(self) -> dict[str, Any]:
        """Return the run's line in `list_runs`."""
        return tables.summary(self)

    # For tables and queries.

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

    def settings(self, solve: int = 0) -> dict[str, Any]:
        """Return the settings of a solve as recorded when it began.

        Raises:
            KeyError: there is no such solve.
        """
        return dict(self.solve_state(solve).start)

    def places(self, solve: int, kind: str = "steps") -> list[Place]:
        """Return where the rows of a solve are: segments and their batches, ordered by attempt.

        Raises:
            KeyError: there is no such solve.
        """
        state = self.solve_state(solve)
        self._read_segments(kind)
        return self._by_solve[kind].get((state.writer, state.local), [])

    def live_counts(self, solve: int) -> "tables.LiveCounts":
        """Return counts of each instance from the steps stored so far; reads only what is new."""
        state = self.solve_state(solve)
        counts = self._counted.setdefault((state.writer, state.local), tables.LiveCounts())
        counts.update(self, solve)
        return counts

    def sessions(self) -> dict[str, int]:
        """Writer -> its number in the order they began."""
        tokens = {*self._writers, *self._lines, *self._scalars}
        unknown = WriterState("")
        began = {
            token: float(self._writers.get(token, unknown).record.get("started") or 0.0)
            for token in tokens
        }
        return {
            token: number
            for number, token in enumerate(sorted(tokens, key=lambda t: (began[t], t)))
        }

    def raw_scalars(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield `(writer, record)` of every logged number."""
        for token, (_, records) in self._scalars.items():
            for record in records:
                yield token, record

    def raw_events(self) -> Sequence[Mapping[str, Any]]:
        """Return the events as written."""
        return self._events[1]

    def is_live(self, solve: int) -> bool:
        """Whether a solve has not ended and its writer is alive."""
        state = self.solve_state(solve)
        return state.end is None and self._alive(state.writer)

    @property
    def writers(self) -> Mapping[str, WriterState]:
        """Token -> what is known of each writer."""
        return self._writers

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

    def _missing_lines(self) -> list[Damage]:
        """Files and lines that others vouch for and that are not there."""
        named = self.meta.get("writers")
        tokens = {*self._lines, *self._scalars, *(named if isinstance(named, list) else ())}
        unknown = sorted(tokens - self._writers.keys(), key=str)
        found = [Damage(f"writers/{token}.json", "is missing") for token in unknown]
        for token, writer in self._writers.items():
            lines = self._lines.get(token)
            began = sum(bool(solve.start) for solve in lines.solves.values()) if lines else 0
            logged = len(self._scalars[token][1]) if token in self._scalars else 0
            for name, there in (("solves", began), ("scalars", logged)):
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
            if isinstance(promised, int):
                places = self._by_solve["steps"].get((state.writer, state.local), ())
                missing = promised - sum(batch.rows for _, batches in places for batch in batches)
                if missing > 0:
                    found.append(
                        Damage(
                            "steps", f"{missing} of {promised} rows of solve {number} are missing"
                        )
                    )
        return found


__all__ = ["STATE_NAMES", "STEP_NAMES", "Run", "open_run"]
