"""Comparisons of gradient modes: written line by line, read back as tables."""

import subprocess
import sys

import pytest

from inspector.adjoints import FILE, Comparison, ComparisonWriter, compare_adjoints
from tests.solver.adjoints.test_compare import make

ENTRY = {
    "mode": "aca", "label": "aca", "title": "Adaptive checkpoint adjoint", "loss": 1.0,
    "n_failed": 0, "n_accepted": 12, "error": {"y0": 1e-15, "net": 3e-15},
    "error_exact": {"y0": 1e-6, "net": 2e-6}, "error_rows": [0.0, 1e-15], "kept_bytes": 100,
    "checkpoint_bytes": 90, "graph_bytes": 50, "gradient_bytes": 20, "predicted_bytes": 160,
    "peak_bytes": 170, "seconds_forward": 0.25, "seconds_backward": 0.5, "n_f_forward": 10,
    "n_f_backward": None, "n_vjps": 5,
    "trace": {"seconds": [0.0, 0.1, 0.2], "bytes": [0, 170, 10], "peak": 170,
              "phases": [["forward", 0.0], ["backward", 0.15]]},
}  # fmt: skip


@pytest.fixture
def written(tmp_path):
    writer = ComparisonWriter(tmp_path, "rtol", [1e-3, 1e-6], ["symplectic", "aca"])
    writer.doing("aca at rtol 0.001", 1, 5)
    writer.entry(0, 1e-3, ENTRY)
    writer.entry(0, 1e-3, ENTRY | {"label": "symplectic", "failure": "ValueError: no"})
    return tmp_path, writer


def test_what_is_written_is_read_while_it_grows(written):
    path, writer = written
    found = Comparison(path)
    assert (found.sweep, found.values, found.modes) == ("rtol", [1e-3, 1e-6], ["symplectic", "aca"])
    assert (found.doing, found.done, found.of) == ("aca at rtol 0.001", 1, 5)
    assert not found.refresh()
    writer.entry(1, 1e-6, ENTRY)
    writer.entry(0, 1e-3, ENTRY | {"loss": 2.0})  # replaces
    assert found.refresh()
    assert list(found.table()["mode"]) == ["symplectic", "aca", "aca"]
    assert list(found.table(0)["loss"]) == [1.0, 2.0]
    assert list(found.table()["value"]) == [1e-3, 1e-3, 1e-6]


def test_tables_have_errors_bytes_and_seconds(written):
    table = Comparison(written[0]).table(0).set_index("mode").loc["aca"]
    assert (table["error"], table["error_exact"], table["error_y0"]) == (3e-15, 2e-6, 1e-15)
    assert table["seconds"] == 0.75
    assert table["n_f_backward"] != table["n_f_backward"]
    found = Comparison(written[0])
    assert found.table()["failure"].tolist() == ["ValueError: no", ""]
    groups = found.groups().query("mode == 'aca'")
    assert groups["group"].tolist() == ["y0", "net"]
    rows = found.rows(0).query("mode == 'aca'")
    assert rows["error"].tolist() == [0.0, 1e-15]
    memory = found.memory().query("mode == 'aca'")
    assert memory["phase"].tolist() == ["forward", "forward", "backward"]
    assert memory["bytes"].max() == 170


def test_a_damaged_or_missing_file_costs_only_what_is_damaged(written, tmp_path):
    path = written[0] / FILE
    data = path.read_bytes().splitlines(keepends=True)
    data[2] = data[2].replace(b"aca", b"acb")
    path.write_bytes(b"".join(data) + b'{"kind":"entry","pla')
    found = Comparison(written[0])
    assert list(found.table()["mode"]) == ["symplectic"]
    assert "line 3" in found.damage[0].what
    none = Comparison(tmp_path / "none")
    assert not none.planned
    assert none.table().empty
    assert none.memory().empty


def test_modes_are_compared_here_and_now_as_a_data_frame():
    table = compare_adjoints(make, ["backprop", "symplectic"], rtol=1e-5)
    assert list(table["mode"]) == ["backprop", "symplectic"]
    assert (table["error"] < 1e-12).all()
    assert (table["seconds"] > 0).all()
    assert table.attrs["entries"][0]["mode"] == "backprop"


def test_reading_a_comparison_imports_no_torch():
    code = (
        "import sys, inspector.adjoints as a; a.Comparison('x').table(); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
