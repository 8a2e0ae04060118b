"""Counts equal what happened, and arguments are refused by name."""

import math

import pytest
import torch

from solver import Integral, catalogue, solve_ivp
from solver.errors import (
    InvalidArgument,
    SolverError,
    UnknownAdjoint,
    UnknownController,
    UnknownEngine,
    UnknownMethod,
)

METHODS = sorted(catalogue.methods())
TIGHT = {"rtol": 1e-6, "atol": 1e-6}


def options(name):
    fixed = catalogue.method_by_name(name).error_order is None
    return {"method": name, **({"dt0": 0.1} if fixed else {"rtol": 1e-5, "atol": 1e-5})}


class Counted:
    """Decay that counts its calls."""

    def __init__(self, rate=1.0):
        self.calls, self.rate = 0, rate

    def __call__(self, t, y):
        self.calls += 1
        return -self.rate * y


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("times", [None, [0.0, 2.0], [0.0, 0.3, 0.31, 1.99, 2.0]])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("jump_t", [None, 0.7])
def test_reported_evaluations_are_the_calls_made(name, times, dense, jump_t):
    f = Counted(3.0)
    for _ in range(2):
        f.calls = 0
        sol = solve_ivp(
            f, torch.ones(1, 2), times, t0=0.0, t1=2.0, dense=dense, jump_t=jump_t, **options(name)
        )
        assert sol.stats.n_f_evals.item() == sol.stats.n_f_calls == f.calls


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_reported_evaluations_are_the_calls_made_when_a_row_fails(name, limit):
    f = Counted(3.0)
    sol = solve_ivp(f, torch.ones(1, 1), t0=0.0, t1=2.0, max_steps=limit, **options(name))
    assert sol.stats.n_f_evals.item() == f.calls


@pytest.mark.parametrize("name", METHODS)
def test_counts_alone_are_the_counts_in_a_batch(name):
    rate = torch.tensor([[1.0], [40.0]])
    kwargs = {"t_eval": [0.0, 0.3, 1.0], **options(name)}
    both = solve_ivp(lambda t, y: -rate * y, torch.ones(2, 1), **kwargs)
    for row in range(2):
        alone = solve_ivp(lambda t, y, r=rate[row]: -r * y, torch.ones(1, 1), **kwargs)
        for count in ("n_steps", "n_accepted", "n_rejected", "n_f_evals"):
            assert both.stats[count][row] == alone.stats[count][0], count


def test_evaluations_wasted_on_finished_rows_are_visible():
    rate = torch.tensor([[1.0], [1000.0]])
    f = Counted(rate)
    sol = solve_ivp(f, torch.ones(2, 1), t0=0.0, t1=5.0, **TIGHT)
    assert sol.stats.n_rows_evaluated == 2 * f.calls
    assert sol.stats.n_f_evals[0] * 10 < sol.stats.n_f_evals[1]
    assert sol.stats.n_rows_evaluated > 1.5 * int(sol.stats.n_f_evals.sum())


def test_an_fsal_method_pays_six_evaluations_an_attempt():
    sol = solve_ivp(Counted(), torch.ones(1, 1), t0=0.0, t1=5.0, method="dopri5", **TIGHT)
    assert sol.stats.n_f_evals.item() == 6 * sol.stats.n_steps.item() + 2


def test_tolerances_may_differ_by_row_and_component():
    rtol = torch.tensor([[1e-3], [1e-9]])
    sol = solve_ivp(Counted(), torch.ones(2, 1), t0=0.0, t1=5.0, rtol=rtol, atol=1e-12)
    assert sol.stats.n_steps[1] > 4 * sol.stats.n_steps[0]
    alone = solve_ivp(Counted(), torch.ones(1, 1), t0=0.0, t1=5.0, rtol=1e-9, atol=1e-12)
    assert sol.stats.n_steps[1] == alone.stats.n_steps[0]
    per_row = solve_ivp(Counted(), torch.ones(2, 3), t0=0.0, t1=5.0, rtol=rtol[:, 0], atol=1e-12)
    assert torch.equal(per_row.stats.n_steps, sol.stats.n_steps)

    def f(t, y):
        return torch.stack([-y[:, 0], torch.cos(30 * t)], dim=1)

    loose = torch.tensor([1e-6, 10.0])
    blind = solve_ivp(f, torch.tensor([[1.0, 0.0]]), t0=0.0, t1=5.0, atol=loose, rtol=1e-6)
    strict = solve_ivp(f, torch.tensor([[1.0, 0.0]]), t0=0.0, t1=5.0, atol=1e-6, rtol=1e-6)
    assert blind.stats.n_steps[0] * 4 < strict.stats.n_steps[0]


def test_first_steps_and_bounds_may_differ_by_row():
    kwargs = {"t0": 0.0, "t1": 1.0, **TIGHT}
    dt_max = torch.tensor([0.01, 1.0])
    sol = solve_ivp(Counted(), torch.ones(2, 1), dt_max=dt_max, **kwargs)
    assert sol.stats.n_steps[0] >= 100 > 10 * sol.stats.n_steps[1] / 10
    dt0 = torch.tensor([1e-6, 0.1])
    first = solve_ivp(Counted(), torch.ones(2, 1), dt0=dt0, **kwargs)
    assert first.stats.n_steps[0] > first.stats.n_steps[1]


