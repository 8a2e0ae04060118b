"""A run whose process was killed, resumed, or shared with other processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from inspector import Inspector, open_run
from inspector.store.writer import RunWriter
from inspector.synthetic import write_synthetic_run

WRITE_FOR_EVER = """
import sys, time
from inspector.synthetic import write_synthetic_run
path, flush = sys.argv[1:3]

def told(writer):
    writer.flush()
    print(writer.counts["rows"], flush=True)
write_synthetic_run(path, batch=32, attempts=80, solves=1000, flush=flush, on_block=told,
seconds_per_block=float(sys.argv[3]))
"""


def start(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def wait_until(condition, seconds=30.0):
    """Poll until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


@pytest.mark.parametrize("moment", [3, 20, 61])
@pytest.mark.parametrize("flush", ["auto", "always"])
def test_what_was_acknowledged_survives_kill(tmp_path, moment, flush):
    process = start(WRITE_FOR_EVER, tmp_path / "run", flush, 0.001)
    for _ in range(moment):
        acknowledged = int(process.stdout.readline())
    time.sleep(0.0007 * moment % 0.01)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    acknowledged = int(([acknowledged, *rest.split()])[-1])
    run = open_run(tmp_path / "run")
    assert run.status == "interrupted"
    assert not run.live
    assert len(run.steps()) >= acknowledged > 0
    assert run.solves()["n_steps"].sum() == len(run.steps())
    assert set(run.solves()["status_name"]) <= {"SUCCESS", "INTERRUPTED"}
    assert run.scalars().groupby("name").size().nunique() <= 1
    assert [damage for damage in run.verify() if "missing" in damage.what] == []


def test_a_reader_follows_a_run_while_it_grows(tmp_path):
    process = start(WRITE_FOR_EVER, tmp_path / "run", "auto", 0.03)
    try:
        process.stdout.readline()
        run = open_run(tmp_path / "run")
        assert run.status == "running"
        seen = [len(run.steps())]
        for _ in range(20):
            acknowledged = int(process.stdout.readline())
            run.refresh()
            seen.append(len(run.steps()))
            assert seen[-1] >= acknowledged
            assert run.solves()["n_steps"].sum() == seen[-1]
            assert run.damage == []
        assert seen == sorted(seen)
        assert seen[-1] > seen[0]
        assert run.live
    finally:
        process.kill()
        process.communicate()
    assert run.refresh()
    assert run.status == "interrupted"
    before = run.steps()
    assert not run.refresh()
    assert before.equals(open_run(tmp_path / "run").steps())


def test_a_live_solve_is_counted_from_its_steps(tmp_path, feed):
    one = feed(attempts=64)
    with Inspector(tmp_path / "run") as inspector:
        one.into(inspector, upto=2, end=False)
        assert inspector.flush()
        run = open_run(tmp_path / "run")
        assert run.status == "running"
        assert run.is_live(0)
        counted = run.solves()
        assert counted["status_name"].unique().tolist() == ["RUNNING"]
        assert counted["n_steps"].tolist() == run.steps(0).groupby("instance").size().tolist()
        assert counted["n_f_evals"].isna().all()
        assert np.isnan(run.solve_table()["rtol"][0]) == np.False_
        for block in one.blocks[2:]:
            inspector.on_steps(block)
        inspector.on_solve_end(one.end)
        inspector.flush()
        assert run.refresh()
        assert run.solves()["n_steps"].tolist() == one.end.solution.stats.n_steps.tolist()
    assert run.refresh()
    assert run.status == "finished"


def test_a_quarter_of_a_second_is_long_enough_to_be_written(tmp_path, feed):
    one = feed(attempts=3, block=1)
    with Inspector(tmp_path / "run") as inspector:
        one.into(inspector, end=False)
        run = open_run(tmp_path / "run")
        wait_until(
            lambda: run.refresh() and run.n_solves and len(run.steps()) == len(one.rows("t")), 5
        )


def test_a_resumed_run_goes_on_and_keeps_everything(tmp_path, feed):
    for first, last in ((1, 61), (50, 101)):
        inspector = Inspector(tmp_path / "run")
        for step in range(first, last):
            with inspector.iteration(step):
                if step % 10 == 0:
                    feed(seed=step).into(inspector)
                inspector.log(loss=step + first / 1000)
        inspector.close("interrupted" if first == 1 else "finished")
    run = open_run(tmp_path / "run")
    assert run.status == "finished"
    scalars = run.scalars()
    assert len(scalars) == 60 + 51
    assert scalars["iteration"].is_monotonic_increasing
    twice = scalars[scalars["iteration"] == 55]
    assert twice["value"].tolist() == [55.001, 55.05]
    assert twice["session"].tolist() == [0, 1]
    table = run.solve_table()
    assert table["iteration"].tolist() == [10, 20, 30, 40, 50, 60, 50, 60, 70, 80, 90, 100]
    assert table["started"].is_monotonic_increasing
    for solve, seed in enumerate(table["iteration"]):
        assert np.array_equal(run.steps(solve)["dt"], feed(seed=int(seed)).rows("dt"))


