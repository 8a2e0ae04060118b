"""Unpacks a run that somebody else packed, whatever it is.

`packed_file` has checked what can be known beforehand; here every byte is counted and compared with
its checksum. What is wrong is named, and leaves nothing behind. A run that is there is never
touched.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import zipfile
from pathlib import Path
from typing import IO

from inspector.packed_file import BadPackedFile, Limits, Told, checked, look_into, opened, refuse

__all__ = ["BadPackedFile", "Limits", "is_safe_name", "look_into", "unpack"]

LONGEST_NAME = 200
_CHUNK = 1 << 20
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!")


def unpack(
    file: str | os.PathLike[str] | IO[bytes],
    root: str | os.PathLike[str],
    name: str | None = None,
    *,
    another: bool = False,
    limits: Limits | None = None,
) -> Path:
    """Unpack a run into a folder of runs.

    Args:
        file: path, or a binary file that can seek.
        root: folder of runs; made if missing.
        name: of the run there; the one it was packed under if None.
        another: take the next free name, `name-2`, where `name` is taken; the same run, unpacked
            before, is found again instead.
        limits: what it may take.

    Returns:
        The folder of the run.

    Raises:
        BadPackedFile: it is no packed run, or may not be opened.
        FileExistsError: a run of that name is there, and `another` is False.
        ValueError: `name` cannot be one.
        OSError: something cannot be read or written.
    """
    limits = limits or Limits()
    folder = Path(root)
    with opened(file) as archive:
        about, members = checked(archive, limits)
        wanted = about.run if name is None else name
        if not is_safe_name(wanted):
            raise ValueError(f"name={wanted!r}: cannot be the name of a run; give another one")
        folder.mkdir(parents=True, exist_ok=True)
        if another:
            for taken in _taken(folder, wanted):
                if _key_of(taken) == about.key:
                    return taken
        elif os.path.lexists(folder / wanted):
            raise FileExistsError(
                f"run {wanted!r} is in {str(folder)!r} already; it was left as it is. "
                "Give another name"
            )
        free = shutil.disk_usage(folder).free
        if about.bytes > free:
            refuse(f"needs {about.bytes:,} bytes, the disk of {str(folder)!r} has {free:,}")
        work = folder / f".unpacking-{secrets.token_hex(6)}"
        work.mkdir()
        try:
            made = work / "run"
            made.mkdir()
            for member, entry in members.items():
                _extract(archive, entry, made / member, about.members[member])
            (made / "unpacked.json").write_text(json.dumps({"key": about.key}), "utf-8")
            return _move(made, folder, wanted, another)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def is_safe_name(name: object) -> bool:
    """Tell whether a run may have a name that came from outside: one plain, visible file name."""
    return (
        isinstance(name, str)
        and 0 < len(os.fsencode(name) if _encodes(name) else b"") <= LONGEST_NAME
        and name.isprintable()
        and name == name.strip(" ")
        and name[0] not in ".-~"
        and name[-1] != "."
        and not set(name) & set('/\\:*?"<>|')
        and not _RESERVED.fullmatch(name)
    )


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, told: Told) -> None:
    """Write a member, counting and checking every byte."""
    name, size = entry.orig_filename, told.bytes
    path.parent.mkdir(exist_ok=True)
    digest, count = hashlib.sha256(), 0
    with archive.open(entry) as member, path.open("xb") as file:
        while chunk := member.read(_CHUNK):
            if count == 0 and chunk.startswith(_ARCHIVES):
                refuse("is an archive in the archive", name)
            count += len(chunk)
            if count > size:
                refuse(f"holds more than the {size:,} bytes it claims", name)
            digest.update(chunk)
            file.write(chunk)
    if count != size:
        refuse(f"holds {count:,} of the {size:,} bytes it claims", name)
    if digest.hexdigest() != told.sha256:
        refuse("was changed after it was packed: its checksum does not match", name)
    if told.modified is not None:
        os.utime(path, ns=(told.modified, told.modified))
    if path.suffix == ".arrows":
        _check_stream(path, name)


def _check_stream(path: Path, name: str) -> None:
    """Refuse an Arrow stream with columns that no run has: numbers, and lists of them, are all."""
    import pyarrow as pa

    if not path.stat().st_size:
        return
    try:
        with path.open("rb") as file, pa.ipc.open_stream(file) as stream:
            schema = stream.schema
    except (pa.ArrowException, OSError, ValueError):
        return  # a damaged head: the reader knows the one in the index, and says so
    for field in schema:
        kind = field.type.value_type if pa.types.is_fixed_size_list(field.type) else field.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            refuse(f"has a column {field.name[:60]!r} of {field.type}: no run has such", name)


def _taken(folder: Path, name: str) -> list[Path]:
    """Return the runs that have the name, or the name with a number."""
    pattern = re.compile(rf"{re.escape(name)}(-\d+)?")
    return [folder / one for one in sorted(os.listdir(folder)) if pattern.fullmatch(one)]


def _key_of(run: Path) -> str | None:
    """Return the key of the packed file that a run came from; None if it is from none."""
    try:
        found = json.loads((run / "unpacked.json").read_bytes()[:200])
    except (OSError, ValueError):
        return None
    return found.get("key") if isinstance(found, dict) else None


def _move(made: Path, folder: Path, name: str, another: bool) -> Path:
    """Give an unpacked run its name; the name is claimed first, so that nothing is replaced."""
    number = 1
    while True:
        target = folder / (name if number == 1 else f"{name[: LONGEST_NAME - 8]}-{number}")
        try:
            target.mkdir()
            break
        except FileExistsError:
            if not another:
                raise FileExistsError(
                    f"run {name!r} is in {str(folder)!r} already; it was left as it is"
                ) from None
            number += 1
    try:
        made.rename(target)
    except OSError:  # a system that renames onto no folder, even an empty one
        target.rmdir()
        made.rename(target)
    return target
