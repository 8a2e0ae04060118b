"""Fields in two parts: equations are solved for the stiff one alone."""

from typing import Any

import pytest
import torch

from solver import solve_ivp
from solver.errors import InvalidArgument, InvalidType
from solver.methods.kencarp3 import KenCarp3
from solver.methods.kencarp4 import KenCarp4

F64 = torch.float64
Y0 = torch.tensor([[1.0, 0.2], [0.5, -0.4]], dtype=F64)


def gentle(t, y):
    return torch.stack([y[:, 1] * torch.cos(t), -y[:, 0]], dim=-1)


def stiff(t, y):
    return -y.pow(3) - 2 * (y - torch.stack([torch.sin(t), torch.cos(t)], dim=-1))


def whole(t, y):
    return gentle(t, y) + stiff(t, y)


@pytest.mark.parametrize(("method", "order"), [("kencarp3", 3), ("kencarp4", 4)])
def test_the_pair_has_the_order_of_the_method(method, order):
    n = torch.tensor([10.0, 20.0, 40.0], dtype=F64)
    y0 = Y0[:1].repeat(3, 1)
    exact = solve_ivp(whole, y0, t0=0.0, t1=1.0, method="dopri8", rtol=1e-12, atol=1e-13).ys
    sol = solve_ivp(
        (gentle, stiff), y0, t0=0.0, t1=1.0, method=method, controller="fixed", dt0=1 / n
    )
    error = (sol.ys - exact).abs().amax((1, 2))
    slope = (error[:-1] / error[1:]).log2()
    assert (slope > order - 0.35).all(), slope
    assert (slope < order + 0.8).all(), slope


@pytest.mark.parametrize("cls", [KenCarp3, KenCarp4])
@pytest.mark.parametrize("parts", ["explicit", "implicit"])
def test_a_part_that_is_zero_leaves_one_half_of_the_pair(cls, parts):
    def nothing(t, y):
        return torch.zeros_like(y)

    f = (whole, nothing) if parts == "explicit" else (nothing, whole)
    options: Any = {"t0": 0.0, "t1": 0.5, "controller": "fixed", "dt0": 0.1}
    sol = solve_ivp(f, Y0, method=cls(), **options)
    if parts == "implicit":
        wanted = solve_ivp(whole, Y0, method=cls(), **options)
        torch.testing.assert_close(sol.ys, wanted.ys, rtol=1e-12, atol=1e-13)
    else:
        assert sol.stats.n_newton_iterations.max() <= 2 * sol.stats.n_steps.max() * 6
        exact = solve_ivp(whole, Y0, t0=0.0, t1=0.5, method="dopri8", rtol=1e-10).ys
        torch.testing.assert_close(sol.ys, exact, rtol=1e-3, atol=1e-3)


def test_the_jacobian_is_of_the_stiff_part_alone():
    seen = []

    def jacobian(t, y):
        seen.append(len(y))
        return torch.diag_embed(-3 * y**2 - 2)

    sol = solve_ivp(
        (gentle, stiff), Y0, t0=0.0, t1=2.0, method=KenCarp4(jacobian=jacobian), rtol=1e-7
    )
    exact = solve_ivp(whole, Y0, t0=0.0, t1=2.0, method="dopri8", rtol=1e-11, atol=1e-12).ys
    torch.testing.assert_close(sol.ys, exact, rtol=1e-5, atol=1e-6)
    assert seen


@pytest.mark.parametrize("method", ["kencarp3", "kencarp4"])
def test_gradients_reach_both_parts(method):
    def gradients(adjoint, in_parts):
        a = torch.tensor(0.8, dtype=F64, requires_grad=True)
        k = torch.tensor([[5.0], [300.0]], dtype=F64, requires_grad=True)
        y0 = Y0.clone().requires_grad_()

        def one(t, y):
            return a * gentle(t, y)

        def other(t, y):
            return -k * (y - torch.cos(t)[:, None] * a)

        f = (one, other) if in_parts else lambda t, y: one(t, y) + other(t, y)
        options: Any = {"t0": 0.0, "t1": 1.0, "rtol": 1e-5, "atol": 1e-7}
        t_eval = torch.tensor([0.3, 0.8], dtype=F64)
        sol = solve_ivp(f, y0, t_eval, method=method if in_parts else "radau5",
                        adjoint=adjoint, **options)  # fmt: skip
        return torch.autograd.grad((sol.ys**2).sum(), [a, k, y0])

    exact = gradients("backprop", in_parts=False)
    followed = gradients("backprop", in_parts=True)
    replayed = gradients("symplectic", in_parts=True)
    for got, same, true in zip(replayed, followed, exact, strict=True):
        torch.testing.assert_close(got, same, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(same, true, rtol=1e-2, atol=1e-3)


def test_other_methods_take_the_sum_and_trees_are_parts_too():
    tree = {"a": Y0, "b": Y0[:, 0]}

    def one(t, y):
        return {"a": -y["a"], "b": y["b"] * 0}

    def other(t, y):
        return {"a": y["a"] * 0, "b": -2 * y["b"]}

    for method in ("tsit5", "rodas5p", "kencarp4"):
        sol = solve_ivp((one, other), tree, t0=0.0, t1=1.0, method=method, rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(sol.ys["a"][:, 0], Y0 * 0.36787944, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(sol.ys["b"][:, 0], Y0[:, 0] * 0.13533528, rtol=1e-5, atol=1e-6)


def test_jumps_outputs_and_backward_in_time():
    def pulse(t, y):
        return torch.where(t[:, None] > 0.5, 1.0, 0.0) + 0 * y

    def decay(t, y):
        return -40 * (y - 1) * direction

    for direction in (1.0, -1.0):
        sol = solve_ivp(
            (pulse, decay), torch.zeros(1, 1, dtype=F64), torch.tensor([0.3, 0.6]) * direction,
            t0=0.0, t1=1.0 * direction, jump_t=0.5 * direction, method="kencarp4", rtol=1e-7,
            atol=1e-10,
        )  # fmt: skip
        after = (1 - torch.exp(torch.tensor(-4.0))) / 40 if direction > 0 else 0.0
        assert sol.ys[0, 0].item() == pytest.approx(1 - 6.144e-6, abs=1e-6)
        assert sol.ys[0, 1].item() == pytest.approx(float(1 + after), abs=1e-5)


def test_what_is_no_field_of_two_parts_is_refused():
    with pytest.raises(InvalidArgument, match="f has 3 parts"):
        solve_ivp((whole, whole, whole), Y0, t0=0.0, t1=1.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidType, match="implicit part of f is a int"):
        solve_ivp((whole, 3), Y0, t0=0.0, t1=1.0)  # pyright: ignore[reportArgumentType]
