"""One failing row: it ends alone, says why, and spoils nothing."""

import math

import pytest
import torch

from solver import Integral, Status, solve_ivp
from solver.errors import SolveFailed

NAN, INF = math.nan, math.inf
TIGHT = {"rtol": 1e-6, "atol": 1e-6}


def decay(t, y):
    return -y


def test_a_row_whose_field_is_nan_leaves_its_neighbours_alone():
    def f(t, y):
        slope = -y.clone()
        slope[1] = NAN
        return slope

    sol = solve_ivp(f, torch.ones(3, 1), torch.tensor([0.0, 1.0, 2.0]), **TIGHT)
    expected = torch.tensor([1.0, math.exp(-1), math.exp(-2)])
    for row in (0, 2):
        torch.testing.assert_close(sol.ys[row, :, 0], expected, atol=1e-4, rtol=0)
    assert sol.status.tolist() == [Status.SUCCESS, Status.NON_FINITE_START, Status.SUCCESS]
    assert sol.ys[1, 0, 0] == 1
    assert sol.ys[1, 1:].isnan().all()
    assert sol.t_reached[1] == 0
    assert "finite" in sol.message(1)


def test_a_row_that_turns_nan_later_keeps_what_it_had():
    def f(t, y):
        broken = (t > 1.0) & (torch.arange(2) == 1)
        return torch.where(broken[:, None], NAN, -y)

    sol = solve_ivp(f, torch.ones(2, 1), torch.tensor([0.0, 0.5, 2.0]), **TIGHT)
    assert sol.status.tolist() == [Status.SUCCESS, Status.NON_FINITE]
    assert sol.ys[1, 1, 0] == pytest.approx(math.exp(-0.5), abs=1e-5)
    assert sol.ys[1, 2].isnan().all()
    assert 0.5 < float(sol.t_reached[1]) <= 1.0 + 1e-9
    assert int(sol.stats.n_steps[1]) < 300


def test_a_trial_outside_the_domain_is_refused_and_shrinks():
    sol = solve_ivp(lambda t, y: -y.sqrt(), torch.ones(1, 1), t0=0.0, t1=1.9, dt0=1.5, **TIGHT)
    assert sol.success.all()
    assert sol.ys.item() == pytest.approx(0.0025, abs=1e-4)
    assert sol.stats.n_rejected.item() >= 1


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_a_start_that_is_not_finite_is_named_after_one_evaluation(bad):
    sol = solve_ivp(decay, torch.tensor([[1.0], [bad]]), t0=0.0, t1=1.0, **TIGHT)
    assert sol.status.tolist() == [Status.SUCCESS, Status.NON_FINITE_START]
    assert sol.ys[0].item() == pytest.approx(math.exp(-1), abs=1e-4)
    assert sol.stats.n_f_evals[1] <= 1
    assert "step" not in sol.message(1).split(".")[0]


def test_a_start_without_any_finite_row_ends_without_stepping():
    sol = solve_ivp(decay, torch.tensor([[NAN], [INF]]), [0.0, 1.0])
    assert sol.status.tolist() == [Status.NON_FINITE_START] * 2
    assert sol.stats.n_f_calls <= 1


def test_a_row_out_of_steps_keeps_what_it_reached():
    rate = torch.tensor([[1.0], [10000.0]], dtype=torch.float64)
    sol = solve_ivp(
        lambda t, y: -rate * y,
        torch.ones(2, 1, dtype=torch.float64),
        torch.tensor([0.0, 1e-4, 1.0]),
        max_steps=30,
        **TIGHT,
    )
    assert sol.status.tolist() == [Status.SUCCESS, Status.REACHED_MAX_STEPS]
    assert sol.ys[1, 1].item() == pytest.approx(math.exp(-1), abs=1e-4)
    assert sol.ys[1, 2].isnan()
    assert 1e-4 < float(sol.t_reached[1]) < 1
    assert sol.stats.n_steps[1] == 30


def test_exactly_the_steps_needed_are_enough():
    kwargs = {"t0": 0.0, "t1": 1.0, **TIGHT}
    needed = int(solve_ivp(decay, torch.ones(1, 1), **kwargs).stats.n_steps)
    assert solve_ivp(decay, torch.ones(1, 1), max_steps=needed, **kwargs).success.all()
    short = solve_ivp(decay, torch.ones(1, 1), max_steps=needed - 1, **kwargs)
    assert short.status.item() == Status.REACHED_MAX_STEPS


def test_each_row_has_its_own_step_limit():
    limit = torch.tensor([3, 1000])
    sol = solve_ivp(decay, torch.ones(2, 1), t0=0.0, t1=5.0, max_steps=limit, **TIGHT)
    assert sol.status.tolist() == [Status.REACHED_MAX_STEPS, Status.SUCCESS]
    assert sol.stats.n_steps[0] == 3