def test_fixed_steps_take_the_number_of_steps_they_promise():
    for n in (7, 10, 1000):
        sol = solve_ivp(Counted(), torch.ones(1, 1), t0=0.0, t1=1.0, method="rk4", dt0=1 / n)
        assert sol.stats.n_steps.item() == n
    embedded = solve_ivp(
        Counted(), torch.ones(1, 1), t0=0.0, t1=1.0, method="tsit5", controller="fixed", dt0=0.1
    )
    assert embedded.stats.n_steps.item() == 10


def test_dense_output_is_the_trajectory_at_any_time():
    sol = solve_ivp(
        Counted(), torch.ones(2, 1), [[0.0, 1.0], [1.0, 0.0]], dense=True, rtol=1e-9, atol=1e-12
    )
    times = torch.linspace(0, 1, 33)
    torch.testing.assert_close(sol(times)[0, :, 0], torch.exp(-times), atol=1e-7, rtol=0)
    torch.testing.assert_close(sol(times)[1, :, 0], torch.exp(1 - times), atol=1e-7, rtol=0)
    torch.testing.assert_close(
        sol(0.25)[:, 0], torch.exp(torch.tensor([-0.25, 0.75])), atol=1e-7, rtol=0
    )
    own = sol(torch.tensor([[0.1], [0.9]]))
    torch.testing.assert_close(
        own[:, 0, 0], torch.exp(torch.tensor([-0.1, 0.1])), atol=1e-7, rtol=0
    )
    with pytest.raises(
        InvalidArgument, match=r"t is 1.5 for row 0: must lie between t0 = 0.0 and t1 = 1.0"
    ):
        sol(1.5)
    with pytest.raises(InvalidArgument, match="dense=True"):
        solve_ivp(Counted(), torch.ones(1, 1), [0.0, 1.0])(0.5)


def test_dense_output_of_a_failed_row_ends_where_it_failed():
    sol = solve_ivp(
        lambda t, y: y * y, torch.tensor([[1.0], [0.1]]), t0=0.0, t1=2.0, dense=True, **TIGHT
    )
    assert sol([0.5])[0].item() == pytest.approx(2.0, rel=1e-4)
    assert sol([1.5])[0].isnan().all()
    assert sol([1.5])[1].item() == pytest.approx(1 / 8.5, rel=1e-4)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"rtol": -1e-3}, "rtol is -0.001"),
        ({"atol": math.nan}, "atol is nan"),
        ({"rtol": 0.0, "atol": 0.0}, "rtol and atol are both 0"),
        ({"rtol": torch.ones(7)}, r"rtol has shape \(7,\).*\(2, 1\) per row"),
        ({"atol": "small"}, "atol is a str"),
        ({"dt0": -0.1}, "dt0 is -0.1.*positive"),
        ({"dt0": 0.0}, "dt0 is 0.0.*positive"),
        ({"dt0": math.inf}, "dt0 is inf"),
        ({"dt_min": -1.0}, "dt_min is -1.0.*not negative"),
        ({"dt_max": 0.0}, "dt_max is 0.0.*positive"),
        ({"dt_max": torch.ones(5)}, r"dt_max has shape \(5,\)"),
        ({"dt_min": 0.2, "dt_max": 0.1}, "dt_min.*dt_max"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"max_steps": 1.5}, "max_steps is 1.5"),
        ({"method": "tsit6"}, "did you mean 'tsit5'"),
        ({"method": 5}, "method is a int"),
        ({"controller": "pidd"}, "did you mean 'pid'"),
        ({"controller": 3}, "controller is a int"),
        ({"method": "rk4"}, "dt0 is missing"),
        ({"method": "rk4", "controller": "pid", "dt0": 0.1}, "'rk4' has no error estimate"),
        ({"controller": "fixed"}, "dt0 is missing"),
        ({"adjoint": "backprob"}, "did you mean 'backprop'"),
        ({"engine": "warp"}, "known are auto, compiled, plain"),
        ({"stepping": "together"}, "stepping is 'together'"),
        ({"stepping": "joint", "t0": torch.tensor([0.0, 0.5])}, "all rows need the same t0"),
        ({"time_dtype": torch.int64}, "time_dtype is torch.int64"),
        ({"jump_t": "now"}, "jump_t is a str"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_by_name(kwargs, message):
    with pytest.raises(SolverError, match=message):
        solve_ivp(Counted(), torch.ones(2, 1), **{"t0": 0.0, "t1": 1.0, **kwargs})


def test_error_kinds_are_builtin_kinds_too():
    for error in (UnknownMethod, UnknownController, UnknownAdjoint, UnknownEngine):
        assert issubclass(error, ValueError)


def test_methods_and_controllers_may_be_given_as_classes_or_objects():
    kwargs = {"t0": 0.0, "t1": 1.0}
    by_name = solve_ivp(Counted(), torch.ones(1, 1), method="dopri5", controller="i", **kwargs)
    cls = type(catalogue.method_by_name("dopri5"))
    for method in (cls, cls()):
        for controller in (Integral, Integral()):
            sol = solve_ivp(
                Counted(), torch.ones(1, 1), method=method, controller=controller, **kwargs
            )
            assert torch.equal(sol.ys, by_name.ys)
