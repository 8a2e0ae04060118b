"""Reads what a writer leaves, also while it writes, and whatever happened to the files since."""

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inspector.schema import INDEX_MAGIC
from inspector.store.files import check_line, load_line, load_lines

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_LAZY = {b'{"kind":"ro': "rows", b'{"kind":"sa': "samples"}  # by how such a line begins
_SOLVE = b'"solve":'
_MOST_ROWS = 1 << 26  # of one batch; more is a damaged number
_READ_BYTES = 32 << 20  # read at once


@dataclass(frozen=True)
class Damage:
    """Something in a run that cannot be read as it was written.

    Args:
        file: relative to the folder of the run.
        what: what is wrong and what it costs.
    """

    file: str
    what: str


class Batch(NamedTuple):
    """One record batch of a segment."""

    offset: int
    length: int
    rows: int
    solve: int  # counted by the writer
    low: int  # attempts low..high-1
    high: int
    full: bool
    crc: int | None  # None: found without its line in the index


class LazyLine(NamedTuple):
    """A line that is long and seldom needed: only where it is."""

    kind: str
    solve: int
    path: Path
    offset: int
    length: int

    def load(self) -> dict[str, Any] | None:
        """Read and parse the line; None when it is no longer there."""
        data = read_range(self.path, self.offset, self.length)
        return load_line(data) if data is not None else None


