"""Controllers that write down and repeat decisions, so that two solves take the same steps."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
import torch

from solver import Integral, solve_ivp
from solver.controllers.base import Controller, Proposal


@dataclass(frozen=True, eq=False)
class Written(Controller[Any]):
    """Decides as `Integral` does and keeps every decision."""

    decisions: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    name: ClassVar[str] = "written"
    title: ClassVar[str] = "Written down"

    def init(self, like):
        return Integral().init(like)

    def propose(self, ratio, error_order, history):
        made = Integral().propose(ratio, error_order, history)
        self.decisions.append((made.accept, made.factor))
        return made

    def shares(self, ratio, error_order, history):
        return {}

    def unlimited_factor(self, ratio, error_order, history):
        return ratio

    def steady_error_ratio(self, error_order):
        return 1.0

    def settings(self):
        return {"name": self.name}


@dataclass(frozen=True, eq=False)
class Repeated(Written):
    """Repeats decisions, whatever the error is."""

    name: ClassVar[str] = "repeated"

    def propose(self, ratio, error_order, history):
        accept, factor = self.decisions.pop(0)
        return Proposal(accept, factor, history)


@dataclass(frozen=True)
class Case:
    """Rows of very different speed, a small network with a parameter that no step uses."""

    dtype: torch.dtype = torch.float64
    batch: int = 16
    dim: int = 3

    def build(self):
        """Return field, leaves to differentiate by, and keyword arguments of the solve."""
        torch.manual_seed(1)
        net = torch.nn.Sequential(
            torch.nn.Linear(self.dim, 8), torch.nn.Tanh(), torch.nn.Linear(8, self.dim)
        ).to(self.dtype)
        speed = torch.linspace(0.5, 8, self.batch, dtype=self.dtype)[:, None].clone()

        def f(t, y, speed):
            return speed * (net(y) + 0.3 * torch.sin(3 * t).to(y.dtype)[:, None] * y)

        y0 = torch.randn(self.batch, self.dim, dtype=self.dtype)
        t0, t1 = torch.zeros(self.batch), torch.linspace(1, 2, self.batch)
        t1[1::2] -= 2.5  # every other row runs backward
        share = torch.rand(self.batch, 5).sort(dim=1).values * 0.9 + 0.05
        t_eval = t0[:, None] + (t1 - t0)[:, None] * share
        leaves = [y0, speed, t0, t1, t_eval]
        for each in leaves:
            each.requires_grad_()
        return f, [*leaves, *net.parameters()]

    def gradients(self, adjoint, trajectory=True, times=True, **options):
        """Return the solution and the gradients of a loss on the end state or on outputs."""
        f, leaves = self.build()
        y0, speed, t0, t1, t_eval = leaves[:5]
        if not times:
            t0, t1, t_eval = t0.detach(), t1.detach(), t_eval.detach()
        sol = solve_ivp(
            f, y0, t_eval if trajectory else None, t0=t0, t1=t1, args=speed, adjoint=adjoint,
            **options,
        )  # fmt: skip
        loss = (sol.ys**2).sum() + sol.ys.sin().sum()
        return sol, torch.autograd.grad(loss, leaves, allow_unused=True)


def relative(got, wanted):
    """Return the relative error of each gradient that one of both has, the worst of them."""
    worst = 0.0
    for a, b in zip(got, wanted, strict=True):
        if a is None and b is None:
            continue
        assert a is not None, "a gradient is missing"
        scale = b.norm() if b is not None else a.new_ones(())
        difference = a.norm() if b is None else (a - b).norm()
        worst = max(worst, (difference / scale.clamp_min(1e-300)).item())
    return worst


@pytest.fixture
def apart():
    """Return a function that tells how far gradients are apart, relative to the largest one."""

    def measure(got, wanted):
        largest = max(b.norm() for b in wanted if b is not None)
        assert [a is None for a in got] == [b is None for b in wanted]
        pairs = [(a, b) for a, b in zip(got, wanted, strict=True) if b is not None]
        return (max((a - b).norm() for a, b in pairs) / largest).item()

    return measure


@pytest.fixture
def make_case():
    """Return the problem's class, `make_case(dtype=..., batch=...)`."""
    return Case


@pytest.fixture
def same_steps():
    """Return a function that compares a mode with backpropagation over the same steps.

    It gives the solution and the relative errors of gradients by states and arguments, by times
    and by parameters.
    """

    def compare(adjoint, dtype=torch.float64, **options):
        case, written = Case(dtype=dtype), Written()
        sol, got = case.gradients(adjoint, controller=written, **options)
        repeated = Repeated(decisions=list(written.decisions))
        reference, wanted = case.gradients("backprop", controller=repeated, **options)
        assert torch.equal(sol.stats.n_accepted, reference.stats.n_accepted)
        assert not repeated.decisions
        # Outputs inside depend on t1 by next to nothing: what counts is the gradient by all times.
        times = [
            torch.cat([g.flatten() for g in each[2:5] if g is not None]) for each in (got, wanted)
        ]
        states, parameters = (relative(got[p], wanted[p]) for p in (slice(0, 2), slice(5, None)))
        return sol, states, relative([times[0]], [times[1]]), parameters

    return compare
