"""The one module that touches session state and the query string.

A view can be linked: what decides its picture, and what is set to be started, sits in the URL.
Widgets carry their key there by `bind="query-params"` (`keep`), lines picked in tables by
`line_picked`, and `inst` and `rows` name the rows picked; so a link restores the page as it stands.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st
from streamlit.errors import StreamlitAPIException

if TYPE_CHECKING:
    from inspector.run import Run

OPEN_RUNS = 4  # kept open in one tab
EXAMPLE = "example"
EXAMPLES_PATH = Path(__file__).resolve().parent / "examples"

Keep = Literal["url", "session"]


def keep(key: str, where: Keep = "url") -> dict[str, Any]:
    """Return the widget arguments that keep a value over reruns and page switches.

    `st.slider("...", **keep("seed"))`: by itself the value is put into the query string, so that a
    link restores it; `"session"` keeps it in the tab alone.
    """
    if where == "url":
        return {"key": key, "bind": "query-params"}
    return {"key": key, "persist_state": "session"}


def get(key: str, default: Any = None) -> Any:
    """Return a value of the session state."""
    return st.session_state.get(key, default)


def put(key: str, value: Any) -> None:
    """Set a value of the session state; for a widget's key, before the widget is drawn."""
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
        st.session_state.pop(f"_last_{key}", None)


def param(name: str, fallback: str | None = None) -> str | None:
    """Return a query parameter as text."""
    return st.query_params.get(name, fallback)


def put_param(name: str, value: str | None) -> None:
    """Set or remove a query parameter that no widget on this page is bound to."""
    with suppress(StreamlitAPIException):  # a widget owns it: its value is in the session state
        if value is None:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != value:
            st.query_params[name] = value


def numbers(key: str) -> list[float]:
    """Return the numbers a widget holds, or is about to get from the query string."""
    held = st.session_state.get(key)
    texts = st.query_params.get_all(key) if held is None else held
    found = []
    for text in texts if isinstance(texts, list | tuple) else [texts]:
        with suppress(TypeError, ValueError):
            found.append(float(text))
    return found


def accept(key: str, titles: Mapping[str, str]) -> None:
    """Let a link name an option by its short name; Streamlit itself writes and reads titles.

    The address gets the title and the script runs again, so that it goes on saying what is chosen.
    Call it before the widget is drawn.

    Args:
        key: of the widget and the query parameter.
        titles: option -> what the widget shows for it.
    """
    raw = st.query_params.get(key, "")
    if key in st.session_state or raw not in titles or raw in titles.values():
        return
    with suppress(StreamlitAPIException):
        st.query_params[key] = titles[raw]
        st.rerun()
    st.session_state[key] = raw


def check(key: str, allowed: Callable[[Any], bool], start: Any) -> None:
    """Put `start` in the place of a held value that is not allowed."""
    if key in st.session_state and not allowed(st.session_state[key]):
        st.session_state[key] = start


def int_param(name: str, low: int, high: int, fallback: int) -> int:
    """Return a whole number, moved into `[low, high]`.

    It comes from the session, else the query string, else from what this function said last: a
    page left while it was still being drawn takes the state of its widgets along.
    """
    last = f"_last_{name}"
    held = st.session_state.get(last)
    value = st.session_state.get(name, st.query_params.get(name, held))
    try:
        number = int(str(value))
    except (TypeError, ValueError):
        number = fallback
    number = max(low, min(high, number))
    if value is not None:
        st.session_state[last] = number
    return number


def line_picked(name: str, ids: Sequence[Any], selected: Sequence[int]) -> int | None:
    """Return which line of a table is picked: by a click, else by the link; None if none is.

    Args:
        name: query parameter that keeps the pick, as its id.
        ids: of the lines.
        selected: lines that are clicked on now.
    """
    last = f"_clicked_{name}"
    if selected and selected[0] < len(ids):
        st.session_state[last] = True
        put_param(name, str(ids[selected[0]]))
        return selected[0]
    if st.session_state.pop(last, False):  # clicked away
        put_param(name, None)
        return None
    held = param(name)
    return next((line for line, one in enumerate(ids) if str(one) == held), None)


def session_id() -> str:
    """Return an id of this browser tab's session; empty outside a running app."""
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def runs_root() -> Path:
    """Return the folder of the runs: `STEPSCOPE_RUNS`, else `runs` where the app was started."""
    return Path(os.environ.get("STEPSCOPE_RUNS") or "runs").absolute()


