"""A `.jsonl` file that one process appends to."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.store.files import dump_line, write_all
from inspector.store.segments import SegmentGoneError


class LineFile:
    """Appends records, each a line of its own; opened when the first one comes.

    Args:
        path: of the file.
        make_folder: whether its folder is made if missing; the run itself never is, it may have
            been deleted.
    """

    def __init__(self, path: Path, make_folder: bool = True) -> None:
        self._path = path
        self._fd: int | None = None
        self._make_folder = make_folder
        self._torn = False

    def append(self, *records: Mapping[str, Any]) -> None:
        """Write records in one go.

        Raises:
            OSError: the disk is full, or the file was deleted. The next line begins afresh.
        """
        data = b"".join(dump_line(record) for record in records)
        if self._fd is None:
            if self._make_folder and not self._path.parent.is_dir():
                self._path.parent.mkdir(exist_ok=True)
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        if os.fstat(self._fd).st_nlink == 0:
            self.close()
            raise SegmentGoneError("the folder or file of the run was deleted")
        try:
            write_all(self._fd, b"\n" + data if self._torn else data)
        except OSError:
            self._torn = True
            raise
        self._torn = False

    def close(self) -> None:
        """Close the file; a later record opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
