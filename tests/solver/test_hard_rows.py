"""Odd times, exact counts, failing rows beside healthy ones under autograd and joint stepping."""

import math

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

from solver import Status, catalogue, solve_ivp
from solver.errors import InvalidArgument

NAN = float("nan")
ADAPTIVE = [n for n in catalogue.methods() if catalogue.method_by_name(n).error_order is not None]

# One implicit method for each kind of stepper: the others differ in numbers only.
KINDS = {"kvaerno5", "rodas5p", "radau5", "gauss4", "trapezoid", "implicit_midpoint", "bdf"}
TRIED = [
    name
    for name, method in catalogue.methods().items()
    if not hasattr(method, "jacobian") or name in KINDS
]


def decay(t, y):
    return -y


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


# Times as they come


def test_times_may_be_arrays_and_lists_of_tensors():
    y0 = torch.ones(2, 1)
    backward = solve_ivp(decay, y0, np.linspace(0, 1, 3)[::-1], rtol=1e-6)
    assert backward.ys[0, -1].item() == pytest.approx(math.e, rel=1e-5)
    rounded = solve_ivp(decay, y0, np.linspace(0, 0.1, 3, dtype=np.float32), t1=0.1)
    assert rounded.success.all()
    start, end = leaf(0.0), leaf(1.0)
    sol = solve_ivp(decay, y0[:1], [start, end], rtol=1e-8)
    gradients = torch.autograd.grad(sol.ys[:, -1].sum(), (start, end))
    assert gradients[0].item() == pytest.approx(math.exp(-1), rel=1e-5)
    assert gradients[1].item() == pytest.approx(-math.exp(-1), rel=1e-5)


def test_a_mask_may_be_a_list():
    sol = solve_ivp(decay, torch.ones(1, 1), [0.0, 0.5, 1.0], t_eval_mask=[True, False, True])
    assert sol.ys[0, :, 0].isnan().tolist() == [False, True, False]


def test_dense_output_takes_times_as_they_come_and_ends_missed_by_rounding():
    start, end = 1.2598461895590025, 0.15833542268439343
    sol = solve_ivp(decay, torch.ones(2, 1), t0=start, t1=end, dense=True)
    last = sol(end)
    assert torch.equal(sol(0.15833542268439338), last)
    assert torch.equal(sol(np.float64(end)), last)
    assert torch.equal(sol(np.array([start, end]))[:, 1], last)
    assert torch.equal(sol([torch.tensor(start), torch.tensor(end)])[:, 1], last)
    for outside in (0.158, 1.26, math.inf, -math.inf):
        with pytest.raises(InvalidArgument, match=r"t is .* for row 0: must lie between"):
            sol(outside)


def test_a_span_that_no_number_can_hold_is_refused_by_name():
    with pytest.raises(InvalidArgument, match=r"t0 = -1e\+308 and t1 = 1e\+308 of row 0"):
        solve_ivp(decay, torch.ones(1, 1), t0=-1e308, t1=1e308)


@pytest.mark.parametrize(("start", "end"), [(0.0, 1e-300), (1e-300, 2e-300), (0.0, 1e300)])
def test_tiny_and_huge_spans_are_solved_and_their_failures_end(start, end):
    scale = end - start
    sol = solve_ivp(lambda t, y: -y / scale, torch.ones(1, 1), t0=start, t1=end)
    assert sol.ys.item() == pytest.approx(math.exp(-1), rel=1e-3)
    middle = (start + end) / 2
    broken = solve_ivp(
        lambda t, y: torch.where(t > middle, NAN, -1 / scale)[:, None] * y,
        torch.ones(1, 1),
        t0=start,
        t1=end,
        max_steps=5000,
    )
    assert broken.status.item() == Status.NON_FINITE


@pytest.mark.parametrize("start", [1e4, 1e6, 1e7])
def test_steps_are_as_long_as_narrow_time_makes_them(start):
    """Steps between numbers of float32 far from zero still add up to the span."""
    end = start + 8.0
    sol = solve_ivp(
        lambda t, y: -y / 8, torch.ones(1, 1), t0=start, t1=end, time_dtype=torch.float32, rtol=1e-6
    )
    assert sol.success.all()
    assert sol.ys.item() == pytest.approx(math.exp(-1), rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("end", "steps"), [(1.0, 100), (3.7, 100), (1.0, 1000)])
def test_fixed_steps_do_not_drift(dtype, end, steps):
    sol = solve_ivp(
        decay, torch.ones(1, 1), t0=0.0, t1=end, method="euler", dt0=end / steps, time_dtype=dtype
    )
    assert sol.stats.n_steps.item() == steps


def test_fixed_steps_too_small_for_the_time_say_so():
    sol = solve_ivp(decay, torch.ones(1, 1), t0=1.0, t1=2.0, method="rk4", dt0=1e-20)
    assert sol.status.item() == Status.TIME_RESOLUTION
    assert sol.stats.n_steps.item() < 100


