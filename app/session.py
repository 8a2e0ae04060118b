"""The one module that touches session state and the query string.

A view can be linked: what decides its picture sits in the URL under the keys below. Widgets carry the
same key with `bind="query-params"`, so that a link restores them; the rest persists with the session.
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

if TYPE_CHECKING:
    import pandas as pd

    from inspector.run import Run

LINKED = ("run", "solve", "inst", "x0", "x1", "metric", "order", "cmp")
"""What makes a view: run id, solve number, instance (row), first and last attempt shown, raster value,
row order, run compared with."""

RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

Keep = Literal["url", "session"]


def keep(key: str, where: Keep = "session") -> dict[str, Any]:
    """Return the widget arguments that keep a value over reruns and page switches.

    `st.slider("...", **keep("seed", "url"))`: `"url"` also puts the value into the query string.
    """
    if where == "url":
        return {"key": key, "bind": "query-params"}
    return {"key": key, "persist_state": "session"}


def get(key: str, default: Any = None) -> Any:
    """Return a value of the session state."""
    return st.session_state.get(key, default)


def put(key: str, value: Any) -> None:
    """Set a value of the session state; for a widget's key, before the widget is drawn in this run."""
    st.session_state[key] = value


def default(key: str, value: Any) -> Any:
    """Set a value unless there is one, and return what is there."""
    if key not in st.session_state:
        st.session_state[key] = value
    return st.session_state[key]


def keys(prefix: str) -> list[str]:
    """Return the keys of the session state that begin with `prefix`."""
    return [key for key in st.session_state if isinstance(key, str) and key.startswith(prefix)]


def drop(*keys: str) -> None:
    """Forget values."""
    for key in keys:
        st.session_state.pop(key, None)


def param(name: str, fallback: str | None = None) -> str | None:
    """Return a query parameter as text."""
    return st.query_params.get(name, fallback)


def int_param(name: str, low: int, high: int, fallback: int) -> int:
    """Return a whole number from the session or the query string, moved into `[low, high]`."""
    value = st.session_state.get(name, st.query_params.get(name))
    try:
        number = int(value)  # type: ignore[arg-type]  # None is caught below
    except (TypeError, ValueError):
        number = fallback
    return max(low, min(high, number))


def run_id_ok(run_id: str | None) -> bool:
    """Whether a text may name a run: letters, digits, `_` and `-`, at most 64 of them."""
    return bool(run_id and RUN_ID.fullmatch(run_id))


def session_id() -> str:
    """Return an id of this browser tab's session; empty outside a running app."""
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def runs_root() -> Path:
    """Return the folder that holds the runs: `STEPSCOPE_RUNS`, else `runs` where the app was started."""
    return Path(os.environ.get("STEPSCOPE_RUNS") or "runs").absolute()


def read_only() -> bool:
    """Whether viewers may start, cancel or delete nothing."""
    return os.environ.get("STEPSCOPE_READ_ONLY", "") not in ("", "0")


def run_path(run_id: str | None) -> Path | None:
    """Return the folder of a run; None for an id that is not allowed or not in the runs folder."""
    if not run_id_ok(run_id):
        return None
    root = runs_root()
    path = root / str(run_id)
    if run_id == EXAMPLE and not path.exists():
        return EXAMPLE_PATH if EXAMPLE_PATH.is_dir() else None
    inside = path.is_dir() and path.resolve().is_relative_to(root.resolve())
    return path if inside else None


@st.cache_resource(max_entries=8, show_spinner=False)
def _open(path: str, _made: float) -> "Run":
    from inspector import open_run

    return open_run(path)


def open_run(run_id: str | None) -> "Run | None":
    """Open a run once for all viewers and read what is new in it; None if there is no such run."""
    path = run_path(run_id)
    if path is None:
        return None
    run = _open(str(path), path.stat().st_ino)
    run.refresh()
    return run


def list_runs() -> "pd.DataFrame":
    """List the runs folder, newest first (columns as `inspector.list_runs`)."""
    return _listed(str(runs_root()))


EXAMPLE = "example"
EXAMPLE_PATH = Path(__file__).resolve().parent / EXAMPLE


@st.cache_data(ttl=1.0, show_spinner=False)
def _listed(root: str) -> "pd.DataFrame":
    from inspector import list_runs as listed

    return listed(root)


def run_ids() -> list[str]:
    """Return the ids of all runs, newest first; the recorded example stands last."""
    ids = [str(run) for run in list_runs()["run"]]
    if EXAMPLE not in ids and EXAMPLE_PATH.is_dir():
        ids.append(EXAMPLE)
    return ids


def current_run() -> str | None:
    """Return the run that the views show: the one picked, else the newest, else the example."""
    picked = get("run") or ""
    if picked:
        return str(picked)
    ids = run_ids()
    return ids[0] if ids else None
