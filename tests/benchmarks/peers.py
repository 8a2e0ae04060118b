"""Steps and cost of one batched solve, against torchode, torchdiffeq, diffrax and scipy.

    python tests/benchmarks/peers.py

Van der Pol, mu uniform in [0.5, 5] or as told, start values uniform in [-2, 2]^2, t from 0 to 10,
end value only, no gradients. Everybody uses Dormand-Prince 5(4) with an integral controller and
rtol = atol = 1e-5; what differs is said beside the table. Missing peers are named, never replaced.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from common import CLOCKS, describe_machine, interleave, median_ratio, print_table  # isort: skip

import numpy as np
import torch
from torch import Tensor

TOLERANCE = 1e-5
T1 = 10.0
PEERS = ("torchode", "torchdiffeq", "diffrax", "scipy")
NOTES = """\
iterations  passes of the solver's loop: attempts of the slowest row (scipy: of all rows together)
attempts    accepted + rejected per row, mean over the batch; a joint solver steps all rows alike
rejected    share of the attempts
error       max |y - y_ref| / (1 + |y_ref|) at the end point
ms          median over the rounds, of the mean over 20 ms of solves in each
ratio       median over the rounds of ms / ms of stepscope; above 1 is slower than stepscope
scipy's error weights end with 1/40 as published, those of all others with 1/60 after Shampine: they
take about 0.92 times the steps of scipy and make about 1.5 times the error.
scipy solves row by row in numpy, torchdiffeq steps the batch jointly, diffrax is jit-compiled
(compilation not timed), stepscope, torchode and torchdiffeq run eagerly. "compiled" is stepscope
with engine="compiled" (compilation not timed), "recorded" the same with every statistic of every
attempt handed to a hook in blocks of 64."""


@dataclass(frozen=True)
class Problem:
    """A batch of Van der Pol oscillators: `mu (B,)`, `y0 (B, 2)`, end values `y1 (B, 2)`."""

    mu: Tensor
    y0: Tensor
    y1: np.ndarray

    def field(self, t: Tensor, y: Tensor) -> Tensor:
        """Vector field, any t, `(B, 2) -> (B, 2)`."""
        x, v = y.unbind(-1)
        return torch.stack((v, self.mu * (1 - x * x) * v - x), dim=-1)


@dataclass
class Outcome:
    """End values `(B, 2)` and counts of one solve; counts are per row, or None where not told."""

    y1: np.ndarray
    iterations: int
    attempts: float | None
    rejected: float | None  # share of the attempts


def make_problem(
    batch: int, dtype: torch.dtype, mu_range: tuple[float, float], errors: bool
) -> Problem:
    """Draw the batch; the reference is solved row by row to 1e-12 by scipy's DOP853."""
    rng = np.random.default_rng(0)
    mu = rng.uniform(*mu_range, batch)
    y0 = rng.uniform(-2.0, 2.0, (batch, 2))
    mu_t, y0_t = torch.tensor(mu, dtype=dtype), torch.tensor(y0, dtype=dtype)
    if not errors:
        return Problem(mu=mu_t, y0=y0_t, y1=np.full((batch, 2), np.nan))
    exact = [
        reference_end(float(m), y.astype(np.float64))
        for m, y in zip(mu_t, y0_t.numpy(), strict=True)
    ]
    return Problem(mu=mu_t, y0=y0_t, y1=np.array(exact))


def scalar_field(mu: float) -> Callable[[float, np.ndarray], list[float]]:
    """Return the field of one row for scipy."""
    return lambda t, y: [y[1], mu * (1 - y[0] * y[0]) * y[1] - y[0]]


def reference_end(mu: float, y0: np.ndarray) -> np.ndarray:
    """Return the end value of one row, `(2,)`."""
    from scipy.integrate import solve_ivp

    return solve_ivp(scalar_field(mu), (0.0, T1), y0, method="DOP853", rtol=1e-12, atol=1e-12).y[
        :, -1
    ]


