"""How do implicit methods compare with scipy's: steps on one problem, time on a batch?

Robertson's reactions with rates of the fastest one over six decades. scipy solves row by row; its
time for the whole batch is that of a few rows times how many there are.

    python tests/benchmarks/stiff.py --batch 256
"""

import argparse
import time

import numpy as np
import torch
from common import describe_machine
from scipy.integrate import solve_ivp as scipy_solve

from solver import solve_ivp

RTOL, ATOL, T1 = 1e-6, 1e-10, 1e6
PAIRS = (("radau5", "Radau"), ("bdf", "BDF"), ("rodas5p", "Radau"), ("kvaerno5", "Radau"))


def scipy_row(k3: float, method: str, rtol: float = RTOL, atol: float = ATOL):
    """Solve one row with scipy."""

    def f(t, y):
        slow, fast, very_fast = 0.04 * y[0], 1e4 * y[1] * y[2], k3 * y[1] * y[1]
        return [fast - slow, slow - fast - very_fast, very_fast]

    return scipy_solve(f, (0, T1), [1.0, 0.0, 0.0], method=method, rtol=rtol, atol=atol)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=256, help="rows")
    parser.add_argument("--rows", type=int, default=12, help="rows that scipy solves")
    options = parser.parse_args()
    batch = options.batch
    rows = np.linspace(0, batch - 1, min(options.rows, batch)).astype(int)
    k3 = torch.logspace(1.5, 7.5, batch, dtype=torch.float64)
    y0 = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64).repeat(batch, 1)

    def f(t, y):
        a, b, c = y.unbind(-1)
        slow, fast, very_fast = 0.04 * a, 1e4 * b * c, k3 * b * b
        return torch.stack([fast - slow, slow - fast - very_fast, very_fast], dim=-1)

    print(describe_machine(["torch", "scipy"]))
    print(f"Robertson to t = {T1:g}, {batch} rows, rtol {RTOL:g}, atol {ATOL:g}, float64")
    true = np.array([scipy_row(k3[i].item(), "Radau", 1e-11, 1e-17).y[:, -1] for i in rows])
    peers = {}
    for name in ("Radau", "BDF"):
        began = time.perf_counter()
        found = [scipy_row(k3[i].item(), name) for i in rows]
        seconds = (time.perf_counter() - began) / len(rows) * batch
        steps = np.mean([len(each.t) - 1 for each in found])
        evals = np.mean([each.nfev for each in found])
        peers[name] = seconds, steps, evals
        error = np.max(np.abs([e.y[:, -1] for e in found] - true) / (ATOL + RTOL * np.abs(true)))
        print(f"scipy {name}: {seconds:.2f} s, {steps:.0f} steps, {evals:.0f} evaluations, "
              f"error {error:.2f} tolerances")  # fmt: skip
    for method, name in PAIRS:
        with torch.no_grad():
            began = time.perf_counter()
            sol = solve_ivp(f, y0, t0=0.0, t1=T1, method=method, rtol=RTOL, atol=ATOL)
            seconds = time.perf_counter() - began
        steps = sol.stats.n_accepted[rows].double().mean().item()
        evals = sol.stats.n_f_evals[rows].double().mean().item()
        error = np.max(np.abs(sol.ys[rows, 0].numpy() - true) / (ATOL + RTOL * np.abs(true)))
        peer_seconds, peer_steps, peer_evals = peers[name]
        print(
            f"{method}: {seconds:.2f} s, {steps:.0f} steps, {evals:.0f} evaluations, error "
            f"{error:.2f} tolerances; ratio to scipy {name}: time {peer_seconds / seconds:.1f} "
            f"times less, steps {steps / peer_steps:.2f}, evaluations {evals / peer_evals:.2f}"
        )


if __name__ == "__main__":
    main()
