"""The drop-in for torchdiffeq: values, orders, gradients; beside torchdiffeq if installed."""

import importlib
import importlib.util
import math
import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import solver.compat.torchdiffeq as drop_in
from solver.compat._adams import adams_weights
from solver.compat._fixed import EXPLICIT
from solver.compat._tableaus import ADAPTIVE
from solver.compat.torchdiffeq import odeint, odeint_adjoint, odeint_dense, odeint_event

F64 = torch.float64
REAL = importlib.util.find_spec("torchdiffeq")
GRIDS = [name for name in drop_in.SOLVERS if name not in (*ADAPTIVE, "scipy_solver")]
RELEASED = [name for name in ADAPTIVE if name != "tsit5"]  # which came later
EVERY = [*ADAPTIVE, *GRIDS]

_path = Path(__file__).parents[2] / "benchmarks" / "torchdiffeq_examples.py"
_spec = importlib.util.spec_from_file_location("torchdiffeq_examples", _path)
assert _spec
assert _spec.loader
examples = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(examples)

# What torchdiffeq 0.2.5 gives for its examples.
RECORDED = {
    "ode_demo": [0.471585895, 0.500292689, 0.357403904],
    "bouncing_ball": [6.935303387, -0.35384201, -0.0707684, 0.353842002, -12.784490532],
    "cnf": [0.484740748, 0.38433886],
    "latent_ode": [1.45291434, 1.340276072, 1.078889477],
    "learn_physics": [0.020718638, 0.066745743],
}


@pytest.mark.parametrize("name", RECORDED)
def test_its_examples_give_the_same_losses(name):
    assert examples.EXAMPLES[name](drop_in) == pytest.approx(RECORDED[name], abs=1e-6)


@pytest.mark.parametrize("example", [examples.ode_demo, examples.bouncing_ball])
def test_the_adjoint_gives_the_losses_of_the_graph(example):
    through = example(drop_in, interface="odeint")
    assert example(drop_in, interface="odeint_adjoint") == pytest.approx(through, abs=1e-6)


class Pendulum(nn.Module):
    """A driven pendulum that counts its evaluations."""

    def __init__(self) -> None:
        super().__init__()
        self.rate, self.drive = (nn.Parameter(torch.tensor(v, dtype=F64)) for v in (1.3, 0.4))
        self.calls = 0

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        self.calls += 1
        x, v = y.unbind(-1)
        return torch.stack([v, -self.rate * x.sin() + self.drive * t.cos()], dim=-1)


