"""A torchode training is recorded by one line, row by row, forward and backward."""

import copy
import pickle

import pytest
import torch
from torch import nn

from inspector import Inspector, open_run

torchode = pytest.importorskip("torchode", reason="torchode is not installed")


class Field(nn.Module):
    """Rows of very different speed."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, t, y):
        return self.layers(y) - y * torch.tensor([1.0, 60.0])


def make(kind="AutoDiffAdjoint", **settings):
    term = torchode.ODETerm(Field())
    step = torchode.Dopri5(term=term)
    controller = torchode.PIDController(1e-6, 1e-4, 0.2, 0.5, 0.0, term=term, **settings)
    first = [term] if kind != "AutoDiffAdjoint" else []
    return getattr(torchode, kind)(*first, step, controller)


def problem(rows=4):
    t_eval = torch.linspace(0.0, 1.0, 4).repeat(rows, 1)
    y0 = torch.linspace(0.1, 3.0, rows)[:, None] * torch.ones(2)
    return torchode.InitialValueProblem(y0=y0, t_eval=t_eval)


def test_every_attempt_of_every_row_is_there(tmp_path):
    solver = make()
    plain = solver.solve(problem())
    with Inspector(tmp_path / "run") as inspector:
        inspector.attach_torchode(solver)
        sol = solver.solve(problem())
    assert torch.equal(sol.ys, plain.ys)
    run = open_run(tmp_path / "run")
    rows, steps = run.solves(), run.steps(0)
    assert rows["n_steps"].tolist() == sol.stats["n_steps"].tolist()
    assert rows["n_accepted"].tolist() == sol.stats["n_accepted"].tolist()
    assert rows["n_f_evals"].max() == sol.stats["n_f_evals"].max()
    assert rows["n_f_evals"].nunique() > 1  # what each row needed
    assert steps.groupby("instance").size().tolist() == rows["n_steps"].tolist()
    assert steps.groupby("instance")["accepted"].sum().tolist() == rows["n_accepted"].tolist()
    assert ((steps["error_ratio"] < 1) == (steps["accepted"] == 1)).all()
    taken = steps[steps["accepted"] == 1]
    assert taken.groupby("instance")["dt"].sum().tolist() == pytest.approx([1.0] * 4)
    assert (steps["limiting_component"] == 1).mean() > 0.5
    line = run.solve_table().iloc[0]
    assert (line["method"], line["controller"], line["rtol"]) == ("dopri5", "PIDController", 1e-4)
    assert run.verify() == []


@pytest.mark.parametrize(
    ("kind", "mode"), [("BacksolveAdjoint", "continuous"), ("JointBacksolveAdjoint", "joint")]
)
def test_the_backward_solves_belong_to_their_forward_solve(tmp_path, kind, mode):
    solver = make(kind)
    with Inspector(tmp_path / "run") as inspector:
        inspector.attach_torchode(solver)
        for step in range(2):
            with inspector.iteration(step):
                solver.solve(problem(2)).ys.sum().backward()
        with torch.no_grad():
            solver.solve(problem(2))
    run = open_run(tmp_path / "run")
    assert run.n_solves == 2 * (1 + 3) + 1
    assert [run.settings(n).get("backward_of") for n in range(9)] == [
        None, 0, 0, 0, None, 4, 4, 4, None,
    ]  # fmt: skip
    first = run.iterations().iloc[0]
    assert first["adjoint"] == mode
    assert first["backward_nfe"] > 0
    assert first["backward_pass_calls"] == first["backward_calls"] > 0
    assert first["checkpoint_bytes"] == 2 * 2 * 8 * 4
    assert first["backward_steps"] == sum(len(run.steps(solve)) for solve in (1, 2, 3))
    assert run.steps(1)["dt"].max() < 0


def test_rows_that_were_stopped_by_a_neighbour_are_not_called_finished(tmp_path):
    class Broken(Field):
        def forward(self, t, y):
            slope = super().forward(t, y)
            return torch.where(y[:, :1] > 2.5, torch.nan, slope)

    term = torchode.ODETerm(Broken())
    controller = torchode.IntegralController(1e-6, 1e-4, term=term)
    solver = torchode.AutoDiffAdjoint(torchode.Dopri5(term=term), controller)
    with Inspector(tmp_path / "run") as inspector:
        inspector.attach_torchode(solver)
        solver.solve(problem())
    rows = open_run(tmp_path / "run").solves()
    assert rows["status_name"].tolist() == ["INTERRUPTED"] * 3 + ["NON_FINITE"]


def test_attaching_leaves_no_trace_and_counts_once(tmp_path):
    solver = make("BacksolveAdjoint")
    keys, classes = list(solver.state_dict()), [type(each) for each in solver.modules()]
    with Inspector(tmp_path / "run") as inspector:
        detach = inspector.attach_torchode(solver)
        inspector.attach_torchode(solver)
        assert isinstance(solver, torchode.BacksolveAdjoint)
        assert list(solver.state_dict()) == keys
        other = make()
        inspector.attach_torchode(other)
        for copied in (copy.deepcopy(other), pickle.loads(pickle.dumps(other))):
            copied.solve(problem())
        solver.solve(problem())
        assert inspector.flush()
        detach()
        solver.solve(problem())
    assert open_run(tmp_path / "run").n_solves == 1
    assert [type(each) for each in solver.modules()] == classes


def test_a_solve_that_breaks_off_says_why(tmp_path):
    class Broken(Field):
        def forward(self, t, y):
            if t[0] > 0.5:
                raise ZeroDivisionError("no")
            return super().forward(t, y)

    term = torchode.ODETerm(Broken())
    controller = torchode.IntegralController(1e-6, 1e-4, term=term)
    solver = torchode.AutoDiffAdjoint(torchode.Tsit5(term=term), controller)
    with Inspector(tmp_path / "run") as inspector:
        inspector.attach_torchode(solver)
        with pytest.raises(ZeroDivisionError):
            solver.solve(problem())
    assert open_run(tmp_path / "run").solve_table()["error"][0] == "ZeroDivisionError: no"


def test_something_else_is_refused(tmp_path):
    with (
        Inspector(tmp_path / "run") as inspector,
        pytest.raises(TypeError, match="AutoDiffAdjoint"),
    ):
        inspector.attach_torchode(nn.Linear(1, 1))