def read_only() -> bool:
    """Whether viewers may start, cancel or delete nothing."""
    return os.environ.get("STEPSCOPE_READ_ONLY", "") not in ("", "0")


def run_path(run_id: str | None) -> Path | None:
    """Return the folder of a run; None for a name that leads elsewhere or is not there."""
    from inspector import run_path as inside

    if not run_id:
        return None
    try:
        path = inside(runs_root(), run_id)
    except ValueError:
        return None
    if not path.exists() and run_id in examples():
        return EXAMPLES_PATH / run_id
    return path if path.is_dir() else None


def examples() -> list[str]:
    """Return the names of the recorded examples, the one for a first look first."""
    try:
        return sorted(entry.name for entry in os.scandir(EXAMPLES_PATH) if entry.is_dir())
    except OSError:
        return []


def is_example(run_id: str | None) -> bool:
    """Whether a run is one of those that come with the dashboard."""
    path = run_path(run_id)
    return path is not None and path.parent == EXAMPLES_PATH


def open_run(run_id: str | None) -> "Run | None":
    """Open a run, or look for what is new in it; None if there is none, or nothing in it yet."""
    from inspector import open_run as opened

    path = run_path(run_id)
    if path is None:
        return None
    held: dict[str, Run] = default("_open_runs", {})
    key = f"{path}:{path.stat().st_ino}"
    run = held.pop(key, None)
    try:
        if run is None:
            run = opened(path)
        else:
            run.refresh()
    except FileNotFoundError:
        return None
    held[key] = run  # last used stands last
    if run.live:
        keep_alive(path)
    for old in list(held)[:-OPEN_RUNS]:
        del held[old]
    return run


def keep_alive(path: Path, seconds: float = 5.0) -> None:
    """Tell the worker of a run that somebody looks, by its `lease`, if it has one."""
    if read_only():
        return
    lease = path / "lease"
    with suppress(OSError):
        if time.time() - lease.stat().st_mtime > seconds:
            os.utime(lease)


@st.cache_resource(show_spinner=False)
def _created() -> dict[str, float]:
    """When a run was created, by folder: it never changes."""
    return {}


def show_run(run_id: str) -> None:
    """Show another run from the next run of the script on; its picker may be drawn already."""
    st.session_state["_show_run"] = run_id


def take_up_run() -> None:
    """Pick the run asked for by `show_run`; called before the picker is drawn."""
    asked = st.session_state.pop("_show_run", None)
    if asked is not None:
        st.session_state["run"] = asked
        drop("picked", "solve", "inst", "x0", "x1")
        st.session_state["solve"] = 0
        put_param("inst", None)


def equations() -> tuple[str, str]:
    """Return the equations typed in this tab, and the last ones that could be read.

    The text comes from the field, else a link, else what was there when the page was left.
    """
    from app.equations.about import TEMPLATE
    from app.equations.system import read

    text = get("equations")
    if text is None:
        text = param("equations", get("_equations"))
    text = TEMPLATE if text is None else str(text)
    put("_equations", text)
    with suppress(ValueError):
        read(text)
        put("_equations_read", text)
    return text, default("_equations_read", TEMPLATE)


def run_ids(most: int = 500) -> list[str]:
    """Return the ids of the newest runs, newest first; the recorded examples stand last."""
    from inspector import is_run

    root, known = runs_root(), _created()
    try:
        folders = [Path(entry.path) for entry in os.scandir(root) if entry.is_dir()]
    except OSError:
        folders = []
    found = []
    for folder in folders:
        if folder.is_symlink() and run_path(folder.name) is None:
            continue  # leads out of the folder
        if str(folder) not in known:
            if not is_run(folder):
                continue
            try:
                meta = json.loads((folder / "run.json").read_text("utf-8"))
                known[str(folder)] = float(meta["created"])
            except (OSError, ValueError, KeyError, TypeError):
                known[str(folder)] = folder.stat().st_ctime
        found.append((known[str(folder)], folder.name))
    ids = [name for _, name in sorted(found, reverse=True)[:most]]
    return ids + [name for name in examples() if name not in ids]


def opened_on() -> str | None:
    """Return the run that the app was started to show, while it is there."""
    asked = os.environ.get("STEPSCOPE_SHOW")
    return asked if asked and run_path(asked) is not None else None


def current_run() -> str | None:
    """Return the run that the views show: the one picked, else the one the app was opened on.

    Without either it is the newest run, else the example.
    """
    picked = get("run") or opened_on()
    if picked:
        return str(picked)
    ids = run_ids()
    return ids[0] if ids else None
