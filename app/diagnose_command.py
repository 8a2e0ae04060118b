"""`stepscope diagnose`: what limits a recorded run, and what to change."""

import argparse
import importlib.util
import json
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
    command = commands.add_parser("diagnose", help="say what limits a run, and what to change")
    command.add_argument("run", help="id of a run, or path of its folder")
    command.add_argument("--solve", type=int, help="one solve; the costliest few if left out")
    command.add_argument("--only", nargs="+", metavar="RULE", help="ask these rules only")
    command.add_argument("--rules", type=Path, metavar="FILE.py", help="rules of your own")
    command.add_argument("--json", action="store_true", help="one JSON object")
    runs_argument(command)
    command.set_defaults(do=lambda arguments: diagnose(arguments, find))


def diagnose(arguments: argparse.Namespace, find: Callable[[Path, str], Path]) -> int:
    """Print what the rules find; the exit code is 0 whatever that is."""
    from inspector import open_run
    from inspector.diagnosis import diagnose as asked

    if arguments.rules is not None:
        take_up(arguments.rules)
    run = open_run(find(arguments.runs, arguments.run))
    found = asked(run, arguments.solve, only=arguments.only)
    if arguments.json:
        print(json.dumps({"run": run.id, **found.to_json()}))
        return 0
    if not found.findings:
        print(f"{run.id}: no rule has anything to say")
    for finding in found.findings:
        where = "" if finding.solve is None else f", solve {finding.solve}"
        print(f"{finding.title}  [{finding.rule}, {finding.certainty}{where}]")
        print(f"  {finding.evidence}.")
        if finding.rows:
            print(f"  rows: {', '.join(map(str, finding.rows))}")
        if finding.times:
            print(
                "  times: " + ", ".join(f"{low:.6g} to {high:.6g}" for low, high in finding.times)
            )
        print(f"  {finding.advice}")
        if finding.change is not None:
            print(f"  to try: {json.dumps(dict(finding.change))}")
        print()
    for name, why in found.not_judged.items():
        print(f"not judged: {name}: {why}")
    for note in found.notes:
        print(note)
    return 0


def take_up(file: Path) -> None:
    """Run a Python file, which registers rules by `inspector.diagnosis.rule`.

    Raises:
        ValueError: there is no such file.
    """
    spec = importlib.util.spec_from_file_location(f"stepscope_rules_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ValueError(f"--rules {file}: must be a Python file")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
