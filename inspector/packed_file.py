"""What a packed file says it holds, checked as far as that goes without unpacking it.

The file may be made by anybody: nothing of it is believed. All names are those a run can have,
sizes and ratios are bounded, members share no bytes, the manifest fits. Whatever is wrong is named.
"""

import hashlib
import json
import os
import re
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, NamedTuple, NoReturn

from inspector.packing import ENDING, FORMAT, FORMAT_VERSION, MANIFEST, MOST_RATIO, is_member
from inspector.schema import SCHEMA_VERSION

FREE_BYTES = 1 << 20  # of a member, whatever its ratio
_END = struct.Struct("<4s4H2LH")  # of the central directory, without its comment
_END64_AT = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_SHA256 = re.compile(r"[0-9a-f]{64}")


class BadPackedFile(ValueError):
    """A file that is no packed run, or not a safe one; the message says what is wrong with it."""


@dataclass(frozen=True)
class Limits:
    """What a packed run may take.

    Args:
        members: files in it.
        bytes: of all files once unpacked; the free space of the disk limits it too.
        ratio: unpacked bytes over packed ones, of a member beyond its first MiB, of all members
            beyond the first 64.
        document: bytes of a `.json` file, which is read as a whole.
    """

    members: int = 200_000
    bytes: int = 1 << 38
    ratio: int = 2 * MOST_RATIO
    document: int = 1 << 26


class Told(NamedTuple):
    """What the manifest says of a member."""

    bytes: int
    sha256: str
    modified: int | None  # ns since 1970


@dataclass(frozen=True)
class PackedRun:
    """What a packed file says it holds, after all that can be checked without reading it all.

    Args:
        run: id of the run.
        live: it was still being recorded when it was packed.
        members: name -> bytes, sha256, ...
        key: tells two packed runs apart.
    """

    run: str
    live: bool
    members: Mapping[str, Told]
    key: str

    @property
    def bytes(self) -> int:
        """Of all files, once unpacked."""
        return sum(told.bytes for told in self.members.values())


def look_into(file: str | os.PathLike[str] | IO[bytes], limits: Limits | None = None) -> PackedRun:
    """Return what a packed file holds.

    Raises:
        BadPackedFile: it is none, or may not be opened.
        OSError: it cannot be read.
    """
    with opened(file) as archive:
        return checked(archive, limits or Limits())[0]


def refuse(what: str, member: str | None = None) -> NoReturn:
    """Raise `BadPackedFile`."""
    where = "the packed file" if member is None else f"member {member[:120]!r} of the packed file"
    raise BadPackedFile(f"{where} {what}")


