"""The process that solves: it records what the spec says, and obeys who watches."""

import json
import os
import threading
import time

import pytest

from app import worker
from app.gradients import compare_spec
from app.workers import read_json, write_json
from inspector import open_run
from inspector.adjoints import Comparison

SPEC = {"problem": "van_der_pol", "batch": 3, "t1": 1.0, "n_eval": 2}


def test_a_spec_is_solved_and_recorded_so_that_it_can_be_done_again(tmp_path):
    first = worker.record(
        SPEC | {"seed": 3, "controller": {"name": "pid", "kp": 0.1}}, tmp_path / "one"
    )
    run = open_run(tmp_path / "one")
    assert run.status == "finished"
    assert not run.verify()
    assert run.settings(0)["controller_settings"]["kp"] == 0.1
    assert list(run.instances(0).columns[-1:]) == ["mu"] or "mu" in run.instances(0)
    assert not run.states(0).empty
    again = worker.record(run.spec, tmp_path / "two")
    assert again.ys.equal(first.ys)
    assert again.stats.n_steps.equal(first.stats.n_steps)


def test_a_compiled_solve_says_when_native_code_is_made_and_what_has_none(tmp_path):
    with pytest.warns(RuntimeWarning, match="joint"):
        worker.record(SPEC | {"engine": "compiled", "stepping": "joint"}, tmp_path / "joint")
    told = open_run(tmp_path / "joint").events()
    assert 'stepping="joint" lets rows meet' in told.loc[told["kind"] == "warning", "text"].iloc[0]
    solution = worker.record(SPEC | {"engine": "compiled"}, tmp_path / "compiled")
    run = open_run(tmp_path / "compiled")
    assert solution.stats.engine == run.settings()["engine"] == "compiled"
    assert run.solves()["n_steps"].tolist() == solution.stats.n_steps.tolist()


def test_a_bad_spec_is_recorded_as_failed_with_its_reason(tmp_path):
    with pytest.raises(Exception, match="mu"):
        worker.record(SPEC | {"parameters": {"mu": -1e9}}, tmp_path / "bad")
    run = open_run(tmp_path / "bad")
    assert run.status == "failed"
    assert "mu" in " ".join(run.events()["text"])


