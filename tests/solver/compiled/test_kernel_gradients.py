"""Gradients over steps that a kernel has made are those over the plain loop's."""

import pytest
import torch

from solver import Hook, Status, solve_ivp
from solver.adjoints.aca import ACA
from solver.adjoints.binomial import Binomial
from solver.adjoints.symplectic import Symplectic

MODES = [Symplectic(), Symplectic(keep="graphs"), Symplectic(keep="steps"), ACA()]


class Told(Hook):
    """Keeps the engine, and what backward passes told."""

    def __init__(self):
        self.engines, self.passes = [], []

    def on_solve_start(self, info):
        self.engines.append(info.engine)

    def on_backward(self, info):
        self.passes.append(info)


def both(make, mode, **options):
    """Solve and differentiate with both engines; return `(solution, gradients, passes)` of each."""
    results = []
    for engine in ("plain", "compiled"):
        f, y0, given, wanted = make()
        told = Told()
        sol = solve_ivp(
            f, y0, adjoint=mode, engine=engine, rtol=1e-7, atol=1e-7, hooks=[told],
            **given, **options,
        )  # fmt: skip
        assert told.engines == [engine]
        weights = torch.arange(1.0, sol.ys.shape[1] + 1, dtype=sol.ys.dtype)[:, None]
        loss = (sol.ys.nan_to_num(0.0).sin() * weights).sum()
        results.append((sol, torch.autograd.grad(loss, wanted), told.passes))
    return results


def assert_same(results, tolerance=1e-9):
    (plain, ours, _), (compiled, theirs, passes) = results
    assert torch.equal(plain.status, compiled.status)
    assert torch.equal(plain.stats.n_accepted, compiled.stats.n_accepted)
    torch.testing.assert_close(compiled.ys, plain.ys, rtol=1e-9, atol=1e-9, equal_nan=True)
    for a, b in zip(ours, theirs, strict=True):
        assert b.isfinite().all()
        torch.testing.assert_close(b, a, rtol=tolerance, atol=tolerance * float(a.abs().max()))
    assert passes[0].n_steps == int(compiled.stats.n_accepted.max())


def oscillators(trajectory, backward=False):
    def make():
        mu = torch.linspace(0.5, 4.0, 19, dtype=torch.float64, requires_grad=True)
        y0 = torch.stack([mu.detach() * 0 + 1.5, mu.detach() * 0.1], dim=1).requires_grad_()
        t1 = torch.linspace(0.2, 4.0, 19, dtype=torch.float64, requires_grad=True)
        t0 = torch.linspace(0.0, 0.1, 19, dtype=torch.float64, requires_grad=True)
        if backward:
            t1 = (-0.3 * t1).detach().requires_grad_()

        def f(t, y):
            x, v = y.unbind(-1)
            return torch.stack((v, mu * (1 - x * x) * v - x + t.cos()), dim=-1)

        if not trajectory:
            return f, y0, {"t0": t0, "t1": t1}, [y0, mu, t0, t1]
        places = torch.linspace(0, 1, 9, dtype=torch.float64)
        grid = t0[:, None] + places * (t1 - t0)[:, None]
        return f, y0, {"t_eval": grid}, [y0, mu, t0, t1]

    return make


@pytest.mark.parametrize("method", ["tsit5", "bosh3", "dopri8", "rodas4"])
@pytest.mark.parametrize("trajectory", [False, True], ids=["end", "trajectory"])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_the_gradient_is_that_of_the_plain_loop(mode, trajectory, method):
    assert_same(both(oscillators(trajectory), mode, method=method), 1e-8)


def test_rows_may_run_backward():
    assert_same(both(oscillators(True, backward=True), Symplectic()), 1e-8)


def test_networks_are_trained_and_their_new_parameters_used():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    ).double()
    y0 = torch.randn(6, 3, dtype=torch.float64)

    def make():
        return lambda t, y: net(y), y0, {"t0": 0.0, "t1": 2.0}, list(net.parameters())

    for _ in range(2):
        results = both(make, Symplectic())
        assert_same(results)
        with torch.no_grad():
            for parameter, gradient in zip(net.parameters(), results[1][1], strict=True):
                parameter -= 0.1 * gradient


def test_failed_rows_and_rows_without_a_span_have_no_gradient_of_their_own():
    def make():
        scale = torch.tensor([0.3, 0.4, 5.0, 0.2, 0.1], dtype=torch.float64, requires_grad=True)
        y0 = torch.ones(5, 1, dtype=torch.float64)
        y0[3] = torch.nan
        y0.requires_grad_()
        t1 = torch.tensor([1.0, 2.0, 1.0, 1.0, 0.0], dtype=torch.float64)
        return lambda t, y: scale[:, None] * y * y, y0, {"t0": 0.0, "t1": t1}, [scale, y0]

    results = both(make, Symplectic())
    assert_same(results)
    sol, gradients, _ = results[1]
    assert sol.status[2] != Status.SUCCESS
    assert sol.status[3] == Status.NON_FINITE_START
    assert gradients[0][2] == 0
    assert gradients[1][4] != 0


@pytest.mark.parametrize("mode", ["backprop", Symplectic(keep="values"), Binomial(1.0)], ids=str)
def test_a_mode_that_needs_more_than_steps_takes_the_plain_loop(mode):
    y0 = torch.ones(2, 1, dtype=torch.float64, requires_grad=True)
    with pytest.warns(RuntimeWarning, match="needs the loop's graph"):
        sol = solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0, adjoint=mode, engine="compiled")
    (gradient,) = torch.autograd.grad(sol.ys.sum(), y0)
    torch.testing.assert_close(gradient, torch.full_like(y0, -1.0).exp(), rtol=1e-3, atol=0)
