"""A training tells what it did, iteration by iteration, and nothing recorded can hurt it."""

import copy
import gc
import io
import math
import pickle
import shutil
import time
import warnings

import pytest
import torch
from torch import nn

from inspector import Inspector, open_run
from inspector.samples import hard_samples, visits
from inspector.store.files import read_json, write_json
from inspector.store.writer import RunWriter
from solver import solve_ivp
from solver.optim import AdamW, Lion

T = torch.linspace(0, 1, 4, dtype=torch.float64)


class Net(nn.Module):
    """A small vector field."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, t, y):
        return self.layers(y)


def train(inspector, steps, adjoint="symplectic", optimizer=None, net=None, **iteration):
    """Do some iterations and return the solutions and gradient norms."""
    torch.manual_seed(1)
    net = Net() if net is None else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1) if optimizer is None else optimizer
    inspector.watch(net, optimizer)
    sols, norms = [], []
    for step in steps:
        with inspector.iteration(step, **iteration):
            sol = solve_ivp(net, torch.randn(5, 2), T, adjoint=adjoint, hooks=[inspector])
            loss = sol.ys.square().mean()
            optimizer.zero_grad()
            loss.backward()
            norms.append(float(torch.stack([p.grad.norm() for p in net.parameters()]).norm()))
            optimizer.step()
            inspector.log(loss=loss)
            sols.append(sol)
    return sols, norms


@pytest.mark.parametrize("adjoint", ["backprop", "symplectic", "aca", "continuous"])
def test_an_iteration_says_what_its_solves_took(tmp_path, adjoint):
    with Inspector(tmp_path / "run") as inspector:
        sols, norms = train(inspector, range(3), adjoint)
    run = open_run(tmp_path / "run")
    table = run.iterations()
    assert table["iteration"].tolist() == [0, 1, 2]
    assert table["adjoint"].unique().tolist() == [adjoint]
    for at, sol in enumerate(sols):
        line = table.iloc[at]
        assert line["forward_nfe"] == sol.stats.n_f_evals.sum()
        assert line["forward_steps"] == sol.stats.n_steps.sum()
        assert line["forward_steps_max"] == sol.stats.n_steps.max()
        assert line["forward_steps_median"] == sol.stats.n_steps.sort().values[2]
        assert line["forward_refused"] == sol.stats.n_rejected.sum()
        assert line["forward_failed"] == 0
    assert table["grad_norm"].tolist() == pytest.approx(norms, rel=1e-12)
    assert table["lr"].tolist() == [0.1] * 3
    assert (table["seconds"] >= table["forward_seconds"] + table["backward_seconds"]).all()
    assert (table["forward_seconds"] > table["f_seconds"]).all()
    assert (table["f_seconds"] > 0).all()
    assert table["loss"].notna().all()
    if adjoint != "backprop":
        assert (table["backward_pass_seconds"] > 0).all()
        assert (table["checkpoint_bytes"] > 0).all()
        assert (table["gradient_bytes"] > 0).all()
    if adjoint == "continuous":
        assert run.n_solves == 6
        assert (table["backward_nfe"] > 0).all()
        assert (table["backward_steps_max"] >= 1).all()
        assert [run.settings(n).get("backward_of") for n in range(6)] == [None, 0, None, 2, None, 4]
    assert run.scalars()["name"].unique().tolist() == ["loss"]
    assert run.verify() == []


def test_the_update_is_measured_against_the_parameters(tmp_path):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    before = torch.cat([p.detach().reshape(-1).clone() for p in net.parameters()])
    with Inspector(tmp_path / "run") as inspector:
        inspector.watch(optimizer, every=2)
        for step in range(3):
            with inspector.iteration(step):
                optimizer.zero_grad()
                net(T, torch.ones(3, 2)).square().sum().backward()
                optimizer.step()
            if step == 0:
                after = torch.cat([p.detach().reshape(-1) for p in net.parameters()]).clone()
    table = open_run(tmp_path / "run").iterations()
    ratio = float((after - before).norm() / before.norm())
    assert table["update_ratio"][0] == pytest.approx(ratio, rel=1e-12)
    assert table["param_norm"][0] == pytest.approx(float(before.norm()), rel=1e-12)
    assert table["update_ratio"].notna().tolist() == [True, False, True]
    assert table["grad_norm"].notna().all()


def test_what_an_optimizer_tells_is_kept(tmp_path):
    net = Net()
    with Inspector(tmp_path / "run") as inspector:
        train(inspector, range(2), optimizer=AdamW(net.parameters(), lr=1e-3), net=net)
        train(inspector, range(2, 4), optimizer=Lion(net.parameters(), lr=1e-3), net=net)
    table = open_run(tmp_path / "run").iterations()
    assert table["optim_effective_step_median"].notna().tolist() == [True, False, False, False]
    assert table["optim_sign_agreement_2"].notna().tolist() == [False, False, True, False]
    assert open_run(tmp_path / "run").events()["text"].tolist() == ["AdamW", "Lion"]


def test_steps_without_a_context_are_iterations_too(tmp_path):
    net, torch_lr = Net(), 1e-2
    optimizer = torch.optim.SGD(net.parameters(), lr=torch_lr)
    with Inspector(tmp_path / "run") as inspector:
        inspector.watch(optimizer)
        for at in range(4):
            sol = solve_ivp(net, torch.randn(5, 2), T, hooks=[inspector])
            optimizer.zero_grad()
            sol.ys.square().mean().backward()
            optimizer.step()
            assert inspector.step(loss=at) == at + 1
    table = open_run(tmp_path / "run").iterations()
    assert table["iteration"].tolist()[:4] == [0, 1, 2, 3]
    assert table["loss"].tolist()[:4] == [0, 1, 2, 3]
    assert table["solves"].tolist()[:4] == [1, 1, 1, 1]
    assert table["grad_norm"][:4].notna().all()


def test_numbers_logged_without_iterations_own_the_solves_before_them(tmp_path, feed):
    with Inspector(tmp_path / "run") as inspector:
        for at in range(3):
            feed(seed=at).into(inspector)
            feed(seed=at + 10, batch=3).into(inspector)
            inspector.log(loss=at, other=1)
        feed().into(inspector)
    table = open_run(tmp_path / "run").iterations()
    assert table["loss"].tolist() == [0, 1, 2]
    assert table["solves"].tolist() == [2, 2, 2]
    assert table["solve"].tolist() == [0, 2, 4]
    assert table["rows"].tolist() == [8, 8, 8]


def test_a_resumed_training_takes_over_from_where_it_begins(tmp_path):
    path = tmp_path / "run"
    first = Inspector(path)
    train(first, range(8))
    first.close("interrupted")
    with Inspector(path) as second:
        assert second.last_recorded == 7
        train(second, range(5, 7))
    with Inspector(path) as third:
        with third.iteration() as number:
            assert number == 8
        with third.iteration() as number:
            assert number == 9
    run = open_run(path)
    table = run.iterations()
    assert table["iteration"].is_monotonic_increasing
    assert len(table) == 8 + 2 + 2
    current = table[table["current"]]
    assert current["iteration"].tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert current["session"].tolist() == [0] * 5 + [1] * 2 + [2] * 2
    assert run.ranks()["session"].tolist() == [0, 1, 2]
    assert run.ranks()["last_iteration"].tolist() == [7, 6, 9]
    assert run.id == "run"


def test_a_clock_that_was_set_back_changes_no_order_and_is_said(tmp_path, feed):
    path = tmp_path / "run"
    with Inspector(path) as inspector:
        feed(seed=1).into(inspector)
    (file,) = (path / "writers").iterdir()
    record = read_json(file)[0]
    write_json(file, record | {"ended": time.time() + 7200})
    with Inspector(path) as inspector:
        feed(seed=2, batch=3).into(inspector)
    run = open_run(path)
    assert run.solve_table()["batch"].tolist() == [5, 3]
    assert run.ranks()["session"].tolist() == [0, 1]
    (text,) = run.events()["text"]
    assert "clock stands 7200 s behind" in text


def test_samples_that_are_hard_are_found_by_their_ids(tmp_path):
    rates = torch.linspace(1.0, 60.0, 12)
    with Inspector(tmp_path / "run") as inspector:
        for at in range(4):
            ids = torch.randperm(12)[:6] if at else torch.arange(6)
            with inspector.iteration(at, sample_ids=ids, epoch=at // 2):
                solve_ivp(
                    lambda t, y, k: -k[:, None] * (y - t.cos()[:, None]),
                    torch.ones(6, 1), t0=0.0, t1=2.0, args=rates[ids], hooks=[inspector],
                )  # fmt: skip
    run = open_run(tmp_path / "run")
    found = visits(run)
    assert len(found) == 24
    steps = run.solves()
    for line in found.to_dict("records"):
        row = steps[(steps["solve"] == line["solve"]) & (steps["instance"] == line["instance"])]
        assert row["n_steps"].item() == line["n_steps"]
    hardest = hard_samples(run, 3)
    assert hardest["steps_last"].is_monotonic_decreasing
    assert hardest["sample"][0] == found["sample"].max()
    assert (found.groupby("sample")["visit"].max() + 1).sum() == 24
    assert run.iterations()["epoch"].tolist() == [0, 0, 1, 1]


def test_ids_may_be_words_and_must_fit(tmp_path):
    with Inspector(tmp_path / "run") as inspector:
        with inspector.iteration(0, sample_ids=["a/1", "b"]):
            solve_ivp(lambda t, y: -y, torch.ones(2, 1), t0=0.0, t1=1.0, hooks=[inspector])
            solve_ivp(lambda t, y: -y, torch.ones(3, 1), t0=0.0, t1=1.0, hooks=[inspector])
        with pytest.raises(TypeError, match=r"sample_ids holds 1\.5"):
            inspector.iteration(1, sample_ids=[1.5])
        with pytest.raises(ValueError, match=r"sample_ids is a torch\.float64 tensor"):
            inspector.iteration(1, sample_ids=torch.ones(3))
    run = open_run(tmp_path / "run")
    assert visits(run)["sample"].tolist() == ["a/1", "b"]
    assert run.events()["text"].tolist() == ["sample_ids names 2 samples, a solve has 3 rows"]


def test_all_solves_of_an_iteration_are_thinned_together(tmp_path):
    with Inspector(tmp_path / "run", every=3) as inspector:
        train(inspector, range(8), "continuous")
    run = open_run(tmp_path / "run")
    table = run.solve_table()
    stored = [bool(len(run.steps(solve))) for solve in range(run.n_solves)]
    kept = dict(zip(table["iteration"], stored, strict=True))
    assert {at for at in kept if kept[at]} >= {0, 3, 6, 7}
    for at in range(8):
        assert [s for s, i in zip(stored, table["iteration"], strict=True) if i == at] == [
            kept[at]
        ] * 2
    assert table["n_steps"].notna().all()
    assert run.iterations()["forward_nfe"].notna().all()
    assert run.verify() == []


def test_the_worst_that_is_left_out_is_kept_all_the_same(tmp_path, feed):
    attempts = [20, 20, 90, 30, 20, 20, 20, 20, 95, 20, 20]
    with Inspector(tmp_path / "run", every=5, statistics=()) as inspector:
        for seed, many in enumerate(attempts):
            feed(attempts=many, seed=seed).into(inspector)
    run = open_run(tmp_path / "run")
    kept = [solve for solve in range(run.n_solves) if len(run.steps(solve))]
    assert kept == [0, 2, 5, 8, 10]
    assert run.steps(8)["attempt"].max() == 94
    assert run.solve_table()["rows"][8] == len(run.steps(8))
    assert run.verify() == []


@pytest.mark.parametrize("limit", ["budget_rows", "budget_bytes"])
def test_a_budget_thins_evenly_and_keeps_the_worst_and_the_last(tmp_path, feed, limit):
    one = feed(attempts=20)
    rows = len(one.rows("dt"))
    most = 12 * rows if limit == "budget_rows" else 12 * 6000
    with Inspector(tmp_path / "run", statistics=(), **{limit: most}) as inspector:
        for seed in range(100):
            feed(attempts=60 if seed == 37 else 20, seed=seed).into(inspector)
    run = open_run(tmp_path / "run")
    kept = [solve for solve in range(100) if len(run.steps(solve))]
    assert {0, 37, 99} <= set(kept)
    assert run.n_solves == 100
    assert 5 <= len(kept) < 20
    stride = next(s for s in (1, 2, 4, 8, 16, 32, 64) if {*range(0, 100, s)} <= set(kept))
    assert 8 <= stride <= 32
    if limit == "budget_rows":
        assert len(run.steps()) <= most + 4 * 3 * rows
    else:
        assert (
            sum(file.stat().st_size for file in (tmp_path / "run" / "steps").iterdir()) < 2 * most
        )
    everything = sum(
        len(feed(attempts=60 if s == 37 else 20, seed=s).rows("dt")) for s in range(100)
    )
    assert run.thinned == {"rows": everything - len(run.steps()), "solves": 100 - len(kept)}
    assert run.verify() == []
    assert run.summary()["rows"] == len(run.steps())


def test_a_reader_follows_a_run_whose_steps_are_thinned(tmp_path, feed):
    with Inspector(tmp_path / "run", statistics=(), budget_rows=400) as inspector:
        feed(attempts=20).into(inspector)
        inspector.flush()
        run = open_run(tmp_path / "run")
        assert len(run.steps(0))
        for seed in range(1, 40):
            feed(attempts=20, seed=seed).into(inspector)
            if seed % 7 == 0:
                inspector.flush()
                run.refresh()
                run.steps()
                assert run.damage == []
    run.refresh()
    assert run.thinned["solves"] > 20
    assert len(run.steps(39))
    assert run.verify() == []


@pytest.mark.parametrize("bad", [0, -1, True])
def test_a_budget_of_nothing_is_refused(tmp_path, bad):
    with pytest.raises(ValueError, match="budget_rows"):
        Inspector(tmp_path / "run", budget_rows=bad)


def test_watching_leaves_no_trace_on_what_is_watched(tmp_path):
    net = Net()
    before = set(vars(net))
    optimizer = AdamW(net.parameters())
    inspector = Inspector(tmp_path / "run")
    inspector.watch(net, optimizer)
    inspector.watch(net, optimizer)
    assert set(vars(net)) == before
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert set(vars(other)) == before
    copies = [copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    file = io.BytesIO()
    torch.save({"net": net, "optimizer": optimizer}, file)
    file.seek(0)
    copies.append(torch.load(file, weights_only=False)["optimizer"])
    train(inspector, range(2), net=net, optimizer=optimizer)
    for one in copies:
        one.step()
    inspector.unwatch()
    optimizer.step()
    inspector.close()
    optimizer.step()
    table = open_run(tmp_path / "run").iterations()
    assert table["grad_norm"].notna().sum() == 2  # once a step, and nothing from copies
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks


def test_a_watched_optimizer_does_not_keep_the_recorder(tmp_path):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    inspector = Inspector(tmp_path / "run")
    train(inspector, range(2), net=net, optimizer=optimizer)
    del inspector
    gc.collect()
    deadline = time.monotonic() + 30  # the last steps wait a moment to be written
    while open_run(tmp_path / "run").status != "finished" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert open_run(tmp_path / "run").status == "finished"
    optimizer.step()


def test_a_compiled_or_wrapped_model_can_be_watched(tmp_path):
    net = Net()
    with Inspector(tmp_path / "run") as inspector:
        inspector.watch(torch.compile(net, backend="eager"))
        with inspector.iteration(0):
            net(T, torch.ones(1, 2)).sum().backward()
    assert "grad_norm/layers.0" in open_run(tmp_path / "run").iterations()


def test_what_breaks_in_a_training_is_said_and_hurts_nothing(tmp_path):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Inspector(tmp_path / "run") as inspector:
            inspector.watch(net, optimizer)
            with inspector.iteration(0):
                loss = net(T, torch.ones(1, 2)).sum()
                (loss * math.nan).backward()
                optimizer.step()
                inspector.log(loss=loss * math.inf, **{"å λ/…": 1.0, "": 2.0})
                inspector.note("it breaks here")
                inspector.tag("broken")
    run = open_run(tmp_path / "run")
    assert not math.isfinite(run.iterations()["loss"][0])
    events = run.events()
    assert "the gradient of layers.0.weight is not finite" in events["text"].tolist()
    assert events[events["kind"] == "note"]["iteration"].tolist() == [0]
    assert run.meta["tags"] == ["broken"]
    assert set(run.scalars()["name"]) == {"loss", "å λ/…", ""}


def test_an_optimizer_that_cannot_tell_is_left_alone(tmp_path):
    class Odd(torch.optim.SGD):
        def statistics(self):
            raise RuntimeError("not today")

    net = Net()
    optimizer = Odd(net.parameters(), lr=0.1)
    with Inspector(tmp_path / "run") as inspector:
        _, norms = train(inspector, range(3), net=net, optimizer=optimizer)
    assert len(norms) == 3
    assert open_run(tmp_path / "run").events()["text"].tolist() == [
        "SGD".replace("SGD", "Odd"),
        "the optimizer is no longer watched: not today",
    ]


def test_watching_something_else_is_refused(tmp_path):
    with Inspector(tmp_path / "run") as inspector:
        with pytest.raises(TypeError, match="watch got a int"):
            inspector.watch(3)
        with pytest.raises(ValueError, match="every=0"):
            inspector.watch(Net(), every=0)


def test_ranks_are_one_run(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    inspectors = []
    for rank in (0, 1):
        monkeypatch.setenv("RANK", str(rank))
        inspectors.append(Inspector(tmp_path / "run"))
    for inspector, steps in zip(inspectors, (range(3), range(2)), strict=True):
        train(inspector, steps)
    inspectors[0].close()
    inspectors[1].close("failed")
    run = open_run(tmp_path / "run")
    ranks = run.ranks()
    assert ranks["rank"].tolist() == [0, 1]
    assert ranks["session"].tolist() == [0, 0]
    assert ranks["status"].tolist() == ["finished", "failed"]
    assert ranks["last_iteration"].tolist() == [2, 1]
    assert ranks["world_size"].tolist() == [2, 2]
    assert ranks["slowest_share"].sum() == pytest.approx(1.0)
    assert run.iterations()["rank"].tolist() == [0, 1, 0, 1, 0]
    assert run.iterations()["current"].all()


def test_writers_that_make_a_run_at_once_agree_on_it(tmp_path, monkeypatch):
    first = RunWriter(tmp_path / "run", note="first")
    created = read_json(tmp_path / "run" / "run.json")[0]
    write_json(tmp_path / "run" / "run.json", {"note": "late"}, new=True)
    assert read_json(tmp_path / "run" / "run.json")[0] == created
    first.close()


@pytest.mark.parametrize("trouble", ["no folder can be made", "the folder is deleted"])
def test_a_training_goes_on_whatever_the_disk_does(tmp_path, trouble):
    path = tmp_path / "run"
    if trouble == "no folder can be made":
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "run"
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        inspector = Inspector(path, every=2, budget_rows=1000)
        train(inspector, range(2), "continuous", net=net, optimizer=optimizer)
        if trouble == "the folder is deleted":
            inspector.flush()
            shutil.rmtree(path)
        sols, _ = train(inspector, range(2, 5), "continuous", net=net, optimizer=optimizer)
        inspector.close()
    assert len(sols) == 3
    assert sum(issubclass(each.category, RuntimeWarning) for each in told) == 1
    assert not path.exists()
