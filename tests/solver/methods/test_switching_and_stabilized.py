"""Methods that choose by themselves, row by row: explicit or stiff, and how many stages."""

from typing import Any

import pytest
import torch

from solver import Hook, Status, solve_ivp
from solver.errors import InvalidArgument
from solver.stabilized import coefficients

F64 = torch.float64
MU = torch.tensor([0.5, 1000.0], dtype=F64)
Y0 = torch.tensor([[2.0, 0.0]], dtype=F64)


def van_der_pol(t, y, mu):
    x, v = y.unbind(-1)
    return torch.stack([v, mu * (1 - x * x) * v - x], dim=-1)


def heat(t, y):
    wide = torch.nn.functional.pad(y, (1, 1))
    return (y.shape[1] + 1) ** 2 * (wide[:, :-2] - 2 * y + wide[:, 2:])


class Choices(Hook):
    """Collects what was chosen, attempt by attempt."""

    statistics = ("choice",)

    def __init__(self):
        self.chosen, self.running = [], []

    def on_steps(self, steps):
        self.chosen.append(steps.columns["choice"])
        self.running.append(steps.running)

    def of_row(self, row):
        chosen, running = torch.cat(self.chosen), torch.cat(self.running)
        return chosen[running[:, row], row]


def solved(method, y0=Y0, **options):
    seen = Choices()
    given: Any = {"rtol": 1e-6, "atol": 1e-9, "hooks": [seen], **options}
    with torch.no_grad():
        return solve_ivp(method=method, y0=y0, **given), seen


def test_each_row_switches_by_itself_and_back():
    t1 = torch.tensor([50.0, 1700.0], dtype=F64)
    options: Any = {"f": van_der_pol, "y0": Y0.repeat(2, 1), "t0": 0.0, "t1": t1, "args": MU}
    sol, seen = solved("auto", **options)
    wanted, _ = solved("radau5", **options | {"rtol": 1e-7, "atol": 1e-10})
    torch.testing.assert_close(sol.ys, wanted.ys, rtol=1e-4, atol=1e-5)
    assert not seen.of_row(0).any()
    assert sol.stats.n_jac_evals[0] == 0
    stiff = seen.of_row(1)
    changes = stiff.diff()
    assert stiff[0] == 0  # starts explicit
    assert (changes == 1).sum() >= 2  # the fast phase in between is done by explicit steps
    assert (changes == -1).sum() >= 1
    assert stiff.double().mean() > 0.4
    assert sol.stats.n_steps[1] < 900


def test_a_row_takes_the_same_steps_alone_and_beside_others():
    t1 = torch.tensor([5.0, 300.0], dtype=F64)
    both, _ = solved("auto", f=van_der_pol, y0=Y0.repeat(2, 1), t0=0.0, t1=t1, args=MU)
    for row in range(2):
        alone, _ = solved("auto", f=van_der_pol, y0=Y0, t0=0.0, t1=t1[row], args=MU[row])
        assert alone.stats.n_steps[0] == both.stats.n_steps[row]
        torch.testing.assert_close(alone.ys[0], both.ys[row], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "rkc2"])
def test_outputs_inside_steps_and_dense_output_agree_with_the_end(method):
    times = torch.tensor([0.0, 0.03, 0.07, 0.1], dtype=F64)
    y0 = torch.sin(torch.pi * torch.arange(1, 30, dtype=F64) / 30)[None]
    rate = 4 * 30**2 * torch.sin(torch.tensor(torch.pi / 60, dtype=F64)) ** 2
    sol, _ = solved(method, f=heat, y0=y0, t_eval=times, dense=True)
    exact = y0 * torch.exp(-rate * times)[:, None]
    torch.testing.assert_close(sol.ys[0], exact, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(sol.dense(times[None]), sol.ys, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "rkc2"])
@pytest.mark.parametrize("adjoint", ["symplectic", "aca", "binomial"])
def test_gradients_go_back_over_the_steps_that_were_chosen(method, adjoint):
    """Rows of very different stiffness: other methods, other numbers of stages."""
    y0 = torch.tensor([[1.0, 0.5], [1.0, 0.5], [0.3, 0.9]], dtype=F64)
    times = torch.tensor([0.2, 0.9], dtype=F64)

    def gradients(mode):
        rate = torch.tensor([[1.0], [3000.0], [40.0]], dtype=F64, requires_grad=True)
        start, end = y0.clone().requires_grad_(), torch.tensor(1.0, dtype=F64, requires_grad=True)
        options: Any = {"t0": 0.0, "t1": end, "rtol": 1e-4, "atol": 1e-6, "adjoint": mode}
        sol = solve_ivp(
            lambda t, y: -rate * (y - torch.cos(t)[:, None] * y.flip(1) ** 2), start, times,
            method=method, **options,
        )  # fmt: skip
        last = solve_ivp(
            lambda t, y: -rate * (y - torch.cos(t)[:, None] * y.flip(1) ** 2), start,
            method=method, **options,
        )  # fmt: skip
        loss = (sol.ys**2).sum() + last.ys.sum()
        return torch.autograd.grad(loss, [rate, start, end])

    for got, wanted in zip(gradients(adjoint), gradients("backprop"), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("method", ["auto", "rkc2"])
def test_checkpoints_of_steps_that_remember_are_refused(method):
    y0 = torch.ones(1, 1, requires_grad=True)
    with pytest.raises(InvalidArgument, match="depend on those before"):
        solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0, method=method, adjoint="checkpoint_steps")


