"""Times asked for: order, repeats, ends, directions, resolution."""

import math

import pytest
import torch

from solver import Hook, solve_ivp
from solver.errors import InvalidArgument

TIGHT = {"rtol": 1e-6, "atol": 1e-6}
NAN = math.nan


def decay(t, y):
    return -y


def check(sol, *rows):
    for got, expected in zip(sol.ys[..., 0], rows, strict=True):
        torch.testing.assert_close(
            got.double(),
            torch.tensor(expected, dtype=torch.float64),
            atol=1e-4,
            rtol=0,
            equal_nan=True,
        )


def test_equal_times_get_equal_values():
    check(
        solve_ivp(decay, torch.ones(1, 1), [0, 0.5, 0.5, 1], **TIGHT),
        [1, 0.606531, 0.606531, 0.367879],
    )
    check(solve_ivp(decay, torch.ones(1, 1), [0.0] * 10, **TIGHT), [1.0] * 10)
    sol = solve_ivp(decay, torch.ones(2, 1), [[0.1, 0.2, 0.3], [0, 0.5, 0.5]], **TIGHT)
    check(sol, [1, 0.904837, 0.818731], [1, 0.606531, 0.606531])
    assert sol.ys[1, 1] == sol.ys[1, 2]


def test_a_span_of_length_zero_returns_its_start_and_a_clean_gradient():
    y0 = torch.ones(2, 1, requires_grad=True)
    sol = solve_ivp(decay, y0, torch.tensor([[0.0, 0.0], [0.0, 1.0]]), **TIGHT)
    check(sol, [1, 1], [1, 0.367879])
    assert sol.success.all()
    sol.ys.sum().backward()
    assert y0.grad is not None
    torch.testing.assert_close(y0.grad, torch.tensor([[2.0], [1.367879]]), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "times",
    [0.1 * torch.arange(51, dtype=torch.float32), torch.linspace(0, 5, 51), 1e-7 * torch.arange(6)],
)
def test_every_time_asked_for_comes_back(times):
    sol = solve_ivp(decay, torch.ones(1, 1, dtype=torch.float64), times, **TIGHT)
    assert sol.ys.shape == (1, len(times), 1)
    torch.testing.assert_close(sol.ys[0, :, 0], torch.exp(-times.double()), atol=1e-5, rtol=0)


def test_a_last_time_that_misses_t1_by_rounding_is_the_end():
    end = sum([0.1] * 10)
    assert end < 1
    sol = solve_ivp(
        decay, torch.ones(1, 1), torch.tensor([0, 0.5, 1.0], dtype=torch.float64), t1=end, **TIGHT
    )
    assert sol.success.all()
    check(sol, [1, 0.606531, 0.367879])
    with pytest.raises(InvalidArgument, match=r"1\.01.*t1 = 1\.0"):
        solve_ivp(decay, torch.ones(1, 1), [0, 0.5, 1.01], t1=1.0)


def test_time_may_run_backward_and_in_both_directions_in_one_batch():
    seen = []

    def f(t, y):
        seen.append(t)
        return -y

    y0 = torch.ones(1, 1, requires_grad=True)
    sol = solve_ivp(f, y0, torch.tensor([1, 0.5, 0]), **TIGHT)
    check(sol, [1, 1.648721, 2.718282])
    assert sol.stats.n_accepted.item() > 0
    (gradient,) = torch.autograd.grad(sol.ys[0, -1].sum(), y0)
    assert gradient.item() == pytest.approx(math.e, abs=1e-4)
    times = torch.stack(seen)
    assert times.min() >= 0
    assert times.max() <= 1
    both = solve_ivp(decay, torch.ones(2, 1), [[0, 1.0], [1.0, 0]], **TIGHT)
    check(both, [1, 0.367879], [1, 2.718282])


@pytest.mark.parametrize("method", ["euler", "bosh3", "fehlberg45", "tsit5", "vern7", "dopri8"])
@pytest.mark.parametrize(("start", "end"), [(0, 1), (0, 1e-4), (100, 200), (1, 0), (-10.3, 0.1)])
def test_the_field_is_never_asked_outside_the_span(method, start, end):
    def f(t, y):
        assert ((t >= min(start, end)) & (t <= max(start, end))).all()
        return 2 * y

    y0 = torch.full((1, 1), 1e-60, dtype=torch.float64)
    dt0 = abs(end - start) / 7 if method == "euler" else None
    sol = solve_ivp(f, y0, t0=start, t1=end, method=method, dt0=dt0, atol=0.0, rtol=1e-5)
    assert sol.t_reached.item() == end  # to the last bit
    if method != "euler":
        assert sol.ys.item() == pytest.approx(1e-60 * math.exp(2 * (end - start)), rel=1e-2)


@pytest.mark.parametrize(("start", "span"), [(1e7, 5.0), (1e8, 64.0)])
def test_times_far_from_zero_keep_their_resolution(start, span):
    t_eval = start + torch.tensor([0.0, span], dtype=torch.float32)
    sol = solve_ivp(decay, torch.ones(1, 1, dtype=torch.float32), t_eval, rtol=1e-6, atol=1e-12)
    assert sol.ys[0, -1].item() == pytest.approx(math.exp(-span), rel=1e-3, abs=1e-11)


def test_no_row_waits_for_the_output_times_of_another():
    nan_padded = torch.tensor([[0, 1.0, 2.0], [0, 0.5, NAN], [NAN, NAN, 3.0]])
    sol = solve_ivp(decay, torch.ones(3, 1), nan_padded, t0=0.0, **TIGHT)
    check(sol, [1, 0.367879, 0.135335], [1, 0.606531, NAN], [NAN, NAN, 0.049787])
    assert sol.t_reached.tolist() == [2.0, 0.5, 3.0]
    mask = ~nan_padded.isnan()
    masked = solve_ivp(
        decay, torch.ones(3, 1), nan_padded.nan_to_num(99.0), t0=0.0, t_eval_mask=mask, **TIGHT
    )
    torch.testing.assert_close(masked.ys, sol.ys, equal_nan=True)


