"""A disk that fails never ends a training, changes no solution, and is not hidden."""

import logging
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import pytest
import torch

from inspector import Inspector, open_run
from inspector.store import writer as writer_module
from solver import solve_ivp

FULL_DISK = """
import resource, sys, warnings
import torch
from inspector import Inspector
from solver import solve_ivp
torch.set_num_threads(1)
y0 = torch.linspace(0.5, 2.0, 64, dtype=torch.float64)[:, None]
field = lambda t, y: torch.cos(7 * t)[:, None] * y
plain = solve_ivp(field, y0, t0=0.0, t1=5.0, rtol=1e-8)
limit = int(sys.argv[2])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with Inspector(sys.argv[1]) as insp:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        for _ in range(3):
            sol = solve_ivp(field, y0, t0=0.0, t1=5.0, rtol=1e-8, hooks=[insp])
            insp.log(loss=1.0)
        whole = insp.flush()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert torch.equal(plain.ys, sol.ys)
assert not whole
assert len(caught) == 1, [str(one.message) for one in caught]
assert "goes on" in str(caught[0].message) and "File too large" in str(caught[0].message), caught[0]
"""


READ_ONLY = """
import os, sys, tempfile, warnings
import torch
from torch import nn
from inspector import Inspector
from solver import solve_ivp
torch.set_num_threads(1)
net = nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def train(path):
    with Inspector(path) as insp:
        insp.watch(net, optimizer)
        for step in range(3):
            with insp.iteration(step):
                sol = solve_ivp(lambda t, y: net(y), torch.ones(2, 1), t0=0.0, t1=1.0, hooks=[insp])
                sol.ys.sum().backward()
                optimizer.step()
                insp.log(loss=sol.ys.sum())
        return insp.flush()

with tempfile.TemporaryDirectory() as elsewhere:  # loads all that is loaded late
    assert train(elsewhere + "/run")
if os.geteuid() == 0:  # to whom no folder is closed
    os.setegid(65534)
    os.seteuid(65534)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert not train(sys.argv[1])
assert len(caught) == 1, [str(one.message) for one in caught]
assert "cannot write to" in str(caught[0].message), caught[0]
"""


@pytest.mark.parametrize("there", [False, True])
def test_a_training_goes_on_in_a_folder_that_may_only_be_read(feed, there):
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "runs"
        root.mkdir()
        if there:
            with Inspector(root / "run") as inspector, inspector.iteration(0):
                feed().into(inspector)
                inspector.log(loss=1.0)
        before = sorted(path.relative_to(root) for path in root.rglob("*"))
        folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
        for folder in (root.parent, *folders):
            folder.chmod(0o555)
        try:
            subprocess.run(
                [sys.executable, "-W", "error", "-c", READ_ONLY, root / "run"],
                check=True, timeout=300,
            )  # fmt: skip
        finally:
            for folder in (root.parent, *folders):
                folder.chmod(0o755)
        assert sorted(path.relative_to(root) for path in root.rglob("*")) == before
        if there:
            run = open_run(root / "run")
            assert run.status == "finished"
            assert run.iterations()["loss"].tolist() == [1.0]
            assert run.verify() == []


@pytest.mark.parametrize("limit", [300, 3_000, 40_000])
def test_a_full_disk_is_reported_once_and_counted(tmp_path, limit):
    subprocess.run(
        [sys.executable, "-W", "error", "-c", FULL_DISK, tmp_path / "run", str(limit)], check=True
    )
    run = open_run(tmp_path / "run")
    assert run.status == "finished"
    assert run.lost["errors"] > 0
    assert run.lost["rows_lost"] > 0
    assert run.events()["kind"].tolist() == ["io_error"]
    assert "too large" in run.events()["text"][0]
    run.verify()
    stored = sum(writer.count("rows") for writer in run.writers.values())
    assert len(run.steps()) == stored
    assert (stored > 0) == (limit > 10_000)


def test_writing_goes_on_when_there_is_room_again(tmp_path, feed, monkeypatch):
    monkeypatch.setattr("inspector.store.output.RETRY_SECONDS", 0.0)
    full = threading.Event()

    def write_all(fd, data):
        if full.is_set():
            raise OSError(28, "No space left on device")
        original(fd, data)

    from inspector.store import lines, segments

    original = segments.write_all
    monkeypatch.setattr(segments, "write_all", write_all)
    monkeypatch.setattr(lines, "write_all", write_all)

    def train():
        inspector = Inspector(tmp_path / "run")
        feed(seed=1).into(inspector)
        assert inspector.flush()
        full.set()
        feed(seed=2).into(inspector)
        inspector.log(a=1.0)
        assert not inspector.flush()
        full.clear()
        feed(seed=3).into(inspector)
        inspector.log(a=2.0)
        inspector.close()

    with pytest.warns(RuntimeWarning, match="No space left on device") as caught:
        train()
    assert len(caught) == 1
    run = open_run(tmp_path / "run")
    run.steps()
    assert run.n_solves == 3
    assert run.steps(0)["dt"].tolist() == feed(seed=1).rows("dt").tolist()
    assert len(run.steps(1)) == 0
    assert run.steps(2)["dt"].tolist() == feed(seed=3).rows("dt").tolist()
    assert run.scalars()["value"].tolist() == [2.0]
    assert run.lost["rows_lost"] == len(feed(seed=2).rows("dt"))
    assert run.lost["lines_lost"] == 4
    assert run.verify() == []


