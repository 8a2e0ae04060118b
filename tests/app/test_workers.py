"""The registry of worker processes: queue, cancel, kill, death, lease."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import workers as module
from app.workers import Workers, new_run_id, read_json
from inspector import open_run, run_path

SLOW = {"problem": "van_der_pol", "batch": 2, "t1": 50.0, "n_eval": 2, "attempts_per_second": 20}


def until(check, seconds: float = 60.0) -> float:
    """Wait until `check()` is true and return how long it took."""
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < seconds, "it never came"
        time.sleep(0.02)
    return time.monotonic() - began


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    registry = Workers(tmp_path, at_once=1)
    yield registry
    registry.close()


def recorded(workers: Workers, run: str) -> bool:
    """Whether the run has steps on disk."""
    return any((workers.root / run / "steps").glob("*.arrows"))


def test_runs_beyond_the_limit_wait_and_a_cancelled_one_makes_room(workers):
    first, second = workers.start(SLOW), workers.start(SLOW)
    assert workers.state(second) == "queued"
    assert workers.place(second) == 0
    third = workers.start(SLOW)
    workers.cancel(third)
    assert workers.state(third) == "ended"
    until(lambda: recorded(workers, first))
    workers.cancel(first)
    until(lambda: workers.state(first) == "ended")
    assert open_run(workers.root / first).status == "cancelled"
    assert workers.exit_of(first) is None
    until(lambda: workers.state(second) in ("starting", "running"))
    workers.cancel(second)
    until(lambda: workers.state(second) == "ended")


def test_a_worker_that_dies_is_noticed_with_what_it_wrote_last(workers):
    run = workers.start(SLOW)
    until(lambda: recorded(workers, run))
    process = workers.jobs[run].process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    until(lambda: workers.state(run) == "ended")
    death = workers.exit_of(run)
    assert death is not None
    assert death.reason == "was ended by signal 9"
    assert open_run(workers.root / run).status == "interrupted"


def test_a_spec_that_cannot_be_solved_leaves_its_reason(workers):
    run = workers.start({"problem": "no_such_problem"})
    until(lambda: workers.state(run) == "ended")
    death = workers.exit_of(run)
    assert death is not None
    assert "no_such_problem" in "\n".join(death.stderr)


def test_a_file_named_in_a_spec_is_not_run(workers, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f"open({str(tmp_path / 'proof')!r}, 'w').close()\n")
    run = workers.start({"problem": f"{file}:Mine"})
    until(lambda: workers.state(run) == "ended")
    assert workers.exit_of(run) is not None
    assert not (tmp_path / "proof").exists()


def test_a_worker_that_ignores_cancel_is_killed(workers, monkeypatch):
    monkeypatch.setattr(module, "KILL_AFTER", 0.3)
    monkeypatch.setattr(sys, "executable", str(stubborn(workers.root)))
    run = workers.start(SLOW)
    workers.cancel(run)
    until(lambda: workers.state(run) == "ended")
    death = workers.exit_of(run)
    assert death is not None
    assert death.killed


def stubborn(folder: Path) -> Path:
    """Return a program that ignores everything."""
    script = folder / "stubborn"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    return script


def test_the_lease_is_renewed_only_while_a_viewer_is_connected(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LEASE_EVERY", 0.1)
    connected = {"tab"}
    registry = Workers(tmp_path, alive=connected.__contains__)
    try:
        run = registry.start(SLOW, viewer="tab")
        lease = tmp_path / run / "lease"
        first = lease.stat().st_mtime_ns
        until(lambda: lease.stat().st_mtime_ns > first)
        connected.clear()
        time.sleep(0.4)
        held = lease.stat().st_mtime_ns
        time.sleep(0.4)
        assert lease.stat().st_mtime_ns == held
    finally:
        registry.close()
    assert registry.jobs[run].process.poll() is not None, "a worker outlived its server"


def test_pace_and_pause_reach_the_control_file(workers):
    run = workers.start(SLOW)
    workers.control(run, attempts_per_second=5)
    workers.control(run, command="pause")
    asked = read_json(workers.root / run / "control.json")
    assert asked == {"command": "pause", "attempts_per_second": 5}
    assert workers.state(run) == "paused"
    workers.cancel(run)
    until(lambda: workers.state(run) == "ended")


@pytest.mark.parametrize(
    "problem", ["van_der_pol", "../../etc", "/home/me/mine.py:Mine", "", "x" * 99]
)
def test_run_ids_are_safe_folder_names(problem, tmp_path):
    run = new_run_id(problem)
    assert len(run) <= 64
    assert run_path(tmp_path, run).parent == tmp_path
