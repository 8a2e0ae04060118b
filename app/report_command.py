"""`stepscope report`: a run as one HTML file with its figures and what limits it."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any


def add(
    commands: Any,
    runs_argument: Callable[[argparse.ArgumentParser], None],
    find: Callable[[Path, str], Path],
) -> None:
    """Add the command.

    Args:
        commands: of the parser.
        runs_argument: adds `--runs`.
        find: returns the folder of a run given by id or path.
    """
    command = commands.add_parser("report", help="write a run as one HTML file, to read or print")
    command.add_argument("run", help="id of a run, or path of its folder")
    command.add_argument(
        "-o", "--out", type=Path, metavar="FILE.html", help="to write; RUN.html if left out"
    )
    command.add_argument("--solve", type=int, help="to look into; the costliest one if left out")
    command.add_argument("--force", action="store_true", help="replace a file that is there")
    runs_argument(command)
    command.set_defaults(do=lambda arguments: run_report(arguments, find))


def run_report(arguments: argparse.Namespace, find: Callable[[Path, str], Path]) -> int:
    """Write the report."""
    from app import explain
    from app.report import write_report
    from inspector import open_run

    run = open_run(find(arguments.runs, arguments.run))
    out = arguments.out or Path(f"{run.id}.html")
    path = write_report(run, out, arguments.solve, overwrite=arguments.force)
    print(f"{path}: {explain.size(path.stat().st_size)}, needs no other file and no network")
    return 0
