"""`stepscope pack` and `stepscope unpack`: a run as one file, and back."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app import explain


def add(
    commands: Any,
    runs_argument: Callable[[argparse.ArgumentParser], None],
    find: Callable[[Path, str], Path],
) -> None:
    """Add the commands.

    Args:
        commands: of the parser.
        runs_argument: adds `--runs`.
        find: returns the folder of a run given by id or path.
    """
    pack = commands.add_parser("pack", help="pack a run into one file, for somebody else to open")
    pack.add_argument("run", help="id of a run, or path of its folder")
    pack.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="to write; RUN.stepscope if left out"
    )
    pack.add_argument("--force", action="store_true", help="replace a file that is there")
    runs_argument(pack)
    pack.set_defaults(do=lambda arguments: run_pack(arguments, find))

    unpack = commands.add_parser("unpack", help="open a packed run, whoever made it")
    unpack.add_argument("file", type=Path, help="made by `stepscope pack`")
    unpack.add_argument("--name", help="of the run here; the one it was packed under if left out")
    unpack.add_argument("--list", action="store_true", help="only say what is in the file")
    runs_argument(unpack)
    unpack.set_defaults(do=run_unpack)


def run_pack(arguments: argparse.Namespace, find: Callable[[Path, str], Path]) -> int:
    """Pack a run and say what is in the file."""
    from inspector.packing import pack

    made = pack(find(arguments.runs, arguments.run), arguments.out, overwrite=arguments.force)
    print(
        f"{made.file}: {made.members} files, {explain.size(made.bytes)} packed into "
        f"{explain.size(made.size)}"
    )
    if made.live:
        print(
            f"{made.run} is still being recorded: packed as far as it had been written. "
            "Pack it again when it has ended for the rest."
        )
    return 0


def run_unpack(arguments: argparse.Namespace) -> int:
    """Unpack a run into the folder of runs, or list what a packed file holds."""
    from inspector.unpacking import look_into, unpack

    if arguments.list:
        about = look_into(arguments.file)
        print(f"{about.run}: {len(about.members)} files, {explain.size(about.bytes)}")
        for name, told in about.members.items():
            print(f"  {name}  {explain.size(told.bytes)}")
        return 0
    path = unpack(arguments.file, arguments.runs, arguments.name)
    print(f"{path}: unpacked; see it with `stepscope app --runs {path.parent}`")
    return 0
