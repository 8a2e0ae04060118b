"""How many steps and evaluations do implicit methods take on test-set problems, beside others?

Radau5 and BDF against scipy's, Kvaerno5 against diffrax's with the same gains, if it is there.
Counts do not depend on the machine.

    python tests/benchmarks/stiff_counts.py --rtol 1e-4 1e-6
"""

import argparse
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from common import describe_machine
from scipy.integrate import solve_ivp as scipy_solve

from solver import solve_ivp


class Case(NamedTuple):
    """A problem as its components, so that every library can evaluate it."""

    field: Callable[..., list[Any]]
    y0: list[float]
    t1: float
    atol: float  # times rtol


def robertson(a: Any, b: Any, c: Any) -> list[Any]:
    """Three reactions."""
    slow, fast, very_fast = 0.04 * a, 1e4 * b * c, 3e7 * b * b
    return [fast - slow, slow - fast - very_fast, very_fast]


def van_der_pol(x: Any, v: Any) -> list[Any]:
    """An oscillator that creeps and jumps."""
    return [v, 1000 * (1 - x * x) * v - x]


def oregonator(a: Any, b: Any, c: Any) -> list[Any]:
    """Belousov and Zhabotinsky's reaction."""
    return [77.27 * (b + a * (1 - 8.375e-6 * a - b)), (c - (1 + a) * b) / 77.27, 0.161 * (a - c)]


def hires(y1: Any, y2: Any, y3: Any, y4: Any, y5: Any, y6: Any, y7: Any, y8: Any) -> list[Any]:
    """A plant that answers to light."""
    fast = 280 * y6 * y8
    return [
        -1.71 * y1 + 0.43 * y2 + 8.32 * y3 + 0.0007,
        1.71 * y1 - 8.75 * y2,
        -10.03 * y3 + 0.43 * y4 + 0.035 * y5,
        8.32 * y2 + 1.71 * y3 - 1.12 * y4,
        -1.745 * y5 + 0.43 * y6 + 0.43 * y7,
        -fast + 0.69 * y4 + 1.71 * y5 - 0.43 * y6 + 0.69 * y7,
        fast - 1.81 * y7,
        -fast + 1.81 * y7,
    ]


CASES = {
    "robertson": Case(robertson, [1.0, 0.0, 0.0], 1e6, 1e-4),
    "van_der_pol": Case(van_der_pol, [2.0, 0.0], 2000.0, 1e-2),
    "oregonator": Case(oregonator, [1.0, 2.0, 3.0], 360.0, 1e-2),
    "hires": Case(hires, [1.0, 0, 0, 0, 0, 0, 0, 0.0057], 321.8122, 1e-2),
}


class Counts(NamedTuple):
    """What one solve took, and how far off it ended, in tolerances."""

    accepted: int
    evaluations: int  # without those that differences for a Jacobian took
    y1: np.ndarray
    jacobians: int = 0
    factorizations: int = 0


def ours(case: Case, rtol: float, **options: Any) -> Counts:
    """Solve with this package, plainly."""

    def f(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.stack(case.field(*y.unbind(-1)), dim=-1)

    y0 = torch.tensor([case.y0], dtype=torch.float64)
    with torch.no_grad():
        sol = solve_ivp(
            f, y0, t0=0.0, t1=case.t1, rtol=rtol, atol=rtol * case.atol, engine="plain", **options
        )
    sol.raise_if_failed()
    stats = sol.stats
    jacobians, factored = int(stats.n_jac_evals[0]), int(stats.n_factorizations[0])
    evaluations = int(stats.n_f_evals[0])
    return Counts(
        int(stats.n_accepted[0]), evaluations, sol.y_reached[0].numpy(), jacobians, factored
    )


def scipys(case: Case, rtol: float, method: str) -> Counts:
    """Solve with scipy."""
    found = scipy_solve(
        lambda t, y: case.field(*y), (0, case.t1), case.y0, method=method, rtol=rtol,
        atol=rtol * case.atol,
    )  # fmt: skip
    return Counts(len(found.t) - 1, found.nfev, found.y[:, -1], found.njev, found.nlu)


def diffraxs(case: Case, rtol: float) -> Counts:
    """Solve with diffrax's Kvaerno5 and its default gains, those of an I controller."""
    import diffrax
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    sol = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: jnp.stack(case.field(*y))), diffrax.Kvaerno5(),
        0.0, case.t1, None, jnp.array(case.y0, dtype=jnp.float64), max_steps=100_000,
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol * case.atol),
    )  # fmt: skip
    return Counts(int(sol.stats["num_accepted_steps"]), 0, np.asarray(sol.ys[-1]))


def off(found: Counts, true: np.ndarray, rtol: float, case: Case) -> float:
    """Return the largest error in tolerances."""
    return float(np.max(np.abs(found.y1 - true) / (rtol * (case.atol + np.abs(true)))))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rtol", type=float, nargs="+", default=[1e-4, 1e-6], help="tolerances")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    options = parser.parse_args()
    with_diffrax = importlib.util.find_spec("diffrax") is not None
    print(describe_machine(["torch", "scipy", *(["diffrax"] if with_diffrax else [])]))
    header = "case | rtol | method | steps | of | ratio | evaluations | of | ratio | Jacobians | of"
    header += " | LU | of | error | of"
    print(f"| {header} |\n|{' --- |' * (header.count('|') + 1)}")
    for name in options.cases:
        case = CASES[name]
        true = scipys(case, 1e-11, "Radau").y1
        for rtol in options.rtol:
            pairs: list[tuple[str, Counts, str, Counts]] = [
                (mine, ours(case, rtol, method=mine), peer, scipys(case, rtol, peer))
                for mine, peer in (("radau5", "Radau"), ("bdf", "BDF"))
            ]
            if with_diffrax:
                found = ours(case, rtol, method="kvaerno5", controller="diffrax")
                pairs.append(("kvaerno5", found, "diffrax", diffraxs(case, rtol)))
            for mine, found, peer, theirs in pairs:
                evals: Sequence[object] = (found.evaluations, "-", "-")
                if theirs.evaluations:
                    ratio = f"{found.evaluations / theirs.evaluations:.2f}"
                    evals = (found.evaluations, theirs.evaluations, ratio)
                print(
                    f"| {name} | {rtol:g} | {mine} / {peer} | {found.accepted} | {theirs.accepted} "
                    f"| {found.accepted / theirs.accepted:.2f} | {evals[0]} | {evals[1]} "
                    f"| {evals[2]} | {found.jacobians} | {theirs.jacobians or '-'} "
                    f"| {found.factorizations} | {theirs.factorizations or '-'} "
                    f"| {off(found, true, rtol, case):.2f} "
                    f"| {off(theirs, true, rtol, case):.2f} |"
                )


if __name__ == "__main__":
    main()