def test_an_inner_gap_in_the_output_times_stays_a_gap():
    sol = solve_ivp(decay, torch.ones(1, 1), [[0.0, NAN, 1.0, NAN, 2.0]], **TIGHT)
    check(sol, [1, NAN, 0.367879, NAN, 0.135335])


def test_without_output_times_the_end_comes_back():
    sol = solve_ivp(decay, torch.ones(2, 1), t0=0.0, t1=torch.tensor([1.0, 2.0]), **TIGHT)
    assert sol.ts.tolist() == [[1.0], [2.0]]
    check(sol, [0.367879], [0.135335])


def test_a_single_output_time_inside_the_span():
    check(solve_ivp(decay, torch.ones(1, 1), [0.5], t0=0.0, t1=3.0, **TIGHT), [0.606531])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_known_jump_is_stepped_on_by_each_row_at_its_own_time(dtype):
    at = torch.tensor([0.5, 0.25], dtype=torch.float64)

    def f(t, y):
        return torch.where(t < at, 1.0, -1.0)[:, None].to(y.dtype)

    y0 = torch.zeros(2, 1, dtype=dtype)
    loose = 1e-6 if dtype == torch.float64 else 1e-4
    sol = solve_ivp(f, y0, t0=0.0, t1=1.0, jump_t=at[:, None], rtol=loose, atol=loose)
    tolerance = 1e-9 if dtype == torch.float64 else 1e-6
    torch.testing.assert_close(
        sol.ys[:, 0, 0], torch.tensor([0.0, -0.5], dtype=dtype), atol=tolerance, rtol=0
    )
    assert (sol.stats.n_f_evals < 60).all()
    assert (sol.stats.n_rejected == 0).all()


@pytest.mark.parametrize(
    "method", ["heun_euler", "bosh3", "dopri5", "fehlberg45", "vern7", "dopri8"]
)
@pytest.mark.parametrize("closed", [True, False])
def test_a_jump_is_seen_from_its_own_side_whichever_side_owns_it(method, closed):
    def f(t, y):
        before = t <= 0.5 if closed else t < 0.5
        return torch.where(before, 1.0, -3.0)[:, None].to(y.dtype)

    for times in ([0.0, 0.5, 1.0], [1.0, 0.5, 0.0]):
        y0 = torch.zeros(1, 1, dtype=torch.float64)
        sol = solve_ivp(f, y0, times, jump_t=[0.5, 0.5], method=method, **TIGHT)
        ends = [0, 0.5, -1.0] if times[0] == 0 else [0, 1.5, 1.0]
        torch.testing.assert_close(
            sol.ys[0, :, 0], torch.tensor(ends, dtype=torch.float64), atol=1e-12, rtol=0
        )


def test_jumps_outside_the_span_and_at_its_ends_change_nothing():
    kwargs = {"t0": 0.0, "t1": 1.0, **TIGHT}
    plain = solve_ivp(decay, torch.ones(1, 1), **kwargs)
    with_jumps = solve_ivp(decay, torch.ones(1, 1), jump_t=[-1.0, 0.0, 1.0, 7.0, NAN], **kwargs)
    assert torch.equal(plain.ys, with_jumps.ys)


def test_a_step_cut_at_a_jump_does_not_shrink_the_next():
    sizes = []

    class Keep(Hook):
        def on_steps(self, steps):
            sizes.extend(steps.dt[:, 0].tolist())

    y0 = torch.ones(1, 1, dtype=torch.float64)
    solve_ivp(
        decay, y0, t0=0.0, t1=50.0, jump_t=[10.0, 10.001], hooks=[Keep()], rtol=1e-9, atol=1e-12
    )
    cut = [i for i, size in enumerate(sizes) if size == pytest.approx(0.001, rel=1e-6)]
    assert len(cut) == 1
    assert sizes[cut[0] + 1] > 50 * sizes[cut[0]]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"t_eval": [0, 2.5, 2.0]}, r"t_eval\[2\] of row 0 runs backwards \(2.0 after 2.5\)"),
        ({"t_eval": [[0.0, 1.0]] * 3}, r"t_eval has shape \(3, 2\)"),
        ({"t0": 0.0}, "t1 is missing"),
        ({}, "t0 is missing"),
        ({"t_eval": [], "t0": 0.0}, "t1 is missing"),
        ({"t_eval": [[NAN, NAN], [0.0, 1.0]]}, "t0 is missing and t_eval has no time for row 0"),
        ({"t0": NAN, "t1": 1.0}, "t0 is nan"),
        ({"t0": 0.0, "t1": math.inf}, "t1 is inf"),
        ({"t_eval": [0.0, math.inf]}, "infinite"),
        ({"t0": torch.zeros(5), "t1": 1.0}, r"t0 has shape \(5,\)"),
        ({"t_eval": [-1.0, 1.0], "t0": 0.0}, r"t_eval\[0\] of row 0 is -1.0"),
        ({"t_eval": "soon"}, "t_eval is a str"),
        ({"t0": 0.0, "t1": 1.0, "t_eval_mask": torch.ones(2)}, "t_eval_mask"),
        ({"t_eval": [0.0, 1.0], "t_eval_mask": torch.ones(2)}, "t_eval_mask"),
    ],
)
def test_times_that_make_no_sense_are_refused_by_name(kwargs, message):
    with pytest.raises((ValueError, TypeError), match=message):
        solve_ivp(decay, torch.ones(2, 1), **kwargs)