# Counts


@pytest.mark.parametrize("name", sorted(catalogue.methods()))
@pytest.mark.parametrize("limit", [None, 7])
@pytest.mark.parametrize("dense", [False, True])
def test_evaluations_of_a_row_are_those_it_needs_alone(name, limit, dense):
    """Beside rows with outputs, jumps and ends at other steps; also when steps run out."""
    rates = torch.tensor([1.0, 30.0, 3.0])
    t_eval = torch.tensor([[0.0, 0.3, 0.31, 1.0], [0.0, NAN, NAN, 1.0], [0.1, 0.4, 0.999, 1.0]])
    jump_t = torch.tensor([[0.5, NAN], [NAN, NAN], [0.3, 0.31]])
    settings = {"dt0": 0.013} if name not in ADAPTIVE else {}

    def solve(rows):
        calls = 0

        def f(t, y):
            nonlocal calls
            calls += 1
            return -rates[rows, None] * (y - torch.cos(t)[:, None])

        sol = solve_ivp(
            f,
            torch.ones(len(rows), 2),
            t_eval[rows],
            t0=0.0,
            t1=1.0,
            jump_t=jump_t[rows],
            method=name,
            max_steps=limit or 100_000,
            dense=dense,
            **settings,
        )
        assert sol.stats.n_f_calls == calls
        return sol, calls

    together, _ = solve([0, 1, 2])
    for row in range(3):
        alone, calls = solve([row])
        assert alone.stats.n_f_evals.item() == calls
        assert alone.stats.n_f_evals.item() == together.stats.n_f_evals[row].item()


def test_an_output_step_of_vern7_gives_the_next_its_first_slope():
    few = solve_ivp(decay, torch.ones(1, 1), t0=0.0, t1=1.0, method="vern7", dt0=0.1, dt_max=0.1)
    t_eval = torch.linspace(0.05, 0.95, 10)
    many = solve_ivp(
        decay, torch.ones(1, 1), t_eval, t0=0.0, t1=1.0, method="vern7", dt0=0.1, dt_max=0.1
    )
    steps = few.stats.n_steps.item()
    assert many.stats.n_steps.item() == steps
    # Six more evaluations in each of ten steps, five in all but the last, which gives no slope on.
    assert many.stats.n_f_evals.item() - few.stats.n_f_evals.item() == 5 * steps + 1


def test_the_try_with_a_wrong_dtype_of_time_is_counted():
    net, calls = torch.nn.Linear(2, 1).float(), 0

    def f(t, y):
        nonlocal calls
        calls += 1
        return net(torch.cat([y, t[:, None]], dim=1))

    y0 = torch.ones(1, 1, dtype=torch.float32)
    assert solve_ivp(f, y0, t0=0.0, t1=1.0).stats.n_f_calls == calls


# Rows that fail or are done, and autograd


@pytest.mark.parametrize("name", ADAPTIVE)
def test_extra_stages_of_refused_rows_do_not_poison_gradients(name):
    weight, y0 = leaf(1.0), leaf([[1.0], [100.0]])
    sol = solve_ivp(
        lambda t, y: -weight * y.sqrt(),
        y0,
        torch.linspace(0, 1.9, 40),
        t0=0.0,
        t1=1.9,
        dt0=1.5,
        method=name,
    )
    gradients = torch.autograd.grad(sol.ys.sum(), (weight, y0))
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("start", [NAN, 0.0])
def test_a_row_without_a_span_does_not_poison_shared_gradients(start):
    """Its field, or the derivative of that, is not finite where it stands."""
    weight, y0 = leaf(1.0), leaf([[1.0], [start], [2.0]])
    t1 = torch.tensor([1.0, 0.0, 1.0])
    sol = solve_ivp(lambda t, y: -weight * y.sqrt(), y0, t0=0.0, t1=t1)
    shared, own = torch.autograd.grad(sol.ys[[0, 2]].sum(), (weight, y0), retain_graph=True)
    assert shared.isfinite()
    assert own[1].item() == 0
    (own,) = torch.autograd.grad(sol.ys[1].sum(), y0)
    assert own.flatten().tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("adjoint", ["backprop", "checkpoint_steps"])
