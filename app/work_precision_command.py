"""`stepscope work-precision PROBLEM`: methods at several tolerances, error against work."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from app.adjoints_command import read_setting, without_profiler_noise

Add = Callable[[argparse.ArgumentParser], None]
HELP = "methods at several tolerances: error against evaluations, attempts, seconds, memory"
PROBLEM = ("problem", "parameters", "spread", "batch", "seed", "t1", "dtype", "controller")
"""What a study takes over from a run."""


def add(commands: Any, runs_argument: Add) -> None:
    """Add the command to the parser's."""
    command = commands.add_parser("work-precision", help=HELP)
    add_problem(command)
    command.add_argument("--methods", help="such as tsit5,dopri8")
    command.add_argument("--rtols", help="such as 1e-3,1e-6,1e-9")
    command.add_argument("--steps", help="of methods without error estimate, such as 100,1000")
    command.add_argument("--controller", help="by name, of all methods (default: the solver's)")
    command.add_argument("--rounds", type=int, default=3, help="timed repetitions (default: 3)")
    command.add_argument("--memory", action="store_true", help="measure the peak of memory too")
    command.add_argument("--gradient", action="store_true", help="and the error of the gradient")
    add_output(command)
    runs_argument(command)
    command.set_defaults(do=run)


def add_problem(command: argparse.ArgumentParser) -> None:
    """Add what decides the problem: a name, or a recorded run."""
    command.add_argument(
        "problem", nargs="?", help="name of a sample problem, or path/to/file.py:ClassName"
    )
    command.add_argument("--run", metavar="RUN", help="the problem of a recorded run instead")
    command.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a problem's parameter"
    )
    command.add_argument("--batch", type=int, help="rows")
    command.add_argument("--seed", type=int, default=None)
    command.add_argument("--t1", type=float, help="end of time")
    command.add_argument("--dtype", choices=("float32", "float64"))


def add_output(command: argparse.ArgumentParser) -> None:
    """Add where results go."""
    command.add_argument("--name", help="record it as a run of this name")
    command.add_argument("--json", action="store_true", help="print every entry as a line of JSON")
    command.add_argument("--csv", type=Path, metavar="FILE", help="write the table too")


def spec_of(arguments: argparse.Namespace, kind: str) -> dict[str, Any]:
    """Return the part of the spec that says which problem.

    Raises:
        ValueError: neither a problem nor a run is named, or the run has no problem.
    """
    spec: dict[str, Any] = {"kind": kind}
    if arguments.run:
        from app.cli import find
        from inspector import open_run

        recorded = open_run(find(arguments.runs, arguments.run)).spec or {}
        spec |= {key: recorded[key] for key in PROBLEM if recorded.get(key) is not None}
        if "spread" in recorded:
            spec["spread"] = recorded["spread"]
        if not spec.get("problem"):
            raise ValueError(f"--run {arguments.run}: says of no sample problem what it solved")
    if arguments.problem:
        spec["problem"] = arguments.problem
    if not spec.get("problem"):
        raise ValueError("problem: must be named, or --run RUN be given")
    spec["parameters"] = dict(spec.get("parameters") or {}) | dict(map(read_setting, arguments.set))
    for key in ("batch", "seed", "t1", "dtype"):
        if getattr(arguments, key) is not None:
            spec[key] = getattr(arguments, key)
    return spec


def listed(text: str | None, kind: Callable[[str], Any], name: str) -> list[Any] | None:
    """Return the values in a list parted by commas; None if there is none.

    Raises:
        ValueError: one of them is not of that kind.
    """
    if not text:
        return None
    try:
        return [kind(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise ValueError(f"{name} {text!r}: must be numbers parted by commas") from error


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; the exit code is 1 if a setting failed for all rows."""
    from app.work_precision import KIND
    from inspector.studies import precision_table

    spec = spec_of(arguments, KIND)
    if arguments.controller:
        spec["controller"] = {"name": arguments.controller}
    spec |= {
        "methods": listed(arguments.methods, str, "--methods"),
        "rtols": listed(arguments.rtols, float, "--rtols"),
        "steps": listed(arguments.steps, int, "--steps"),
        "rounds": arguments.rounds,
        "memory": arguments.memory,
        "gradient": arguments.gradient,
    }
    began = time.monotonic()
    entries = {entry["label"]: entry for entry in studied(spec, arguments)}
    reference = entries.pop("", {})
    table = precision_table(entries.values())
    if arguments.csv:
        table.to_csv(arguments.csv, index=False)
    if arguments.json:
        for entry in entries.values():
            print(json.dumps(entry))
    else:
        print(printed(table))
        print(
            f"Medians over rows. Errors are relative, against the {reference['reference']} (in "
            f"doubt by {reference['doubt']:.0e}). {time.monotonic() - began:.0f} s"
        )
    return int(bool((table["failure"] != "").any()))


def studied(spec: Mapping[str, Any], arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the entries of a study, recorded as a run if a name is given, with progress.

    Raises:
        ValueError: there is such a run, or the name leads out of the folder.
    """
    from app.worker import STUDIES, record_study
    from inspector import run_path
    from inspector.studies import Study

    with without_profiler_noise() as terminal:
        if arguments.name:
            path = run_path(arguments.runs, arguments.name)
            if path.exists():
                raise ValueError(f"--name {arguments.name}: there is such a run already")
            record_study(spec, path)
            yield from Study(path).entries()
            return

        def about(text: str, done: int, of: int) -> None:
            if terminal.isatty():
                print(f"\r\x1b[K{done}/{of} {text}", end="", file=terminal, flush=True)

        more = {"root": arguments.runs} if spec.get("run") else {}
        yield from STUDIES[str(spec["kind"])](spec, about=about, **more)
        if terminal.isatty():
            print("\r\x1b[K", end="", file=terminal)
    sys.stdout.flush()


def printed(table: Any) -> str:
    """Return the table as text."""
    titles = {
        "end_error": "end error", "trajectory_error": "along the way",
        "gradient_error": "gradient", "n_steps": "attempts", "n_rejected": "refused",
        "n_f_evals": "evaluations", "n_jac_evals": "Jacobians", "seconds": "ms",
        "peak_bytes": "peak KiB", "graph_bytes": "graph KiB",
    }  # fmt: skip
    shown = [n for n in titles if table[n].notna().any() and (table[n] != 0).any()]
    lines = [["method", "setting", *(titles[n] for n in shown), "failed"]]
    for _, row in table.iterrows():
        cells = [str(row["method"]), str(row["setting"])]
        if row["failure"]:
            lines.append([*cells, str(row["failure"])])
            continue
        for name in shown:
            value = row[name]
            scale = 1e3 if name == "seconds" else 2**-10 if "bytes" in name else 1
            style = ".1e" if "error" in name else ".1f" if scale != 1 else ".0f"
            cells.append("-" if value != value else f"{value * scale:{style}}")
        lines.append([*cells, f"{row['failed']} of {row['rows']}" if row["failed"] else ""])
    whole = [line for line in lines if len(line) == len(lines[0])]
    widths = [max(len(line[i]) for line in whole) for i in range(len(lines[0]))]

    def joined(line: list[str]) -> str:
        cells = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=False))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join(map(joined, lines))
