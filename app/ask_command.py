"""`stepscope ask RUN "select ..."`: a question to a run in SQL."""

import argparse
import sys
from collections.abc import Callable
from typing import Any

Add = Callable[[argparse.ArgumentParser], None]
HELP = "ask a run in SQL: tables steps, solves, solve_table, scalars, iterations, states, events"


def add(commands: Any, runs_argument: Add) -> None:
    """Add the command to the parser's."""
    command = commands.add_parser("ask", help=HELP)
    command.add_argument("run", help="id of a run, or path of its folder")
    command.add_argument(
        "query", help="one SELECT, such as 'select count(*) from steps'; - reads it"
    )
    command.add_argument("--csv", action="store_true", help="print as CSV")
    command.add_argument("--json", action="store_true", help="print one JSON object a line")
    command.add_argument("--rows", type=int, default=1_000, help="most lines (default: 1000)")
    command.add_argument("--seconds", type=float, default=60.0, help="given up after (default: 60)")
    runs_argument(command)
    command.set_defaults(do=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask and print."""
    from app.cli import find
    from inspector.ask import ask

    path = find(arguments.runs, arguments.run)
    query = sys.stdin.read() if arguments.query == "-" else arguments.query
    found = ask(path, query, rows=arguments.rows, seconds=arguments.seconds)
    if arguments.csv:
        found.table.to_csv(sys.stdout, index=False)
    elif arguments.json:
        print(found.table.to_json(orient="records", lines=True), end="")
    else:
        print(found.table.to_string(index=False, na_rep=""))
    if found.more:
        print(f"only the first {len(found.table):,} lines; see --rows", file=sys.stderr)
    return 0
