"""What is recorded is what comes back."""

import copy
import gc
import io
import json
import math
import pickle
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest
import torch

from inspector import Inspector, open_run
from inspector.schema import STEP_NAMES
from solver import solve_ivp

STATISTICS = ["limiter", "factor", "limiting_component"]


def decay(t, y):
    return -y


@pytest.mark.parametrize("flush", ["auto", "always"])
@pytest.mark.parametrize("block", [1, 7, 16, 64])
def test_every_value_comes_back_exactly(tmp_path, feed, block, flush):
    one = feed(block=block)
    with Inspector(tmp_path / "run", statistics=STATISTICS, flush=flush) as inspector:
        one.into(inspector)
    run = open_run(tmp_path / "run")
    steps = run.steps(0)
    for name in ("t", "dt", "accepted", *STATISTICS):
        given = one.rows(name)
        stored = steps[name].to_numpy()
        assert np.array_equal(stored, given.astype(stored.dtype)), name
    assert np.array_equal(steps["error_ratio"], one.rows("error_ratio").astype("f4"))
    assert steps["t"].dtype == steps["dt"].dtype == "f8"
    assert steps["limiter"].dtype == "i2"
    assert steps["factor"].dtype == "f4"
    assert steps["limiting_component"].dtype == "i4"
    running = torch.cat([part.running for part in one.blocks]).numpy()
    attempt, instance = np.nonzero(running)
    assert np.array_equal(steps["attempt"], attempt)
    assert np.array_equal(steps["instance"], instance)
    assert run.verify() == []
    assert run.status == "finished"


def test_a_solve_and_its_record_agree(tmp_path):
    rates = torch.tensor([1.0, 5.0, 40.0, 0.1], dtype=torch.float64)
    y0 = torch.ones(4, 3, dtype=torch.float64)
    with Inspector(tmp_path / "run", states=2) as inspector:
        sol = solve_ivp(
            lambda t, y, k: -k[:, None] * y, y0, t0=0.0, t1=2.0, args=rates, hooks=[inspector]
        )
    run = open_run(tmp_path / "run")
    solves = run.solves()
    for name in ("n_steps", "n_accepted", "n_rejected", "n_f_evals"):
        assert solves[name].tolist() == getattr(sol.stats, name).tolist(), name
    steps = run.steps(0)
    assert steps.groupby("instance").size().tolist() == sol.stats.n_steps.tolist()
    assert steps.groupby("instance")["accepted"].sum().tolist() == sol.stats.n_accepted.tolist()
    taken = steps[steps["accepted"] == 1]
    arrived = (taken["t"] + taken["dt"]).groupby(taken["instance"]).max()
    assert np.allclose(arrived, 2.0)
    states = run.states(0)
    assert sorted(states["instance"].unique()) == [0, 3]
    first, last = states[states["instance"] == 3].iloc[[0, -1]].to_dict("records")
    assert (first["t"], first["y0"]) == (0.0, 1.0)
    assert last["y2"] == sol.y_reached[3, 2].item()


