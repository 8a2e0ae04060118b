"""What watching costs: the plain loop with an Inspector recording everything, over without.

    python tests/benchmarks/hooks.py

Goals at B = 256: at most 1.05 with every statistic recorded, 1.00 (that is: noise) without a hook.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from common import CLOCKS, describe_machine, interleave, median_ratio, print_table  # isort: skip

import torch
from torch import Tensor

from inspector import Inspector
from solver import Hook, solve_ivp

T1 = 10.0


def make_solve(batch: int) -> Callable[[Sequence[Hook]], int]:
    """Return a function that solves Van der Pol once with given hooks and tells the attempts."""
    mu = torch.linspace(0.5, 5.0, batch)
    y0 = torch.tensor([2.0, 0.0]).expand(batch, 2).contiguous()

    def field(t: Tensor, y: Tensor) -> Tensor:
        x, v = y.unbind(-1)
        return torch.stack((v, mu * (1 - x * x) * v - x), dim=-1)

    def solve(hooks: Sequence[Hook]) -> int:
        with torch.no_grad():
            sol = solve_ivp(
                field, y0, t0=0.0, t1=T1, rtol=1e-5, atol=1e-5, engine="plain", hooks=hooks
            )  # fmt: skip
        return int(sol.stats.n_steps.max())

    return solve


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    options = parser.parse_args()
    torch.set_default_dtype(getattr(torch, options.dtype))
    solve = make_solve(options.batch)
    attempts = solve(())
    print(
        f"Van der Pol, B = {options.batch}, {options.dtype}, Tsit5, plain loop, {attempts} attempts"
    )
    print(describe_machine(("torch", "numpy", "pyarrow")))
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def inspector(name: str, **settings: object) -> Inspector:
            return stack.enter_context(Inspector(root / name, **settings))

        basic = inspector("basic", statistics=())
        everything = inspector("everything", statistics="all")
        contestants = {
            "no hook": lambda: solve(()),
            "no hook, again (noise)": lambda: solve(()),
            "empty hook": lambda: solve([Hook()]),
            "Inspector, steps only": lambda: solve([basic]),
            "Inspector, all statistics": lambda: solve([everything]),
        }
        clock = CLOCKS[options.clock]
        seconds = interleave(contestants, options.rounds, warmup=2, clock=clock)
    base = seconds["no hook"]
    rows = []
    for name, values in seconds.items():
        median, best = statistics.median(values), min(values)
        extra = 1e6 * (best - min(base)) / attempts
        numbers = (f"{median_ratio(values, base):.3f}", f"{best / min(base):.3f}", f"{extra:+.1f}")
        rows.append([name, f"{1e3 * median:.2f}", f"{1e3 * best:.2f}", *numbers])
    header = ("hooks", f"median {options.clock} ms", "best", "ratio", "of the best", "us/attempt")
    print_table(header, rows)
    print(
        f"{options.rounds} interleaved rounds. ratio: median of the rounds' ratios to no hook.\n"
        "of the best: of the shortest rounds, less moved by a busy machine; us/attempt: excess"
    )


if __name__ == "__main__":
    main()