@pytest.mark.skipif(REAL is None, reason="torchdiffeq is not installed")
@pytest.mark.parametrize("times", [(0.0, 1.0, 1.5, 4.0), (2.0, 1.9, 0.0)])
@pytest.mark.parametrize("method", [*RELEASED, *EXPLICIT, "explicit_adams", "implicit_adams"])
def test_it_takes_the_very_steps_of_torchdiffeq(method, times):
    real, results = importlib.import_module("torchdiffeq"), []
    options = {} if method in ADAPTIVE else {"options": {"step_size": 0.05}}
    tolerances = {"rtol": 1e-5, "atol": 1e-7}
    for module in (real, drop_in):
        field, t = Pendulum(), torch.tensor(times, dtype=F64, requires_grad=True)
        y0 = torch.tensor([[0.5, 0.0], [1.0, -1.0]], dtype=F64, requires_grad=True)
        y = module.odeint(field, y0, t, method=method, **tolerances, **options)
        y.square().sum().backward()
        grads = [y0.grad, field.rate.grad, field.drive.grad]
        if method in ADAPTIVE:  # on a grid torchdiffeq's outputs at grid points have none by time
            grads.append(t.grad)
        results.append((y.detach(), field.calls, grads))
    (y, calls, grads), (mine, my_calls, my_grads) = results
    assert my_calls == calls
    # A step of order 8 has an error estimate of rounding size, which moves all later steps.
    torch.testing.assert_close(mine, y, rtol=1e-7, atol=1e-5 if method == "dopri8" else 1e-8)
    torch.testing.assert_close(my_grads, grads, rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(REAL is None, reason="torchdiffeq is not installed")
@pytest.mark.parametrize("norm", [None, "seminorm"])
def test_its_adjoint_takes_the_very_steps_of_torchdiffeq(norm):
    real, results = importlib.import_module("torchdiffeq"), []
    options = {} if norm is None else {"adjoint_options": {"norm": norm}}
    for module in (real, drop_in):
        field, t = Pendulum(), torch.tensor([0.0, 1.0, 3.0], dtype=F64, requires_grad=True)
        y0 = torch.tensor([[0.5, 0.0], [1.0, -1.0]], dtype=F64, requires_grad=True)
        y = module.odeint_adjoint(field, y0, t, rtol=1e-5, atol=1e-7, **options)
        y.square().sum().backward()
        results.append((field.calls, [y0.grad, t.grad, field.rate.grad, field.drive.grad]))
    assert results[0][0] == results[1][0]
    torch.testing.assert_close(results[1][1], results[0][1], rtol=1e-9, atol=1e-11)


ORDERS = {
    "euler": 1, "midpoint": 2, "heun2": 2, "heun3": 3, "rk4": 4, "implicit_euler": 1,
    "implicit_midpoint": 2, "trapezoid": 2, "radauIIA3": 3, "gl4": 4, "radauIIA5": 5, "gl6": 6,
    "sdirk2": 2, "trbdf2": 2,
}  # fmt: skip


@pytest.mark.parametrize("method", ORDERS)
def test_methods_on_a_grid_have_their_order_also_in_time(method):
    """On y' = cos t and on a nonlinear field; coarse steps where the order is high."""

    def f(t, y):
        return torch.stack([t.cos(), -(y[1] ** 2) + t.sin()])

    y0 = torch.tensor([0.0, 1.0], dtype=F64)
    t = torch.tensor([0.0, 2.0], dtype=F64)
    true = odeint(f, y0, t, method="dopri8", rtol=1e-13, atol=1e-14)[-1]
    step = 0.5 if ORDERS[method] >= 5 else 0.125
    errors = [
        (odeint(f, y0, t, method=method, options={"step_size": h})[-1] - true).abs()
        for h in (step, step / 2)
    ]
    rates = torch.log2(errors[0] / errors[1])
    assert (rates > ORDERS[method] - 0.35).all(), rates


def test_adams_weights_are_those_of_the_literature():
    assert adams_weights(3, implicit=False) == pytest.approx((23 / 12, -16 / 12, 5 / 12))
    assert adams_weights(4, implicit=True) == pytest.approx((9 / 24, 19 / 24, -5 / 24, 1 / 24))
    assert all(sum(adams_weights(n, implicit=i)) == pytest.approx(1) for n in range(1, 13)
               for i in (False, True))  # fmt: skip


@pytest.mark.parametrize("method", EVERY)
def test_gradients_by_states_times_and_parameters_are_exact(method):
    rate = torch.tensor(0.7, dtype=F64, requires_grad=True)
    y0 = torch.tensor([1.0, 0.3], dtype=F64, requires_grad=True)
    t = torch.tensor([0.0, 0.4, 1.0], dtype=F64, requires_grad=True)
    options = {"interp": "cubic", "step_size": 0.3} if method in GRIDS else {}
    low = method in ("adaptive_heun", "fehlberg2", "bosh3")
    tol = 1e-6 if low else 1e-10

    def solve(y0, t, rate):
        return odeint(lambda t, y: -rate * y * y + t.sin(), y0, t, method=method, options=options,
                      rtol=tol, atol=tol / 100)  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Steps that are chosen are constants to autograd, and finite differences move them.
        loose = {"eps": 1e-3, "atol": 5e-3 if low else 1e-5} if method in ADAPTIVE else {}
        assert torch.autograd.gradcheck(solve, (y0, t, rate), **loose)


def test_outputs_on_a_grid_point_have_their_derivative_by_time():
    t = torch.tensor([0.0, 0.5, 1.0], dtype=F64, requires_grad=True)
    y = odeint(lambda t, y: 2 + 0 * y, torch.ones(1, dtype=F64), t, method="euler",
               options={"step_size": 0.1})  # fmt: skip
    (by_t,) = torch.autograd.grad(y[1], t)
    assert by_t.tolist() == pytest.approx([-2.0, 2.0, 0.0])


@pytest.mark.parametrize("method", ["dopri5", "bosh3", "rk4", "implicit_adams", "radauIIA5"])
def test_the_adjoint_agrees_with_the_graph(method):
    options = {"options": {"step_size": 0.01}} if method in GRIDS else {}
    grads = []
    for interface in (odeint, odeint_adjoint):
        field, t = Pendulum(), torch.tensor([0.0, 0.5, 1.0], dtype=F64, requires_grad=True)
        y0 = torch.tensor([[0.5, 0.0]], dtype=F64, requires_grad=True)
        y = interface(field, y0, t, method=method, rtol=1e-8, atol=1e-10, **options)
        (y[..., 0].square().sum() + y[1].sum()).backward()
        grads.append([y0.grad, field.rate.grad, field.drive.grad])
        if method == "dopri5":  # on a grid outputs move with it, and quartics have their own error
            grads[-1].append(t.grad)
    torch.testing.assert_close(grads[0], grads[1], rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("method", [*ADAPTIVE, "rk4", "implicit_midpoint", "scipy_solver"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, F64, torch.complex128])
def test_states_have_any_shape_and_dtype(method, shape, dtype):
    if method == "scipy_solver":
        pytest.importorskip("scipy")
    options = {"step_size": 0.01} if method in GRIDS else {}
    if method == "scipy_solver":
        options = {"solver": "RK45"}
    factor = torch.tensor(-1 + 2j if dtype.is_complex else -1.0, dtype=dtype)
    y0 = torch.full(shape, 1.5, dtype=dtype)
    y = odeint(lambda t, y: factor * y, y0, torch.tensor([0.0, 0.5, 1.0]), method=method,
               options=options)  # fmt: skip
    assert y.shape == (3, *shape)
    assert y.dtype == dtype
    true = 1.5 * torch.exp(factor)
    torch.testing.assert_close(y[-1], true.expand(shape), rtol=1e-3, atol=1e-4)


def test_a_tuple_is_one_system_with_the_largest_of_its_norms():
    seen = []

    def f(t, state):
        a, b = state
        assert a.shape == (2,)
        assert b.shape == ()
        return -a, 2 * b

    def norm(parts):
        seen.append(tuple(part.shape for part in parts))
        return max(part.abs().max() for part in parts)

    y0 = (torch.ones(2, dtype=F64), torch.tensor(0.5, dtype=F64))
    t = torch.tensor([0.0, 1.0], dtype=F64)
    for options in (None, {"norm": norm}):
        a, b = odeint(f, y0, t, rtol=(1e-8, 1e-9), atol=(1e-10, 1e-10), options=options)
        torch.testing.assert_close(a[-1], torch.full((2,), math.exp(-1), dtype=F64))
        torch.testing.assert_close(b[-1], torch.tensor(0.5 * math.exp(2), dtype=F64))
    assert set(seen) == {((2,), ())}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("interface", [odeint, odeint_adjoint])
def test_time_and_state_of_an_event_have_their_gradients(reverse, interface):
    sign = -1.0 if reverse else 1.0

    class Fall(nn.Module):
        def __init__(self):
            super().__init__()
            self.g = nn.Parameter(torch.tensor(2.0, dtype=F64))

        def forward(self, t, y):
            return torch.stack([y[1], -self.g + 0 * y[1]])

    def event(field, y0, t0):
        return odeint_event(
            field, y0, t0, event_fn=lambda t, y: y[:1] - 0.25, rtol=1e-9, atol=1e-11,
            reverse_time=reverse, odeint_interface=interface,
        )  # fmt: skip

    field = Fall()
    y0 = torch.tensor([1.25, 0.0], dtype=F64, requires_grad=True)
    t0 = torch.tensor([0.5], dtype=F64, requires_grad=True)
    t, y = event(field, y0, t0)
    fall = math.sqrt(2 * 1.0 / 2.0)
    assert t.item() == pytest.approx(0.5 + sign * fall, abs=1e-8)
    assert y[-1].tolist() == pytest.approx([0.25, -sign * 2.0 * fall], abs=1e-7)
    by_y, by_t, by_g = torch.autograd.grad(t.sum(), (y0, t0, field.g), retain_graph=True)
    assert by_y[0].item() == pytest.approx(sign / (2 * fall), abs=1e-5)
    assert by_t.item() == pytest.approx(1.0, abs=1e-6)
    assert by_g.item() == pytest.approx(-sign * fall / 4, abs=1e-5)
    (speed_by_g,) = torch.autograd.grad(y[-1, 1], field.g)
    assert speed_by_g.item() == pytest.approx(-sign / math.sqrt(2 * 2.0), abs=1e-5)


def test_the_first_of_several_events_is_the_one_and_what_it_uses_has_its_gradient():
    level = torch.tensor([0.9, 0.5], dtype=F64, requires_grad=True)
    y0, t0 = torch.tensor([1.0], dtype=F64), torch.tensor([0.0], dtype=F64)
    t, _ = odeint_event(lambda t, y: -y, y0, t0, event_fn=lambda t, y: y - level)
    assert t.item() == pytest.approx(-math.log(0.9), abs=1e-7)
    (by_level,) = torch.autograd.grad(t, level)
    assert by_level.tolist() == pytest.approx([-1 / 0.9, 0.0], abs=1e-5)
    late, _ = odeint(lambda t, y: -y, y0, torch.tensor([0.0, 1.0]), method="rk4",
                     options={"step_size": 0.01}, event_fn=lambda t, y: y - 0.5)  # fmt: skip
    assert late.item() == pytest.approx(math.log(2), abs=1e-4)


@pytest.mark.parametrize("ends", [(0.0, 3.0), (3.0, 0.0)])
def test_dense_output_is_the_solution(ends):
    y0 = torch.tensor([1.0, 0.0], dtype=F64)
    first = torch.tensor(ends[0], dtype=F64)

    def f(t, y):
        return torch.stack([y[1], -y[0]])

    solution = odeint_dense(f, y0, first, ends[1], rtol=1e-9, atol=1e-10, method="dopri5")
    times = torch.linspace(*ends, 7, dtype=F64)
    torch.testing.assert_close(solution(times)[:, 0], (times - ends[0]).cos(), rtol=0, atol=1e-6)
    assert solution(1.5).shape == (2,)
    assert solution(times.reshape(7, 1)).shape == (7, 1, 2)
