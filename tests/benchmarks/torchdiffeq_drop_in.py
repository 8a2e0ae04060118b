"""The drop-in beside torchdiffeq: its own examples, made small; time of one run, and the losses.

    python tests/benchmarks/torchdiffeq_drop_in.py

Goal: the same losses to 1e-6 in float64, and half the time. Where the vector field itself is most
of the work, as in the CNF, whose field is differentiated twice, no solver can halve it.
"""

import argparse
import importlib
import statistics
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from common import CLOCKS, describe_machine, interleave, median_ratio, print_table  # isort: skip

import torchdiffeq_examples as examples

import solver.compat.torchdiffeq as ours

CASES: dict[str, Callable[..., list[float]]] = {
    **examples.EXAMPLES,
    "ode_demo, adjoint": partial(examples.ode_demo, interface="odeint_adjoint"),
    "bouncing_ball, adjoint": partial(examples.bouncing_ball, interface="odeint_adjoint"),
}


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=list(CASES), nargs="*")
    parser.add_argument("--clock", choices=list(CLOCKS), default="cpu")
    options = parser.parse_args()
    print(describe_machine(("torch", "torchdiffeq")))
    modules = {"ours": ours}
    if find_spec("torchdiffeq"):
        modules["theirs"] = importlib.import_module("torchdiffeq")
    rows = []
    for name in options.only or CASES:
        case = CASES[name]
        losses = {which: case(module) for which, module in modules.items()}
        runs = {which: partial(case, module) for which, module in modules.items()}
        seconds = interleave(runs, options.rounds, clock=CLOCKS[options.clock])
        mine = statistics.median(seconds["ours"]) * 1e3
        row = [name, f"{mine:.1f}", "-", "-", "-"]
        if "theirs" in modules:
            other = statistics.median(seconds["theirs"]) * 1e3
            pairs = zip(losses["ours"], losses["theirs"], strict=True)
            apart = max(abs(a - b) for a, b in pairs)
            ratio = median_ratio(seconds["theirs"], seconds["ours"])
            row[2:] = [f"{other:.1f}", f"{ratio:.2f}", f"{apart:.1e}"]
        rows.append(row)
    print_table(["example", "ours ms", "torchdiffeq ms", "ratio", "losses apart"], rows)


if __name__ == "__main__":
    main()
