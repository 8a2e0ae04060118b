"""Windows of steps taken back at once: the same gradient in fewer calls."""

import pytest
import torch

from solver import Hook, solve_ivp
from solver.adjoints.symplectic import Symplectic


class Told(Hook):
    """Keeps what the backward pass told."""

    def on_backward(self, info):
        self.info = info


def gradients(f, y0, params, *, keep, budget=64.0, t1=2.0, **options):
    told = Told()
    start = y0.clone().requires_grad_()
    sol = solve_ivp(
        f, start, t0=0.0, t1=t1, adjoint=Symplectic(keep=keep, budget=budget), rtol=1e-6, atol=1e-6,
        hooks=[told], **options,
    )  # fmt: skip
    loss = sol.ys.pow(2).sum()
    return [*torch.autograd.grad(loss, [start, *params]), told.info]


def network(dim, hidden=16):
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(dim, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, dim)
    ).double()


def assert_same(one, many, tolerance=1e-12):
    for a, b in zip(one[:-1], many[:-1], strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("budget", [64.0, 0.05, 0.0])
def test_windows_of_any_width_give_the_same_gradient_with_fewer_calls(budget):
    net, y0 = network(3), torch.randn(4, 3, dtype=torch.float64)
    one = gradients(lambda t, y: net(y), y0, list(net.parameters()), keep="one", t1=40.0)
    many = gradients(
        lambda t, y: net(y), y0, list(net.parameters()), keep="steps", budget=budget, t1=40.0
    )
    assert_same(one, many)
    assert one[-1].n_steps == many[-1].n_steps > 10
    if budget == 64.0:
        assert many[-1].n_f_calls < one[-1].n_f_calls / 10


def test_a_field_may_hold_numbers_of_its_rows():
    rate = torch.linspace(0.5, 3.0, 5, dtype=torch.float64, requires_grad=True)
    y0 = torch.randn(5, 2, dtype=torch.float64)
    spans = torch.linspace(0.1, 4.0, 5, dtype=torch.float64)  # rows of very different lengths

    def f(t, y):
        return -rate[:, None] * y + t[:, None].sin()

    one, many = (gradients(f, y0, [rate], keep=keep, t1=spans) for keep in ("one", "steps"))
    assert_same(one, many)


@pytest.mark.parametrize("kind", ["item", "inner gradient", "in place"])
def test_what_cannot_be_called_for_many_steps_goes_one_by_one(kind):
    net, y0 = network(2), torch.randn(3, 2, dtype=torch.float64)

    def f(t, y):
        if kind == "item":
            return net(y) * (1.0 + 0.0 * float(y.detach().sum()))
        if kind == "inner gradient":
            with torch.enable_grad():
                x = y if y.requires_grad else y.detach().requires_grad_()
                return torch.autograd.grad(net(x).sin().sum(), x, create_graph=True)[0]
        out = torch.zeros(3, 2, dtype=y.dtype)
        out[:, 0] = net(y)[:, 0]
        out[:, 1] = y[:, 0]
        return out

    params = list(net.parameters())[: -1 if kind == "inner gradient" else None]
    one, many = (gradients(f, y0, params, keep=keep) for keep in ("one", "steps"))
    assert_same(one, many)


def test_complex_states_go_one_by_one():
    rate = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    y0 = torch.randn(3, 2, dtype=torch.complex128)
    one, many = (
        [
            *torch.autograd.grad(
                solve_ivp(
                    lambda t, y: 1j * rate * y, y0, t0=0.0, t1=1.0, adjoint=Symplectic(keep=keep)
                ).ys.real.sum(),
                [rate],
            ),
            None,
        ]
        for keep in ("one", "steps")
    )
    assert_same(one, many)
