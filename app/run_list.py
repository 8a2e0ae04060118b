"""The runs of this dashboard's folder: their list, kept fast, and what may be done to one."""

import os
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from app import session
from app.frames import floats, where

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("run", "status", "problem", "method", "controller", "created"),
    *("seconds", "solves", "rows", "bytes", "note", "damaged"),
)
Stamp = tuple[int, ...]
STAMPED = ("run.json", "writers", "solves", "steps", "scalars", "events.jsonl")


class RunBusy(RuntimeError):
    """A run that is still being recorded cannot be deleted."""


@st.cache_resource(show_spinner=False)
def _summaries() -> dict[str, tuple[Stamp, dict[str, Any]]]:
    """Return what is known of runs that have ended: folder -> (stamp, line of the list)."""
    return {}


def listed() -> "pd.DataFrame":
    """Return one line a run, the newest first; a run that has ended is read once.

    Columns as `inspector.list_runs`; the recorded examples come last.
    """
    import pandas as pd

    known, lines = _summaries(), []
    damaged = _damaged()
    for name, folder in run_names().items():
        held = None if folder is None else known.get(folder)
        now = () if folder is None else stamp(folder)
        if held is None or held[0] != now:
            path = session.run_path(name)  # which resolves links, and takes its time
            line = None if path is None else summary(path)
            if line is None:
                continue
            held = (now, line)
            if line["status"] not in ("running", "empty") and folder is not None:
                known[folder] = held
        line = held[1]
        lines.append(line | {"damaged": True} if folder in damaged else line)
    table = pd.DataFrame(lines, columns=list(COLUMNS))
    table = table.sort_values("created", ascending=False, ignore_index=True)
    ours = session.examples()
    last = np.array([run in ours for run in table["run"]], dtype=bool)
    shipped = where(table, last).sort_values("run")
    return pd.concat([where(table, ~last), shipped], ignore_index=True)


@st.cache_resource(show_spinner=False)
def _damaged() -> set[str]:
    """Return the folders of runs in which a page has found damage that the list does not see."""
    return set()


def mark_damaged(path: Path) -> None:
    """Remember that a file of a run is damaged: the list reads no rows and would not know."""
    _damaged().add(str(path))


def run_names() -> dict[str, str | None]:
    """Return the names of the folders that may hold a run, with the folder where it is no link."""
    root = str(session.runs_root())
    try:
        with os.scandir(root) as entries:
            names = {
                entry.name: None if entry.is_symlink() else f"{root}{os.sep}{entry.name}"
                for entry in entries
                if entry.is_dir() and entry.name[0] != "."
            }
    except OSError:
        names = {}
    return names | {
        name: str(session.EXAMPLES_PATH / name) for name in session.examples() if name not in names
    }


def summary(path: Path) -> dict[str, Any] | None:
    """Return a run's line in the list; None if the folder holds no run, or is gone by now."""
    from inspector import open_run

    try:
        run = open_run(path)
        line = run.summary()
    except OSError:
        return None
    if line["status"] in ("running", "interrupted"):  # its writer may not have said how many yet
        counted = np.nansum(floats(run.solve_table(), "rows"))
        line["rows"] = max(int(line["rows"] or 0), int(counted))
    return line


def stamp(folder: str) -> Stamp:
    """Return when the parts of a run last changed [ns]; new files show, longer ones do not."""
    found = []
    for name in STAMPED:
        try:
            found.append(os.stat(f"{folder}/{name}").st_mtime_ns)
        except OSError:
            found.append(0)
    return tuple(found)


def own_path(run_id: str) -> Path:
    """Return the folder of a run that may be changed here.

    Raises:
        PermissionError: the dashboard is read-only, or the run is not in its folder.
    """
    path = session.run_path(run_id)
    if session.read_only():
        raise PermissionError("This dashboard is read-only: runs stay as they are.")
    if path is None or path.is_symlink() or path.parent != session.runs_root():
        raise PermissionError(f"There is no run {run_id!r} in {session.runs_root()}.")
    return path


def take_in(file: IO[bytes]) -> str:
    """Unpack a packed run into the folder; returns its id there.

    Raises:
        PermissionError: the dashboard is read-only.
        ValueError: it is no packed run, or may not be opened.
        OSError: it cannot be written.
    """
    from inspector.unpacking import unpack

    if session.read_only():
        raise PermissionError("This dashboard is read-only: no run can be added.")
    return unpack(file, session.runs_root(), another=True).name


def set_note(run_id: str, note: str) -> None:
    """Write a run's note, at most 2000 characters.

    Raises:
        PermissionError: see `own_path`.
        OSError: the folder cannot be written.
        ValueError: the run's `run.json` is damaged.
    """
    from inspector import update_meta

    update_meta(own_path(run_id), note=note.strip()[:2000])


def delete(run_id: str) -> None:
    """Delete a run with all its files.

    Raises:
        PermissionError: see `own_path`.
        RunBusy: it is still being recorded.
        OSError: a file cannot be removed.
    """
    from inspector import open_run

    path = own_path(run_id)
    if open_run(path).live:
        raise RunBusy(f"{run_id} is still being recorded; cancel it first.")
    gone = path.with_name(f".deleted-{path.name}")  # out of the list at once, whatever follows
    path.rename(gone)
    shutil.rmtree(gone)
    _summaries().pop(str(path), None)
