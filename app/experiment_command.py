"""`stepscope experiment`: what a step size of one's own for each row buys, in three tables.

Repeats the experiments of Lienen & Guennemann (2022), torchode: A Parallel ODE Solver for PyTorch:
a flow trained with independent and with joint stepping, PID against I control on the Van der Pol
oscillator, and one step size for oscillators whose phases differ.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Add = Callable[[argparse.ArgumentParser], None]
NAMES = ("flow", "controllers", "phases")
STEPPINGS = ("independent", "joint")
MU = 25.0
PHASES = {"problem": "van_der_pol_phases", "parameters": {"mu": MU}, "n_eval": 2}


def add(commands: Any, runs_argument: Add) -> None:
    """Add the command to the others."""
    experiment = commands.add_parser(
        "experiment", help="what a step size of one's own for each row buys: three tables"
    )
    experiment.add_argument("which", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    experiment.add_argument("--seeds", type=int, default=3, help="flows trained of each kind")
    experiment.add_argument("--iterations", type=int, default=200, help="of each flow")
    experiment.add_argument("--batch", type=int, default=128, help="rows, of each experiment")
    experiment.add_argument("--prefix", default="experiment", help="of the runs' names")
    runs_argument(experiment)
    experiment.set_defaults(do=run)


def run(arguments: argparse.Namespace) -> int:
    """Do the experiments asked for, all of them if none is named.

    Raises:
        ValueError: there is no such experiment.
    """
    which = arguments.which or NAMES
    for name in which:
        if name not in NAMES:
            raise ValueError(f"experiment {name!r}: must be one of {', '.join(NAMES)}")
    do = {"flow": flow, "controllers": controllers, "phases": phases}
    for name in which:
        do[name](arguments)
        print(flush=True)
    return 0


def flow(arguments: argparse.Namespace) -> None:
    """Train a flow with each kind of stepping and compare quality and cost."""
    from app.trainer import KIND, record_training
    from inspector import open_run

    dim = 2
    print(f"Flow of two moons, {arguments.iterations} iterations, {arguments.seeds} seeds each")
    rows = []
    for stepping in STEPPINGS:
        bits, steps, evals, seconds = [], [], [], []
        for seed in range(arguments.seeds):
            path = new_path(arguments, f"flow-{stepping}-{seed}")
            spec = {"kind": KIND, "problem": "flow_two_moons", "stepping": stepping, "seed": seed}
            spec |= {"iterations": arguments.iterations, "batch": arguments.batch}
            outcome = record_training(spec, path)
            bits.append(outcome.measures[-1] / (dim * math.log(2)))
            table = open_run(path).iterations()
            steps.append(float(table["forward_steps_median"].mean()))
            evals.append(float(table["forward_calls"].mean()))
            seconds.append(outcome.seconds)
            print(f"  {path.name}: {bits[-1]:.3f} bits/dim", file=sys.stderr, flush=True)
        rows.append(
            [stepping, spread(bits, 3), spread(steps, 1), spread(evals, 1), spread(seconds, 1)]
        )
    print_table(("stepping", "bits/dim", "steps of a row", "calls of the field", "seconds"), rows)


def controllers(arguments: argparse.Namespace) -> None:
    """Count the attempts that PID control saves over I control."""
    from app.worker import solve_spec

    print(f"Van der Pol, mu = {MU:g}, {arguments.batch} phases: attempts of all rows")
    rows = []
    for method in ("dopri5", "tsit5"):
        for tolerance in (1e-3, 1e-4, 1e-5, 1e-6):
            counts = {}
            for name in ("integral", "pid"):
                spec = PHASES | {"batch": arguments.batch, "method": method, "controller": name}
                sol = solve_spec(spec | {"rtol": tolerance, "atol": tolerance})
                counts[name] = (int(sol.stats.n_steps.sum()), int(sol.stats.n_rejected.sum()))
            saved = 1 - counts["pid"][0] / counts["integral"][0]
            rows.append(
                [
                    *(method, f"{tolerance:.0e}"),
                    *(f"{steps} ({refused} refused)" for steps, refused in counts.values()),
                    f"{100 * saved:.1f} %",
                ]
            )
    print_table(("method", "tolerance", "I", "PID", "PID saves"), rows)


def phases(arguments: argparse.Namespace) -> None:
    """Solve oscillators with shifted phases, each by its own steps and all by the same."""
    from app.worker import record

    print(f"Van der Pol, mu = {MU:g}, {arguments.batch} phases, tsit5, tolerance 1e-5")
    rows, names, means = [], [], []
    for stepping in STEPPINGS:
        path = new_path(arguments, f"phases-{stepping}")
        spec = PHASES | {"batch": arguments.batch, "method": "tsit5", "stepping": stepping}
        sol = record(spec | {"rtol": 1e-5, "atol": 1e-5}, path, note="shifted phases")
        steps = sol.stats.n_steps.double()
        means.append(float(steps.mean()))
        names.append(path.name)
        rows.append(
            [stepping, f"{steps.mean():.0f}", f"{sol.stats.n_f_evals.double().mean():.0f}",
             f"{sol.stats.wall_seconds:.2f}", path.name]
        )  # fmt: skip
    print_table(("stepping", "steps of a row", "evaluations", "seconds", "run"), rows)
    print(f"joint stepping takes {means[1] / means[0]:.1f} times the steps")
    link = f"/runs?run={names[0]}&cmp={names[1]}"
    print(f"picture: stepscope app --runs {arguments.runs}, then {link}")


def new_path(arguments: argparse.Namespace, name: str) -> Path:
    """Return the folder of a run that is not there yet.

    Raises:
        ValueError: it is, or the prefix leads out of the folder.
    """
    from inspector import run_path

    path = run_path(arguments.runs, f"{arguments.prefix}-{name}")
    if path.exists():
        raise ValueError(f"--prefix {arguments.prefix}: there is a run {path} already")
    return path


def spread(values: Sequence[float], digits: int) -> str:
    """Return mean and standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.{digits}f} +- {deviation:.{digits}f}"


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns, the first to the left, the others to the right."""
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    for line in [header, *rows]:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells))