def test_a_deleted_run_stays_deleted_and_is_reported(tmp_path, feed):
    def train():
        inspector = Inspector(tmp_path / "run")
        feed().into(inspector)
        assert inspector.flush()
        shutil.rmtree(tmp_path / "run")
        for seed in range(3):
            feed(seed=seed).into(inspector)
            inspector.log(loss=1.0)
        assert not inspector.flush()
        inspector.close()

    with pytest.warns(RuntimeWarning, match="deleted|No such file") as caught:
        train()
    assert len(caught) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("where", ["run", "below"])
def test_a_folder_that_cannot_be_made_is_reported(tmp_path, where):
    (tmp_path / "run").write_text("a file is in the way")
    path = tmp_path / "run" if where == "run" else tmp_path / "run" / "below"
    y0 = torch.ones(3, 1)

    def train():
        with Inspector(path) as inspector:
            inspector.log(loss=1.0)
            return solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0, hooks=[inspector])

    with pytest.warns(RuntimeWarning, match="cannot write to") as caught:
        sol = train()
    assert len(caught) == 1
    assert torch.equal(sol.ys, solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0).ys)
    assert (tmp_path / "run").read_text() == "a file is in the way"


def test_not_even_warnings_made_errors_end_a_training(tmp_path, caplog):
    (tmp_path / "run").write_text("")
    with warnings.catch_warnings(), caplog.at_level(logging.ERROR):
        warnings.simplefilter("error")
        with Inspector(tmp_path / "run") as inspector:
            solve_ivp(lambda t, y: -y, torch.ones(1, 1), t0=0.0, t1=1.0, hooks=[inspector])
    assert "cannot write to" in caplog.text


def test_a_statistic_that_breaks_in_the_writer_is_counted_too(tmp_path, feed, monkeypatch):
    monkeypatch.setattr(
        "inspector.buffer.StepRows.columns", lambda self: (_ for _ in ()).throw(ValueError("oh"))
    )
    with (
        pytest.warns(RuntimeWarning, match="ValueError: oh"),
        Inspector(tmp_path / "run") as inspector,
    ):
        feed().into(inspector)
    run = open_run(tmp_path / "run")
    assert run.status == "finished"
    assert run.lost["rows_lost"] > 0


@pytest.fixture
def slow_disk(monkeypatch):
    """Make the first write of steps wait until the event is set."""
    from inspector.store.segments import SegmentWriter

    go_on = threading.Event()
    append = SegmentWriter.append

    def wait(self, *arguments):
        assert go_on.wait(20)
        append(self, *arguments)

    monkeypatch.setattr(SegmentWriter, "append", wait)
    monkeypatch.setattr(writer_module, "QUEUE_ROWS", 200)
    return go_on


def test_rows_that_the_disk_cannot_take_in_time_are_dropped_and_counted(tmp_path, feed, slow_disk):
    one = feed(batch=10, attempts=160)
    with Inspector(tmp_path / "run", statistics=()) as inspector:
        began = time.monotonic()
        one.into(inspector)
        assert time.monotonic() - began < 5
        slow_disk.set()
    run = open_run(tmp_path / "run")
    stored, lost = len(run.steps(0)), run.lost["rows_dropped"]
    assert lost > 0
    assert 0 < stored < len(one.rows("dt")) <= stored + lost
    assert run.events()["kind"].tolist() == ["drop"]
    assert run.solves()["n_steps"].tolist() == one.end.solution.stats.n_steps.tolist()
    assert run.verify() == []  # what was left out on purpose is no damage


def test_the_solver_waits_for_the_disk_if_asked_to(tmp_path, feed, slow_disk):
    one = feed(batch=10, attempts=160)
    threading.Timer(0.2, slow_disk.set).start()
    with Inspector(tmp_path / "run", statistics=(), on_full="block") as inspector:
        one.into(inspector)
    run = open_run(tmp_path / "run")
    assert run.steps(0)["dt"].tolist() == one.rows("dt").tolist()
    assert run.lost["rows_dropped"] == 0
