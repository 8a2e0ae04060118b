"""Runs under one root folder: their list, their safe names, their notes."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.store.files import read_json, write_json

if TYPE_CHECKING:
    import pandas as pd

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")


def is_run(path: str | os.PathLike[str]) -> bool:
    """Tell whether a folder holds a run, even one that lost its `run.json`."""
    folder = Path(path)
    return any((folder / name).exists() for name in ("run.json", "writers", "solves", "steps"))


def run_path(root: str | os.PathLike[str], run: str) -> Path:
    """Return the folder of a run that was named from outside, such as in a web address.

    Args:
        root: folder of runs.
        run: a name of `A-Za-z0-9_.-`, or any name that is in the folder already.

    Raises:
        ValueError: the name is empty, leads out of the root, or is neither plain nor there.
    """
    folder = Path(root)
    allowed = "must be the name of a folder inside it"
    if not isinstance(run, str) or run in ("", ".", "..") or any(char in run for char in "/\\\0"):
        raise ValueError(f"run {run!r} under {str(folder)!r}: {allowed}")
    if not _PLAIN_NAME.fullmatch(run) and run not in _names(folder):
        raise ValueError(
            f"run {run!r} under {str(folder)!r}: {allowed}, or of A-Z a-z 0-9 _ . - only"
        )
    path = folder / run
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(
            f"run {run!r} under {str(folder)!r} is a link that leads out of it: {allowed}"
        )
    return path


def list_runs(root: str | os.PathLike[str]) -> "pd.DataFrame":
    """List the runs in a folder, the newest first, without reading their rows.

    Returns:
        `run, status, problem, method, controller, created, seconds, solves, rows, bytes, note`;
        empty when the folder is missing.
    """
    import pandas as pd

    from inspector.run import Run

    columns = [
        "run",
        "status",
        "problem",
        "method",
        "controller",
        "created",
        "seconds",
        "solves",
        "rows",
        "bytes",
        "note",
        "damaged",
    ]
    listed: list[dict[str, Any]] = []
    for name in _names(Path(root)):
        try:
            path = run_path(root, name)
        except ValueError:
            continue  # a link that leads out
        if path.is_dir() and is_run(path):
            listed.append(Run(path).summary())
    frame = pd.DataFrame(listed, columns=columns)
    return frame.sort_values("created", ascending=False, ignore_index=True)


def update_meta(path: str | os.PathLike[str], **changes: Any) -> None:
    """Change entries of a run's `run.json`, such as its note or status.

    Raises:
        OSError: the folder cannot be written.
        ValueError: the file is damaged; changing it would hide that.
    """
    file = Path(path) / "run.json"
    record, damage = read_json(file)
    if damage is not None:
        raise ValueError(f"{str(file)!r} {damage}")
    write_json(file, record | changes)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
