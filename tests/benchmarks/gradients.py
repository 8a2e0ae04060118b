"""Gradients of whole solves against torchode, torchdiffeq and diffrax: time and peak memory.

    python tests/benchmarks/gradients.py

mean(y(T)^2) by all parameters and y0. Everybody uses Dormand-Prince 5(4) with an integral
controller and the same tolerance. Missing peers are named, never replaced.
"""

import argparse
import statistics
from collections.abc import Callable
from importlib.util import find_spec

from common import describe_machine, interleave, median_ratio, print_table  # isort: skip

import numpy as np
import torch
from torch import Tensor

from solver.adjoints.measure import allocator_peak

Gradient = Callable[[], list[Tensor]]
PEERS = ("torchode", "torchdiffeq", "diffrax")


class Case:
    """A field with parameters, its start `(B, D)`, and how far it is solved."""

    def __init__(self, name: str, batch: int, dtype: torch.dtype):
        """Make parameters and start values, the same every time."""
        torch.manual_seed(0)
        self.name, self.dtype = name, dtype
        if name == "network":
            self.t1, self.tolerance, dim = 2.0, 1e-5, 64
            self.net = torch.nn.Sequential(
                torch.nn.Linear(dim, dim), torch.nn.Tanh(), torch.nn.Linear(dim, dim)
            ).to(dtype)
            self.params = list(self.net.parameters())
            self.y0 = torch.randn(batch, dim, dtype=dtype)
        else:
            self.t1, self.tolerance = 10.0, 1e-5
            self.mu = torch.linspace(1.0, 5.0, batch, dtype=dtype, requires_grad=True)
            self.params = [self.mu]
            self.y0 = torch.rand(batch, 2, dtype=dtype) * 4 - 2

    def field(self, t: Tensor, y: Tensor) -> Tensor:
        """Vector field, `(B, D) -> (B, D)`."""
        if self.name == "network":
            return self.net(y)
        x, v = y.unbind(-1)
        return torch.stack((v, self.mu * (1 - x * x) * v - x), dim=-1)

    def gradient(self, end: Tensor, y0: Tensor) -> list[Tensor]:
        """Return the gradient of the loss."""
        return list(torch.autograd.grad(end.square().mean(), [y0, *self.params]))


def ours(case: Case, mode: str, engine: str) -> Gradient:
    """Stepscope."""
    from solver import solve_ivp
    from solver.controllers.integral import Integral

    def run() -> list[Tensor]:
        y0 = case.y0.clone().requires_grad_()
        sol = solve_ivp(
            case.field, y0, t0=0.0, t1=case.t1, method="dopri5", controller=Integral(),
            rtol=case.tolerance, atol=case.tolerance, adjoint=mode, engine=engine,
        )  # fmt: skip
        return case.gradient(sol.ys[:, -1], y0)

    return run


class _Module(torch.nn.Module):
    """The field as a module, which torchode's adjoint takes the parameters of."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.net, self._field = case.net, case.field

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        return self._field(t, y)


def torchode_mode(case: Case, joint: bool) -> Gradient:
    """torchode, by autograd through its loop, or its joint adjoint."""
    import torchode

    term = torchode.ODETerm(_Module(case) if joint else case.field)
    controller = torchode.IntegralController(case.tolerance, case.tolerance, term=term)
    kind = torchode.JointBacksolveAdjoint if joint else torchode.AutoDiffAdjoint
    given = (term, torchode.Dopri5(term=term), controller) if joint else (
        torchode.Dopri5(term=term), controller,
    )  # fmt: skip
    solver = kind(*given)
    zeros = torch.zeros(len(case.y0), dtype=case.dtype)

    def run() -> list[Tensor]:
        y0 = case.y0.clone().requires_grad_()
        sol = solver.solve(torchode.InitialValueProblem(y0, zeros, zeros + case.t1))
        return case.gradient(sol.ys[:, -1], y0)

    return run


def torchdiffeq_mode(case: Case, adjoint: bool) -> Gradient:
    """torchdiffeq, one step size for the whole batch."""
    import torchdiffeq

    times = torch.tensor([0.0, case.t1], dtype=case.dtype)
    options = {"rtol": case.tolerance, "atol": case.tolerance, "method": "dopri5"}
    solve = torchdiffeq.odeint
    if adjoint:
        solve, options = torchdiffeq.odeint_adjoint, options | {"adjoint_params": case.params}

    def run() -> list[Tensor]:
        y0 = case.y0.clone().requires_grad_()
        return case.gradient(solve(case.field, y0, times, **options)[-1], y0)

    return run


def diffrax_mode(case: Case) -> Gradient:
    """diffrax, every row with its own steps, checkpointed, one jitted vmap."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import diffrax
    import jax.numpy as jnp

    if case.name == "network":
        params = [jnp.asarray(p.detach().numpy()) for p in case.params]

        def field(t, y, p):
            return jnp.tanh(y @ p[0].T + p[1]) @ p[2].T + p[3]
    else:
        params = jnp.asarray(case.mu.detach().numpy())

        def field(t, y, mu):
            return jnp.stack((y[1], mu * (1 - y[0] * y[0]) * y[1] - y[0]))

    controller = diffrax.PIDController(rtol=case.tolerance, atol=case.tolerance)
    scalar = case.y0.numpy().dtype.type

    def one(y0, p):
        sol = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Dopri5(), scalar(0.0), scalar(case.t1), None, y0,
            args=p, stepsize_controller=controller, saveat=diffrax.SaveAt(t1=True), max_steps=1000,
        )  # fmt: skip
        return sol.ys[-1]

    axes = (0, None if case.name == "network" else 0)
    loss = jax.jit(jax.grad(lambda y0, p: (jax.vmap(one, axes)(y0, p) ** 2).mean(), (0, 1)))
    start = jnp.asarray(case.y0.numpy())

    def run() -> list[Tensor]:
        by_y0, by_p = jax.block_until_ready(loss(start, params))
        leaves = by_p if isinstance(by_p, list) else [by_p]
        return [torch.from_numpy(np.array(leaf)) for leaf in (by_y0, *leaves)]

    return run