class LineTail:
    """Follows a `.jsonl` file."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self._offset = 0
        self._line = 0
        self.bad: list[Damage] = []
        self._torn = b""

    def new(self) -> tuple[list[dict[str, Any] | LazyLine], bool]:
        """Return the records that came since the last call, and whether to forget all before.

        A last line without its end is left for the next call.
        """
        try:
            size = self.path.stat().st_size
            again = size < self._offset
            if again:
                self._offset, self._line, self.bad = 0, 0, []
            if size == self._offset:
                return [], again
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            again = self._offset > 0
            self._offset, self._line, self.bad = 0, 0, []
            return [], again
        records: list[dict[str, Any] | LazyLine] = []
        lines = data.split(b"\n")
        self._torn = lines.pop()
        parsed = iter(load_lines([line for line in lines if line and line[:11] not in _LAZY]))
        for line in lines:
            self._line += 1
            record = None
            if line:
                record = self._lazy(line) if line[:11] in _LAZY else next(parsed)
            if record is not None:
                records.append(record)
            elif line:
                self.bad.append(Damage(self.name, f"line {self._line} is damaged and was left out"))
            self._offset += len(line) + 1
        return records, again

    def damage(self, alive: bool) -> list[Damage]:
        """Return what is damaged so far; a line being written is not, while its writer lives."""
        if self._torn and not alive:
            return [*self.bad, Damage(self.name, "the last line was cut short")]
        return list(self.bad)

    def _lazy(self, line: bytes) -> LazyLine | None:
        kind = _LAZY[line[:11]]
        at = line.find(_SOLVE) + len(_SOLVE)
        number = line[at : at + 12].partition(b",")[0]
        if not check_line(line) or not number.isdigit():
            return None
        return LazyLine(kind, int(number), self.path, self._offset, len(line))


class Segment:
    """One Arrow stream and its index."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        writer, _, rest = path.stem.rpartition("-s")[0].rpartition("-")
        self.writer = writer
        self.number = int(rest) if rest.isdigit() else -1
        self.batches: list[Batch] = []
        self.found: dict[str, Damage] = {}  # by place, so that a second look does not list it twice
        self._seen: tuple[int, ...] | None = None
        self._checked: set[int] = set()
        self._head = b""
        self.columns: list[str] = []  # their names; empty while the head cannot be read

    def refresh(self, alive: bool) -> bool:
        """Look for new batches; returns whether anything changed.

        Args:
            alive: the writer may still be at work on this file, so its end is not damage yet.
        """
        index = self.path.with_suffix(".index")
        sizes = (_size(self.path), _size(index), int(alive))
        if sizes == self._seen:
            return False
        self._seen = sizes
        self.batches, self.found, self._checked = [], {}, set()
        batches, head, bad = _read_index(index)
        size = _size(self.path)  # after the index: what that tells of was written before it
        if size < 0:
            self._note("", "is missing; its rows are lost")
            return True
        if head is None and not bad and not alive:
            self._note("index", "its index is missing: rows were read without a checksum")
        elif bad:
            self._note(
                "index", f"{bad} lines of its index are damaged: rows were read without a checksum"
            )
        if not self._load_head(head, alive):
            return True
        kept = [batch for batch in batches if batch.offset + batch.length <= size]
        lost = sum(batch.rows for batch in batches) - sum(batch.rows for batch in kept)
        if lost:
            self._note("cut", f"was cut short: {lost} rows are lost")
        self.batches = list(self._fill_gaps(kept, size, alive, lost > 0))
        unchecked = sum(batch.rows for batch in self.batches if batch.crc is None)
        if unchecked:
            self._note(
                "index", f"{unchecked} rows have no line in its index: read without a checksum"
            )
        return True

    def load(
        self, batches: Sequence[Batch], columns: Sequence[str]
    ) -> Iterator[tuple[Batch, dict[str, np.ndarray]]]:
        """Yield the wanted columns of each batch that is whole; damage is noted, never raised.

        Args:
            batches: of this segment, in order.
            columns: a list column comes as `(rows, D)`; a column the file lacks is left out.
        """
        names = [name for name in self.columns if name in columns]
        for group in _neighbours(batches):
            start = group[0].offset
            data = self._read(start, group[-1].offset + group[-1].length - start)
            if data is None:
                self._note("cut", "was cut short while it was read")
                continue
            body = data[len(self._head) :]
            good = [batch for batch in group if self._is_whole(batch, body, start)]
            if len(good) == len(group):
                yield from self._decode(data, good, names)
                continue
            for batch in good:
                at = batch.offset - start
                yield from self._decode(self._head + body[at : at + batch.length], [batch], names)

    def _is_whole(self, batch: Batch, body: memoryview, start: int) -> bool:
        if batch.crc is None or batch.offset in self._checked:
            return True
        at = batch.offset - start
        if zlib.crc32(body[at : at + batch.length]) != batch.crc:
            self._note(
                str(batch.offset),
                f"the batch at byte {batch.offset} is damaged: {batch.rows} rows of attempts "
                f"{batch.low} to {batch.high - 1} are lost",
            )
            return False
        self._checked.add(batch.offset)
        return True

    def _decode(
        self, data: bytes | bytearray | memoryview, batches: Sequence[Batch], names: Sequence[str]
    ) -> Iterator[tuple[Batch, dict[str, np.ndarray]]]:
        import pyarrow as pa

        order = self.columns
        try:
            options = pa.ipc.IpcReadOptions(
                use_threads=False, included_fields=[order.index(name) for name in names]
            )
            with pa.ipc.open_stream(pa.py_buffer(data), options=options) as stream:
                for batch in batches:
                    table = stream.read_next_batch()
                    arrays = {name: _to_numpy(table.column(name)) for name in names}
                    if any(len(values) != batch.rows for values in arrays.values()):
                        raise ValueError("the columns are not of one length")
                    yield batch, arrays
        except (pa.ArrowException, OSError, ValueError, KeyError, StopIteration) as error:
            where = batches[0].offset
            self._note(
                str(where), f"the batch at byte {where} cannot be read: {_first_line(error)}"
            )

    def _load_head(self, told: bytes | None, alive: bool) -> bool:
        """Take the schema as the index tells it, or else from the file itself."""
        import pyarrow as pa

        try:
            head = read_range(self.path, 0, len(told) if told else _message_bytes(self.path, 0))
            if told is not None and head != told:
                self._note("head", "its head is damaged; the copy in its index was used")
                head = told
            if head is None:
                raise ValueError("it is cut short")
            self.columns = list(pa.ipc.read_schema(pa.py_buffer(head)).names)
            self._head = head
        except (pa.ArrowException, OSError, ValueError) as error:
            self.columns = []
            if not alive:
                self._note(
                    "head", f"its head cannot be read, its rows are lost: {_first_line(error)}"
                )
            return False
        return True

    def _fill_gaps(self, known: list[Batch], size: int, alive: bool, cut: bool) -> Iterator[Batch]:
        """Yield the indexed batches, and those found between and behind them."""
        at = len(self._head)
        for batch in known:
            if batch.offset > at:
                yield from self._scan(at, batch.offset)
            if batch.offset < at:
                continue  # says a place twice: the first one counts
            yield batch
            at = batch.offset + batch.length
        if alive or cut:
            return  # the writer is about to tell what is behind, or it is known to be torn
        end = size
        if size - at >= len(END_OF_STREAM):
            tail = read_range(self.path, size - len(END_OF_STREAM), len(END_OF_STREAM))
            end = size - len(END_OF_STREAM) if tail == END_OF_STREAM else size
        if end > at:
            yield from self._scan(at, end)

    def _scan(self, at: int, end: int) -> Iterator[Batch]:
        """Yield the batches between two places of the file by reading them."""
        import pyarrow as pa

        while at < end:
            try:
                length = _message_bytes(self.path, at)
                data = self._read(at, length) if at + length <= end else None
                if data is None:
                    raise ValueError("cut short")
                with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
                    table = stream.read_next_batch()
                    table.validate(full=True)
                    if not 0 < table.num_rows < _MOST_ROWS:
                        raise ValueError(f"{table.num_rows} rows")
                    solve = int(table.column("solve")[0].as_py())
                    attempts = _to_numpy(table.column("attempt"))
                low, high = int(attempts.min()), int(attempts.max()) + 1
                yield Batch(at, length, table.num_rows, solve, low, high, False, None)
                at += length
            except (pa.ArrowException, OSError, ValueError, KeyError, StopIteration, MemoryError):
                self._note(
                    f"tail{at}", f"{end - at} bytes at byte {at} are a torn batch and were left out"
                )
                return

    def _read(self, offset: int, length: int) -> memoryview | None:
        """Return the head of the stream followed by a part of the file, as a stream of its own."""
        data = np.empty(len(self._head) + length, "u1").data
        data[: len(self._head)] = self._head
        try:
            with self.path.open("rb", buffering=0) as file:
                file.seek(offset)
                view = data[len(self._head) :]
                while view:
                    count = file.readinto(view)
                    if not count:
                        return None
                    view = view[count:]
        except OSError:
            return None
        return data

    def _note(self, place: str, what: str) -> None:
        self.found.setdefault(place, Damage(self.name, what))