def stepscope_solve(
    problem: Problem, engine: str = "plain", recorded: bool = False
) -> Callable[[], Outcome]:
    """Stepscope, every row with its own steps; `recorded` hands every statistic to a hook."""
    from solver import Hook, catalogue, solve_ivp
    from solver.controllers.integral import Integral

    class Look(Hook):
        """Takes every block, as a recorder does before it writes."""

        block_size = 64
        statistics = tuple(catalogue.statistics())

        def on_steps(self, steps: object) -> None:
            self.last = steps

    hooks = [Look()] if recorded else []

    def run() -> Outcome:
        with torch.no_grad():
            sol = solve_ivp(
                problem.field, problem.y0, t0=0.0, t1=T1, method="dopri5",
                controller=Integral(), rtol=TOLERANCE, atol=TOLERANCE,
                time_dtype=problem.y0.dtype, engine=engine, hooks=hooks,
            )  # fmt: skip
        steps = sol.stats.n_steps.double()
        return Outcome(
            y1=sol.y_reached.numpy(),
            iterations=int(steps.max()),
            attempts=float(steps.mean()),
            rejected=float(sol.stats.n_rejected.sum() / steps.sum()),
        )

    return run


def torchode_solve(problem: Problem) -> Callable[[], Outcome]:
    """torchode, every row with its own steps."""
    import torchode

    term = torchode.ODETerm(problem.field)
    method = torchode.Dopri5(term=term)
    controller = torchode.IntegralController(TOLERANCE, TOLERANCE, term=term)
    solver = torchode.AutoDiffAdjoint(method, controller)
    zeros = torch.zeros(len(problem.mu), dtype=problem.y0.dtype)

    def run() -> Outcome:
        with torch.no_grad():
            sol = solver.solve(torchode.InitialValueProblem(problem.y0, zeros, zeros + T1))
        steps, accepted = sol.stats["n_steps"].double(), sol.stats["n_accepted"].double()
        return Outcome(
            y1=sol.ys[:, -1].numpy(),
            iterations=int(steps.max()),
            attempts=float(steps.mean()),
            rejected=float(1 - accepted.sum() / steps.sum()),
        )

    return run


class _CountingField:
    """Counts torchdiffeq's steps through the callbacks it looks for on the field."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.accepted, self.rejected = problem, 0, 0

    def __call__(self, t: Tensor, y: Tensor) -> Tensor:
        return self.problem.field(t, y)

    def callback_accept_step(self, t0: Tensor, y0: Tensor, dt: Tensor) -> None:
        self.accepted += 1

    def callback_reject_step(self, t0: Tensor, y0: Tensor, dt: Tensor) -> None:
        self.rejected += 1


def torchdiffeq_solve(problem: Problem) -> Callable[[], Outcome]:
    """torchdiffeq, one step size for the whole batch."""
    from torchdiffeq import odeint

    times = torch.tensor([0.0, T1], dtype=problem.y0.dtype)

    def solve(field: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        with torch.no_grad():
            return odeint(
                field, problem.y0, times, rtol=TOLERANCE, atol=TOLERANCE, method="dopri5"
            )[-1]  # fmt: skip

    counting = _CountingField(problem)
    solve(counting)  # the counts of a solve never change, so they are taken outside the clock
    steps = counting.accepted + counting.rejected

    def run() -> Outcome:
        y1 = solve(problem.field).numpy()
        return Outcome(y1, steps, steps or None, counting.rejected / steps if steps else None)

    return run


def diffrax_solve(problem: Problem) -> Callable[[], Outcome]:
    """diffrax, every row with its own steps, one jitted vmap."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import diffrax
    import jax.numpy as jnp

    def field(t, y, mu):
        return jnp.stack((y[1], mu * (1 - y[0] * y[0]) * y[1] - y[0]))

    controller = diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE)
    dtype = problem.mu.numpy().dtype

    def one(mu, y0):
        sol = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Dopri5(), dtype.type(0.0), dtype.type(T1), None, y0,
            args=mu, stepsize_controller=controller, saveat=diffrax.SaveAt(t1=True),
            max_steps=100_000, throw=False,
        )  # fmt: skip
        stats = sol.stats
        return sol.ys[-1], stats["num_steps"], stats["num_rejected_steps"]

    solve = jax.jit(jax.vmap(one))
    mu, y0 = jnp.asarray(problem.mu.numpy()), jnp.asarray(problem.y0.numpy())

    def run() -> Outcome:
        y1, steps, rejected = jax.block_until_ready(solve(mu, y0))
        steps = np.asarray(steps, dtype=np.float64)
        return Outcome(
            y1=np.asarray(y1),
            iterations=int(steps.max()),
            attempts=float(steps.mean()),
            rejected=float(np.asarray(rejected).sum() / steps.sum()),
        )

    return run


