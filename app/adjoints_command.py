"""`stepscope adjoints PROBLEM`: gradient modes compared, as a table."""

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

HELP = "compare gradient modes on a problem: error, memory, time, evaluations"


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    command = commands.add_parser("adjoints", help=HELP)
    command.add_argument("problem", help="name of a sample problem, or path/to/file.py:ClassName")
    add_choices(command)
    command.add_argument(
        "--sweep", choices=("rtol", "steps"), help="compare at several values of it"
    )
    command.add_argument("--values", help="of what is swept, such as 1e-3,1e-5,1e-7")
    command.add_argument("--rounds", type=int, default=3, help="timed repetitions (default: 3)")
    command.add_argument(
        "--no-allocator", action="store_true", help="leave out the measured peak, which is slow"
    )
    command.add_argument(
        "--train", type=int, metavar="N",
        help="train N iterations with each mode: test measure, memory, time of an iteration",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print every entry as a line of JSON")
    command.add_argument("--csv", type=Path, metavar="FILE", help="write the table too")
    command.set_defaults(do=run)


def add_choices(command: argparse.ArgumentParser) -> None:
    """Add what decides the problem and how it is solved."""
    command.add_argument("--modes", help="such as symplectic,symplectic:keep=graphs;continuous")
    command.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a problem's parameter"
    )
    command.add_argument("--batch", type=int)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--method")
    command.add_argument("--rtol", type=float)
    command.add_argument("--atol", type=float)
    command.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    command.add_argument(
        "--trained", type=int, default=0, metavar="N", help="train N iterations before"
    )


def spec_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the spec that the arguments say."""
    names = ("problem", "batch", "seed", "method", "rtol", "atol", "dtype", "trained")
    spec: dict[str, Any] = {"kind": "adjoints", **{n: getattr(arguments, n) for n in names}}
    spec["parameters"] = dict(map(read_setting, arguments.set))
    if arguments.modes:
        spec["modes"] = split_modes(arguments.modes)
    return spec


def split_modes(text: str) -> list[str]:
    """Return the modes in a list parted by commas or semicolons; settings may have commas too."""
    modes: list[str] = []
    for part in text.replace(";", ",").split(","):
        setting = "=" in part and ":" not in part
        if setting and modes:
            modes[-1] += f",{part.strip()}"
        else:
            modes.append(part.strip())
    return modes


def read_setting(text: str) -> tuple[str, Any]:
    """Return name and value of `name=value`.

    Raises:
        ValueError: there is no `=`.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set {text!r}: must be NAME=VALUE")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value


def run(arguments: argparse.Namespace) -> int:
    """Compare and print; the exit code is 1 if a mode failed."""
    from app.gradients import compare_spec
    from inspector.adjoints import table

    if arguments.train:
        return run_training(arguments)
    values = [float(value) for value in (arguments.values or "").split(",") if value.strip()]
    spec = spec_of(arguments) | {
        "sweep": arguments.sweep or "",
        "values": values,
        "rounds": arguments.rounds,
        "allocator": not arguments.no_allocator,
    }
    began, last = time.monotonic(), {}
    with without_profiler_noise() as terminal:

        def about(text: str, done: int, of: int) -> None:
            if terminal.isatty():
                print(f"\r\x1b[K{done}/{of} {text}", end="", file=terminal, flush=True)

        for place, value, entry in compare_spec(spec, about=about):
            last[place, entry["label"]] = entry | {"value": value}
        if terminal.isatty():
            print("\r\x1b[K", end="", file=terminal)
    entries = list(last.values())
    found = table(entries)
    if arguments.csv:
        found.to_csv(arguments.csv, index=False)
    if arguments.json:
        for entry in entries:
            print(json.dumps(entry))
    else:
        print(printed(found, swept=arguments.sweep))
        print(f"{LEGEND}\n{time.monotonic() - began:.0f} s")
    return int(bool((found["failure"] != "").any()))


def run_training(arguments: argparse.Namespace) -> int:
    """Train with each mode and print what it came to."""
    from app.gradients import training_entries

    began = time.monotonic()
    entries: list[dict[str, Any]] = []
    with without_profiler_noise() as terminal:

        def about(text: str) -> None:
            if terminal.isatty():
                print(f"\r\x1b[K{text}", end="", file=terminal, flush=True)

        entries += training_entries(spec_of(arguments), arguments.train, about)
        if terminal.isatty():
            print("\r\x1b[K", end="", file=terminal)
    if arguments.json:
        for entry in entries:
            print(json.dumps(entry))
        return 0
    print(f"{'mode':24} {'test':>10} {'MiB':>8} {'ms/iteration':>13} {'steps':>6}")
    for entry in entries:
        size, took = entry["peak_bytes"] / 2**20, 1e3 * entry["seconds"]
        print(
            f"{entry['mode']:24} {entry['measure']:10.3e} {size:8.2f} {took:13.1f} "
            f"{entry['steps']:6d}"
        )
    print(
        f"{arguments.train} iterations each from the same start on the same data; test: of data "
        f"kept apart; MiB: peak of one iteration; steps: of the last one. "
        f"{time.monotonic() - began:.0f} s"
    )
    return 0


@contextlib.contextmanager
def without_profiler_noise() -> Iterator[TextIO]:
    """Keep what torch's profiler says each time it starts off standard error; yields the latter.

    Everything else that was written there follows at the end.
    """
    sys.stderr.flush()
    with os.fdopen(os.dup(2), "w") as terminal, tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield terminal
        finally:
            sys.stderr.flush()
            os.dup2(terminal.fileno(), 2)
            held.seek(0)
            text = held.read().decode("utf-8", "replace")
            kept = [line for line in text.splitlines() if "profiler_st" not in line]
            if kept:
                print("\n".join(kept), file=terminal, flush=True)


LEGEND = """error: relative, of the worst group of parameters, against backpropagation in float64
over the same steps; to exact: against a tight tolerance. peak: of the allocator over the start;
kept: from forward to backward; law: what the mode's law says of the backward pass."""


def printed(found: Any, *, swept: str | None) -> str:
    """Return the table as text."""
    lines: list[list[str]] = []
    head = ["mode", "error", "to exact", "peak MiB", "kept MiB", "law MiB", "ms forward",
            "ms backward", "f forward", "f backward", "vjps"]  # fmt: skip
    if swept:
        head = [swept, *head]
    for _, row in found.iterrows():
        cells = [row["mode"]]
        if row["failure"]:
            cells += [str(row["failure"])]
        else:
            cells += [f"{row[name]:.1e}" for name in ("error", "error_exact")]
            cells += [_mebibytes(row[n]) for n in ("peak_bytes", "kept_bytes", "predicted_bytes")]
            cells += [f"{1e3 * row[n]:.1f}" for n in ("seconds_forward", "seconds_backward")]
            names = ("n_f_forward", "n_f_backward", "n_vjps")
            cells += ["-" if row[n] != row[n] else f"{row[n]:.0f}" for n in names]
        lines.append([f"{row['value']:g}", *cells] if swept else cells)
    whole = [line for line in [head, *lines] if len(line) == len(head)]
    widths = [max(len(line[i]) for line in whole) for i in range(len(head))]
    left = 2 if swept else 1

    def joined(line: list[str]) -> str:
        padded = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=False))
        ]
        return "  ".join(padded).rstrip()

    return "\n".join(map(joined, [head, *lines]))


def _mebibytes(size: float) -> str:
    return "-" if size != size else f"{size / 2**20:.3g}"
