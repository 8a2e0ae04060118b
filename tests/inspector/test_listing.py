"""Names of runs, their list, and paths that must not lead out."""

import os
import subprocess
import sys

import pytest

from inspector import Inspector, is_run, list_runs, open_run, run_path, update_meta
from inspector.synthetic import write_synthetic_run

NAMES = [
    "plain",
    "å…λ",
    "a+b",
    "50 % : x=1",
    "con",
    "n" * 200,
    "..x",
    "-rf",
    "a b",
    "Ω" * 100,
    ".hidden",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_a_folder_can_have_makes_the_round_trip(tmp_path, name):
    with Inspector(tmp_path / name, note="n") as inspector:
        inspector.log(a=1.0)
    (listed,) = list_runs(tmp_path)["run"]
    assert listed == name
    run = open_run(run_path(tmp_path, listed))
    assert run.id == name == run.meta["id"]
    assert run.scalars()["value"].tolist() == [1.0]


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../up", "a/b", "/etc", "a\\b", "a\0b", "not there", "é", None, "x" * 201],
)
def test_a_name_that_is_no_run_is_refused(tmp_path, name):
    root = tmp_path / "runs"
    root.mkdir()
    (tmp_path / "up").mkdir()
    with pytest.raises(ValueError, match="must be the name of a folder inside it"):
        run_path(root, name)


def test_a_plain_name_may_be_new(tmp_path):
    assert run_path(tmp_path, "new-run_1.2") == tmp_path / "new-run_1.2"


def test_a_link_that_leads_out_is_refused_and_not_listed(tmp_path):
    write_synthetic_run(tmp_path / "elsewhere", batch=1, attempts=2)
    root = tmp_path / "runs"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="leads out"):
        run_path(root, "link")
    assert list_runs(root).empty


def test_a_root_that_is_a_link_itself_is_fine(tmp_path):
    write_synthetic_run(tmp_path / "real" / "run", batch=1, attempts=2)
    (tmp_path / "runs").symlink_to(tmp_path / "real")
    assert list_runs(tmp_path / "runs")["run"].tolist() == ["run"]


def test_the_list_sums_runs_up(tmp_path):
    write_synthetic_run(tmp_path / "old", batch=3, attempts=20, solves=2)
    write_synthetic_run(tmp_path / "new", batch=3, attempts=10, finish=False)
    (tmp_path / "no-run").mkdir()
    (tmp_path / "a-file").touch()
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    listed = list_runs(tmp_path)
    assert listed["run"].tolist() == ["new", "old"]
    old = listed.iloc[1]
    assert old[["status", "problem", "method", "controller", "solves"]].tolist() == (
        ["finished", "van_der_pol", "tsit5", "pid", 2]
    )
    assert old["rows"] == len(open_run(tmp_path / "old").steps())
    assert old["bytes"] == sum(
        f.stat().st_size for f in (tmp_path / "old").rglob("*") if f.is_file()
    )
    assert not listed["damaged"].any()


def test_no_folder_is_no_runs(tmp_path):
    listed = list_runs(tmp_path / "nowhere")
    assert listed.empty
    assert listed.columns.tolist()[:2] == ["run", "status"]
    assert not is_run(tmp_path / "nowhere")


def test_a_note_can_be_changed(tmp_path):
    path = write_synthetic_run(tmp_path / "run", batch=1, attempts=2)
    update_meta(path, note="better")
    run = open_run(path)
    assert run.meta["note"] == "better"
    assert run.damage == []
    (path / "run.json").write_text("{")
    with pytest.raises(ValueError, match="no valid JSON"):
        update_meta(path, note="worse")


def test_reading_loads_neither_torch_nor_solver_and_listing_no_arrow(tmp_path):
    write_synthetic_run(tmp_path / "run", batch=2, attempts=20)
    code = (
        "import sys, inspector\n"
        "light = {'torch', 'pandas', 'pyarrow', 'solver'} & set(sys.modules)\n"
        "assert not light, light\n"
        f"run = inspector.open_run({os.fspath(tmp_path / 'run')!r})\n"
        "assert run.status == 'finished' and run.n_solves == 1\n"
        "assert not {'torch', 'pandas', 'pyarrow'} & set(sys.modules)\n"
        "from inspector import queries\n"
        "assert len(run.steps()) and queries.tiles(run) and len(queries.raster(run).values)\n"
        "assert not {'torch', 'solver'} & set(sys.modules)\n"
        "assert inspector.Inspector.__name__ == 'Inspector' and 'torch' in sys.modules\n"
        "try: inspector.nothing\n"
        "except AttributeError as error: assert 'nothing' in str(error)\n"
        "else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