def scipy_solve(problem: Problem) -> Callable[[], Outcome]:
    """scipy's RK45, row after row in float64."""
    from scipy.integrate import RK45

    mu, y0 = problem.mu.double().tolist(), problem.y0.double().numpy()

    def run() -> Outcome:
        ends, accepted, attempts = [], 0, 0.0
        for row_mu, row_y0 in zip(mu, y0, strict=True):
            stepper = RK45(
                scalar_field(row_mu), 0.0, row_y0, T1, rtol=TOLERANCE, atol=TOLERANCE
            )  # fmt: skip
            while stepper.status == "running":
                stepper.step()
                accepted += 1
            ends.append(stepper.y)
            attempts += (stepper.nfev - 2) / 6  # 2 for the first slope and the first step size
        return Outcome(np.array(ends), round(attempts), attempts / len(mu), 1 - accepted / attempts)

    return run


CONTESTANTS = {
    "stepscope": stepscope_solve,
    "compiled": lambda problem: stepscope_solve(problem, "compiled"),
    "recorded": lambda problem: stepscope_solve(problem, "compiled", recorded=True),
    "torchode": torchode_solve,
    "torchdiffeq": torchdiffeq_solve,
    "diffrax": diffrax_solve,
    "scipy": scipy_solve,
}


def _repeats(solve: Callable[[], Outcome]) -> int:
    """Return how often a short solve is made in a round, so that it is not the first of its kind
    that is timed: 20 ms of it."""
    began = time.perf_counter()
    solve()
    return max(1, round(0.02 / (time.perf_counter() - began)))


def _several(solve: Callable[[], Outcome], count: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            solve()

    return run


def compare(
    batch: int,
    dtype: torch.dtype,
    rounds: int,
    clock: str,
    mu_range: tuple[float, float],
    errors: bool,
) -> None:
    """Print one table: who needed how many steps and how long."""
    problem = make_problem(batch, dtype, mu_range, errors)
    present = [name for name in CONTESTANTS if name not in PEERS or find_spec(name)]
    if dtype != torch.float64 or not errors:
        present = [name for name in present if name != "scipy"]  # float64 only
    solves = {name: CONTESTANTS[name](problem) for name in present}
    outcomes = {name: solve() for name, solve in solves.items()}
    repeats = {name: _repeats(solve) for name, solve in solves.items()}
    seconds = interleave(
        {name: _several(solve, repeats[name]) for name, solve in solves.items()},
        rounds,
        clock=CLOCKS[clock],
    )
    seconds = {name: [s / repeats[name] for s in taken] for name, taken in seconds.items()}
    rows = []
    for name in present:
        out, median = outcomes[name], statistics.median(seconds[name])
        error = np.abs(out.y1 - problem.y1) / (1 + np.abs(problem.y1))
        rows.append(
            [
                name,
                str(out.iterations),
                "-" if out.attempts is None else f"{out.attempts:.1f}",
                "-" if out.rejected is None else f"{out.rejected:.0%}",
                f"{error.max():.1e}",
                f"{1e3 * median:.2f}",
                f"{1e6 * median / out.iterations:.1f}" if out.iterations else "-",
                f"{median_ratio(seconds[name], seconds['stepscope']):.3f}",
            ]
        )
    print(f"\nB = {batch}, {str(dtype).removeprefix('torch.')}, median of {rounds} rounds")
    header = (
        "solver",
        "iterations",
        "attempts",
        "rejected",
        "error",
        "ms",
        "us/iteration",
        "ratio",
    )
    print_table(header, rows)


def main() -> None:
    """Parse the command line, print machine, versions, missing peers and the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--mu", type=float, nargs=2, default=[0.5, 5.0])
    parser.add_argument(
        "--no-errors", action="store_true", help="without scipy and its reference, for many rows"
    )
    options = parser.parse_args()
    print(f"Van der Pol, t 0..{T1:g}, Dormand-Prince 5(4), rtol = atol = {TOLERANCE:g}")
    print(describe_machine(("torch", "numpy", *PEERS, "jax")))
    missing = [name for name in PEERS if not find_spec(name)]
    if missing:
        print(f"missing: {', '.join(missing)}; pip install -e '.[peers]' brings them")
    if "scipy" in missing:
        raise SystemExit(
            "scipy computes the reference values, so nothing can be compared without it"
        )
    for dtype in options.dtype:
        for batch in options.batch:
            compare(
                batch, getattr(torch, dtype), options.rounds, options.clock, tuple(options.mu),
                not options.no_errors,
            )  # fmt: skip
    print("\n" + NOTES)


if __name__ == "__main__":
    main()
