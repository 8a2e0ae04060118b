"""Backpropagation through the solver, for every method and every input."""

import gc
import math

import pytest
import torch
from torch.autograd import gradcheck

from solver import Integral, catalogue, solve_ivp

METHODS = sorted(catalogue.methods())
TIGHT = {"rtol": 1e-6, "atol": 1e-6}
# Need many steps, or solve equations in each: checked along random directions.
IMPLICIT = {name for name in METHODS if hasattr(catalogue.methods()[name], "jacobian")}
SLOW = {"heun_euler", "bosh3"} | IMPLICIT


def settings_of(name):
    method = catalogue.method_by_name(name)
    if method.error_order is None:
        return {"method": method, "dt0": 0.13}
    tolerances = {1: 1e-5, 2: 1e-7, 3: 1e-8} if name in IMPLICIT else {1: 1e-5, 2: 1e-7}
    tolerance = tolerances.get(method.error_order, 1e-10)
    return {"method": method, "controller": Integral(), "rtol": tolerance, "atol": tolerance / 10}


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def field(t, y, weight):
    return torch.sin(y @ weight) + 0.3 * torch.cos(t)[:, None] * y


@pytest.mark.parametrize("name", METHODS)
def test_gradients_of_end_states_match_finite_differences(name):
    """W.r.t. y0, args, t0 and t1, two rows forward and one backward."""
    y0, weight = leaf([[0.2, 0.7], [0.4, 0.1], [0.9, 0.5]]), leaf([[0.3, 0.9], [0.5, 0.2]])
    t0, t1 = leaf([0.0, 0.1, 0.3]), leaf([0.4, 0.5, 0.1])

    def ends(y0, weight, t0, t1):
        return solve_ivp(field, y0, t0=t0, t1=t1, args=weight, **settings_of(name)).ys

    assert gradcheck(ends, (y0, weight, t0, t1), atol=1e-5, rtol=1e-3, fast_mode=name in SLOW)


@pytest.mark.parametrize("name", METHODS)
def test_gradients_of_trajectories_match_finite_differences(name):
    """W.r.t. everything, outputs at each row's own times inside its span."""
    y0, weight = leaf([[0.2, 0.7], [0.4, 0.1]]), leaf([[0.3, 0.9], [0.5, 0.2]])
    t0, t1, t_eval = leaf([0.0, 0.5]), leaf([0.7, 0.1]), leaf([[0.21, 0.55], [0.44, 0.2]])

    def trajectory(y0, weight, t0, t1, t_eval):
        return solve_ivp(field, y0, t_eval, t0=t0, t1=t1, args=weight, **settings_of(name)).ys

    given = (y0, weight, t0, t1, t_eval)
    assert gradcheck(trajectory, given, atol=1e-5, rtol=1e-3, fast_mode=name in SLOW)


@pytest.mark.parametrize("name", ["tsit5", "rk4", "dopri8", "vern7"])
def test_dense_output_is_differentiable(name):
    y0, at = leaf([[0.2, 0.7], [0.4, 0.1]]), leaf([[0.15, 0.62], [0.3, 0.45]])
    weight = torch.tensor([[0.3, 0.9], [0.5, 0.2]])

    def evaluate(y0, at):
        sol = solve_ivp(field, y0, t0=0.0, t1=0.7, args=weight, dense=True, **settings_of(name))
        return sol(at)

    assert gradcheck(evaluate, (y0, at), atol=1e-5, rtol=1e-3)


def test_gradients_through_a_complex_solve():
    y0 = torch.tensor([[0.3 + 0.2j, 1.0]], dtype=torch.complex128, requires_grad=True)
    omega = leaf(0.7)

    def ends(y0, omega):
        return solve_ivp(
            lambda t, y: 1j * omega * y * y.abs(), y0, t0=0.0, t1=0.5, **settings_of("dopri5")
        ).ys

    assert gradcheck(ends, (y0, omega), atol=1e-5, rtol=1e-3)


def test_gradient_with_respect_to_output_times_that_are_also_the_ends():
    times = leaf([0.0, 1.0])
    sol = solve_ivp(lambda t, y: -y * (1 + t[:, None]), torch.ones(1, 1), times, **TIGHT)
    (gradient,) = torch.autograd.grad(sol.ys[0, -1].sum(), times)
    torch.testing.assert_close(gradient, torch.tensor([0.223130, -0.446260]), atol=1e-4, rtol=0)
    times = leaf([0.0, 0.5, 1.0])
    sol = solve_ivp(lambda t, y: -y, torch.ones(1, 1), times, **TIGHT)
    (gradient,) = torch.autograd.grad(sol.ys[0, 1].sum(), times)
    torch.testing.assert_close(gradient, torch.tensor([0.606531, -0.606531, 0]), atol=1e-4, rtol=0)