def test_a_compiled_solve_is_recorded_as_a_plain_one(tmp_path):
    rates = torch.linspace(0.5, 40.0, 70)

    def f(t, y):
        return -rates[:, None] * (y - t.cos()[:, None])

    tables = []
    for engine in ("plain", "compiled"):
        with Inspector(tmp_path / engine, statistics="all", states=2) as inspector:
            solve_ivp(f, torch.ones(70, 3), t0=0.0, t1=2.0, engine=engine, hooks=[inspector])
        run = open_run(tmp_path / engine)
        assert run.verify() == []
        tables.append((run.steps(0), run.solves(), run.states()))
    (steps, solves, states), (steps_c, solves_c, states_c) = tables
    assert list(steps.columns) == list(steps_c.columns)
    for name in ("attempt", "instance", "accepted", "limiter"):
        assert steps[name].equals(steps_c[name]), name
    np.testing.assert_allclose(steps["t"], steps_c["t"], rtol=1e-4, atol=1e-9)
    assert solves["n_steps"].tolist() == solves_c["n_steps"].tolist()
    assert states.shape == states_c.shape


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.complex64, torch.complex128, torch.bfloat16, torch.float16]
)
def test_states_of_any_type_are_kept(tmp_path, dtype):
    y0 = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to(dtype)
    with Inspector(tmp_path / "run", states=[1]) as inspector:
        sol = solve_ivp(lambda t, y: -y, y0, t0=1.0, t1=0.5, hooks=[inspector])
    states = open_run(tmp_path / "run").states()
    assert states["instance"].unique().tolist() == [1]
    assert states["t"].is_monotonic_decreasing
    assert states["t"].iloc[[0, -1]].tolist() == [1.0, 0.5]
    last = states.iloc[-1][[name for name in states if name.startswith("y")]].to_numpy("f8")
    reached = sol.y_reached[1]
    flat = torch.view_as_real(reached).flatten() if reached.is_complex() else reached
    assert last == pytest.approx(flat.double().numpy(), rel=1e-2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_solve_on_a_device_is_recorded_as_one_on_the_host(tmp_path):
    runs = []
    for device in ("cpu", "cuda"):
        y0 = torch.linspace(0.1, 2.0, 8, device=device)[:, None]
        with Inspector(tmp_path / device, states=2) as inspector:
            sol = solve_ivp(lambda t, y: -y * y, y0, t0=0.0, t1=3.0, hooks=[inspector])
            inspector.log(last=sol.ys.sum())
        runs.append(open_run(tmp_path / device))
    host, other = (run.steps(0) for run in runs)
    assert host["attempt"].tolist() == other["attempt"].tolist()
    assert other["dt"].to_numpy() == pytest.approx(host["dt"].to_numpy(), rel=1e-9)
    assert other["limiter"].tolist() == host["limiter"].tolist()
    assert len(runs[0].states(0)) == len(runs[1].states(0))
    assert runs[0].scalars()["value"][0] == pytest.approx(runs[1].scalars()["value"][0])


def test_recording_changes_no_bit_of_the_solution(tmp_path):
    y0 = torch.linspace(0.1, 3, 12, dtype=torch.float64).reshape(6, 2)
    t_eval = torch.linspace(0, 3, 7, dtype=torch.float64)
    plain = solve_ivp(decay, y0, t_eval)
    with Inspector(tmp_path / "run", states=3) as inspector:
        watched = solve_ivp(decay, y0, t_eval, hooks=[inspector])
    assert torch.equal(plain.ys, watched.ys)


def test_rows_that_are_not_running_are_not_stored(tmp_path, feed):
    one = feed(batch=8, attempts=64)
    with Inspector(tmp_path / "run", statistics=()) as inspector:
        one.into(inspector)
    steps = open_run(tmp_path / "run").steps(0)
    assert len(steps) == sum(int(block.running.sum()) for block in one.blocks) < 8 * 64
    assert tuple(steps.columns) == STEP_NAMES


def test_steps_can_be_asked_for_in_parts(tmp_path, feed):
    with Inspector(tmp_path / "run", statistics=STATISTICS) as inspector:
        feed(seed=1).into(inspector)
        feed(seed=2).into(inspector)
    run = open_run(tmp_path / "run")
    everything = run.steps()
    assert everything["solve"].unique().tolist() == [0, 1]
    part = run.steps(1, instances=[0, 3], columns=["attempt", "dt"], attempts=(10, 21))
    chosen = everything[
        (everything["solve"] == 1)
        & everything["instance"].isin([0, 3])
        & everything["attempt"].between(10, 20)
    ]
    assert part.columns.tolist() == ["attempt", "dt"]
    assert part["dt"].tolist() == chosen["dt"].tolist()
    assert run.steps(0, instances=2)["instance"].unique().tolist() == [2]
    assert len(run.steps(0, attempts=(1000, 2000))) == 0
    with pytest.raises(KeyError, match="0 to 1"):
        run.steps(2)


@pytest.mark.parametrize(
    ("chosen", "kept"), [([3, 1], [1, 3]), (slice(0, None, 2), [0, 2, 4]), ([2, 99], [2])]
)
def test_a_subset_of_instances_is_kept(tmp_path, feed, chosen, kept):
    one = feed(attempts=20)
    with Inspector(tmp_path / "run", instances=chosen, statistics=()) as inspector:
        one.into(inspector)
    run = open_run(tmp_path / "run")
    steps = run.steps(0)
    assert sorted(steps["instance"].unique()) == kept
    running = torch.cat([block.running for block in one.blocks])
    dt = torch.cat([block.dt for block in one.blocks])
    for instance in kept:
        mine = steps.loc[steps["instance"] == instance, "dt"].to_numpy()
        assert np.array_equal(mine, dt[running[:, instance], instance].numpy())
    assert len(run.solves()) == 5  # what became of the others is known all the same
    assert sorted(run.instances(0)["instance"]) == kept


def test_steps_of_every_kth_solve_are_kept_and_of_the_last(tmp_path, feed):
    solves = [feed(seed=seed) for seed in range(9)]
    with Inspector(tmp_path / "run", every=3) as inspector:
        for one in solves:
            one.into(inspector)
    run = open_run(tmp_path / "run")
    assert run.n_solves == 9
    kept = [solve for solve in range(9) if len(run.steps(solve))]
    assert kept == [0, 3, 6, 8]
    assert np.array_equal(run.steps(8)["dt"], solves[8].rows("dt"))
    assert run.solves().groupby("solve")["n_steps"].sum().tolist() == [
        len(one.rows("dt")) for one in solves
    ]
    rows = sum(len(one.rows("dt")) for one in solves)
    assert run.verify() == []
    assert run.thinned == {"rows": rows - len(run.steps()), "solves": 5}


def test_the_same_inspector_twice_records_once(tmp_path, feed):
    one = feed()
    with Inspector(tmp_path / "run") as inspector:
        one.into(inspector, inspector)
    run = open_run(tmp_path / "run")
    assert run.n_solves == 1
    assert len(run.steps(0)) == len(one.rows("t"))


def test_interleaved_solves_are_kept_apart(tmp_path, feed):
    a, b = feed(seed=1, attempts=70), feed(seed=2, attempts=70, batch=3)
    with Inspector(tmp_path / "run", statistics=STATISTICS) as inspector:
        for solve in (a, b):
            inspector.on_solve_start(solve.info)
        for pair in zip(a.blocks, b.blocks, strict=True):
            for block in pair:
                inspector.on_steps(block)
        for solve in (b, a):
            inspector.on_solve_end(solve.end)
    run = open_run(tmp_path / "run")
    for number, solve in enumerate((a, b)):
        assert np.array_equal(run.steps(number)["dt"], solve.rows("dt"))


def test_solves_in_several_threads_are_all_there(tmp_path, feed):
    solves = [feed(seed=seed, attempts=100) for seed in range(6)]
    with Inspector(tmp_path / "run", statistics=()) as inspector:
        threads = [threading.Thread(target=solve.into, args=(inspector,)) for solve in solves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    run = open_run(tmp_path / "run")
    stored = {tuple(run.steps(number)["dt"]) for number in range(6)}
    assert stored == {tuple(solve.rows("dt")) for solve in solves}


def test_solves_with_other_columns_and_sizes_follow_each_other(tmp_path, feed):
    with Inspector(tmp_path / "run", states=1) as inspector:
        feed(statistics=("factor",)).into(inspector)
        feed(statistics=("factor", "limiter"), batch=9, dim=5).into(inspector)
        feed(statistics=(), batch=1).into(inspector)
    run = open_run(tmp_path / "run")
    assert run.solve_table()["batch"].tolist() == [5, 9, 1]
    assert "limiter" not in run.steps(0)
    assert "limiter" in run.steps(1)
    assert run.steps()["limiter"].isna().sum() == len(run.steps(0)) + len(run.steps(2))
    assert [column for column in run.states(1) if column[0] == "y"] == [
        "y0",
        "y1",
        "y2",
        "y3",
        "y4",
    ]
    assert run.columns["limiter"]["labels"][0] == "accuracy"
    assert run.verify() == []


def test_an_empty_batch_and_a_solve_without_steps_are_recorded(tmp_path, feed):
    with Inspector(tmp_path / "run", states=2) as inspector:
        feed(batch=1, attempts=0).into(inspector)
        solve_ivp(decay, torch.ones(0, 2), t0=0.0, t1=1.0, hooks=[inspector])
    run = open_run(tmp_path / "run")
    assert run.n_solves == 2
    assert len(run.steps()) == 0
    assert run.solves()["solve"].tolist() == [0]
    assert run.instances(1).empty
    assert run.verify() == []


def test_a_failed_row_has_its_message(tmp_path):
    with Inspector(tmp_path / "run") as inspector:
        sol = solve_ivp(
            lambda t, y: y**2, torch.tensor([[1.0], [-1.0]]), t0=0.0, t1=2.0, hooks=[inspector]
        )
    solves = open_run(tmp_path / "run").solves()
    assert solves["status"].tolist() == sol.status.tolist()
    assert solves["status_name"][1] == "SUCCESS"
    assert solves["message"].tolist() == [sol.message(0), ""]
    assert solves["t_reached"][0] == pytest.approx(1.0, abs=1e-2)


def test_a_solve_that_breaks_off_says_why(tmp_path):
    def broken(t, y):
        if t[0] > 0.5:
            raise ZeroDivisionError("no")
        return -y

    with pytest.raises(ZeroDivisionError), Inspector(tmp_path / "run") as inspector:
        solve_ivp(broken, torch.ones(2, 1), t0=0.0, t1=1.0, hooks=[inspector])
    run = open_run(tmp_path / "run")
    assert run.status == "failed"
    assert run.solve_table()["error"][0] == "ZeroDivisionError: no"
    assert not run.solve_table()["finished"][0]
    assert run.solve_table()["n_attempts"][0] == run.steps(0)["attempt"].max() + 1
    assert run.events()["text"].tolist() == ["ZeroDivisionError: no"]
    rows = run.solves()
    assert rows["status_name"].tolist() == ["INTERRUPTED"] * 2
    assert (rows["t_reached"] <= 0.5).all()
    assert (rows["n_steps"] == run.steps(0).groupby("instance").size()).all()


def test_numbers_are_logged_exactly_and_the_file_is_valid_json(tmp_path):
    values = [1.0, math.nan, math.inf, -math.inf, 2.0, 0.1, -0.0, 5e-324]
    with Inspector(tmp_path / "run") as inspector:
        for value in values:
            inspector.log(loss=value, other=torch.tensor(value, dtype=torch.float64))
    run = open_run(tmp_path / "run")
    scalars = run.scalars()
    for name in ("loss", "other"):
        mine = scalars[scalars["name"] == name]
        assert mine["iteration"].tolist() == list(range(len(values)))
        assert [repr(value) for value in mine["value"]] == [repr(value) for value in values]
    (file,) = (tmp_path / "run" / "scalars").iterdir()
    for line in file.read_text().splitlines():
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.mark.parametrize(
    "value", [3, True, np.float32(0.5), np.array([2.5]), torch.tensor([[4.0]]), torch.tensor(7)]
)
def test_what_looks_like_a_number_can_be_logged(tmp_path, value):
    with Inspector(tmp_path / "run") as inspector:
        inspector.log(x=value)
    assert open_run(tmp_path / "run").scalars()["value"].tolist() == [
        float(np.asarray(value).ravel()[0])
    ]


@pytest.mark.parametrize("value", ["high", None, torch.ones(2), [1.0, 2.0], torch.tensor(1j)])
def test_what_is_no_number_is_refused_by_name(tmp_path, value):
    with (
        Inspector(tmp_path / "run") as inspector,
        pytest.raises(TypeError, match=r"log\(x=\.\.\.\)"),
    ):
        inspector.log(x=value)


def test_a_logged_tensor_is_not_kept_and_may_change_afterwards(tmp_path):
    value = torch.tensor(1.0, requires_grad=True)
    with Inspector(tmp_path / "run") as inspector:
        inspector.log(x=value * 2)
        with torch.no_grad():
            value.fill_(9.0)
    assert open_run(tmp_path / "run").scalars()["value"].tolist() == [2.0]


def test_an_iteration_owns_what_happens_in_it(tmp_path, feed):
    with Inspector(tmp_path / "run") as inspector:
        for step in (10, 11):
            with inspector.iteration(step) as number:
                assert number == step
                feed().into(inspector)
                inspector.log(a=1, b=2)
        with inspector.iteration() as number:
            assert number == 12
        inspector.iteration(3)
        inspector.log(a=5)
        with pytest.raises(TypeError, match=r"step=1\.5"):
            inspector.iteration(1.5)
    run = open_run(tmp_path / "run")
    assert run.solve_table()["iteration"].tolist() == [10, 11]
    assert run.scalars()["iteration"].tolist() == [3, 10, 10, 11, 11]


def test_events_keep_their_data(tmp_path):
    with Inspector(tmp_path / "run") as inspector:
        inspector.event("learning_rate", "halved", value=0.5)
    events = open_run(tmp_path / "run").events()
    assert events[["kind", "text", "value"]].to_numpy().tolist() == [
        ["learning_rate", "halved", 0.5]
    ]


def test_parameters_of_the_instances_stand_beside_them(tmp_path, feed):
    mu = torch.arange(5.0)
    with Inspector(tmp_path / "run", parameters={"mu": mu}) as inspector:
        feed().into(inspector)
        inspector.note_parameters({"nu": mu * 2})
    instances = open_run(tmp_path / "run").instances(0)
    assert instances["mu"].tolist() == instances["instance"].astype(float).tolist()
    assert (instances["nu"] == 2 * instances["mu"]).all()


@pytest.mark.parametrize("how", ["copy", "deepcopy", "pickle", "torch.save"])
def test_a_copied_model_does_not_record_a_second_time(tmp_path, feed, how):
    class Model(torch.nn.Module):
        def __init__(self, inspector):
            super().__init__()
            self.inspector = inspector
            self.layer = torch.nn.Linear(2, 2)

    one = feed()
    with Inspector(tmp_path / "run") as inspector:
        if how == "copy":
            other = copy.copy(inspector)
        elif how == "deepcopy":
            model = Model(inspector)
            other = copy.deepcopy(model).inspector
            assert model.inspector is inspector
        elif how == "pickle":
            other = pickle.loads(pickle.dumps(inspector))
        else:
            file = io.BytesIO()
            torch.save({"inspector": inspector}, file)
            file.seek(0)
            other = torch.load(file, weights_only=False)["inspector"]
        assert other.closed
        assert not inspector.closed
        one.into(inspector, other)
        other.log(loss=1.0)
        other.event("x", "y")
        assert other.flush()
        other.close()
        solve_ivp(decay, torch.ones(2, 1), t0=0.0, t1=1.0, hooks=[other])
    run = open_run(tmp_path / "run")
    assert run.n_solves == 1
    assert len(run.steps(0)) == len(one.rows("t"))
    assert run.scalars().empty


def test_without_with_the_run_is_closed_when_the_inspector_is_gone(tmp_path, feed):
    inspector = Inspector(tmp_path / "run")
    feed().into(inspector)
    del inspector
    gc.collect()
    assert open_run(tmp_path / "run").status == "finished"


def test_without_with_the_run_is_closed_when_python_ends(tmp_path):
    code = (
        "import torch; from inspector import Inspector; from solver import solve_ivp\n"
        f"insp = Inspector({str(tmp_path / 'run')!r})\n"
        "solve_ivp(lambda t, y: -y, torch.ones(3, 1), t0=0.0, t1=1.0, hooks=[insp])\n"
        "insp.log(loss=1)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    run = open_run(tmp_path / "run")
    assert run.status == "finished"
    assert run.n_solves == len(run.scalars()) == 1


def test_nothing_is_recorded_after_close(tmp_path, feed):
    inspector = Inspector(tmp_path / "run")
    inspector.close("cancelled")
    inspector.close()
    feed().into(inspector)
    inspector.log(loss=1.0)
    run = open_run(tmp_path / "run")
    assert run.status == "cancelled"
    assert run.n_solves == 0
    with pytest.raises(ValueError, match="status='done'"):
        inspector.close("done")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"path": ""}, ValueError, "path=''"),
        ({"path": "runs/.."}, ValueError, "folder of a run"),
        ({"path": "x" * 300}, ValueError, "255 bytes"),
        ({"statistics": "some"}, ValueError, "statistics='some'"),
        ({"statistics": ["limter"]}, ValueError, "limiter"),
        ({"statistics": [3]}, TypeError, "statistics holds 3"),
        ({"every": 0}, ValueError, "every=0"),
        ({"instances": [-1]}, ValueError, "instances holds -1"),
        ({"states": -2}, ValueError, "states=-2"),
        ({"states": "all"}, TypeError, "states='all'"),
        ({"flush": "never"}, ValueError, "flush='never'"),
        ({"on_full": "wait"}, ValueError, "on_full='wait'"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path, arguments, error, match):
    with pytest.raises(error, match=match):
        Inspector(**{"path": tmp_path / "run", **arguments})
    assert not (tmp_path / "run").exists()


def test_a_run_is_read_by_pyarrow_and_json_alone(tmp_path, feed):
    one = feed()
    with Inspector(tmp_path / "run", statistics=STATISTICS, note="héllo") as inspector:
        one.into(inspector)
    (file,) = (tmp_path / "run" / "steps").glob("*.arrows")
    with pa.ipc.open_stream(file.read_bytes()) as stream:
        table = stream.read_all()
    assert table.schema.names == [*STEP_NAMES, *STATISTICS]
    assert np.array_equal(table["dt"].to_numpy(), one.rows("dt"))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["note"] == "héllo"
