"""What does the statistic `stiffness` cost, and how near is it to the true spectral radius?

Solves with a hook that reads `limiter`, with and without `stiffness`, in turn in one process; the
ratio of the medians is printed, and the share of accepted steps within 20 % of the truth.
"""

import argparse
import statistics
from collections.abc import Callable

import torch
from common import CLOCKS, describe_machine, interleave, median_ratio, print_table
from torch import Tensor

from solver import Hook, StepBlock, solve_ivp
from solver.spectrum import spectrum


class Reader(Hook):
    """Reads every column, as a recorder does."""

    block_size = 12

    def __init__(self, *names: str, states: bool = False) -> None:
        self.statistics, self.wants_states = names, states
        self.blocks: list[tuple[Tensor, ...]] = []

    def on_steps(self, steps: StepBlock) -> None:
        """Read a block."""
        columns = [steps.columns[name] for name in self.statistics]
        if self.wants_states:
            assert steps.y is not None
            self.blocks.append((steps.t, steps.dt, steps.accepted, columns[-1], steps.y))


def van_der_pol(batch: int) -> tuple[Callable[..., Tensor], Tensor]:
    """Return Van der Pol's oscillator, mu from 1 to 100."""
    mu = torch.logspace(0, 2, batch)[:, None]

    def f(t: Tensor, y: Tensor) -> Tensor:
        x, v = y[:, :1], y[:, 1:]
        return torch.cat([v, mu[: len(y)] * (1 - x * x) * v - x], 1)

    return f, torch.tensor([[2.0, 0.0]]).repeat(batch, 1)


def network(batch: int) -> tuple[Callable[..., Tensor], Tensor]:
    """Return a field that is a network of 64 units."""
    weights = torch.randn(64, 64, generator=torch.Generator().manual_seed(0)) / 8
    return lambda t, y: torch.tanh(y @ weights) @ weights.T - y, torch.ones(batch, 64)


def cost(name: str, engine: str, batch: int, rounds: int) -> tuple[str, ...]:
    """Return a line of the table."""
    f, y0 = {"van der pol": van_der_pol, "network 64": network}[name](batch)

    def run(*names: str) -> None:
        with torch.no_grad():
            solve_ivp(
                f, y0, t0=0.0, t1=10.0, rtol=1e-5, atol=1e-7, engine=engine, hooks=[Reader(*names)]
            )

    plain, more = ("limiter",), ("limiter", "stiffness")
    seconds = interleave(
        {"plain": lambda: run(*plain), "more": lambda: run(*more)}, rounds, clock=CLOCKS["cpu"]
    )
    without, with_it = (statistics.median(part) for part in seconds.values())
    ratio = median_ratio(seconds["more"], seconds["plain"])
    return (
        name,
        engine,
        str(batch),
        f"{1e3 * without:.1f}",
        f"{1e3 * with_it:.1f}",
        f"{ratio:.3f}",
    )


def accuracy(mu: float, method: str) -> tuple[str, ...]:
    """Return a line of the other table."""
    keep = Reader("stiffness", states=True)

    def f(t: Tensor, y: Tensor) -> Tensor:
        x, v = y.unbind(1)
        return torch.stack([v, mu * (1 - x * x) * v - x], 1)

    solve_ivp(
        f, torch.tensor([[2.0, 0.0]]), t0=0.0, t1=200.0 / mu, method=method, rtol=1e-5, atol=1e-7,
        hooks=[keep], engine="plain",
    )  # fmt: skip
    t, dt, taken, found, y = (torch.cat(part)[:, 0] for part in zip(*keep.blocks, strict=True))
    t, dt, found, y = t[taken], dt[taken], found[taken], y[taken]
    true = spectrum(f, t + dt, y).abs()[:, 0] * dt
    share = ((found / true - 1).abs() < 0.2).double().mean().item()
    middle = (found / true).median().item()
    return (f"{mu:g}", method, str(len(t)), f"{share:.2f}", f"{middle:.3f}")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=64)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    print(describe_machine(["torch"]))
    lines = [
        cost(name, engine, options.batch, options.rounds)
        for name, engine in (
            ("van der pol", "plain"), ("van der pol", "compiled"), ("network 64", "plain"),
        )
    ]  # fmt: skip
    print_table(("field", "engine", "rows", "without ms", "with ms", "ratio"), lines)
    lines = [accuracy(mu, method) for mu in (10.0, 100.0, 1000.0) for method in ("tsit5", "dopri8")]
    print_table(("mu", "method", "steps", "share within 20 %", "median of found / true"), lines)


if __name__ == "__main__":
    main()