def read_range(path: Path, offset: int, length: int) -> bytes | None:
    """Return a part of a file; None when it is not all there."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(length)
    except OSError:
        return None
    return data if len(data) == length else None


def _read_index(path: Path) -> tuple[list[Batch], bytes | None, int]:
    """Return the batches of an index, the head of the stream, and how many lines are damaged."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return [], None, 0
    batches, head, bad = [], None, 0
    for number, line in enumerate(lines):
        text, _, crc = line.rpartition(b" ")
        if crc != b"%08x" % zlib.crc32(text):
            bad += 1
        elif number == 0 and text.startswith(INDEX_MAGIC.encode()):
            head = bytes.fromhex(text.split()[-1].decode())
        else:
            fields = text.split()
            numbers = (int(field) for field in fields[:6])
            batches.append(Batch(*numbers, full=fields[6] == b"1", crc=int(fields[7], 16)))
    return batches, head, bad


def _message_bytes(path: Path, offset: int) -> int:
    """Return the size of the Arrow message at a place of a file.

    Raises:
        ValueError, pyarrow.ArrowException, OSError: there is none.
    """
    import pyarrow as pa

    with path.open("rb") as file:
        file.seek(offset)
        prefix = file.read(8)
        meta = int.from_bytes(prefix[4:], "little", signed=True)
        rest = os.fstat(file.fileno()).st_size - offset - 8
        if len(prefix) < 8 or prefix[:4] != END_OF_STREAM[:4] or not 0 < meta <= rest:
            raise ValueError("no message")
        message = pa.ipc.read_message(pa.py_buffer(prefix + file.read(rest)))
        body = message.body
        return 8 + meta + (0 if body is None else body.size)


def _neighbours(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Group batches that lie side by side, up to a size that is good to read at once."""
    group: list[Batch] = []
    for batch in batches:
        if group and (
            group[-1].offset + group[-1].length != batch.offset
            or batch.offset + batch.length - group[0].offset > _READ_BYTES
        ):
            yield group
            group = []
        group.append(batch)
    if group:
        yield group


def _to_numpy(column: Any) -> np.ndarray:
    """Return an Arrow column as numpy; a list column as `(rows, D)`."""
    if hasattr(column.type, "list_size"):
        return column.flatten().to_numpy().reshape(len(column), column.type.list_size)
    return column.to_numpy()


def _size(path: Path) -> int:
    """Size of a file in bytes, -1 when it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