def test_cancel_ends_a_solve_and_keeps_what_was_solved(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    write_json(path / "control.json", {"command": "run", "attempts_per_second": 200})

    class Press(worker.Control):
        def on_steps(self, steps):
            if steps.first >= 20:
                write_json(path / "control.json", {"command": "cancel"})
                self.polled = 0.0
            super().on_steps(steps)

    original, worker.Control = worker.Control, Press
    try:
        with pytest.raises(worker.Cancelled, match="by a viewer"):
            worker.record(SPEC | {"t1": 50.0}, path, obey=True)
    finally:
        worker.Control = original
    run = open_run(path)
    assert run.status == "cancelled"
    assert run.steps(0)["attempt"].max() >= 15
    assert "cancelled by a viewer" in list(run.events()["text"])


def test_slow_motion_takes_the_time_asked_for(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    write_json(path / "control.json", {"command": "run", "attempts_per_second": 50})
    began = time.monotonic()
    solution = worker.record(SPEC, path, obey=True)
    attempts = int(solution.stats.n_steps.max())
    assert time.monotonic() - began >= 0.8 * attempts / 50


def test_an_old_lease_stops_a_solve_unless_it_is_to_keep_running(tmp_path):
    (tmp_path / "lease").touch()
    old = time.time() - worker.LEASE_SECONDS - 5
    os.utime(tmp_path / "lease", (old, old))
    with pytest.raises(worker.Cancelled, match="no viewer"):
        worker.Control(tmp_path, None, keep_running=False)
    worker.Control(tmp_path, None, keep_running=True)
    (tmp_path / "lease").touch()
    worker.Control(tmp_path, None, keep_running=False)


def test_states_are_kept_for_as_many_rows_as_fit():
    assert worker.rows_of_states({"problem": "van_der_pol", "batch": 64}) == 64
    assert (
        worker.rows_of_states({"problem": "van_der_pol", "batch": 4096}) == worker.STATE_VALUES // 2
    )
    assert worker.rows_of_states({"problem": "heat_1d", "batch": 64}) >= 1


def test_control_files_are_whole_or_not_there(tmp_path):
    file = tmp_path / "control.json"
    assert read_json(file) == {}
    write_json(file, {"command": "pause"})
    assert json.loads(file.read_text()) == {"command": "pause"}
    file.write_text('{"command": "pau')
    assert read_json(file) == {}
    assert [p.name for p in tmp_path.iterdir()] == ["control.json"]


COMPARED = {
    "kind": "adjoints", "problem": "neural_spiral", "batch": 3, "sweep": "rtol",
    "values": [1e-2, 1e-4], "modes": ["symplectic", "continuous"], "allocator": False,
}  # fmt: skip


class TestComparisons:
    """Gradient modes compared and recorded."""

    def test_it_holds_every_mode_at_every_value_and_a_solve_of_each(self, tmp_path):
        path = tmp_path / "run"
        assert worker.record_comparison(COMPARED, path) == 4
        found = Comparison(path)
        assert found.done == found.of > 4
        table = found.table()
        assert list(table["mode"]) == ["symplectic", "continuous"] * 2
        exact, continuous = (table[table["mode"] == mode] for mode in found.modes)
        assert exact["error"].max() < 1e-11
        assert continuous["error"].min() > 1e-9
        run = open_run(path)
        assert run.status == "finished"
        assert run.spec == COMPARED
        assert run.n_solves >= 4

    def test_cancel_keeps_what_was_compared(self, tmp_path):
        path = tmp_path / "run"
        path.mkdir()
        write_json(path / "control.json", {"command": "run", "attempts_per_second": None})
        seen = []

        class Press(worker.ComparisonWriter):
            def entry(self, place, value, entry):
                super().entry(place, value, entry)
                seen.append(entry)
                write_json(path / "control.json", {"command": "cancel"})

        original, worker.ComparisonWriter = worker.ComparisonWriter, Press
        try:
            with pytest.raises(worker.Cancelled, match="by a viewer"):
                worker.record_comparison(COMPARED, path, obey=True)
        finally:
            worker.ComparisonWriter = original
        assert len(seen) == len(Comparison(path).table()) == 1
        assert open_run(path).status == "cancelled"

    def test_cancel_does_not_wait_for_a_solve_to_end(self, tmp_path):
        path = tmp_path / "run"
        path.mkdir()
        write_json(path / "control.json", {"command": "run"})
        long = COMPARED | {"sweep": "steps", "values": [100_000], "modes": ["aca"]}
        timer = threading.Timer(1.5, write_json, (path / "control.json", {"command": "cancel"}))
        timer.start()
        began = time.monotonic()
        with pytest.raises(worker.Cancelled, match="by a viewer"):
            worker.record_comparison(long, path, obey=True)
        assert time.monotonic() - began < 10
        assert open_run(path).status == "cancelled"

    def test_a_bad_spec_is_recorded_as_failed(self, tmp_path):
        with pytest.raises(ValueError, match="sweep='dt'"):
            worker.record_comparison(COMPARED | {"sweep": "dt"}, tmp_path / "bad")
        assert open_run(tmp_path / "bad").status == "failed"

    @pytest.mark.parametrize(
        ("wrong", "match"),
        [
            ({"modes": ["nix"]}, "unknown adjoint 'nix'"),
            ({"modes": ["aca", "aca"]}, "must differ"),
            ({"values": [0.0]}, "must be positive"),
            ({"values": []}, "must be positive"),
            ({"dtype": "float16"}, "dtype='float16'"),
        ],
    )
    def test_what_is_wrong_is_named(self, wrong, match):
        with pytest.raises(ValueError, match=match):
            list(compare_spec(COMPARED | wrong))

    def test_a_problem_without_a_network_is_differentiated_by_its_parameters(self):
        spec = COMPARED | {"problem": "lotka_volterra", "sweep": "", "t1": 2.0, "dtype": "float32"}
        entries = [entry for _, _, entry in compare_spec(spec | {"modes": ["aca", "joint"]})]
        assert {"y0", "a", "b"} <= set(entries[0]["error"])
        assert entries[0]["error"]["y0"] < 1e-3


@pytest.mark.parametrize("gradient", ["symplectic", "backprop", "continuous"])
def test_the_gradient_of_a_loss_is_taken_and_its_memory_recorded(tmp_path, gradient):
    spec = {"problem": "flow_two_moons", "batch": 4, "gradient": gradient, "spread": None}
    spec["parameters"] = {"flows": 2, "hidden": 8}
    worker.record(spec, tmp_path / "run")
    run = open_run(tmp_path / "run")
    table = run.solve_table()
    forward = [run.settings(i).get("backward_of") is None for i in range(run.n_solves)]
    assert sum(forward) == 2
    assert len(table) == (4 if gradient == "continuous" else 2)
    (told,) = run.solve_state(0).backward
    assert told["gradient_bytes"] > 0


def test_rows_may_differ_in_speed_while_a_gradient_is_taken(tmp_path):
    spread = {"parameter": "speed", "low": 0.5, "high": 2.0, "scale": "log"}
    spec = {"problem": "neural_spiral", "batch": 3, "gradient": "symplectic", "spread": spread}
    worker.record(spec, tmp_path / "run")
    assert open_run(tmp_path / "run").solve_state(0).backward
