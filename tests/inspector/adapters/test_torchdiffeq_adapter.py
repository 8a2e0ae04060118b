"""A torchdiffeq training is recorded by one line, forward and backward."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from inspector import Inspector, open_run

torchdiffeq = pytest.importorskip("torchdiffeq", reason="torchdiffeq is not installed")
T = torch.linspace(0.0, 1.0, 4, dtype=torch.float64)


class Field(nn.Module):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        self.calls = 0

    def forward(self, t, y):
        self.calls += 1
        return self.layers(y) - y * torch.tensor([1.0, 20.0]) * (1 + 5 * (t > 0.5))


class Log:
    """What torchdiffeq's own callbacks say."""

    def __init__(self, field):
        self.tried, self.taken = [], []
        field.callback_step = lambda t0, y0, dt: self.tried.append((t0.item(), dt.item()))
        field.callback_accept_step = lambda t0, y0, dt: self.taken.append(t0.item())
        field.callback_reject_step = lambda t0, y0, dt: None


@pytest.mark.parametrize("method", ["dopri5", "dopri8", "bosh3", "adaptive_heun", "fehlberg2"])
@pytest.mark.parametrize("times", [T, T.flip(0)], ids=["forward", "backward"])
def test_what_was_tried_and_taken_is_what_its_callbacks_say(tmp_path, method, times):
    field = Field()
    log = Log(field)
    with Inspector(tmp_path / "run") as inspector:
        inspector.attach_torchdiffeq(field)
        torchdiffeq.odeint(field, torch.ones(3, 2), times, method=method, rtol=1e-4, atol=1e-6)
    run = open_run(tmp_path / "run")
    steps, line = run.steps(0), run.solves().iloc[0]
    sign = 1 if times[0] == 0 else -1
    assert steps["t"].tolist() == [t0 for t0, _ in log.tried]
    assert steps["dt"].tolist() == pytest.approx([sign * dt for _, dt in log.tried], rel=1e-12)
    assert steps[steps["accepted"] == 1]["t"].tolist() == log.taken
    assert line["n_rejected"] == len(log.tried) - len(log.taken)
    assert line["status_name"] == "SUCCESS"
    assert line["n_f_evals"] == field.calls
    table = run.solve_table().iloc[0]
    assert (table["method"], table["rtol"], table["batch"], table["dim"]) == (method, 1e-4, 1, 6)
    known = steps[steps["error_ratio"].notna()]
    assert len(known) > 0
    assert ((known["error_ratio"] <= 1) == (known["accepted"] == 1)).all()


def test_the_error_ratio_is_what_torchdiffeq_computed(tmp_path, monkeypatch):
    from torchdiffeq._impl import rk_common

    true = []
    original = rk_common._compute_error_ratio

    def spied(*args):
        true.append(original(*args).item())
        return original(*args)

    monkeypatch.setattr(rk_common, "_compute_error_ratio", spied)
    field = Field()
    with Inspector(tmp_path / "run") as inspector:
        inspector.attach_torchdiffeq(field)
        torchdiffeq.odeint(field, torch.ones(3, 2), T, rtol=1e-4, atol=1e-6)
    stored = open_run(tmp_path / "run").steps(0)["error_ratio"].to_numpy()
    known = np.isfinite(stored)
    assert known.mean() > 0.5
    assert stored[known] == pytest.approx(np.array(true)[known], rel=1e-4)
    assert not known[-1]


@pytest.mark.parametrize("method", ["euler", "midpoint", "heun3", "rk4"])
def test_fixed_steps_are_recorded_without_a_warning(tmp_path, method):
    field = Field()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Inspector(tmp_path / "run") as inspector:
            inspector.attach_torchdiffeq(field)
            torchdiffeq.odeint(
                field, torch.ones(3, 2), T, method=method, options={"step_size": 0.1}
            )
    run = open_run(tmp_path / "run")
    assert len(run.steps(0)) == 10
    assert run.steps(0)["accepted"].all()
    assert run.solves()["n_f_evals"][0] == field.calls


def test_the_adjoint_is_recorded_interval_by_interval(tmp_path):
    field = Field()
    with Inspector(tmp_path / "run") as inspector:
        inspector.attach_torchdiffeq(field)
        for step in range(2):
            with inspector.iteration(step):
                ys = torchdiffeq.odeint_adjoint(field, torch.ones(3, 2), T, rtol=1e-4, atol=1e-6)
                forward, field.calls = field.calls, 0
                ys.sum().backward()
                backward, field.calls = field.calls, 0
        with torch.no_grad():
            torchdiffeq.odeint_adjoint(field, torch.ones(3, 2), T)
    run = open_run(tmp_path / "run")
    assert [run.settings(n).get("backward_of") for n in range(9)] == [
        None, 0, 0, 0, None, 4, 4, 4, None,
    ]  # fmt: skip
    last = run.iterations().iloc[1]
    assert last["adjoint"] == "joint"
    assert last["forward_nfe"] == forward
    assert last["backward_nfe"] == last["backward_pass_calls"] == backward
    assert last["backward_pass_seconds"] > 0
    assert run.steps(1)["dt"].max() < 0
    assert run.verify() == []


def test_tuples_and_a_solve_that_underflows(tmp_path):
    def field(t, y):
        return y[0] ** 2, y[1]

    with Inspector(tmp_path / "run") as inspector:
        inspector.attach_torchdiffeq(field)
        with pytest.raises(AssertionError):
            torchdiffeq.odeint(field, (torch.ones(2), torch.ones(3)), torch.tensor([0.0, 2.0]))
        torchdiffeq.odeint(field, (torch.ones(2), torch.ones(3)), torch.tensor([0.0, 0.5]))
    rows = open_run(tmp_path / "run").solves()
    assert rows["status_name"].tolist() == ["INTERRUPTED", "SUCCESS"]
    assert rows["t_reached"][0] == pytest.approx(1.0, abs=1e-3)


def test_attaching_leaves_no_trace_and_counts_once(tmp_path):
    field = Field()
    before = set(vars(field))
    with Inspector(tmp_path / "run") as inspector:
        detach = inspector.attach_torchdiffeq(field)
        inspector.attach_torchdiffeq(field)
        for copied in (copy.deepcopy(field), pickle.loads(pickle.dumps(field))):
            torchdiffeq.odeint(copied, torch.ones(3, 2), T)
        torchdiffeq.odeint(field, torch.ones(3, 2), T)
        detach()
        torchdiffeq.odeint(field, torch.ones(3, 2), T)
        assert set(vars(field)) == before
        with pytest.raises(TypeError, match="attach_torchdiffeq got a int"):
            inspector.attach_torchdiffeq(3)
    assert open_run(tmp_path / "run").n_solves == 1


def test_a_closed_recorder_does_not_disturb(tmp_path):
    field = Field()
    inspector = Inspector(tmp_path / "run")
    inspector.attach_torchdiffeq(field)
    inspector.close()
    torchdiffeq.odeint(field, torch.ones(3, 2), T)
    assert open_run(tmp_path / "run").n_solves == 0
