"""A run as one file, to hand to somebody else: `pack` writes it, `inspector.unpacking` opens it.

The file is a zip of the run's own files and of `manifest.json`, which names the format, the run
and, for each member, its bytes and their sha256, and when a writer gave its last sign of life.
Whoever has no Stepscope can unzip it: what comes out is the folder that `inspector.schema`
describes. Packing a run twice gives the same bytes.
"""

import hashlib
import json
import os
import re
import secrets
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.schema import SCHEMA_VERSION
from inspector.store.files import json_bytes, read_json

ENDING = ".stepscope"
MANIFEST = "manifest.json"
FORMAT = "stepscope-run"
FORMAT_VERSION = 1
MOST_RATIO = 50  # of a member; what text compresses better than this is stored as it is

_WRITER = r"r\d{1,6}-[A-Za-z0-9]{1,64}"
_MEMBER = re.compile(
    r"run\.json|(?:events|adjoints|study)\.jsonl"
    rf"|writers/{_WRITER}\.json"
    rf"|(?:solves|scalars|iterations)/{_WRITER}\.jsonl"
    rf"|(?:steps|states)/{_WRITER}-\d{{1,12}}-s\d{{1,12}}\.(?:arrows|index)",
    re.ASCII,
)
_FOLDERS = ("writers", "solves", "scalars", "iterations", "steps", "states")
_CHUNK = 1 << 20
_DATE = (1980, 1, 1, 0, 0, 0)  # of every member, so that equal runs make equal files


@dataclass(frozen=True)
class Packed:
    """What `pack` wrote.

    Args:
        file: where.
        run: id of the run.
        members: number of files in it, the manifest not counted.
        bytes: of these files before they were compressed.
        size: of the packed file, in bytes.
        live: the run was still being recorded, so that more has come since.
    """

    file: Path
    run: str
    members: int
    bytes: int
    size: int
    live: bool


@dataclass(frozen=True)
class _Source:
    """A file of the run as it is packed: its first `size` bytes, or `data` in their place."""

    name: str
    path: Path
    size: int
    data: bytes | None = None

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes.

        Raises:
            OSError: the file cannot be read, or is shorter by now.
        """
        if self.data is not None:
            yield self.data
            return
        left = self.size
        with open(_open_plain(self.path), "rb") as file:
            while left:
                chunk = file.read(min(_CHUNK, left))
                if not chunk:
                    raise OSError(f"{str(self.path)!r} was cut short while it was packed")
                left -= len(chunk)
                yield chunk


def is_member(name: str) -> bool:
    """Tell whether a name is that of a file of a run, relative to its folder."""
    return _MEMBER.fullmatch(name) is not None


def pack(
    run: str | os.PathLike[str],
    file: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> Packed:
    """Pack a run into one file.

    A run that is still being recorded is packed as far as its writers have acknowledged it; what
    is packed reads as an interrupted run.

    Args:
        run: folder of the run.
        file: to write; `<id>.stepscope` in the working directory if None.
        overwrite: replace a file that is there.

    Raises:
        FileNotFoundError: there is no run at `run`.
        FileExistsError: `file` is there, and `overwrite` is False.
        ValueError: a file of the run is a link, so that something else would be packed.
        OSError: something cannot be read or written.
    """
    from inspector.run import open_run

    opened = open_run(run)
    target = Path(file) if file is not None else Path(f"{opened.id}{ENDING}")
    if target.is_dir():
        target = target / f"{opened.id}{ENDING}"
    if target.exists() and not overwrite:
        raise FileExistsError(f"file={str(target)!r} is there already; it was left as it is")
    live = opened.live
    sources = list(_sources(Path(run), live))
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
    try:
        with zipfile.ZipFile(temporary, "x", allowZip64=True) as archive:
            members = {source.name: _add(archive, source) for source in sources}
            about = {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "schema": opened.meta.get("schema", SCHEMA_VERSION),
                "run": opened.id,
                "live": live,
                "members": members,
            }
            text = json.dumps(about, indent=1, ensure_ascii=False).encode()
            _add(archive, _Source(MANIFEST, temporary, len(text), text))
        if overwrite:
            temporary.replace(target)
        else:
            _claim(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    total = sum(int(member["bytes"]) for member in members.values())
    return Packed(target, opened.id, len(members), total, target.stat().st_size, live)


def _claim(temporary: Path, target: Path) -> None:
    """Give a file its name unless another has it by now."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise FileExistsError(f"file={str(target)!r} is there already") from None
    except OSError:  # a disk without links
        if target.exists():
            raise FileExistsError(f"file={str(target)!r} is there already") from None
        temporary.replace(target)


