"""Continuous modes: near the gradient at tight tolerances, away from it at loose ones."""

import pytest
import torch

from solver import (
    PID,
    Continuous,
    Hook,
    Interpolated,
    Joint,
    Symplectic,
    solve_ivp,
)
from solver.errors import InvalidArgument, SolveFailed

MODES = [
    Continuous(), Continuous(seminorm=False), Joint(), Joint(seminorm=False), Interpolated(),
    Interpolated(seminorm=False),
]  # fmt: skip
EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=str)


@EVERY_MODE
def test_gradients_agree_with_backpropagation_at_tight_tolerances(mode, make_case, apart):
    """Rows forward and backward, outputs at each row's own times, states, parameters, times."""
    case, options = make_case(batch=4), {"method": "dopri5", "rtol": 1e-9, "atol": 1e-9}
    _, got = case.gradients(mode, **options)
    _, wanted = case.gradients("backprop", **options)
    assert apart(got, wanted) < 1e-6


@EVERY_MODE
def test_complex_states_with_real_parameters(mode, apart):
    y0 = torch.randn(2, 2, dtype=torch.complex128, requires_grad=True)
    omega = torch.tensor(0.7, requires_grad=True)

    def gradient(adjoint):
        options = {"t0": 0.0, "t1": 1.0, "rtol": 1e-9, "atol": 1e-9, "adjoint": adjoint}
        sol = solve_ivp(lambda t, y: 1j * omega * y * y.abs(), y0, **options)
        return torch.autograd.grad(sol.ys.abs().sum() + sol.ys.imag.sum(), [y0, omega])

    assert apart(gradient(mode), gradient("backprop")) < 1e-6


@pytest.mark.parametrize("mode", [Continuous(), Interpolated()], ids=str)
def test_jumps_are_stepped_on_backward_too(mode, apart):
    y0, rate = torch.rand(2, 2, requires_grad=True), torch.tensor([[0.5], [2.0]]).requires_grad_()
    jumps = torch.tensor([[0.5], [0.25]])

    def f(t, y):
        return torch.where(t[:, None] < jumps, rate * y, -y * y)

    def gradient(adjoint):
        options = {"jump_t": jumps, "rtol": 1e-9, "atol": 1e-9, "adjoint": adjoint}
        sol = solve_ivp(f, y0, t0=0.0, t1=1.0, **options)
        return torch.autograd.grad(sol.ys.sum(), [y0, rate])

    assert apart(gradient(mode), gradient("backprop")) < 1e-6


def test_joint_refuses_jumps():
    with pytest.raises(InvalidArgument, match="jump_t"):
        solve_ivp(lambda t, y: -y, torch.ones(1, 1, requires_grad=True), t0=0.0, t1=1.0,
                  jump_t=0.5, adjoint=Joint())  # fmt: skip


@pytest.mark.parametrize("mode", [Continuous(), Joint()], ids=str)
def test_the_error_grows_as_the_tolerance_loosens_and_that_of_exact_modes_stays_at_rounding(
    mode, make_case, apart
):
    case, errors, exact = make_case(batch=4), [], []
    for tolerance in (1e-8, 1e-6, 1e-4, 1e-2):
        options = {"method": "dopri5", "rtol": tolerance, "atol": tolerance, "times": False}
        _, wanted = case.gradients("backprop", **options)
        errors.append(apart(case.gradients(mode, **options)[1], wanted))
        exact.append(apart(case.gradients(Symplectic(), **options)[1], wanted))
    assert max(exact) < 1e-12
    assert errors == sorted(errors)
    assert errors[-1] > 1e4 * errors[0]
    assert errors[-1] > 1e-4


@EVERY_MODE
def test_fixed_steps_are_taken_backward_with_the_same_size(mode, make_case, apart):
    case, options = make_case(batch=4), {"method": "rk4", "controller": "fixed", "dt0": 0.01}
    _, got = case.gradients(mode, **options)
    _, wanted = case.gradients("backprop", **options)
    assert apart(got, wanted) < 1e-5


class Blocks(Hook):
    """Keeps what it is told."""

    def __init__(self):
        self.starts, self.blocks, self.ends, self.passes = [], [], [], []

    def on_solve_start(self, info):
        """Keep one."""
        self.starts.append(info)

    def on_steps(self, steps):
        """Keep one."""
        self.blocks.append(steps)

    def on_solve_end(self, end):
        """Keep one."""
        self.ends.append(end)

    def on_backward(self, info):
        """Keep one."""
        self.passes.append(info)


@EVERY_MODE
def test_the_backward_solve_hands_out_its_own_steps(mode):
    hook, calls = Blocks(), [0]
    weight = torch.tensor(0.5, requires_grad=True)

    def f(t, y):
        calls[0] += 1
        return -weight * y

    sol = solve_ivp(f, torch.ones(3, 2), [0.0, 0.4, 1.0], adjoint=mode, hooks=[hook])
    forward = calls[0]
    sol.ys.sum().backward()
    assert [info.adjoint for info in hook.starts] == [mode.name, f"{mode.name} (backward)"]
    own = [block for block in hook.blocks if block.solve is hook.starts[1]]
    attempts = sum(len(block.t) for block in own)
    assert hook.ends[1].solution.stats.n_steps.max() <= attempts
    if not isinstance(mode, Joint):
        assert own[0].t[0].tolist() == [1.0] * 3
        assert (own[0].dt < 0).all()
    (info,) = hook.passes
    assert info.solve is hook.starts[0]
    assert info.n_f_calls == calls[0] - forward
    assert info.n_vjps > 0


def test_the_backward_solve_has_its_own_settings():
    hook = Blocks()
    mode = Continuous(method="bosh3", controller=PID(safety=0.8), rtol=1e-3, atol=1e-3)
    y0 = torch.ones(2, 1, requires_grad=True)
    sol = solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0, adjoint=mode, hooks=[hook])
    sol.ys.sum().backward()
    assert [info.method for info in hook.starts] == ["tsit5", "bosh3"]
    assert hook.starts[1].controller_settings["safety"] == 0.8


def test_a_solution_that_cannot_be_traced_back_is_an_error_not_a_wrong_gradient():
    """y' = -y^2 grows backward, and from a state of rounding alone it does without end."""
    y0 = torch.ones(1, 1, requires_grad=True)

    def f(t, y):
        return -100 * (y - torch.cos(t)[:, None]) ** 3 - y.exp()

    mode = Continuous(rtol=1e-2, atol=1e-2)
    sol = solve_ivp(f, y0, t0=0.0, t1=20.0, rtol=1e-6, max_steps=3000, adjoint=mode)
    assert sol.success.all()
    with pytest.raises(SolveFailed, match="exact"):
        sol.ys.sum().backward()
    sol = solve_ivp(f, y0, t0=0.0, t1=20.0, rtol=1e-6, adjoint=Interpolated())
    sol.ys.sum().backward()
    assert y0.grad.abs().item() < 1e-3
