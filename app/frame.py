"""What all pages share: their list, the run picker, style."""

import atexit
from pathlib import Path
from typing import Any

import streamlit as st

from app import describe, palette, session
from app.equations.about import describe_text
from app.equations.saved import saved
from app.workers import Workers

HERE = Path(__file__).resolve().parent
VIEWS = (
    ("live", "Live", ":material/play_circle:"),
    ("run", "Run", ":material/monitoring:"),
    ("instances", "Instances", ":material/table_rows:"),
    ("stability", "Stability", ":material/vital_signs:"),
    ("training", "Training", ":material/model_training:"),
    ("adjoints", "Adjoints", ":material/balance:"),
    ("compare", "Compare", ":material/compare_arrows:"),
    ("tuner", "Tuner", ":material/tune:"),
    ("work_precision", "Work-precision", ":material/speed:"),
    ("ask", "Ask", ":material/database:"),
    ("runs", "Runs", ":material/folder_open:"),
)

OTHER_ICON = ":material/insights:"  # of a view that is not in the list: it stands last, by its name

STYLE = """
<style>
.stMainBlockContainer { padding: 3.6rem 2.2rem 2rem; max-width: 1720px; }
[data-testid="stSidebarUserContent"] { padding-top: 0.4rem; padding-bottom: 2rem; }
[data-testid="stSidebarUserContent"] [data-testid="stVerticalBlock"] { gap: 0.55rem; }
[data-testid="stSidebarUserContent"] label { min-height: 1.3rem; }
[data-testid="stSidebarHeader"] { height: 2.6rem; margin-bottom: 0; }
.stMain h1 { font-size: 1.55rem; padding: 0 0 0.1rem 0; }
.stMain h2 { font-size: 1.15rem; padding: 0.4rem 0 0.1rem 0; }
.stMain h3 { font-size: 1rem; padding: 0; font-weight: 600; }
[data-testid="stMetric"] { padding: 0; }
[data-testid="stMetric"] > div { padding: 0.5rem 0.8rem 0.35rem; }
.stMain [data-testid="stVerticalBlock"] { gap: 0.7rem; }
[data-testid="stMetricValue"] { font-variant-numeric: tabular-nums; }
.st-key-sql textarea, .st-key-equations textarea {
  font-family: var(--st-code-font, monospace); font-size: 0.9rem;
}
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] :is(p, code) {
  opacity: 1; color: light-dark(#5b6472, #9aa4b2); }
button kbd, a kbd { opacity: 1 !important; color: inherit !important; }
[data-testid="stSliderThumbValue"] p, button[data-selected="true"] p {
  color: light-dark(#1c2330, #e8ebf0) !important; }
@media (max-width: 900px) { [class*="st-key-pair_"] [data-testid="stColumn"] { min-width: 100%; } }
@media (prefers-reduced-motion: reduce) {
  * { animation: none !important; transition: none !important; }
}
</style>
"""


def pages() -> list[Any]:
    """Return every view in the folder; the first one is the default and lives at `/`."""
    named = [view for view in VIEWS if (HERE / "views" / f"{view[0]}.py").exists()]
    known = {"__init__", *(name for name, _, _ in VIEWS)}
    others = sorted({file.stem for file in (HERE / "views").glob("*.py")} - known)
    more = [(name, name.replace("_", " ").capitalize(), OTHER_ICON) for name in others]
    return [
        st.Page(f"views/{name}.py", title=title, icon=icon, default=name == "live")
        for name, title, icon in (*named, *more)
    ]


def draw(page: Any) -> None:
    """Draw style, run picker and the way to any page; they survive page switches."""
    st.html(STYLE)
    missing = st.empty()
    with st.sidebar:
        unknown = run_picker()
        palette.button({title: name for name, title, _ in VIEWS})
        if session.read_only():
            st.badge(
                "read-only",
                icon=":material/lock:",
                color="gray",
                help="Look, compare, ask and download; nothing is started, changed or deleted.",
            )
    if unknown:
        missing.warning(f"There is no run `{unknown[:64]}` in {session.runs_root()}.")


def run_picker() -> str | None:
    """Draw the picker of the run that every page shows; return what a link asked for in vain."""
    session.take_up_run()
    ids = session.run_ids()
    asked = session.get("run") or session.param("run")
    if asked and asked not in ids and session.run_path(asked) is not None:
        ids.insert(0, asked)  # just started, not listed yet
    unknown = asked if asked and asked not in ids else None
    if unknown:
        session.drop("run")
    first = session.opened_on() or ("the newest" if ids else "none yet")
    st.selectbox(
        "Run shown",
        ["", *ids],
        format_func=lambda run: run or first,
        help="Every page shows this run; the address bar links to it.",
        **session.keep("run", "url"),
    )
    return unknown


@st.cache_resource(show_spinner=False, on_release=Workers.close)
def _workers(root: str) -> Workers:
    registry = Workers(Path(root), alive=tab_connected, read_only=session.read_only())
    if not session.read_only():
        registry.warm_soon(2.0)
    atexit.register(registry.close)
    return registry


def workers() -> Workers:
    """Return the worker processes of this server, shared by all tabs."""
    return _workers(str(session.runs_root()))


def tab_connected(viewer: str) -> bool:
    """Whether a browser tab's session is connected to this server."""
    from streamlit import runtime

    return runtime.exists() and runtime.get_instance().is_active_session(viewer)


@st.cache_data(ttl=10.0, show_spinner=False)
def _source_hash(user_problem: str | None) -> str:
    return describe.source_hash(user_problem)


@st.cache_resource(show_spinner=False)
def _described(key: str) -> dict[str, Any]:
    return describe.load() or describe.refresh()


def described() -> dict[str, Any]:
    """Return what there is to choose from; shows a skeleton while it is read.

    Ends the script with what went wrong if it cannot be read and no older copy is there.
    """
    key = _source_hash(describe.user_problem())
    waiting = st.empty()
    if not session.get("_described_seen") and describe.load() is None:
        with waiting.container():
            st.caption("Reading problems, methods and controllers…")
            st.skeleton(height=420)
    session.put("_described_seen", True)
    try:
        found = _described(key)
    except describe.DescribeFailed as error:
        waiting.error("The problems could not be read. What the process said last:")
        st.code(str(error)[-2000:], language=None)
        older = describe.stale()
        if older is None:
            st.stop()
        return with_equations(older)
    waiting.empty()
    return with_equations(found)


def with_equations(found: dict[str, Any]) -> dict[str, Any]:
    """Return a description with the equations that are kept and those being typed as problems."""
    kept = [
        told | {"title": f"Saved: {told['title']}"}
        for told in (describe_text(text, name) for name, text in saved(session.runs_root()).items())
    ]
    typed = describe_text(session.equations()[1]) | {"title": "Your own equations"}
    return found | {"problems": [*found["problems"], *kept, typed]}
