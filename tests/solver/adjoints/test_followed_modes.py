"""What hooks are told of backward passes that autograd makes by itself."""

import pytest
import torch

from solver import CheckpointSteps, Hook, solve_ivp
from solver.adjoints.measure import GraphMeter

MODES = ["backprop", CheckpointSteps()]
EVERY = pytest.mark.parametrize("mode", MODES, ids=["backprop", "checkpoint_steps"])


class Watch(Hook):
    """Keeps what it is told of backward passes."""

    def __init__(self):
        self.seen = []

    def on_backward(self, info):
        """Keep one."""
        self.seen.append(info)


class Blind(Hook):
    """Wants to know nothing of them."""


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(),
        torch.nn.Linear(32, 8),
    )  # fmt: skip


def solve(net, mode, hooks, steps=10, **options):
    y0 = torch.linspace(-1, 1, 32).reshape(4, 8)
    span = {} if "t_eval" in options else {"t0": 0.0, "t1": 1.0}
    return solve_ivp(
        lambda t, y: net(y), y0, **span, method="dopri5", controller="fixed",
        dt0=1.0 / steps, adjoint=mode, hooks=hooks, **options,
    )  # fmt: skip


@EVERY
def test_each_pass_is_told_of_with_steps_evaluations_and_bytes(mode):
    watch, net = Watch(), network()
    sol = solve(net, mode, [watch])
    loss = sol.ys.square().sum()
    assert not watch.seen
    loss.backward(retain_graph=True)
    loss.backward()
    first, second = watch.seen
    sizes = sum(p.nbytes for p in net.parameters())
    for info in (first, second):
        assert info.n_steps == 10
        assert info.gradient_bytes == 2 * sizes
        assert info.seconds > 0
        assert info.n_vjps >= 60
        assert info.solve.method == "dopri5"
        assert info.graph_bytes > 0
        total = info.checkpoint_bytes + info.graph_bytes + info.gradient_bytes
        assert total == pytest.approx(info.predicted_bytes, rel=0.35)
    if mode == "backprop":
        assert (first.n_f_calls, first.checkpoint_bytes) == (0, 0)
    else:
        assert first.n_f_calls == 60
        assert first.checkpoint_bytes > 10 * 2 * 4 * 8 * 8


def test_the_graph_of_backpropagation_is_what_a_meter_counts():
    watch, net = Watch(), network()
    meter = GraphMeter(net.parameters())
    with meter.watching():
        sol = solve(net, "backprop", [])
    kept = meter.now
    solve(net, "backprop", [watch]).ys.sum().backward()
    assert watch.seen[0].graph_bytes == pytest.approx(kept, rel=0.1)
    assert sol.ys.requires_grad


@EVERY
def test_watching_changes_neither_gradient_nor_counts(mode):
    found = []
    for hooks in ([], [Blind()], [Watch()]):
        net = network()
        sol = solve(net, mode, hooks)
        sol.ys.square().sum().backward()
        found.append((sol.stats.n_f_calls, [p.grad for p in net.parameters()]))
    for calls, gradients in found[1:]:
        assert calls == found[0][0]
        assert all(torch.equal(a, b) for a, b in zip(gradients, found[0][1], strict=True))


@EVERY
def test_second_derivatives_pass_while_somebody_watches(mode):
    y0 = torch.tensor([[0.5], [1.5]], requires_grad=True)
    watch = Watch()
    sol = solve_ivp(lambda t, y: y - y**3, y0, t0=0.0, t1=0.5, adjoint=mode, hooks=[watch])
    (first,) = torch.autograd.grad(sol.ys.sum(), y0, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), y0)
    plain = solve_ivp(lambda t, y: y - y**3, y0, t0=0.0, t1=0.5)
    (wanted,) = torch.autograd.grad(plain.ys.sum(), y0, create_graph=True)
    torch.testing.assert_close(second, torch.autograd.grad(wanted.square().sum(), y0)[0])
    assert watch.seen


def test_parameters_changed_in_place_are_noticed_also_while_somebody_watches():
    net = network()
    sol = solve(net, "backprop", [Watch()], steps=1)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        sol.ys.sum().backward()


def test_a_pass_that_was_broken_off_is_not_told_and_the_next_one_is():
    watch, net, broken = Watch(), network(), [True]

    def breaks(gradient):
        if broken[0]:
            raise KeyError("stop")

    y0 = torch.ones(2, 8, requires_grad=True)
    start = y0 * 1
    start.register_hook(breaks)
    sol = solve_ivp(lambda t, y: net(y), start, t0=0.0, t1=0.2, hooks=[watch])
    with pytest.raises(KeyError):
        sol.ys.sum().backward(retain_graph=True)
    told = len(watch.seen)
    broken[0] = False
    sol.ys.sum().backward()
    assert len(watch.seen) == told + 1


def test_outputs_and_end_states_are_one_pass():
    watch, net = Watch(), network()
    sol = solve(net, "backprop", [watch], steps=4, t_eval=torch.linspace(0, 1, 3))
    (sol.ys.sum() + sol.y_reached.sum()).backward()
    assert len(watch.seen) == 1
