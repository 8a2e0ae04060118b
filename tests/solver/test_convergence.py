"""Order of the step and of the dense output of every method, measured through `solve_ivp`.

Rows of one batch have different step sizes, so one solve gives a whole error curve.
"""

import math

import pytest
import torch
from torch import Tensor

from solver import Fixed, solve_ivp
from solver.catalogue import methods

each_method = pytest.mark.parametrize("name", list(methods()))
T1 = 1.5


def solution(t: Tensor) -> Tensor:
    """`(exp(sin t), 2 / (1 + exp(-t)))`, `(...,) -> (..., 2)`."""
    return torch.stack((t.sin().exp(), 2 / (1 + (-t).exp())), dim=-1)


def field(t: Tensor, y: Tensor) -> Tensor:
    """Nonlinear, coupled and not autonomous; the coupling vanishes on `solution`."""
    u, v = y.unbind(-1)
    u_true, v_true = solution(t).unbind(-1)
    du = u * t.cos() + (u * v - u_true * v_true)
    dv = v**2 * (-t).exp() / 2 - (u - u_true) * v / 2
    return torch.stack((du, dv), dim=-1)


def step_counts(order: int) -> Tensor:
    """Numbers of steps at which errors are far from rounding and from the first, coarse ones."""
    counts = (
        [4, 6, 8, 12] if order >= 7 else [12, 16, 24, 32, 48] if order >= 4 else [24, 32, 48, 64]
    )
    return torch.tensor(counts, dtype=torch.float64)


def slope(n: Tensor, error: Tensor) -> float:
    """Least-squares slope of log error over log step size."""
    x, y = -n.log(), error.log()
    x, y = x - x.mean(), y - y.mean()
    return ((x * y).sum() / (x * x).sum()).item()


@each_method
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_the_error_at_the_end_falls_with_the_order_of_the_method(name, direction):
    method = methods()[name]()
    n = step_counts(method.order)
    t0, t1 = torch.zeros_like(n), torch.full_like(n, T1)
    if direction != "forward":
        swap = torch.arange(len(n)) % 2 == 0 if direction == "both" else torch.ones(len(n)) > 0
        t0, t1 = torch.where(swap, t1, t0), torch.where(swap, t0, t1)
    sol = solve_ivp(
        field, solution(t0), t0=t0, t1=t1, method=method, controller=Fixed(), dt0=T1 / n
    )
    # Sizes that do not divide the span exactly may leave a sliver of a step at its end.
    assert ((sol.stats.n_accepted - n) <= 1).all()
    error = (sol.y_reached - solution(t1)).abs().amax(dim=1)
    groups = [n > 0] if direction != "both" else [t1 > t0, t1 < t0]
    for rows in groups:
        margin = 0.5 if method.order < 7 else 0.7
        assert slope(n[rows], error[rows]) > method.order - margin


@each_method
def test_the_error_inside_a_step_falls_with_the_order_of_the_dense_output(name):
    """One step from the true solution: the error inside is of order h^(q + 1)."""
    method = methods()[name]()
    n = step_counts(method.dense_order)
    h = T1 / n
    times = torch.linspace(0.05, 0.95, 10) * h[:, None]
    sol = solve_ivp(
        field,
        solution(torch.zeros_like(h)),
        times,
        t0=0.0,
        t1=h,
        method=method,
        controller=Fixed(),
        dt0=h,
    )
    assert sol.stats.n_steps.tolist() == [1] * len(n)
    error = (sol.ys - solution(times)).abs().amax(dim=(1, 2))
    assert slope(n, error) > method.dense_order + 1 - 0.4


BROKEN = ("ros2", "ros3p", "rodas4")  # polynomials that meet in value only


@each_method
def test_dense_output_is_one_smooth_function_over_all_steps(name):
    """No jump of value or slope where one step ends and the next begins.

    Slopes of stiff solutions are not known well enough to go through them, so polynomials of
    Rosenbrock methods do without.
    """
    method = methods()[name]()
    steps = 8
    joints = torch.arange(1, steps) * (T1 / steps)
    eps = 1e-6
    times = torch.stack((joints - eps, joints, joints + eps), dim=1).flatten()
    sol = solve_ivp(
        field,
        solution(torch.zeros(1)),
        times,
        t0=0.0,
        t1=T1,
        method=method,
        controller=Fixed(),
        dt0=T1 / steps,
        dense=True,
    )
    before, at, after = sol.ys[0].unflatten(0, (steps - 1, 3)).unbind(dim=1)
    if name in BROKEN:
        torch.testing.assert_close(before, after, rtol=0, atol=10 * eps)
    else:
        torch.testing.assert_close((at - before) / eps, (after - at) / eps, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(sol(times), sol.ys, rtol=1e-13, atol=1e-13)


def test_a_slope_is_measured_right():
    n = torch.tensor([4.0, 8.0, 16.0])
    assert math.isclose(slope(n, 7 * n**-3), 3.0)