@pytest.mark.parametrize("method", ["bosh3", "tsit5", "dopri5", "vern7", "dopri8"])
@pytest.mark.parametrize("dt_min", [None, 0.01])
def test_a_blow_up_fails_near_its_pole(method, dt_min):
    y0 = torch.tensor([[1.0], [0.1]], dtype=torch.float64)
    sol = solve_ivp(lambda t, y: y * y, y0, t0=0.0, t1=2.0, method=method, dt_min=dt_min, **TIGHT)
    assert sol.status[0] != Status.SUCCESS
    assert sol.ys[0].isnan().all()
    assert sol.ys[1].item() == pytest.approx(0.125, abs=1e-5)
    assert sol.stats.n_steps[0] < 2000
    if dt_min is None:
        assert 0.99 < float(sol.t_reached[0]) <= 1.0001
    assert "row 0" in sol.message(0)
    assert "t = " in sol.message(0)


def test_an_overflowing_state_is_not_accepted():
    """An infinite state makes the error scale infinite, which must not look like a small error."""
    y0 = torch.full((1, 1), 1e300, dtype=torch.float64)
    for method in ("heun_euler", "bosh3", "tsit5", "vern7", "dopri8"):
        sol = solve_ivp(lambda t, y: 100 * y, y0, t0=0.0, t1=1.0, method=method)
        assert sol.status.item() == Status.NON_FINITE
        assert sol.y_reached.isfinite().all()


def test_fixed_steps_that_meet_nan_end_at_once():
    sol = solve_ivp(lambda t, y: -y.sqrt(), torch.ones(1, 1), t0=0.0, t1=9.0, method="rk4", dt0=1.5)
    assert sol.status.item() == Status.NON_FINITE
    assert sol.stats.n_steps.item() < 10


def test_a_step_below_the_resolution_of_time_says_so_and_names_the_cure():
    sol = solve_ivp(
        decay, torch.ones(1, 1), 1e8 + torch.tensor([0.0, 64.0]), time_dtype=torch.float32, **TIGHT
    )
    assert sol.status.item() == Status.TIME_RESOLUTION
    assert "float64" in sol.message(0)


def test_the_component_that_failed_is_named():
    def f(t, y):
        return torch.stack([-y[:, 0], torch.where(t > 0.5, NAN, -y[:, 1])], dim=1)

    sol = solve_ivp(f, torch.ones(1, 2), t0=0.0, t1=1.0)
    assert sol.component.item() == 1
    assert "component 1" in sol.message(0)
    with pytest.raises(SolveFailed, match="row 0 failed with NON_FINITE"):
        sol.raise_if_failed()


def test_gradients_of_healthy_rows_survive_a_failing_neighbour():
    weight = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    y0 = torch.tensor([[1.0], [1.0]], dtype=torch.float64)

    def f(t, y):
        return -torch.stack([weight * y[0], (weight * (y[1] - 0.5)).sqrt()])

    sol = solve_ivp(f, y0, t0=0.0, t1=2.0, controller=Integral(), **TIGHT)
    assert sol.status.tolist()[0] == Status.SUCCESS
    sol.ys[0].sum().backward()
    assert weight.grad is not None
    assert weight.grad.item() == pytest.approx(-2 * math.exp(-1), rel=1e-5)


def test_a_refused_nan_trial_does_not_poison_gradients():
    y0 = torch.tensor([[1.0], [3.0]], dtype=torch.float64, requires_grad=True)
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    sol = solve_ivp(lambda t, y: -scale * y.sqrt(), y0, t0=0.0, t1=1.9, dt0=1.5, **TIGHT)
    assert sol.stats.n_rejected[0] >= 1
    sol.ys.sum().backward()
    exact = 1 - 1.9 / (2 * y0.detach().sqrt())  # y = (sqrt(y0) - t / 2) ** 2
    assert y0.grad is not None
    torch.testing.assert_close(y0.grad, exact, rtol=1e-3, atol=1e-4)
    assert scale.grad is not None
    assert scale.grad.isfinite()


def test_a_row_far_from_zero_still_ends_at_dt_min():
    """There the end of a step is rounded, so the step itself is not exactly dt_min."""
    sol = solve_ivp(
        lambda t, y: y * y, torch.ones(1, 1), t0=1000.1, t1=1003.0, dt_min=0.013, **TIGHT
    )
    assert sol.status.item() == Status.REACHED_DT_MIN
    assert sol.stats.n_steps.item() < 200
