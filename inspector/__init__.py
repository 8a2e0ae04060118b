"""Recorder and run store: what a solver did, written while it runs and read back without torch."""

from typing import TYPE_CHECKING, Any

from inspector.listing import is_run, list_runs, run_path, update_meta
from inspector.run import Run, open_run
from inspector.store.reader import Damage

if TYPE_CHECKING:
    from inspector.inspector import Inspector

__all__ = [
    "Damage",
    "Inspector",
    "Run",
    "is_run",
    "list_runs",
    "open_run",
    "run_path",
    "update_meta",
]


def __getattr__(name: str) -> Any:
    """Load `Inspector`, which needs torch, only when it is asked for."""
    if name == "Inspector":
        from inspector.inspector import Inspector

        return Inspector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
