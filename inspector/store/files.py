"""Small JSON files: valid, exact for every float, whole or recognisably not."""

import gc
import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_CRC_MEMBER = b',"crc":"'
# One value at a place; half the time of `json.loads`, which a run of many lines feels.
_DECODER: Any = json.JSONDecoder()
_SCAN = _DECODER.scan_once
_CRC_BYTES = len(_CRC_MEMBER) + 8 + 2  # the member, eight digits, closing quote and brace


def jsonable(value: Any) -> Any:
    """Return `value` as plain JSON: arrays as lists, numbers that are not finite as strings."""
    if isinstance(value, bool | str | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | range):
        return [jsonable(item) for item in value]
    if hasattr(value, "tolist"):  # numpy arrays and numbers, torch tensors
        plain = value.tolist()
        return plain if getattr(value.dtype, "kind", "") in ("i", "u", "b") else jsonable(plain)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return repr(value)


def number(value: Any) -> float:
    """Return the float behind a JSON value written by `jsonable`; NaN for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def dump_line(record: Mapping[str, Any]) -> bytes:
    """Return one line of a `.jsonl` file, with its checksum as the last member."""
    body = json.dumps(jsonable(record), separators=(",", ":"), allow_nan=False).encode()
    return body[:-1] + _CRC_MEMBER + b'%08x"}\n' % zlib.crc32(body)


def check_line(line: bytes) -> bool:
    """Tell whether a line, without its newline, is what was written."""
    body = line[:-_CRC_BYTES]
    return line[-_CRC_BYTES:] == b'%s%08x"}' % (_CRC_MEMBER, zlib.crc32(b"}", zlib.crc32(body)))


def load_line(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line, or None when it is damaged."""
    if not check_line(line):
        return None
    try:
        record, _ = _SCAN(line.decode("ascii"), 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def load_lines(lines: Sequence[bytes]) -> list[dict[str, Any] | None]:
    """Return the record of each line, None where it is damaged; quicker than one by one."""
    whole = [check_line(line) for line in lines]
    text = b"[" + b",".join(line for line, good in zip(lines, whole, strict=True) if good) + b"]"
    try:
        found, _ = _SCAN(text.decode("ascii"), 0)
    except (ValueError, StopIteration, RecursionError):  # whole, and yet no JSON
        return [load_line(line) for line in lines]
    records = iter(found)
    kept = [next(records, None) if good else None for good in whole]
    if next(records, None) is not None:  # one line held several values
        return [load_line(line) for line in lines]
    return [record if isinstance(record, dict) else None for record in kept]


@contextmanager
def without_collection() -> Iterator[None]:
    """Put off Python's search for cycles: it would go through all records again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write every byte, also where the system takes them in parts.

    Raises:
        OSError: the disk is full, or the file cannot grow.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def json_bytes(record: Mapping[str, Any]) -> bytes:
    """Return what `write_json` writes: the record with its checksum."""
    plain = jsonable({key: value for key, value in record.items() if key != "crc"})
    plain["crc"] = f"{_document_crc(plain):08x}"
    text = json.dumps(plain, indent=1, allow_nan=False, ensure_ascii=False)
    return f"{text}\n".encode()


def write_json(path: Path, record: Mapping[str, Any], new: bool = False) -> None:
    """Replace a JSON file as a whole: readers see the old one or the new one.

    Args:
        new: leave the file as it is if another process has made it in between.

    Raises:
        OSError: the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(3).hex()}.tmp")
    try:
        temporary.write_bytes(json_bytes(record))
        if new and _linked(temporary, path):
            return
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _linked(temporary: Path, path: Path) -> bool:
    """Give a file its name unless there is one; False where the disk knows no links."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError:
        return False
    temporary.unlink(missing_ok=True)
    return True


def read_json(path: Path) -> tuple[dict[str, Any], str | None]:
    """Read a file written by `write_json`; never raises.

    Returns:
        The record, empty when it cannot be read, and what is wrong with the file, or None.
    """
    try:
        record = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}, "is missing"
    except OSError as error:
        return {}, f"cannot be read: {error.strerror or error}"
    except (ValueError, RecursionError):
        return {}, "is no valid JSON"
    if not isinstance(record, dict):
        return {}, "is no JSON object"
    crc = record.pop("crc", None)
    if crc != f"{_document_crc(record):08x}":
        return record, "was changed after it was written: its checksum does not match"
    return record, None


def _document_crc(plain: Mapping[str, Any]) -> int:
    """Checksum of the content, whatever its layout."""
    return zlib.crc32(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())
