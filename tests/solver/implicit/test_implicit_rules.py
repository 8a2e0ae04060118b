"""What implicit methods promise besides what every method does."""

import math

import pytest
import torch

from solver import Status, solve_ivp
from solver.errors import InvalidArgument, InvalidType
from solver.methods.kvaerno5 import Kvaerno5
from solver.methods.radau5 import Radau5
from solver.methods.rodas5p import Rodas5P

KINDS = ["rodas5p", "kvaerno5", "radau5", "bdf"]


def robertson(t, y, k):
    a, b, c = y.unbind(-1)
    slow, fast, very_fast = k[:, 0] * a, k[:, 1] * b * c, k[:, 2] * b * b
    return torch.stack([fast - slow, slow - fast - very_fast, very_fast], dim=-1)


def rates(batch):
    return torch.tensor([[0.04, 1e4, 3e7]], dtype=torch.float64).repeat(batch, 1)


START = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)


@pytest.mark.parametrize("method", KINDS)
def test_a_stiff_problem_takes_few_steps_and_keeps_its_mass(method):
    sol = solve_ivp(
        robertson, START, t0=0.0, t1=1e8, args=rates(1), method=method, rtol=1e-6, atol=1e-12
    )
    sol.raise_if_failed()
    assert sol.stats.n_steps.item() < 1500
    assert sol.stats.n_jac_evals.item() > 0
    assert (sol.stats.n_newton_iterations.item() > 0) == (method != "rodas5p")
    assert sol.y_reached.sum().item() == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("method", ["rodas5p", "kvaerno5", "radau5"])
def test_gradients_by_rates_match_finite_differences(method):
    """Over fixed steps, as differences of two adaptive solves are those of their steps."""
    k = rates(1).requires_grad_()
    options = {"t0": 0.0, "t1": 0.02, "method": method, "controller": "fixed", "dt0": 5e-4}

    def end(k):
        return solve_ivp(robertson, START, args=k, **options).ys[0, 0]

    (got,) = torch.autograd.grad(end(k)[1], k)
    for i in range(3):
        step = torch.zeros_like(k)
        step[0, i] = 1e-4 * k[0, i].item()
        with torch.no_grad():
            wide = end(k + step)[1] - end(k - step)[1]
            near = end(k + step / 2)[1] - end(k - step / 2)[1]
        wanted = (8 * near - wide) / (6 * step[0, i])  # Richardson's extrapolation
        assert got[0, i].item() == pytest.approx(wanted.item(), rel=1e-6)


@pytest.mark.parametrize("cls", [Kvaerno5, Radau5, Rodas5P])
def test_a_jacobian_of_ones_own_gives_the_same_solution(cls):
    calls = 0

    def jacobian(t, y, k):
        nonlocal calls
        calls += 1
        a, b, c = y.unbind(-1)
        zero = torch.zeros_like(a)
        rows = [
            [-k[:, 0], k[:, 1] * c, k[:, 1] * b],
            [k[:, 0], -k[:, 1] * c - 2 * k[:, 2] * b, -k[:, 1] * b],
            [zero, 2 * k[:, 2] * b, zero],
        ]
        return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=1)

    options = {"t0": 0.0, "t1": 1e4, "args": rates(2), "rtol": 1e-6, "atol": 1e-10}
    y0 = START.repeat(2, 1)
    own = solve_ivp(robertson, y0, method=cls(jacobian=jacobian), **options)
    auto = solve_ivp(robertson, y0, method=cls(), **options)
    torch.testing.assert_close(own.ys, auto.ys, rtol=1e-7, atol=1e-12)
    assert torch.equal(own.stats.n_jac_evals, auto.stats.n_jac_evals)
    assert calls == own.stats.n_jac_evals.max()


def test_a_field_that_autograd_cannot_follow_is_differenced():
    def f(t, y):
        return -50 * (y.detach() - torch.cos(t)[:, None])

    for method in KINDS:
        sol = solve_ivp(f, torch.zeros(2, 2), t0=0.0, t1=2.0, method=method, rtol=1e-6)
        assert sol.success.all()
        exact = (2500 * torch.cos(torch.tensor(2.0)) + 50 * torch.sin(torch.tensor(2.0))) / 2501
        torch.testing.assert_close(sol.ys[:, 0], exact.expand(2, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["kvaerno5", "radau5", "bdf"])
def test_a_row_whose_equations_have_no_solution_fails_alone_and_says_so(method):
    """Beyond y = 0.5 the field of row 1 is another one whenever it is asked."""
    calls = 0

    def f(t, y):
        nonlocal calls
        calls += 1
        wild = torch.tensor([[False], [True]]) & (y > 0.5)
        return torch.where(wild, 1e18 * math.sin(calls), 1 + 0 * y)

    sol = solve_ivp(f, torch.zeros(2, 1), t0=0.0, t1=1.0, method=method, rtol=1e-6, dt0=0.1)
    assert sol.status.tolist() == [Status.SUCCESS, Status.NOT_CONVERGED]
    assert sol.ys[0].item() == pytest.approx(1.0)
    assert "Newton" in sol.message(1)


@pytest.mark.parametrize("method", ["kvaerno5", "radau5", "trapezoid"])
def test_a_second_derivative_is_refused_rather_than_wrong(method):
    y0 = torch.tensor([[0.7]], requires_grad=True)
    sol = solve_ivp(lambda t, y: -y * y, y0, t0=0.0, t1=1.0, method=method, dt0=0.1)
    (first,) = torch.autograd.grad(sol.ys.sum(), y0, create_graph=True)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(first.sum(), y0)


def test_rosenbrock_steps_have_second_derivatives():
    y0 = torch.tensor([[0.7]], requires_grad=True)
    sol = solve_ivp(
        lambda t, y: -y * y, y0, t0=0.0, t1=1.0, method="rodas5p", rtol=1e-9, atol=1e-12
    )
    (first,) = torch.autograd.grad(sol.ys.sum(), y0, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), y0)
    assert second.item() == pytest.approx(-2 / 1.7**3, rel=1e-5)


def test_bad_settings_are_refused_by_name():
    with pytest.raises(InvalidType, match="jacobian is a int"):
        Radau5(jacobian=3)  # pyright: ignore[reportArgumentType]
    method = Radau5(jacobian=lambda t, y: torch.zeros(1, 2))
    with pytest.raises(InvalidArgument, match="jacobian returned"):
        solve_ivp(lambda t, y: -y, torch.ones(1, 2), t0=0.0, t1=1.0, method=method)
    y0 = torch.ones(1, 1, requires_grad=True)
    sol = solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0, method="bdf", adjoint="aca")
    with pytest.raises(InvalidArgument, match="bdf"):
        sol.ys.sum().backward()