@pytest.mark.parametrize("method", ["auto", "rkc2"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.complex128])
def test_other_dtypes_and_both_directions(method, dtype):
    y0 = torch.tensor([[1.0, 0.5], [2.0, 0.1]], dtype=dtype)
    rate = torch.tensor([[2.0], [500.0]], dtype=dtype.to_real())
    t1 = torch.tensor([1.0, -1.0], dtype=dtype.to_real())
    sign = t1[:, None]
    sol, _ = solved(
        method, f=lambda t, y: -sign * rate * (y - 1), y0=y0, t0=0.0, t1=t1, rtol=1e-4, atol=1e-5
    )
    assert sol.success.all()
    torch.testing.assert_close(sol.ys[:, 0], 1 + (y0 - 1) * torch.exp(-rate), rtol=1e-3, atol=1e-3)


def test_jumps_and_events_in_stiff_rows():
    def f(t, y):
        goal = torch.where(t[:, None] <= 1, 1.0, 3.0)
        return -1e4 * (y - goal)

    options: Any = {
        "y0": torch.zeros(1, 1, dtype=F64), "t0": 0.0, "t1": 2.0, "jump_t": 1.0,
        "t_eval": torch.tensor([0.5, 1.0, 1.5], dtype=F64),
        "events": [lambda t, y: y[:, 0] - 2],
    }  # fmt: skip
    for method in ("auto", "rkc2"):
        sol, _ = solved(method, f=f, **options)
        assert sol.status[0] in (Status.SUCCESS, Status.EVENT)
        assert sol.ys[0, 1].item() == pytest.approx(1.0, abs=1e-5)
        assert sol.events.times[0, 0].item() == pytest.approx(1 + 1e-4 * 0.6931472, abs=1e-6)


def test_stages_are_chosen_by_stiffness():
    dim = 100
    rate = torch.tensor([[1e-3], [1.0]], dtype=F64)
    y0 = torch.sin(torch.pi * torch.arange(1, dim + 1, dtype=F64) / (dim + 1)).repeat(2, 1)
    sol, seen = solved(
        "rkc2", f=lambda t, y: rate * heat(t, y), y0=y0, t0=0.0, t1=0.1, rtol=1e-3, atol=1e-6
    )
    assert sol.success.all()
    assert seen.of_row(0).max() < 8 < seen.of_row(1).max()
    explicit, _ = solved("bosh3", f=lambda t, y: rate * heat(t, y), y0=y0, t0=0.0, t1=0.1,
                         rtol=1e-3, atol=1e-6)  # fmt: skip
    assert sol.stats.n_f_evals[1] * 4 < explicit.stats.n_f_evals[1]


@pytest.mark.parametrize("s", [2, 3, 5, 13, 60])
def test_the_stability_polynomial_is_bounded_and_of_order_two(s):
    """Sommeijer, Shampine & Verwer (1998): stable to 0.65 s^2, with damping."""
    mu, nu, rate, first, c = coefficients(s)

    def step(z):
        before, now = torch.ones_like(z), 1 + rate[1] * z
        for j in range(2, s + 1):
            following = 1 - mu[j] - nu[j] + mu[j] * now + nu[j] * before
            before, now = now, following + rate[j] * z * now + first[j] * z
        return now

    length = 2 / 3 * (s * s - 1) * (1 - 2 / 15 * 2 / 13)
    inside = step(torch.linspace(-length, 0, 2000, dtype=F64)).abs()
    assert inside.max() <= 1 + 1e-10
    assert inside[:-1400].max() < 0.97 or s < 5
    z = torch.tensor([1e-3, -1e-3], dtype=F64)
    assert ((step(z) - z.exp()).abs() < 0.5e-9).all()
    assert c[s] == 1


def test_a_field_that_explodes_fails_alone():
    y0 = torch.tensor([[1.0], [1.0]], dtype=F64)
    power = torch.tensor([[1.0], [3.0]], dtype=F64)
    for method in ("auto", "rkc2"):
        sol, _ = solved(method, f=lambda t, y: y**power, y0=y0, t0=0.0, t1=1.0)
        assert sol.status[0] == Status.SUCCESS
        assert sol.status[1] != Status.SUCCESS
        assert sol.ys[0].item() == pytest.approx(2.718281828, rel=1e-4)