def _sources(run: Path, live: bool) -> Iterator[_Source]:
    """Yield the files of a run.

    While it grows they are looked at in an order in which none vouches for what another lacks:
    counts before lines, lines before rows.
    """
    names = ["run.json", "events.jsonl", "adjoints.jsonl", "study.jsonl"]
    for folder in _FOLDERS:
        place = run / folder
        if place.is_symlink():
            raise ValueError(f"{str(place)!r} is a link: it was not packed")
        try:
            names += sorted(f"{folder}/{name}" for name in os.listdir(place))
        except OSError:
            continue
    writers = {name[8:-5] for name in names if name.startswith("writers/")}
    ends: dict[str, int] = {}
    for name in sorted(names, key=_rank):
        path = run / name
        if not is_member(name):
            continue
        if path.is_symlink():
            raise ValueError(f"{str(path)!r} is a link: it was not packed")
        if live and not _known_writer(name, writers):
            continue
        try:
            source = _source(name, path, live, ends)
        except FileNotFoundError:
            continue
        if source is not None:
            yield source


def _rank(name: str) -> tuple[int, str]:
    """Documents first, then lines, then indexes, then the streams they tell of."""
    for rank, ending in enumerate((".json", ".jsonl", ".index", ".arrows")):
        if name.endswith(ending):
            return rank, name
    return 9, name


def _known_writer(name: str, writers: set[str]) -> bool:
    """Whether a file is of a writer that had said so when the list was made."""
    if "/" not in name:
        return True
    token = re.match(rf"\w+/({_WRITER})", name)
    return token is not None and token[1] in writers


def _source(name: str, path: Path, live: bool, ends: dict[str, int]) -> _Source | None:
    """Return what is packed of a file; `ends` gathers where the streams end by their index."""
    if name.endswith(".json"):
        data = _ended(path) if name.startswith("writers/") else path.read_bytes()
        return _Source(name, path, len(data), data)
    size = path.stat().st_size
    if not live:
        return _Source(name, path, size)
    if name.endswith(".arrows"):
        end = ends.get(name)
        return None if end is None else _Source(name, path, min(end, size))
    data = path.read_bytes()
    data = data[: data.rfind(b"\n") + 1]
    if name.endswith(".index"):
        last = data.splitlines()[-1].split() if data.count(b"\n") > 1 else []
        if len(last) < 2 or not (last[0].isdigit() and last[1].isdigit()):
            return None  # no batch is acknowledged yet
        ends[name.removesuffix(".index") + ".arrows"] = int(last[0]) + int(last[1])
    return _Source(name, path, len(data), data)


def _ended(path: Path) -> bytes:
    """Return a writer's file; one that does not say it has ended is interrupted, seen elsewhere."""
    record, damage = read_json(path)
    if damage is None and record.get("status") == "running":
        return json_bytes(record | {"status": "interrupted"})
    return path.read_bytes()


def _add(archive: zipfile.ZipFile, source: _Source) -> dict[str, Any]:
    """Write a member; return its line of the manifest."""
    about = zipfile.ZipInfo(source.name, _DATE)
    about.create_system = 3
    about.external_attr = (stat.S_IFREG | 0o644) << 16
    about.file_size = source.size
    packs = not source.name.endswith(".arrows") and _packs(source)  # those are compressed already
    about.compress_type = zipfile.ZIP_DEFLATED if packs else zipfile.ZIP_STORED
    digest = hashlib.sha256()
    with archive.open(about, "w", force_zip64=source.size >= 1 << 31) as member:
        for chunk in source.chunks():
            digest.update(chunk)
            member.write(chunk)
    line: dict[str, Any] = {"bytes": source.size, "sha256": digest.hexdigest()}
    if source.name.startswith("writers/"):  # its last sign of life
        line["modified"] = source.path.stat().st_mtime_ns
    return line


def _packs(source: _Source) -> bool:
    """Whether a text is compressed: not where it would look like a bomb to who opens it."""
    deflate, packed = zlib.compressobj(6, zlib.DEFLATED, -15), 0
    for chunk in source.chunks():
        packed += len(deflate.compress(chunk))
    packed += len(deflate.flush())
    return packed * MOST_RATIO > source.size


def _open_plain(path: Path) -> int:
    """Open a regular file for reading; never what a link leads to.

    Raises:
        ValueError: it is a link, or no regular file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if path.is_symlink():
            raise ValueError(f"{str(path)!r} is a link: it was not packed") from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError(f"{str(path)!r} is no regular file: it was not packed")
    return fd