def contestants(case: Case) -> dict[str, Gradient]:
    """Return every mode that is installed."""
    keep = "graphs" if case.name == "network" else "steps"
    found = {
        "stepscope backprop": ours(case, "backprop", "plain"),
        f"stepscope symplectic, {keep}": ours(case, f"symplectic:keep={keep}", "plain"),
        f"compiled, symplectic, {keep}": ours(case, f"symplectic:keep={keep}", "compiled"),
    }
    if find_spec("torchode"):
        found["torchode AutoDiff"] = torchode_mode(case, joint=False)
        if case.name == "network":  # per-row parameters are no parameters to it
            found["torchode JointBacksolve"] = torchode_mode(case, joint=True)
    if find_spec("torchdiffeq"):
        found["torchdiffeq odeint"] = torchdiffeq_mode(case, adjoint=False)
        if case.name == "network":  # backward in time, Van der Pol's steps underflow
            found["torchdiffeq odeint_adjoint"] = torchdiffeq_mode(case, adjoint=True)
    if find_spec("diffrax"):
        found["diffrax checkpointed"] = diffrax_mode(case)
    return found


def compare(case: Case, rounds: int) -> None:
    """Print one table."""
    runs = contestants(case)
    gradients = {name: run() for name, run in runs.items()}
    seconds = interleave(runs, rounds)
    exact = gradients["stepscope backprop"]
    rows = []
    for name, taken in seconds.items():
        peak = "-"
        if not name.startswith("diffrax"):
            peak = f"{allocator_peak(runs[name], torch.device('cpu')) / 2**20:.2f}"
        difference = max(
            float((a - b).norm() / b.norm()) for a, b in zip(gradients[name], exact, strict=True)
        )
        ours_ms = seconds[next(n for n in runs if n.startswith("compiled"))]
        rows.append(
            [name, f"{1e3 * statistics.median(taken):.1f}", f"{median_ratio(ours_ms, taken):.3f}",
             peak, f"{difference:.0e}"]
        )  # fmt: skip
    shape = f"B = {len(case.y0)}, D = {case.y0.shape[1]}"
    print(f"\n{case.name}, {shape}, {str(case.dtype).removeprefix('torch.')}, {rounds} rounds")
    print_table(("mode", "ms", "compiled / it", "peak MiB", "difference to backprop"), rows)


def main() -> None:
    """Print machine, versions, and the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(describe_machine(("torch", *PEERS, "jax")))
    missing = [name for name in PEERS if not find_spec(name)]
    if missing:
        print(f"missing: {', '.join(missing)}; pip install -e '.[peers]' brings them")
    compare(Case("network", 256, torch.float32), options.rounds)
    compare(Case("van der pol", 16, torch.float64), options.rounds)
    compare(Case("van der pol", 256, torch.float64), options.rounds)
    print(
        "\nms: median, forward and backward, compiling apart. compiled / it: median of the rounds'"
        "\nratios. peak: most the allocator held, forward and backward together. The peers also"
        "\ndifferentiate through the choice of step sizes, which is their difference."
    )


if __name__ == "__main__":
    main()