def test_a_resumed_run_does_not_touch_the_torn_file(tmp_path):
    write_synthetic_run(tmp_path / "run", batch=8, attempts=64, finish=False)
    (torn,) = (tmp_path / "run" / "steps").glob("*.arrows")
    torn.write_bytes(torn.read_bytes()[:-100])
    before = torn.read_bytes()
    write_synthetic_run(tmp_path / "run", batch=8, attempts=64)
    assert torn.read_bytes() == before
    assert len(list((tmp_path / "run" / "steps").glob("*.arrows"))) == 2
    run = open_run(tmp_path / "run")
    assert run.n_solves == 2
    assert run.steps(1)["attempt"].max() == 63
    assert run.steps(0)["attempt"].max() == 47


WRITE_MANY = """
import sys, numpy as np
from inspector.store.writer import RunWriter
from inspector.synthetic import ArrayBlock
path, worker, entries = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with_rows = ArrayBlock(0, np.ones((2, 3), bool), {
    "t": np.zeros((2, 3)), "dt": np.full((2, 3), float(worker)),
    "error_ratio": np.zeros((2, 3), "f4"), "accepted": np.ones((2, 3), "u1")})
writer = RunWriter(path, rank=worker)
for entry in range(entries):
    writer.scalars(entry, {"loss": worker + entry / 1000})
    if entry % 100 == 0:
        solve = writer.start_solve(lambda: {"batch": 3, "dim": 1, "t0": 0.0, "t1": 1.0})
        writer.steps(solve, with_rows)
        rows = {"n_steps": np.full(3, 2), "status": np.zeros(3, int)}
        writer.end_solve(solve, lambda: ({"seconds": 0.0}, rows))
writer.close()
"""


def test_many_processes_write_one_run_while_it_is_read(tmp_path):
    processes = [start(WRITE_MANY, tmp_path / "run", worker, 500) for worker in range(8)]
    wait_until(lambda: (tmp_path / "run" / "run.json").exists())
    run = open_run(tmp_path / "run")
    seen = [0]
    while any(process.poll() is None for process in processes):
        run.refresh()
        seen.append(len(run.scalars()))
        time.sleep(0.05)
    assert [process.communicate()[0] or process.returncode for process in processes] == [0] * 8
    run.refresh()
    assert seen == sorted(seen)
    assert run.status == "finished"
    assert run.verify() == []
    scalars = run.scalars()
    assert len(scalars) == 8 * 500
    expected = sorted(worker + entry / 1000 for worker in range(8) for entry in range(500))
    assert sorted(scalars["value"]) == expected
    assert run.n_solves == 8 * 5
    assert run.solve_table()["started"].is_monotonic_increasing
    assert run.steps().groupby("dt").size().tolist() == [5 * 6] * 8
    assert set(run.meta["writers"]) <= set(run.writers)
    assert len(run.writers) == 8


def test_a_forked_child_does_not_record(tmp_path, feed):
    with Inspector(tmp_path / "run") as inspector:
        inspector.log(a=1.0)
        inspector.flush()
        child = os.fork()
        if child == 0:
            inspector.log(a=2.0)
            inspector.flush()
            inspector.close("failed")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        inspector.log(a=3.0)
    run = open_run(tmp_path / "run")
    assert run.scalars()["value"].tolist() == [1.0, 3.0]
    assert run.status == "finished"


def test_a_writer_that_vanished_long_ago_is_not_taken_for_another_process(tmp_path):
    process = start(
        "import sys; from inspector.store.writer import RunWriter; import os\n"
        "w = RunWriter(sys.argv[1]); w.scalars(0, {'a': 1.0}); w.flush(); os.kill(os.getpid(), 9)",
        tmp_path / "run",
    )
    process.communicate()
    (file,) = (tmp_path / "run" / "writers").iterdir()
    text = file.read_text().replace(f'"pid": {process.pid}', f'"pid": {os.getpid()}')
    file.write_text(text)  # its number was given to another process: this one
    assert open_run(tmp_path / "run").status == "interrupted"


def test_a_writer_of_another_machine_lives_as_long_as_its_heart_beats(tmp_path):
    writer = RunWriter(tmp_path / "run")
    (file,) = (tmp_path / "run" / "writers").iterdir()
    file.write_text(file.read_text().replace('"host": "', '"host": "elsewhere-'))
    run = open_run(tmp_path / "run")
    assert run.status == "running"
    os.utime(file, (time.time() - 60, time.time() - 60))
    run.refresh()
    assert run.status == "empty"
    writer.close()


def test_a_folder_that_another_process_makes_in_between_loses_no_line(tmp_path, monkeypatch):
    made = Path.mkdir

    def raced(self, *arguments, **options):
        made(self, parents=True, exist_ok=True)  # somebody else was faster
        made(self, *arguments, **options)

    writer = RunWriter(tmp_path / "run", flush="always")
    monkeypatch.setattr(Path, "mkdir", raced)
    writer.scalars(0, {"loss": 1.0})
    writer.start_solve(lambda: {"batch": 1})
    writer.close()
    assert writer.counts["lines_lost"] == 0
    assert open_run(tmp_path / "run").scalars()["value"].tolist() == [1.0]