@contextmanager
def opened(file: str | os.PathLike[str] | IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open the archive of a packed file; what zipfile says of it becomes `BadPackedFile`."""
    with ExitStack() as stack:
        is_path = isinstance(file, str | os.PathLike)
        source = stack.enter_context(open(file, "rb")) if is_path else file
        try:
            _check_end(source)
            source.seek(0)
            archive = stack.enter_context(zipfile.ZipFile(source))
        except BadPackedFile:
            raise
        except (zipfile.BadZipFile, RuntimeError, ValueError, struct.error) as error:
            raise BadPackedFile(f"the packed file cannot be read: {error}") from None
        try:
            yield archive
        except (zipfile.BadZipFile, RuntimeError, zlib.error, EOFError) as error:
            raise BadPackedFile(f"the packed file is damaged: {error}") from None


def _check_end(file: IO[bytes]) -> None:
    """Look at the end of the file before anything of its list of members is read into memory."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(4)
    if head[:2] == b"\x1f\x8b" or head[:3] == b"BZh" or head[:4] == b"\xfd7zX":
        refuse("is a compressed tar or stream; a run is packed by `stepscope pack`")
    if head != b"PK\x03\x04":
        refuse("is no packed run: it does not begin as one")
    if size < _END.size:
        refuse("is cut short")
    file.seek(size - _END.size)
    magic, *_, entries, length, _, comment = _END.unpack(file.read(_END.size))
    if magic != b"PK\x05\x06" or comment:
        refuse("is cut short, or has something behind its end")
    if size >= _END.size + _END64_AT.size:
        file.seek(size - _END.size - _END64_AT.size)
        magic, _, at, _ = _END64_AT.unpack(file.read(_END64_AT.size))
        if magic == b"PK\x06\x07":
            if at + _END64.size > size:
                refuse("is damaged: its end points outside of it")
            file.seek(at)
            magic, *_, entries, length, _ = _END64.unpack(file.read(_END64.size))
    most = Limits().members
    if entries > most or length > 400 * most:
        refuse(f"lists {entries:,} members in {length:,} bytes: at most {most:,} are opened")


def checked(
    archive: zipfile.ZipFile, limits: Limits
) -> tuple[PackedRun, dict[str, zipfile.ZipInfo]]:
    """Check names, kinds and sizes of all members, and the manifest."""
    entries = archive.infolist()
    if len(entries) > limits.members:
        refuse(f"has {len(entries):,} members: at most {limits.members:,} are opened")
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        _check_entry(entry, limits)
        name = entry.orig_filename
        if name in members:
            refuse("is there twice", name)
        members[name] = entry
    total, packed = (sum(e.file_size for e in entries), sum(e.compress_size for e in entries))
    if total > 64 * FREE_BYTES + limits.ratio * packed:
        refuse(
            f"claims {total:,} bytes in {packed:,}: "
            f"more than {limits.ratio} times as many are not unpacked"
        )
    _check_places(archive, entries)
    manifest = members.pop(MANIFEST, None)
    if manifest is None:
        refuse(f"has no {MANIFEST}: it is no packed run")
    with archive.open(manifest) as file:
        text = file.read(limits.document + 1)
    about = _manifest(text)
    if about.members.keys() != members.keys():
        odd = sorted(about.members.keys() ^ members.keys())[0]
        refuse("is listed, but missing" if odd in about.members else "is not listed", odd)
    for name, entry in members.items():
        if entry.file_size != about.members[name].bytes:
            refuse(
                f"has {entry.file_size:,} bytes, the manifest says {about.members[name].bytes:,}",
                name,
            )
    if about.bytes > limits.bytes:
        refuse(f"would take {about.bytes:,} bytes: at most {limits.bytes:,} are unpacked")
    return about, members


def _check_entry(entry: zipfile.ZipInfo, limits: Limits) -> None:
    """Refuse a member by its name, its kind, or what it claims to hold."""
    name = entry.orig_filename
    if name != MANIFEST and not is_member(name):
        refuse(_wrong_name(name), name)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        words = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder"}
        refuse(f"is {words.get(kind, 'a device')}, no file", name)
    if entry.flag_bits & _ENCRYPTED:
        refuse("is encrypted", name)
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        refuse("is compressed in a way that is not opened", name)
    if name.endswith(".json") and entry.file_size > limits.document:
        refuse(f"has {entry.file_size:,} bytes: at most {limits.document:,} are read", name)
    if entry.file_size > FREE_BYTES + limits.ratio * entry.compress_size:
        refuse(
            f"claims {entry.file_size:,} bytes in {entry.compress_size:,}: "
            f"more than {limits.ratio} times as many are not unpacked",
            name,
        )


def _wrong_name(name: str) -> str:
    """Say what is wrong with the name of a member."""
    if "\0" in name:
        return "has a name with a zero in it"
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
        return "has an absolute path"
    if "\\" in name or ".." in name.split("/"):
        return "leads out of the run"
    if name.endswith("/"):
        return "is a folder, no file"
    if name.lower().endswith((".zip", ENDING, ".tar", ".gz", ".tgz", ".7z", ".rar")):
        return "is an archive in the archive"
    return "is no file of a run"


def _check_places(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo]) -> None:
    """Refuse members that share bytes, and bytes that belong to none."""
    at = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < at:
            refuse("shares its bytes with another one", entry.orig_filename)
        if at == 0 and entry.header_offset:
            refuse("has something before its first member")
        at = entry.header_offset + 30 + len(entry.orig_filename.encode()) + entry.compress_size
    if at > archive.start_dir:
        refuse("is damaged: a member reaches into its list of members")


def _manifest(text: bytes) -> PackedRun:
    """Read the manifest."""
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        refuse("is no valid JSON", MANIFEST)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        refuse(f"is not of the format {FORMAT!r}", MANIFEST)
    for name, known in (("format_version", FORMAT_VERSION), ("schema", SCHEMA_VERSION)):
        told = about.get(name)
        if type(told) is not int or told < 1:
            refuse(f"has {name} {str(told)[:40]!r}: must be a whole number from 1", MANIFEST)
        if told > known:
            refuse(f"has {name} {told}: this version opens up to {known}", MANIFEST)
    listed = about.get("members")
    if not isinstance(listed, dict) or not listed:
        refuse("lists no members", MANIFEST)
    members = {}
    for name, one in listed.items():
        told = one if isinstance(one, dict) else {}
        size, sha, modified = (told.get(key) for key in ("bytes", "sha256", "modified"))
        if type(size) is not int or size < 0 or not _SHA256.fullmatch(str(sha)):
            refuse(f"says nothing valid of {name[:120]!r}", MANIFEST)
        known = type(modified) is int and 0 <= modified <= time.time_ns()
        members[str(name)] = Told(size, str(sha), modified if known else None)
    run = about.get("run")
    return PackedRun(
        run=run if isinstance(run, str) else "",
        live=about.get("live") is True,
        members=members,
        key=hashlib.sha256(json.dumps([run, sorted(members.items())]).encode()).hexdigest(),
    )
