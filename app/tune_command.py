"""`stepscope tune PROBLEM`: gains of the step-size controller, by replay and by real solves."""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from app.work_precision_command import add_output, add_problem, listed, spec_of, studied

Add = Callable[[argparse.ArgumentParser], None]
HELP = "search the gains of the controller: recorded errors replayed, the best solved for real"


def add(commands: Any, runs_argument: Add) -> None:
    """Add the command to the parser's."""
    command = commands.add_parser("tune", help=HELP)
    add_problem(command)
    command.add_argument("--method")
    command.add_argument("--rtol", type=float)
    command.add_argument("--atol", type=float)
    command.add_argument("--kp", help="values of the grid, such as 0,0.2,0.4")
    command.add_argument("--ki", help="values of the grid")
    command.add_argument("--kd", type=float, default=0.0, help="of the grid (default: 0)")
    command.add_argument(
        "--safety", default="equal",
        help='a number, or "equal" (default): 0.9^ki, so that all aim at the same error',
    )  # fmt: skip
    command.add_argument("--limiter", choices=("clamp", "smooth"), default="clamp")
    command.add_argument("--verify", type=int, default=8, help="best ones solved for real")
    command.add_argument("--methods", help="also try the best with these methods")
    command.add_argument("--rtols", help="and at these tolerances")
    command.add_argument("--no-search", action="store_true", help="grid and presets only")
    command.add_argument("--jobs", type=int, help="processes (default: one a core, at most 4)")
    add_output(command)
    runs_argument(command)
    command.set_defaults(do=run)


def run(arguments: argparse.Namespace) -> int:
    """Search and print; the exit code is 1 if no real solve got through."""
    from app.tuning import KIND
    from inspector.studies import tuning_table

    spec = spec_of(arguments, KIND)
    for key in ("method", "rtol", "atol"):
        if getattr(arguments, key) is not None:
            spec[key] = getattr(arguments, key)
    if arguments.run and not arguments.problem:
        spec["run"] = arguments.run
    safety = arguments.safety
    spec |= {
        "kp": listed(arguments.kp, float, "--kp"),
        "ki": listed(arguments.ki, float, "--ki"),
        "kd": arguments.kd,
        "safety": safety if safety == "equal" else listed(safety, float, "--safety"),
        "limiter": arguments.limiter,
        "verify": arguments.verify,
        "methods": listed(arguments.methods, str, "--methods"),
        "rtols": listed(arguments.rtols, float, "--rtols"),
        "search": not arguments.no_search,
        "jobs": arguments.jobs,
    }
    if isinstance(spec["safety"], list):
        (spec["safety"],) = spec["safety"] or [None]
    began = time.monotonic()
    entries = list(studied(spec, arguments))
    if arguments.json:
        for entry in entries:
            print(json.dumps(entry))
    table = tuning_table(e for e in entries if e.get("phase") == "real")
    if arguments.csv:
        tuning_table(entries).to_csv(arguments.csv, index=False)
    good = table[table["failed"] == 0].sort_values("attempts")
    if not arguments.json:
        print(printed(good))
        model = next((e for e in entries if e.get("phase") == "model"), {})
        print(
            f"estimate: attempts by replay, model {model.get('model', '?')}; attempts: of a real "
            f"solve, all rows; error: median over rows at the end. {time.monotonic() - began:.0f} s"
        )
    return int(good.empty)


def printed(table: Any) -> str:
    """Return the table as text."""
    lines: list[tuple[str, ...]] = [(*("source", "title", "method", "rtol", "kp", "ki", "kd"),
              "safety", "estimate", "attempts", "refused", "evaluations", "error")]  # fmt: skip
    for row in table.to_dict("records"):
        gains = [f"{row[n]:.3g}" if row[n] == row[n] else "-" for n in ("kp", "ki", "kd", "safety")]
        estimate = f"{row['estimate']:.0f}" if row["estimate"] == row["estimate"] else "-"
        counts = [f"{row[n]:.0f}" for n in ("attempts", "refused", "evaluations")]
        lines.append((row["source"], row["title"], row["method"], f"{row['rtol']:g}", *gains,
                      estimate, *counts, f"{row['end_error']:.1e}"))  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
