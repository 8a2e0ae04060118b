"""What the dashboard keeps from one visit to the next: a small file beside the runs.

A link always shows what it says; what is kept here only fills a visit without one.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from app import describe, session
from app.workers import read_json, write_json

VARIABLE = "STEPSCOPE_SETTINGS"  # another file than the one beside the runs; empty: none
NAME = ".stepscope.json"


def path() -> Path | None:
    """Return the file; None where nothing is to be kept."""
    named = os.environ.get(VARIABLE)
    if named is None:
        return session.runs_root() / NAME
    return Path(named) if named else None


def recall(name: str, fallback: Any = None) -> Any:
    """Return what was kept under a name."""
    file = path()
    return fallback if file is None else read_json(file).get(name, fallback)


def remember(**changes: Any) -> None:
    """Keep JSON values; nothing is kept by a read-only dashboard or on a full disk."""
    file = path()
    if file is None or session.read_only():
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, read_json(file) | changes)


def fingerprint() -> str:
    """Return what tells whether kept settings still fit what there is to choose from."""
    return describe.source_hash(describe.user_problem())


def keep_spec(spec: Mapping[str, Any]) -> None:
    """Keep what Live was told to run last."""
    remember(live={"for": fingerprint(), "spec": dict(spec)})


def last_spec() -> dict[str, Any] | None:
    """Return what Live ran last, once in a visit that began without a link; None otherwise."""
    if session.get("_recalled_live"):
        return None
    session.put("_recalled_live", True)
    kept = recall("live") if session.no_link() else None
    if not isinstance(kept, Mapping) or kept.get("for") != fingerprint():
        return None
    spec = kept.get("spec")
    return dict(spec) if isinstance(spec, Mapping) else None


def keep_widgets(prefix: str) -> None:
    """Keep the values of all widgets whose keys begin with `prefix`."""
    values = {key: _pack(session.get(key)) for key in session.keys(prefix)}
    remember(**{prefix: {"for": fingerprint(), "values": values}})


def restore_widgets(prefix: str) -> None:
    """Put kept values back, once in a visit; call it before the widgets are drawn."""
    if session.get(f"_recalled_{prefix}"):
        return
    session.put(f"_recalled_{prefix}", True)
    kept = recall(prefix)
    if not isinstance(kept, Mapping) or kept.get("for") != fingerprint():
        return
    values = kept.get("values")
    for key, value in (values if isinstance(values, Mapping) else {}).items():
        if session.get(key) is None and session.param(key) is None:
            session.put(key, _unpack(value))


def _pack(value: Any) -> Any:
    return {"tuple": list(value)} if isinstance(value, tuple) else value


def _unpack(value: Any) -> Any:
    return tuple(value["tuple"]) if isinstance(value, Mapping) else value
