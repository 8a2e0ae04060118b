"""Gradients through steps that solve equations: exact to rounding, Robertson's rates included."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch.autograd.functional import jacobian

from solver import solve_ivp
from solver.catalogue import method_by_name

F64 = torch.float64
ROBERTSON = torch.tensor([[0.04, 1e4, 3e7]], dtype=F64)
START = torch.tensor([[1.0, 0.0, 0.0]], dtype=F64)
METHODS = ["kvaerno5", "trbdf2", "kencarp4", "radau5", "rodas5p", "ros3p", "auto", "implicit_euler"]


def robertson(t, y, k):
    a, b, c = y.unbind(-1)
    slow, fast, very_fast = k[:, 0] * a, k[:, 1] * b * c, k[:, 2] * b * b
    return torch.stack([fast - slow, slow - fast - very_fast, very_fast], dim=-1)


def differences(end, at):
    """The gradient of `end(at)` by central differences of three widths, two extrapolations."""
    gradient = torch.zeros_like(at)
    for i in range(at.shape[1]):
        table = []
        for part in (1.0, 0.5, 0.25):
            step = torch.zeros_like(at)
            step[0, i] = 4e-3 * part * max(abs(at[0, i].item()), 1e-4)
            with torch.no_grad():
                table.append((end(at + step) - end(at - step)) / (2 * step[0, i]))
        once = [(4 * b - a) / 3 for a, b in pairwise(table)]
        gradient[0, i] = (16 * once[1] - once[0]) / 15
    return gradient


@pytest.mark.parametrize("adjoint", ["backprop", "symplectic"])
@pytest.mark.parametrize("method", METHODS)
def test_gradients_by_robertsons_rates_match_differences(method, adjoint):
    """Over fixed steps, as two adaptive solves differ by their steps as well."""
    options: Any = {"t0": 0.0, "t1": 0.02, "method": method, "controller": "fixed", "dt0": 1e-3}

    def end(k):
        ys = solve_ivp(robertson, START, args=k, adjoint=adjoint, **options).ys[0, 0]
        return ys[1] * 1e4 + ys[2]

    k = ROBERTSON.clone().requires_grad_()
    (got,) = torch.autograd.grad(end(k), k)
    torch.testing.assert_close(got, differences(end, ROBERTSON), rtol=1e-8, atol=0)


def test_gradients_through_bdf_match_differences():
    """Over fixed steps; the orders they take follow from errors and are constants, too."""

    def end(k):
        options: Any = {"t0": 0.0, "t1": 0.02, "controller": "fixed", "dt0": 1e-3}
        ys = solve_ivp(robertson, START, args=k, method="bdf", **options).ys[0, 0]
        return ys[1] * 1e4 + ys[2]

    k = ROBERTSON.clone().requires_grad_()
    (got,) = torch.autograd.grad(end(k), k)
    torch.testing.assert_close(got, differences(end, ROBERTSON), rtol=1e-8, atol=0)


@pytest.mark.parametrize("adjoint", ["backprop", "symplectic"])
@pytest.mark.parametrize("method", ["kencarp3", "kencarp4"])
def test_gradients_by_rates_in_both_parts_of_a_field_match_differences(method, adjoint):
    def slow(t, y, k):
        rate = k[:, 0] * y[:, 0]
        return torch.stack([-rate, rate, 0 * rate], dim=-1)

    def quick(t, y, k):
        _, b, c = y.unbind(-1)
        fast, very_fast = k[:, 1] * b * c, k[:, 2] * b * b
        return torch.stack([fast, -fast - very_fast, very_fast], dim=-1)

    def end(k):
        options: Any = {"t0": 0.0, "t1": 0.02, "controller": "fixed", "dt0": 1e-3}
        ys = solve_ivp(
            (slow, quick), START, args=k, method=method, adjoint=adjoint, **options
        ).ys[0, 0]  # fmt: skip
        return ys[1] * 1e4 + ys[2]

    k = ROBERTSON.clone().requires_grad_()
    (got,) = torch.autograd.grad(end(k), k)
    torch.testing.assert_close(got, differences(end, ROBERTSON), rtol=1e-8, atol=0)


@pytest.mark.parametrize("adjoint", ["backprop", "symplectic", "aca"])
@pytest.mark.parametrize("method", ["kvaerno5", "kvaerno3", "radau5", "gauss4", "trapezoid"])
def test_one_step_has_the_derivative_of_the_implicit_function_theorem(method, adjoint):
    """All stages as one system, solved here to convergence and derived as a whole."""
    h = 0.05
    numbers = getattr(method_by_name(method), "tableau", None)
    if numbers is not None:
        size = numbers.stages
        a = torch.tensor([[float(x) for x in row] for row in numbers.exact.a], dtype=F64)
        b = torch.tensor([float(x) for x in numbers.exact.b], dtype=F64)
        c = torch.tensor([float(x) for x in numbers.exact.c], dtype=F64)
    else:
        numbers = method_by_name(method).numbers
        a, b, c = numbers.a, numbers.b, torch.tensor(numbers.c, dtype=F64)
        size = len(c)
    y0 = torch.tensor([[0.9, 1e-5, 0.1]], dtype=F64)
    k = torch.tensor([[0.04, 1e3, 3e4]], dtype=F64)

    def field(t, y, k):
        return robertson(t, y, k) + torch.cos(t)[:, None] * 0.1 * y

    def residual(z, y, k):  # of increments (S, 3)
        slopes = field(c * h, y + z, k.expand(size, 3))
        return z - h * a @ slopes

    z = torch.zeros(size, 3, dtype=F64)
    for _ in range(30):
        matrix = jacobian(lambda z: residual(z, y0, k), z).reshape(3 * size, 3 * size)
        z = z - torch.linalg.solve(matrix, residual(z, y0, k).flatten()).reshape(size, 3)
    by_z, by_y, by_k = (each.reshape(3 * size, -1) for each in jacobian(residual, (z, y0, k)))

    def end(z, y, k):
        return (y + h * b @ field(c * h, y + z, k.expand(size, 3)))[0]

    direct = jacobian(end, (z, y0, k))
    weights = torch.tensor([1.0, 3e3, -0.7], dtype=F64)
    at_z, at_y, at_k = (weights @ each.reshape(3, -1) for each in direct)
    back = torch.linalg.solve(by_z.t(), at_z)
    wanted = at_y - back @ by_y, at_k - back @ by_k

    start, rates = y0.clone().requires_grad_(), k.clone().requires_grad_()
    sol = solve_ivp(field, start, t0=0.0, t1=h, args=rates, method=method, controller="fixed",
                    dt0=h, adjoint=adjoint)  # fmt: skip
    got = torch.autograd.grad((sol.ys[0, 0] * weights).sum(), [start, rates])
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine[0], theirs, rtol=1e-10, atol=1e-12)