def test_a_loss_on_several_times_counts_each_of_them():
    y0 = leaf([[1.0]])
    solve_ivp(lambda t, y: -y, y0, [0, 0.5, 1.0], **TIGHT).ys.sum().backward()
    assert y0.grad is not None
    assert y0.grad.item() == pytest.approx(1.974410, abs=1e-4)


def test_tensors_that_the_field_merely_uses_get_their_gradient():
    weight = leaf(0.5)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.b = torch.nn.Parameter(torch.zeros(()))

        def forward(self, t, y):
            return -weight * y + self.b

    net = Net()
    solve_ivp(net, torch.ones(1, 1), t0=0.0, t1=1.0, **TIGHT).ys.sum().backward()
    assert weight.grad is not None
    assert weight.grad.item() == pytest.approx(-math.exp(-0.5), abs=1e-4)
    assert net.b.grad is not None
    assert net.b.grad.item() == pytest.approx((1 - math.exp(-0.5)) / 0.5, abs=1e-4)


def test_a_parameter_used_only_later_gets_its_gradient():
    weight = leaf(0.5)

    def f(t, y):
        return -y if t[0] < 0.5 else -weight * y

    sol = solve_ivp(f, torch.ones(1, 1), t0=0.0, t1=1.0, jump_t=0.5, **TIGHT)
    (gradient,) = torch.autograd.grad(sol.ys.sum(), weight)
    assert gradient.item() == pytest.approx(-0.5 * math.exp(-0.75), abs=1e-5)


@pytest.mark.parametrize("outer_no_grad", [False, True])
def test_the_field_may_call_autograd_itself(outer_no_grad):
    def f(t, y):
        with torch.enable_grad():
            y = y if y.requires_grad else y.detach().requires_grad_()
            energy = (y * y / 2).sum()
            return -torch.autograd.grad(energy, y, create_graph=True)[0]

    y0 = leaf([[1.0]])
    with torch.set_grad_enabled(not outer_no_grad):
        sol = solve_ivp(f, y0, t0=0.0, t1=1.0, **TIGHT)
    assert sol.ys.item() == pytest.approx(math.exp(-1), abs=1e-4)
    assert sol.ys.requires_grad is not outer_no_grad
    if not outer_no_grad:
        sol.ys.sum().backward()
        assert y0.grad is not None
        assert y0.grad.item() == pytest.approx(math.exp(-1), abs=1e-4)


def test_second_derivatives_work_as_in_torch():
    y0 = leaf([[0.7]])
    sol = solve_ivp(lambda t, y: -y * y, y0, t0=0.0, t1=1.0, rtol=1e-9, atol=1e-12)
    (first,) = torch.autograd.grad(sol.ys.sum(), y0, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), y0)
    assert first.item() == pytest.approx(1 / 1.7**2, rel=1e-6)
    assert second.item() == pytest.approx(-2 / 1.7**3, rel=1e-5)


def test_nothing_is_kept_when_no_gradient_is_wanted():
    y0 = torch.ones(2, 2)
    assert not solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0).ys.requires_grad
    with torch.no_grad():
        net = torch.nn.Linear(2, 2)
        assert not solve_ivp(lambda t, y: net(y), y0, t0=0.0, t1=1.0).ys.requires_grad
    with torch.inference_mode():
        sol = solve_ivp(lambda t, y: net(y), y0, [0.0, 0.3, 1.0], dense=True)
        assert sol.success.all()


@pytest.mark.parametrize("mode", ["with", "without"])
def test_repeated_solves_leave_no_tensor_behind(mode):
    net = torch.nn.Linear(2, 2)

    class Owner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.last = net, None

        def forward(self, t, y):
            return self.net(y)

    owner = Owner()

    def tensors():
        gc.collect()
        return sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())

    counts = []
    for round_ in range(12):
        sol = solve_ivp(owner, torch.ones(3, 2), [0.0, 0.5, 1.0])
        owner.last = sol
        if mode == "with":
            sol.ys.sum().backward()
            net.zero_grad()
        if round_ in (4, 11):
            counts.append(tensors())
    assert counts[0] == counts[1]
