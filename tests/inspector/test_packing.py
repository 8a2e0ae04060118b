"""A packed run is the same run again, whatever state it was in."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from app.cli import main
from inspector import Inspector, open_run
from inspector.packing import pack
from inspector.synthetic import write_synthetic_run
from inspector.unpacking import look_into, unpack

HOME = Path(__file__).resolve().parents[2]
TABLES = ("steps", "solves", "solve_table", "states", "scalars", "iterations", "events", "ranks")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("packed") / "run"
    write_synthetic_run(path, batch=6, attempts=90, states=2, solves=3, failed=(1,), note="n")
    return path


def assert_same(before, after):
    a, b = open_run(before), open_run(after)
    assert [item.what for item in a.verify()] == [item.what for item in b.verify()]
    assert a.meta == b.meta
    assert a.status == b.status
    assert a.columns == b.columns
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(a, name)(), getattr(b, name)())
    if a.n_solves:
        pd.testing.assert_frame_equal(a.instances(0), b.instances(0))


def test_the_reader_gives_the_same_before_and_after(recorded, tmp_path):
    packed = pack(recorded, tmp_path / "x.stepscope")
    assert_same(recorded, unpack(packed.file, tmp_path / "runs"))
    assert not packed.live
    assert packed.members == sum(1 for file in recorded.rglob("*") if file.is_file())


def test_a_training_with_several_writers_makes_the_round_trip(tmp_path):
    for _ in range(2):
        with Inspector(tmp_path / "training", tags=("a",), note="<b>") as inspector:
            for step in range(3):
                with inspector.iteration(step):
                    inspector.log(loss=float("nan") if step == 1 else 1.0)
    packed = pack(tmp_path / "training", tmp_path / "x")
    assert_same(tmp_path / "training", unpack(packed.file, tmp_path / "runs", "other name"))


def test_a_run_packed_twice_gives_the_same_bytes(recorded, tmp_path):
    first = pack(recorded, tmp_path / "a").file.read_bytes()
    assert first == pack(recorded, tmp_path / "b").file.read_bytes()


def test_a_run_whose_process_is_gone_stays_interrupted(tmp_path):
    script = (
        "import os, sys; from inspector.synthetic import write_synthetic_run as write; "
        "write(sys.argv[1], batch=4, attempts=60, finish=False); os._exit(9)"
    )
    path = tmp_path / "killed"
    subprocess.run([sys.executable, "-c", script, str(path)], cwd=HOME, timeout=60, check=False)
    unpacked = unpack(pack(path, tmp_path / "x").file, tmp_path / "runs")
    assert open_run(unpacked).status == "interrupted"
    assert_same(path, unpacked)


def test_damage_is_packed_as_it_is_and_still_named(tmp_path):
    path = write_synthetic_run(tmp_path / "damaged", batch=4, attempts=60)
    (stream,) = (path / "steps").glob("*.arrows")
    data = bytearray(stream.read_bytes())
    data[len(data) // 2] ^= 255
    stream.write_bytes(data)
    (lines,) = (path / "solves").glob("*.jsonl")
    lines.write_bytes(lines.read_bytes()[:-20])
    unpacked = unpack(pack(path, tmp_path / "x").file, tmp_path / "runs")
    assert open_run(unpacked).verify()
    assert_same(path, unpacked)


def test_a_running_run_packs_as_far_as_it_is_acknowledged(tmp_path):
    seen = []

    def look(writer):
        if len(seen) == 3:
            return
        writer.flush()
        (stream,) = (tmp_path / "live" / "steps").glob("*.arrows")
        with stream.open("ab") as file:
            file.write(b"half a batch that no line of the index tells of")
        packed = pack(tmp_path / "live", tmp_path / f"{len(seen)}.stepscope")
        os.truncate(stream, stream.stat().st_size - 47)
        run = open_run(unpack(packed.file, tmp_path / "runs", f"at-{len(seen)}"))
        assert packed.live
        assert look_into(packed.file).live
        assert run.status == "interrupted"
        assert run.verify() == []
        seen.append(len(run.steps()))

    write_synthetic_run(tmp_path / "live", batch=4, attempts=200, on_block=look)
    assert 0 < seen[0] < seen[1] < seen[2] < len(open_run(tmp_path / "live").steps())


def test_a_file_that_is_there_is_kept_unless_told_otherwise(recorded, tmp_path):
    file = tmp_path / "x.stepscope"
    file.write_text("mine")
    with pytest.raises(FileExistsError, match=r"x\.stepscope"):
        pack(recorded, file)
    assert file.read_text() == "mine"
    pack(recorded, file, overwrite=True)
    assert zipfile.is_zipfile(file)
    assert os.listdir(tmp_path) == ["x.stepscope"]


def test_nothing_but_the_files_of_the_run_is_packed(tmp_path):
    path = write_synthetic_run(tmp_path / "run", batch=2, attempts=20)
    for name in ("lease", "control.json", "worker_exit.json", "secret.txt", ".run.json.1.tmp"):
        (path / name).write_text("{}")
    names = zipfile.ZipFile(pack(path, tmp_path / "x").file).namelist()
    assert not [name for name in names if Path(name).name in ("lease", "secret.txt")]
    assert all("control" not in name and "tmp" not in name for name in names)


@pytest.mark.parametrize("name", ["events.jsonl", "steps/r0-1-0-s0.arrows", "scalars"])
def test_what_a_link_in_a_run_leads_to_is_never_packed(tmp_path, name):
    path = write_synthetic_run(tmp_path / "run", batch=2, attempts=20)
    target = path / name
    if target.is_dir():
        target.rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "elsewhere").write_text("secret")
        target.unlink(missing_ok=True)
    target.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is a link"):
        pack(path, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_run_that_is_there_is_never_touched(recorded, tmp_path):
    file = pack(recorded, tmp_path / "x").file
    first = unpack(file, tmp_path / "runs")
    (first / "run.json").write_text("mine")
    with pytest.raises(FileExistsError, match="run 'run' is in"):
        unpack(file, tmp_path / "runs")
    assert (first / "run.json").read_text() == "mine"
    assert unpack(file, tmp_path / "runs", "again").name == "again"


def test_the_same_file_opened_again_is_the_same_run(recorded, tmp_path):
    file = pack(recorded, tmp_path / "x").file
    other = write_synthetic_run(tmp_path / "b" / "run", batch=2, attempts=20)
    first = unpack(file, tmp_path / "runs", another=True)
    assert unpack(file, tmp_path / "runs", another=True) == first
    second = unpack(pack(other, tmp_path / "y").file, tmp_path / "runs", another=True)
    assert second.name == "run-2"
    assert sorted(os.listdir(tmp_path / "runs")) == ["run", "run-2"]


def test_the_commands_pack_and_unpack(recorded, tmp_path, capsys):
    file = tmp_path / "x.stepscope"
    assert main(["pack", str(recorded), "-o", str(file)]) == 0
    assert main(["unpack", str(file), "--runs", str(tmp_path / "runs"), "--name", "b"]) == 0
    assert_same(recorded, tmp_path / "runs" / "b")
    assert main(["unpack", str(file), "--list"]) == 0
    assert "run.json" in capsys.readouterr().out
    assert main(["unpack", str(file), "--runs", str(tmp_path / "runs"), "--name", "../b"]) == 1
    assert "name='../b'" in capsys.readouterr().err
    assert main(["pack", "nowhere", "--runs", str(tmp_path)]) == 1
