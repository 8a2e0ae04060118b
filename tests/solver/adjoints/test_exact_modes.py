"""Exact modes give the gradient of backpropagation over the same accepted steps, to rounding."""

import pytest
import torch

from solver import catalogue, solve_ivp
from solver.adjoints.aca import ACA
from solver.adjoints.binomial import Binomial
from solver.adjoints.checkpoint_steps import CheckpointSteps
from solver.adjoints.symplectic import Symplectic

EXACT = [
    CheckpointSteps(), ACA(), Symplectic(), Symplectic(keep="graphs"), Symplectic(keep="values"),
    Symplectic(keep="steps"), Binomial(0.0),
]  # fmt: skip
# One implicit method for each kind of stepper: the others differ in numbers only.
KINDS = {"kvaerno5", "rodas5p", "radau5", "gauss4", "trapezoid", "implicit_midpoint"}
TRIED = [
    name
    for name, method in catalogue.methods().items()
    if not hasattr(method, "jacobian") or name in KINDS
]
ADAPTIVE = [n for n in TRIED if catalogue.method_by_name(n).error_order is not None]
FIXED = [n for n in TRIED if n not in ADAPTIVE]
TOLERANCE = {1: 3e-3, 2: 3e-4}
REMEMBER = {"auto", "rkc2"}  # their steps depend on those before
EVERY_MODE = pytest.mark.parametrize("mode", EXACT, ids=str)


def options_of(method, dtype):
    order = catalogue.method_by_name(method).error_order
    tolerance = TOLERANCE.get(order, 1e-5 if dtype == torch.float64 else 1e-4)
    return {"method": method, "rtol": tolerance, "atol": tolerance, "dt0": 0.3}


@pytest.mark.parametrize("trajectory", [False, True], ids=["end", "trajectory"])
@pytest.mark.parametrize("method", ADAPTIVE)
@EVERY_MODE
def test_gradients_equal_backpropagation_in_float64(mode, method, trajectory, same_steps):
    """16 rows forward and backward with their own meshes and refused steps, times included."""
    if method in REMEMBER and isinstance(mode, CheckpointSteps):
        pytest.skip("refused, see test_switching_and_stabilized")
    dtype = torch.float64
    sol, states, times, parameters = same_steps(
        mode, dtype, trajectory=trajectory, **options_of(method, dtype)
    )
    assert sol.stats.n_rejected.sum() > 0
    assert sol.stats.n_accepted.unique().numel() > 2
    bound = 1e-11 if method in KINDS else 1e-12  # equations are solved to rounding, not beyond
    assert max(states, parameters) < bound
    assert times < 1e-10


@pytest.mark.parametrize("method", ADAPTIVE)
@EVERY_MODE
def test_gradients_equal_backpropagation_in_float32(mode, method, same_steps):
    if method in REMEMBER and isinstance(mode, CheckpointSteps):
        pytest.skip("refused, see test_switching_and_stabilized")
    dtype = torch.float32
    _, states, _, parameters = same_steps(mode, dtype, **options_of(method, dtype))
    # Dopri8's polynomial has weights that cancel: there, backpropagation itself is 3.5e-6 off.
    assert max(states, parameters) < (4e-6 if method == "dopri8" else 2e-6)


@pytest.mark.parametrize("method", FIXED)
@EVERY_MODE
def test_gradients_of_fixed_steps_equal_backpropagation(mode, method, make_case, apart):
    case = make_case(batch=4)
    options = {"method": method, "controller": "fixed", "dt0": 0.11}
    _, got = case.gradients(mode, **options)
    _, wanted = case.gradients("backprop", **options)
    assert apart(got, wanted) < 1e-11


