"""Segments: Arrow streams that only grow, each with an index that vouches for every batch."""

import contextlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from inspector.schema import INDEX_MAGIC, SCHEMA_VERSION, Column
from inspector.store.files import write_all

ROWS_PER_SEGMENT = 1 << 18  # about 10 MB; making a file costs more than a batch
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"

_ARROW_TYPES = {
    "i2": pa.int16(),
    "i4": pa.int32(),
    "u1": pa.uint8(),
    "f4": pa.float32(),
    "f8": pa.float64(),
}


class SegmentGoneError(OSError):
    """The file that is being written has been deleted."""


class SegmentWriter:
    """Appends record batches of one schema to one file.

    Any error leaves a file that is whole up to the last batch; go on with a new writer.

    Args:
        folder: `steps` or `states` of the run; made if missing, unlike the run itself.
        name: file name without its ending.
        columns: of the batches, in order; a dtype like `f8[3]` is a list of three.

    Raises:
        OSError: the file cannot be made or written.
    """

    def __init__(self, folder: Path, name: str, columns: Sequence[Column]) -> None:
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)  # not its parents: a run that was deleted stays deleted
        described = {column.name: column.describe() for column in columns}
        self.columns = tuple(columns)
        self.rows = 0
        self._schema = pa.schema(
            [
                pa.field(column.name, _arrow_type(column.dtype), nullable=False)
                for column in columns
            ],
            metadata={
                "stepscope": str(SCHEMA_VERSION),
                "columns": json.dumps(described),
            },
        )
        self._fields = [
            (field.name, field.type, np.dtype(column.dtype.partition("[")[0]))
            for field, column in zip(self._schema, columns, strict=True)
        ]
        self._scratch = pa.allocate_buffer(1 << 18)  # used again and again: fresh memory costs more
        head = bytes(self._stream_bytes(None))
        self._head_bytes = len(head)
        self._paths = (folder / f"{name}.arrows", folder / f"{name}.index")
        self._data, self._index = (os.open(path, _NEW_FILE, 0o666) for path in self._paths)
        try:
            write_all(self._data, head)
            write_all(self._index, index_line(f"{INDEX_MAGIC} {head.hex()}"))
        except OSError:
            self.close()
            raise
        self._offset = len(head)
        self.size = 3 * len(head)  # bytes of both files so far; the index repeats the head in text

    @property
    def path(self) -> Path:
        """Of the Arrow stream."""
        return self._paths[0]

    def append(
        self, columns: Mapping[str, np.ndarray], solve: int, attempts: tuple[int, int], full: bool
    ) -> None:
        """Write one batch, then the line of the index that makes it count.

        Args:
            columns: name -> `(rows,)`, or `(rows, D)` for a list column.
            solve: the writer's own number of the solve.
            attempts: the half-open range the rows lie in.
            full: no recorded instance is missing in any of these attempts.

        Raises:
            OSError: the disk is full, or the file was deleted.
        """
        if os.fstat(self._data).st_nlink == 0:
            raise SegmentGoneError("the folder or file of the run was deleted")
        arrays = [_arrow_array(columns[name], kind, dtype) for name, kind, dtype in self._fields]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        message = self._stream_bytes(batch)
        write_all(self._data, message)
        low, high = attempts
        line = index_line(
            f"{self._offset} {len(message)} {batch.num_rows} {solve} {low} {high} {int(full)} "
            f"{zlib.crc32(message):08x}"
        )
        write_all(self._index, line)
        self.size += len(message) + len(line)
        self._offset += len(message)
        self.rows += batch.num_rows

    def close(self, whole: bool = False) -> None:
        """Close the files; `whole` ends the Arrow stream properly. Never raises.

        A segment without a single batch is removed, so that a full disk is not littered with them.
        """
        for fd, last in ((self._data, END_OF_STREAM if whole else b""), (self._index, b"")):
            try:
                write_all(fd, last)
            except OSError:
                pass  # every batch is whole without it
            finally:
                os.close(fd)
        if not self.rows:
            for path in self._paths:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _stream_bytes(self, batch: pa.RecordBatch | None) -> memoryview:
        """Return the bytes of the schema, or of a batch behind it; valid until the next call."""
        while True:
            sink = pa.FixedSizeBufferWriter(self._scratch)
            try:
                with pa.ipc.new_stream(sink, self._schema, options=_OPTIONS) as writer:
                    if batch is not None:
                        writer.write_batch(batch)
            except OSError:  # does not fit
                self._scratch = pa.allocate_buffer(2 * self._scratch.size)
                continue
            start = 0 if batch is None else self._head_bytes
            return memoryview(self._scratch)[start : sink.tell() - len(END_OF_STREAM)]


def index_line(text: str) -> bytes:
    """Return one line of an index, closed by its own checksum."""
    return b"%s %08x\n" % (text.encode(), zlib.crc32(text.encode()))


def _arrow_type(dtype: str) -> pa.DataType:
    """Arrow type of a column dtype; `f8[3]` is a list of three."""
    base, bracket, size = dtype.partition("[")
    return pa.list_(_ARROW_TYPES[base], int(size[:-1])) if bracket else _ARROW_TYPES[base]


def _arrow_array(values: np.ndarray, kind: pa.DataType, dtype: np.dtype[Any]) -> pa.Array:
    """Wrap a numpy array without copying it, if its type is already right.

    `pyarrow.array` would do, but imports pandas, which a training has no use for.

    Args:
        values: `(rows,)`, or `(rows, D)` for a list.
        kind: of the Arrow array.
        dtype: of its numbers.
    """
    if values.dtype != dtype or not values.flags.c_contiguous:
        values = np.ascontiguousarray(values, dtype)
    buffers = [None, pa.py_buffer(values)]
    if values.ndim == 1:
        return pa.Array.from_buffers(kind, len(values), buffers)
    flat = pa.Array.from_buffers(kind.value_type, values.size, buffers)
    return pa.FixedSizeListArray.from_arrays(flat, type=kind)