@pytest.mark.parametrize("name", TRIED)
def test_gradients_of_a_row_are_its_own_however_others_fail(name, adjoint):
    """Beside rows that run out of steps, whose field turns NaN or is NaN always, and blow up."""
    settings = {"dt0": 0.02} if name not in ADAPTIVE else {"rtol": 1e-5, "dt_max": 0.2}
    if name in ("bdf", "rkc2") and adjoint == "checkpoint_steps":
        return  # refused, as its steps need those before
    if name == "bdf":
        settings = {"rtol": 1e-3, "atol": 1e-4, "dt_max": 0.2}
    limit = torch.tensor([1000, 4, 1000, 1000, 1000])
    rate = torch.tensor([1.0, 1.0, 1.0, 1.0, 4.0])

    def gradients(rows):
        weight, y0 = leaf(1.0), leaf([[0.4, 0.5]] * 5)
        t0, t1 = leaf(0.0), leaf([1.0, 1.0, 1.0, 1.0, 3.0])
        late, always = (torch.tensor(rows) == row for row in (2, 3))

        def f(t, y):
            broken = (late & (t > 0.6)) | always
            return torch.where(broken[:, None], NAN, weight * rate[rows, None] * y * y)

        def solve(t_eval):
            sol = solve_ivp(
                f,
                y0[rows],
                t_eval,
                t0=t0,
                t1=t1[rows],
                max_steps=limit[rows],
                method=name,
                adjoint=adjoint,
                **settings,
            )
            assert sol.success.tolist() == [True] + [False] * (len(rows) - 1)
            return sol.ys[0].sum()

        loss = solve(torch.tensor([0.3, 0.9])) + solve(None)
        of_y0, of_t0, of_t1, of_weight = torch.autograd.grad(loss, (y0, t0, t1, weight))
        assert not of_y0[1:].any()
        return of_y0[0], of_t0, of_t1[0], of_weight

    for together, alone in zip(gradients([0, 1, 2, 3, 4]), gradients([0]), strict=True):
        torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["heun_euler", "tsit5", "vern7", "midpoint"])
@pytest.mark.parametrize("since", [-1.0, 0.5])
def test_a_field_that_is_nan_for_one_row_does_not_poison_what_rows_share(name, since):
    weight = leaf(1.0)

    def f(t, y):
        slope = -weight * y
        return torch.where(torch.tensor([[False], [True]]) & (t > since)[:, None], NAN, slope)

    sol = solve_ivp(f, torch.ones(2, 1), [0.0, 0.3, 1.0], method=name, dt0=0.04)
    assert sol.status.tolist()[0] == Status.SUCCESS
    assert sol.status.tolist()[1] in (Status.NON_FINITE, Status.NON_FINITE_START)
    (gradient,) = torch.autograd.grad(sol.ys[0, -1].sum(), weight)
    assert gradient.item() == pytest.approx(-math.exp(-1), rel=1e-2)


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_tangents_travel_through_a_solve_as_gradients_do():
    times = torch.linspace(0, 1, 3)
    with forward_ad.dual_level():
        rate = forward_ad.make_dual(torch.ones(1, 1), torch.ones(1, 1))
        sol = solve_ivp(lambda t, y: -rate * y, torch.ones(1, 1), times, rtol=1e-8, atol=1e-10)
        value, tangent = forward_ad.unpack_dual(sol.ys[0, :, 0])
    assert value.tolist() == pytest.approx([math.exp(-t) for t in times.tolist()], rel=1e-6)
    assert tangent.tolist() == pytest.approx([-t * math.exp(-t) for t in times.tolist()], rel=1e-5)


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_function_transforms_go_through_a_solve():
    def end(y0):
        return solve_ivp(lambda t, y: -y * y, y0, t0=0.0, t1=1.0, rtol=1e-8, atol=1e-10).ys.sum()

    y0 = torch.ones(1, 1)
    assert torch.func.grad(end)(y0).item() == pytest.approx(0.25, rel=1e-6)
    _, tangent = torch.func.jvp(end, (y0,), (torch.ones(1, 1),))
    assert tangent.item() == pytest.approx(0.25, rel=1e-6)


# Joint stepping


def test_a_row_that_fails_in_joint_stepping_ends_alone():
    def f(t, y):
        return torch.stack([-y[0], torch.where(t[1:2] > 0.5, NAN, -y[1]), -y[2]])

    sol = solve_ivp(f, torch.ones(3, 1), [0.0, 0.4, 1.0, 2.0], stepping="joint", rtol=1e-6)
    assert sol.status.tolist() == [Status.SUCCESS, Status.NON_FINITE, Status.SUCCESS]
    assert sol.ys[2, :, 0].tolist() == pytest.approx([1, 0.67032, 0.367879, 0.135335], abs=1e-5)
    assert sol.ys[1, :, 0].isnan().tolist() == [False, False, True, True]


@pytest.mark.parametrize("dt_min", [None, 1e-3])
def test_a_blow_up_in_joint_stepping_ends_alone(dt_min):
    y0 = torch.tensor([[1.0], [0.1]])
    sol = solve_ivp(lambda t, y: y * y, y0, t0=0.0, t1=2.0, stepping="joint", dt_min=dt_min)
    assert not sol.success[0]
    assert sol.ys[1].item() == pytest.approx(0.125, rel=1e-3)