@pytest.mark.parametrize("stepping", ["joint", "independent"])
@EVERY_MODE
def test_all_rows_with_one_span_and_output_times_that_are_the_ends(mode, stepping, apart):
    weight, y0 = torch.randn(3, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    t_eval = torch.linspace(0, 1, 4).requires_grad_()

    def gradient(adjoint):
        sol = solve_ivp(
            lambda t, y: torch.tanh(y @ weight), y0, t_eval, stepping=stepping, adjoint=adjoint
        )
        return torch.autograd.grad((sol.ys**2).sum(), [y0, weight, t_eval])

    assert apart(gradient(mode), gradient("backprop")) < 1e-12


@EVERY_MODE
def test_output_times_apart_from_the_ends(mode, apart):
    """With t1 given as well, an output at t1 is read off the last step's polynomial."""
    y0 = torch.rand(3, 2, requires_grad=True)
    t_eval, t1 = torch.tensor([0.2, 0.6, 1.0]).requires_grad_(), torch.ones(3, requires_grad=True)

    def gradient(adjoint):
        sol = solve_ivp(lambda t, y: -y * y, y0, t_eval, t0=0.0, t1=t1, adjoint=adjoint)
        return torch.autograd.grad(sol.ys.sum(), [y0, t_eval, t1])

    assert apart(gradient(mode), gradient("backprop")) < 1e-12


@EVERY_MODE
def test_complex_states(mode, apart):
    y0 = torch.randn(3, 2, dtype=torch.complex128, requires_grad=True)
    omega, t1 = (
        torch.tensor(0.7, requires_grad=True),
        torch.tensor([1.0, -0.5, 0.7]).requires_grad_(),
    )

    def gradient(adjoint):
        t_eval = t1[:, None] * torch.tensor([0.3, 0.8])
        options = {"t0": 0.0, "t1": t1, "rtol": 1e-7, "adjoint": adjoint}
        sol = solve_ivp(lambda t, y: 1j * omega * y * y.abs(), y0, t_eval, **options)
        return torch.autograd.grad(sol.ys.abs().sum() + sol.ys.imag.sum(), [y0, omega, t1])

    assert apart(gradient(mode), gradient("backprop")) < 1e-11


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("sign", [1, -1])
@EVERY_MODE
def test_jumps_of_the_field(mode, sign, left, apart):
    """Either way in time, whichever side the field counts the jump itself to."""
    y0 = torch.rand(2, 2, requires_grad=True)
    rate, t0 = torch.tensor([[0.5], [2.0]], requires_grad=True), torch.zeros(2, requires_grad=True)
    t1 = (sign * torch.tensor([1.0, 1.2])).requires_grad_()
    jumps = sign * torch.tensor([[0.5, 0.8], [0.25, 0.9]])

    def f(t, y):
        early = t[:, None] < jumps if left else t[:, None] <= jumps
        before = early.sum(dim=1, keepdim=True)
        return torch.sin(t)[:, None] * y * rate * (before - 0.5)

    def gradient(adjoint):
        options = {"t0": t0, "t1": t1, "jump_t": jumps, "adjoint": adjoint}
        sol = solve_ivp(f, y0, sign * torch.tensor([[0.3, 0.7], [0.25, 1.1]]), **options)
        end = solve_ivp(f, y0, **options)
        return torch.autograd.grad(sol.ys.sum() + end.ys.sum(), [y0, rate, t0, t1])

    assert apart(gradient(mode), gradient("backprop")) < 1e-11


@EVERY_MODE
def test_states_that_are_trees_and_rows_without_span_or_outputs(mode, apart):
    y0 = {"a": torch.rand(3, 2, requires_grad=True), "b": torch.rand(3, requires_grad=True)}
    leaves = [*y0.values()]
    times = torch.tensor([[0.0, 0.4, 1.0], [0.2, 0.2, 0.2], [0.0, float("nan"), 0.9]])

    def f(t, y):
        return {"a": -y["a"] * y["b"][:, None], "b": torch.sin(y["a"]).sum(dim=1)}

    def gradient(adjoint):
        sol = solve_ivp(f, y0, times, adjoint=adjoint)
        return torch.autograd.grad(sum(part.nansum() for part in sol.ys.values()), leaves)

    assert apart(gradient(mode), gradient("backprop")) < 1e-12
