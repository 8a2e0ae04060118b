"""How far earlier writers of a run came, without reading it."""

import os
from pathlib import Path

from inspector.store.files import load_line

_TAIL = 1 << 16  # bytes at the end of each file that are looked at


def last_iteration(path: Path, rank: int, without: str | None = None) -> int:
    """Return the largest number among the last iterations that a rank recorded; -1 if none.

    Args:
        path: folder of the run.
        rank: whose writers to ask.
        without: a writer to leave out.
    """
    found = -1
    for folder in ("iterations", "scalars"):
        try:
            files = sorted((path / folder).glob(f"r{rank}-*.jsonl"))
        except OSError:
            continue
        for file in files:
            if file.stem != without:
                found = max(found, _last(file))
    return found


def _last(file: Path) -> int:
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, os.fstat(opened.fileno()).st_size - _TAIL))
            lines = opened.read().split(b"\n")
    except OSError:
        return -1
    numbers = (record.get("iteration") for record in map(load_line, lines) if record is not None)
    return max((n for n in numbers if isinstance(n, int)), default=-1)
