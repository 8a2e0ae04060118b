"""Packed files made to do harm, or broken: each is refused by name, and leaves nothing."""

import hashlib
import io
import json
import os
import stat
import struct
import tarfile
import zipfile

import pyarrow as pa
import pytest

from inspector.packing import MANIFEST, pack
from inspector.synthetic import write_synthetic_run
from inspector.unpacking import BadPackedFile, Limits, is_safe_name, unpack

STEPS = "steps/r0-00000001-000000-s000000.arrows"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The members of a whole packed run, name -> bytes."""
    folder = tmp_path_factory.mktemp("good")
    run = write_synthetic_run(folder / "run", batch=3, attempts=40)
    with zipfile.ZipFile(pack(run, folder / "x").file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def manifest(content, **changes):
    listed = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in content.items()
        if name != MANIFEST
    }
    about = {"format": "stepscope-run", "format_version": 1, "schema": 1, "run": "run"}
    return json.dumps(about | {"members": listed} | changes).encode()


def write(file, entries, method=zipfile.ZIP_DEFLATED):
    """Write `(name or ZipInfo, bytes)` as they come."""
    import warnings

    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # duplicate names are meant here
        for name, data in entries:
            archive.writestr(name, data)
    return file


def packed(file, content, method=zipfile.ZIP_DEFLATED, **changes):
    """Write members with a manifest that fits them."""
    rest = {name: data for name, data in content.items() if name != MANIFEST}
    return write(file, [*rest.items(), (MANIFEST, manifest(rest, **changes))], method)


def refused(file, root, match, **options):
    before = sorted(os.walk(root))
    with pytest.raises(BadPackedFile, match=match):
        unpack(file, root, **options)
    assert sorted(os.walk(root)) == before


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


def test_what_the_tests_make_is_accepted_when_nothing_is_wrong(good, tmp_path, root):
    assert unpack(packed(tmp_path / "x", good), root).name == "run"


NAMES = [
    ("../run.json", "leads out"),
    ("steps/../../x", "leads out"),
    ("..\\..\\x", "leads out"),
    ("steps\\r0-1-0-s0.arrows", "leads out"),
    ("/etc/passwd", "absolute"),
    ("//server/share/x", "absolute"),
    ("\\\\server\\share", "absolute"),
    ("C:/x", "absolute"),
    ("C:x", "absolute"),
    ("steps/", "is a folder"),
    ("other.txt", "no file of a run"),
    ("steps/evil.py", "no file of a run"),
    ("steps/deep/r0-1-0-s0.arrows", "no file of a run"),
    ("Run.json", "no file of a run"),
    ("run.json ", "no file of a run"),
    ("run.json.", "no file of a run"),
    ("run.json:stream", "no file of a run"),
    ("./run.json", "no file of a run"),
    ("steps//r0-1-0-s0.arrows", "no file of a run"),
    ("writers/con.json", "no file of a run"),
    ("writers/r\u0660-1.json", "no file of a run"),
    ("writers/r0-\u202e1.json", "no file of a run"),
    ("lease", "no file of a run"),
    ("control.json", "no file of a run"),
    ("unpacked.json", "no file of a run"),
    ("inner.zip", "archive in the archive"),
    ("steps/run.stepscope", "archive in the archive"),
    ("x" * 60_000, "no file of a run"),
]


@pytest.mark.parametrize(("name", "said"), NAMES, ids=lambda text: ascii(text)[:30])
def test_a_member_that_no_run_has_is_named(good, tmp_path, root, name, said):
    refused(packed(tmp_path / "x", good | {name: b"x"}), root, said)


def test_a_name_with_a_zero_in_it_is_not_cut_there(good, tmp_path, root):
    file = packed(tmp_path / "x", good | {"run.jsonXYZ": b"x"})
    file.write_bytes(file.read_bytes().replace(b"run.jsonXYZ", b"run.json\0YZ"))
    refused(file, root, "a zero in it|damaged")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (stat.S_IFLNK, "a link"),
        (stat.S_IFDIR, "a folder"),
        (stat.S_IFCHR, "a device"),
        (stat.S_IFBLK, "a device"),
        (stat.S_IFIFO, "a device"),
        (stat.S_IFSOCK, "a device"),
    ],
)
def test_a_link_or_device_is_refused(good, tmp_path, root, kind, said):
    entry = zipfile.ZipInfo("events.jsonl")
    entry.create_system, entry.external_attr = 3, (kind | 0o777) << 16
    data = b"/etc/passwd"
    members = {**good, "events.jsonl": data}
    entries = [(entry if name == "events.jsonl" else name, data) for name, data in members.items()]
    entries = [(name, manifest(members) if name == MANIFEST else data) for name, data in entries]
    refused(write(tmp_path / "x", entries), root, said)


def test_a_tar_with_links_is_no_packed_run(tmp_path, root):
    for mode in ("w", "w:gz", "w:bz2", "w:xz"):
        with tarfile.open(tmp_path / "x", mode) as archive:
            entry = tarfile.TarInfo("run.json")
            entry.type, entry.linkname = tarfile.LNKTYPE, "/etc/passwd"
            archive.addfile(entry)
        refused(tmp_path / "x", root, "is no packed run|compressed tar")


def test_a_name_that_is_there_twice_is_refused(good, tmp_path, root):
    entries = [*good.items(), ("run.json", good["run.json"])]
    refused(write(tmp_path / "x", entries), root, "'run.json'.* is there twice")
    refused(write(tmp_path / "x", [*good.items(), (MANIFEST, b"{}")]), root, "is there twice")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema": 2}, "schema 2: this version opens up to 1"),
        ({"schema": "1"}, "schema '1'"),
        ({"schema": True}, "schema 'True'"),
        ({"schema": None}, "schema 'None'"),
        ({"schema": 0}, "schema '0'"),
        ({"format_version": 99}, "format_version 99"),
        ({"format": "other"}, "not of the format"),
        ({"members": {}}, "lists no members"),
        ({"members": []}, "lists no members"),
        ({"members": {"run.json": {"bytes": -1, "sha256": "0" * 64}}}, "nothing valid of"),
        ({"members": {"run.json": {"bytes": 1.5, "sha256": "0" * 64}}}, "nothing valid of"),
        ({"members": {"run.json": {"bytes": 1, "sha256": "../x"}}}, "nothing valid of"),
        ({"members": {"run.json": 7}}, "nothing valid of"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(good, tmp_path, root, changes, said):
    refused(packed(tmp_path / "x", good, **changes), root, said)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"\xff", b"[" * 100_000, b"1" * 10_000, b'{"a":1', b"null"]
)
def test_a_manifest_that_is_no_json_object_is_refused(good, tmp_path, root, text):
    entries = [(name, text if name == MANIFEST else data) for name, data in good.items()]
    refused(write(tmp_path / "x", entries), root, "manifest.json")


def test_members_missing_or_added_are_named(good, tmp_path, root):
    listed = (MANIFEST, good[MANIFEST])
    without = [(name, data) for name, data in good.items() if name not in ("run.json", MANIFEST)]
    refused(write(tmp_path / "x", [*without, listed]), root, "'run.json'.*is listed, but missing")
    refused(write(tmp_path / "x", [*good.items(), ("events.jsonl", b"{}")]), root, "is not listed")
    rest = [(name, data) for name, data in good.items() if name != MANIFEST]
    refused(write(tmp_path / "x", rest), root, "has no manifest.json")


def test_a_changed_member_is_named(good, tmp_path, root):
    changed = {**good, "run.json": b"{" + good["run.json"][1:].replace(b"s", b"z")}
    refused(write(tmp_path / "x", changed.items()), root, "'run.json'.*checksum")


def test_a_bomb_is_refused_by_what_it_claims(good, tmp_path, root):
    bomb = packed(tmp_path / "x", good | {"events.jsonl": b" " * 20_000_000})
    refused(bomb, root, "claims 20,000,000 bytes")
    many = {f"scalars/r{i}-1.jsonl": b" " * (1 << 20) for i in range(80)}
    refused(packed(tmp_path / "x", good | many), root, "the packed file claims")
    large = packed(tmp_path / "x", good | {"run.json": os.urandom(5_000)}, zipfile.ZIP_STORED)
    refused(large, root, "at most", limits=Limits(bytes=5_000))
    refused(large, root, "has 5,000 bytes", limits=Limits(document=1_000))
    refused(packed(tmp_path / "x", good), root, "members", limits=Limits(members=3))


def test_a_bomb_is_stopped_where_it_lies_about_its_size(good, tmp_path, root):
    members = good | {"events.jsonl": b" " * 50_000_000}
    lied = manifest(members | {"events.jsonl": b" " * 50_000})
    entries = [(name, lied if name == MANIFEST else data) for name, data in members.items()]
    file = write(tmp_path / "x", entries)
    data = file.read_bytes().replace(struct.pack("<L", 50_000_000), struct.pack("<L", 50_000))
    file.write_bytes(data)
    refused(file, root, "damaged|holds|checksum")


def test_members_that_share_their_bytes_are_refused(good, tmp_path, root):
    data = b"{}" + b" " * 500
    members = {**good, "scalars/r0-1.jsonl": data, "scalars/r0-2.jsonl": data}
    file = packed(tmp_path / "x", members, zipfile.ZIP_STORED)
    raw = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as archive:
        first = archive.getinfo("scalars/r0-1.jsonl").header_offset
        second = archive.getinfo("scalars/r0-2.jsonl").header_offset
        start = archive.start_dir
    at = raw.index(struct.pack("<L", second), start)
    raw[at : at + 4] = struct.pack("<L", first)
    file.write_bytes(raw)
    refused(file, root, "shares its bytes|damaged")


def test_something_before_or_behind_the_archive_is_refused(good, tmp_path, root):
    data = packed(tmp_path / "x", good).read_bytes()
    for text, said in (
        (b"#!/bin/sh\n" + data, "does not begin"),
        (data + b"more", "cut short"),
        (data[:4] + data, "before its first member|cut short|cannot be read|shares"),
    ):
        (tmp_path / "x").write_bytes(text)
        refused(tmp_path / "x", root, said)


def test_an_encrypted_member_is_refused(good, tmp_path, root):
    file = packed(tmp_path / "x", good)
    raw = bytearray(file.read_bytes())
    for magic, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(magic) + flags] |= 1
    file.write_bytes(raw)
    refused(file, root, "is encrypted")


def test_other_compressions_are_refused(good, tmp_path, root):
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        refused(packed(tmp_path / "x", good, method), root, "compressed in a way")


def test_an_archive_inside_is_never_opened(good, tmp_path, root):
    inner = packed(tmp_path / "inner", good).read_bytes()
    refused(packed(tmp_path / "x", good | {"events.jsonl": inner}), root, "archive in the archive")


def test_a_file_cut_anywhere_is_refused(good, tmp_path, root):
    data = packed(tmp_path / "x", good).read_bytes()
    for cut in [*range(64), *range(64, len(data) - 64, 997), *range(len(data) - 64, len(data))]:
        (tmp_path / "x").write_bytes(data[:cut])
        refused(tmp_path / "x", root, "packed file")


def test_a_file_with_any_byte_changed_is_refused_or_the_same_run(good, tmp_path, root):
    """Some bytes, such as dates, say nothing about the run; all others are noticed."""
    data = packed(tmp_path / "x", good).read_bytes()
    for place in range(0, len(data), 211):
        changed = bytearray(data)
        changed[place] ^= 0x55
        (tmp_path / "x").write_bytes(changed)
        try:
            made = unpack(tmp_path / "x", root, f"at-{place}")
        except BadPackedFile:
            continue
        for name, content in good.items():
            if name != MANIFEST:
                assert (made / name).read_bytes() == content, place


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["text"]),
        pa.array([[1.0]]),
        pa.array(["a"]).dictionary_encode(),
        pa.array([{"a": 1}]),
        pa.array([b"x"]),
    ],
    ids=str,
)
def test_a_stream_with_columns_that_no_run_has_is_refused(good, tmp_path, root, column):
    sink = io.BytesIO()
    batch = pa.record_batch({"solve": column})
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    refused(packed(tmp_path / "x", good | {STEPS: sink.getvalue()}), root, "column 'solve'")


BAD_NAMES = [
    "", ".", "..", "../up", "a/b", "a\\b", "/etc", "C:x", "a\0b", "a\nb", ".hidden", "-rf", "~x",
    "con", "NUL.txt", "a.", " a", "a ", "x" * 201, "a\u202eb", "\ud800", 7, None, ["a"],
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_a_run_cannot_bring_a_name_that_leads_elsewhere(good, tmp_path, root, name):
    assert not is_safe_name(name)
    file = packed(tmp_path / "x", good, run=name)
    with pytest.raises(ValueError, match="name="):
        unpack(file, root)
    assert os.listdir(root) == []
    assert unpack(file, root, "mine").name == "mine"


@pytest.mark.parametrize("name", ["plain", "å…λ", "a+b", "50 % x=1", "x" * 200])
def test_a_plain_name_is_kept(good, tmp_path, root, name):
    assert unpack(packed(tmp_path / "x", good, run=name), root).name == name


def test_a_link_in_the_place_of_the_run_is_not_followed(good, tmp_path, root):
    (tmp_path / "elsewhere").mkdir()
    (root / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        unpack(packed(tmp_path / "x", good), root)
    assert unpack(packed(tmp_path / "x", good), root, another=True).name == "run-2"
    assert os.listdir(tmp_path / "elsewhere") == []
