"""Is a batch of Robertson problems solved faster than by a loop over its rows, equally well?

Rates of the fastest reaction over six decades. scipy's Radau solves row by row; each method of
this package solves all rows in one call, with the loosest tolerance at which its worst row ends no
further off than scipy's worst. Times are taken in turn, in one process.

    python tests/benchmarks/robertson_batch.py --batch 256 --rtol 1e-4 1e-6
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from common import CLOCKS, describe_machine, interleave, median_ratio, print_table
from scipy.integrate import solve_ivp as scipy_solve
from torch import Tensor

from solver import Solution, solve_ivp

T1 = 1e6
METHODS = ("rodas4", "rodas5p", "kvaerno5", "radau5", "bdf", "auto")
TIGHTER = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3)  # times scipy's rtol


def field(k3: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the reactions of a batch with rates `k3 (B,)`."""

    def f(t: Tensor, y: Tensor) -> Tensor:
        a, b, c = y.unbind(-1)
        slow, fast, very_fast = 0.04 * a, 1e4 * b * c, k3 * b * b
        return torch.stack([fast - slow, slow - fast - very_fast, very_fast], dim=-1)

    return f


def row_by_row(k3: Sequence[float], rtol: float, atol: float, *, given: bool) -> np.ndarray:
    """Return where scipy's Radau ends, `(B, 3)`, with or without the Jacobian given."""
    ends = []
    for k in k3:

        def f(t: float, y: np.ndarray, k: float = k) -> list[float]:
            slow, fast, very_fast = 0.04 * y[0], 1e4 * y[1] * y[2], k * y[1] * y[1]
            return [fast - slow, slow - fast - very_fast, very_fast]

        def jacobian(t: float, y: np.ndarray, k: float = k) -> list[list[float]]:
            b, c, twice = 1e4 * y[1], 1e4 * y[2], 2 * k * y[1]
            return [[-0.04, c, b], [0.04, -c - twice, -b], [0.0, twice, 0.0]]

        options = {"jac": jacobian} if given else {}
        found = scipy_solve(
            f, (0.0, T1), [1.0, 0.0, 0.0], method="Radau", rtol=rtol, atol=atol, **options
        )
        ends.append(found.y[:, -1])
    return np.array(ends)


def at_once(k3: Tensor, method: str, rtol: float, atol: float, engine: str = "plain") -> Solution:
    """Solve all rows in one call."""
    y0 = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64).repeat(len(k3), 1)
    with torch.no_grad():
        return solve_ivp(
            field(k3), y0, t0=0.0, t1=T1, method=method, rtol=rtol, atol=atol, engine=engine
        )


def main() -> None:
    """Print a table for each tolerance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=256, help="rows")
    parser.add_argument("--rtol", type=float, nargs="+", default=[1e-4, 1e-6], help="of scipy")
    parser.add_argument("--atol", type=float, default=1e-4, help="times rtol")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--engine", choices=("plain", "compiled"), default="plain")
    parser.add_argument("--given", action="store_true", help="give scipy the Jacobian")
    options = parser.parse_args()
    k3 = torch.logspace(1.5, 7.5, options.batch, dtype=torch.float64)
    rates = k3.tolist()
    print(describe_machine(["torch", "scipy"]))
    finest = min(options.rtol) * 1e-3
    true = row_by_row(rates, finest, finest * 1e-5, given=True)
    for rtol in options.rtol:
        atol = rtol * options.atol

        def worst(ends: np.ndarray, rtol: float = rtol, atol: float = atol) -> float:
            return float(np.max(np.abs(ends - true) / (atol + rtol * np.abs(true))))

        scipys = partial(row_by_row, rates, rtol, atol, given=options.given)
        goal = worst(scipys())
        runs: dict[str, Callable[[], object]] = {"scipy": scipys}
        chosen: dict[str, tuple[float, float, int]] = {}
        for method in options.methods:
            own, error, sol = rtol, float("inf"), None
            for factor in TIGHTER:
                own = rtol * factor
                sol = at_once(k3, method, own, atol * factor, options.engine)
                if (error := worst(sol.ys[:, 0].numpy())) <= goal:
                    break
            assert sol is not None
            chosen[method] = own, error, int(sol.stats.n_steps.max())
            runs[method] = partial(at_once, k3, method, own, own * options.atol, options.engine)
        seconds = interleave(runs, options.rounds, warmup=0, clock=CLOCKS["cpu"])
        print(
            f"\nRobertson to t = {T1:g}, {options.batch} rows, rtol {rtol:g}, atol {atol:g}, "
            f"float64; scipy Radau: {statistics.median(seconds['scipy']):.2f} s, worst row "
            f"{goal:.3f} tolerances off"
        )
        lines = []
        for method, (own, error, attempts) in chosen.items():
            took = statistics.median(seconds[method])
            lines.append((
                method, f"{own:g}", f"{error:.3f}", str(attempts), f"{took:.3f}",
                f"{median_ratio(seconds['scipy'], seconds[method]):.1f}",
            ))  # fmt: skip
        print_table(("method", "rtol", "worst", "attempts", "seconds", "ratio of times"), lines)


if __name__ == "__main__":
    main()
