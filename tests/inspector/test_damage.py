"""Damaged runs open, give what is whole, and say what is not."""

import json
import shutil

import numpy as np
import pytest

from inspector import list_runs, open_run, queries
from inspector.store.files import dump_line, load_line
from inspector.store.reader import Segment
from inspector.synthetic import write_synthetic_run


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of three short solves with everything in it; not to be changed."""
    path = tmp_path_factory.mktemp("whole") / "run"
    return write_synthetic_run(path, batch=6, solves=3, attempts=48, states=2, failed=(1,))


@pytest.fixture
def broken(whole, tmp_path):
    """A copy of it, to be broken."""
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def look_at_everything(path):
    """Ask all that a viewer may ask; returns the run, its steps and its damage."""
    run = open_run(path)
    damage = run.verify()
    for solve in range(run.n_solves):
        run.instances(solve)
        queries.raster(run, solve, rows=3, cols=10)
        queries.raster(run, solve, "error_ratio", order="finish")
        queries.dt_quantiles(run, solve)
        queries.limiter_shares(run, solve)
        queries.tiles(run, solve)
        queries.trace(run, solve, 0)
    run.states()
    run.solves()
    run.solve_table()
    run.scalars()
    run.events()
    run.summary()
    list_runs(path.parent)
    return run, run.steps(), damage


def only(path, pattern):
    (file,) = path.glob(pattern)
    return file


def test_a_whole_run_has_no_damage(whole):
    run, steps, damage = look_at_everything(whole)
    assert damage == []
    assert len(steps) == run.solves()["n_steps"].sum() > 300


@pytest.mark.parametrize("seed", range(30))
def test_flipped_bytes_are_found_and_never_raise(whole, broken, seed):
    rng = np.random.default_rng(seed)
    files = sorted(file for file in broken.rglob("*") if file.is_file())
    sizes = np.array([file.stat().st_size for file in files], float)
    weights = np.sqrt(sizes)
    file = files[rng.choice(len(files), p=weights / weights.sum())]
    data = bytearray(file.read_bytes())
    for place in rng.integers(0, len(data), 3):
        data[place] ^= int(rng.integers(1, 256))
    file.write_bytes(data)
    _, steps, damage = look_at_everything(broken)
    assert damage, f"{file.name}: nobody noticed"
    merged = steps.merge(open_run(whole).steps(), how="left", indicator=True)
    assert (merged["_merge"] == "both").all(), "a wrong value was given as a right one"


@pytest.mark.parametrize("pattern", ["steps/*.arrows", "steps/*.index", "solves/*.jsonl"])
def test_every_bit_of_a_file_is_watched(tmp_path, pattern):
    path = write_synthetic_run(tmp_path / "run", batch=1, attempts=2, statistics=False)
    file = only(path, pattern)
    data = file.read_bytes()
    end_marker = 8 if file.suffix == ".arrows" else 0
    for place in range(0, len(data) - end_marker, 7):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        file.write_bytes(changed)
        assert open_run(path).verify(), f"byte {place} of {file.name}"


@pytest.mark.parametrize(
    "pattern", ["steps/*.arrows", "steps/*.index", "scalars/*.jsonl", "solves/*.jsonl"]
)
def test_a_file_cut_at_any_byte_gives_all_that_is_whole_before(whole, broken, pattern):
    file = only(broken, pattern)
    data = file.read_bytes()
    before = open_run(whole)
    all_steps, all_scalars = before.steps(columns=["solve", "dt"]), before.scalars()
    (segment,) = before._segments["steps"].values()
    step = max(1, len(data) // 150)
    for length in sorted({*range(0, len(data), step), *range(max(len(data) - 20, 0), len(data))}):
        file.write_bytes(data[:length])
        run = open_run(broken)
        steps, scalars = run.steps(columns=["solve", "dt"]), run.scalars()
        damage = run.verify()
        if file.suffix == ".arrows":
            kept = [batch for batch in segment.batches if batch.offset + batch.length <= length]
            assert len(steps) == sum(batch.rows for batch in kept)
            assert damage or len(steps) == len(all_steps)
        elif pattern.startswith("steps"):
            assert len(steps) == len(all_steps)  # the stream itself is whole
        elif pattern.startswith("scalars"):
            assert len(scalars) == data[:length].count(b"\n")
            assert damage or data[length - 1 : length] == b"\n" or length == 0
        assert steps.equals(all_steps.iloc[: len(steps)])
        assert scalars["value"].tolist() == all_scalars["value"].tolist()[: len(scalars)]


@pytest.mark.parametrize("pattern", ["steps/*.arrows", "scalars/*.jsonl", "solves/*.jsonl"])
def test_a_reader_goes_on_when_the_missing_bytes_arrive(whole, broken, pattern):
    file = only(broken, pattern)
    data = file.read_bytes()
    run = None
    for length in (0, len(data) // 3, len(data) // 2, len(data) - 3, len(data)):
        file.write_bytes(data[:length])
        if run is None:
            run = open_run(broken)
        run.refresh()
        run.steps()
    full = open_run(whole)
    assert run.steps().equals(full.steps())
    assert run.scalars().equals(full.scalars())
    assert run.solves().equals(full.solves())
    assert run.damage == []


@pytest.mark.parametrize(
    "pattern",
    [
        "run.json",
        "writers/*.json",
        "solves/*.jsonl",
        "steps/*.arrows",
        "steps/*.index",
        "scalars/*.jsonl",
    ],
)
@pytest.mark.parametrize("how", ["deleted", "emptied", "garbage", "folder"])
def test_a_lost_file_costs_only_itself(broken, pattern, how):
    file = only(broken, pattern)
    file.unlink()
    if how == "emptied":
        file.touch()
    elif how == "garbage":
        file.write_bytes(np.random.default_rng(0).bytes(5000))
    elif how == "folder":
        file.mkdir()
    run, steps, damage = look_at_everything(broken)
    if not pattern.startswith("scalars") or how not in ("deleted", "emptied", "folder"):
        assert damage
    if pattern != "steps/*.arrows":
        assert len(steps) > 300
        assert run.n_solves == 3


def test_rows_without_their_index_are_read_all_the_same(whole, broken):
    only(broken, "steps/*.index").unlink()
    run, steps, damage = look_at_everything(broken)
    assert steps.equals(open_run(whole).steps())
    assert any("without a checksum" in one.what for one in damage)
    assert len(queries.raster(run, 0).instances) == 6


def test_a_lost_segment_is_missed(tmp_path, monkeypatch):
    monkeypatch.setattr("inspector.store.output.ROWS_PER_SEGMENT", 100)
    path = write_synthetic_run(tmp_path / "run", batch=6, solves=2, attempts=48)
    files = sorted((path / "steps").glob("*.arrows"))
    assert len(files) > 3
    files[1].unlink()
    files[1].with_suffix(".index").unlink()
    run, steps, damage = look_at_everything(path)
    assert run.n_solves == 2
    lost = run.solves()["n_steps"].sum() - len(steps)
    assert f"{lost} of " in " ".join(one.what for one in damage)


def test_solves_whose_lines_are_lost_keep_their_numbers(whole, broken):
    file = only(broken, "solves/*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    middle = [i for i, line in enumerate(lines) if b'"solve":1,' in line]
    file.write_bytes(
        b"".join(b"x" + line[1:] if i in middle else line for i, line in enumerate(lines))
    )
    run, steps, damage = look_at_everything(broken)
    assert run.n_solves == 3
    assert steps.equals(open_run(whole).steps())
    assert sum("damaged" in one.what for one in damage) == len(middle) == 3
    assert run.solve_table()["finished"].tolist() == [True, False, True]
    assert len(run.instances(1)) == 6


def test_another_schema_version_is_said_and_read_as_far_as_possible(broken):
    file = broken / "run.json"
    record = json.loads(file.read_text()) | {"schema": 99}
    file.write_text(json.dumps(record))
    run, steps, damage = look_at_everything(broken)
    assert len(steps) > 300
    assert damage
    assert run.meta["schema"] == 99


def test_an_edited_run_json_is_read_and_said(broken):
    file = broken / "run.json"
    file.write_text(file.read_text().replace("van_der_pol", "lorenz"))
    run, _, damage = look_at_everything(broken)
    assert run.spec["problem"] == "lorenz"
    assert [one.file for one in damage] == ["run.json"]


def test_an_empty_folder_is_no_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="must be the folder of a recorded run"):
        open_run(tmp_path)
    (tmp_path / "steps").mkdir()
    run, steps, damage = look_at_everything(tmp_path)
    assert run.status == "empty"
    assert len(steps) == 0
    assert [one.file for one in damage] == ["run.json"]


def test_strange_files_in_a_run_do_no_harm(broken):
    for name in ("steps/notes.arrows", "steps/a-b-c-s.arrows", "steps/x-1-s9999999999999.arrows"):
        (broken / name).write_bytes(b"hello")
    (broken / "solves" / "more.jsonl").write_bytes(
        dump_line({"kind": "start", "solve": 10**12, "batch": -5})
        + dump_line(
            {"kind": "start", "solve": 2, "batch": "many", "t0": {}, "rtol": "x", "iteration": []}
        )
        + dump_line({"kind": "end", "solve": 2, "totals": 3, "seconds": "soon"})
        + dump_line({"kind": "rows", "solve": 2, "status": [1, 2], "messages": 7})
        + dump_line({"kind": "columns", "columns": {"x": 3}})
        + b"[1, 2]\n\xff\xfe\n\n"
    )
    (broken / "scalars" / "more.jsonl").write_bytes(dump_line({"iteration": "x", "value": []}))
    _, steps, damage = look_at_everything(broken)
    assert len(steps) > 300
    assert damage


def test_a_line_knows_its_checksum():
    record = {"a": [1.5, float("nan"), float("inf")], "é": 'quote " and {brace}', "b": None}
    line = dump_line(record).rstrip(b"\n")
    loaded = load_line(line)
    assert loaded is not None
    assert loaded["a"] == [1.5, "nan", "inf"]
    assert loaded["é"] == record["é"]
    for place in range(len(line)):
        assert load_line(line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]) is None
    assert load_line(b"") is None


def test_a_segment_deleted_between_two_looks_is_noticed(broken):
    run = open_run(broken)
    assert len(run.steps()) > 300
    only(broken, "steps/*.arrows").unlink()
    assert run.refresh()
    assert len(run.steps()) == 0
    assert any("missing" in one.what for one in run.damage)
    assert isinstance(next(iter(run._segments["steps"].values())), Segment)
