"""Adjoints: what does each gradient mode cost, and how right is its gradient?"""

from typing import TYPE_CHECKING

import streamlit as st

from app import frame, kinds, session
from app.components.chart import plain
from app.gradient_modes import results, setup
from app.live import notices
from app.live.state import Shown, look, title_of

if TYPE_CHECKING:
    from inspector.adjoints import Comparison

POLL = 1.0  # seconds between looks at a comparison that grows


def comparison(shown: Shown) -> "Comparison | None":
    """Return the comparison that a run holds, kept from one run of the script to the next."""
    from inspector.adjoints import Comparison

    path = session.run_path(shown.id)
    if path is None:
        return None
    held = session.get("_comparison")
    if held is None or held.path != path:
        held = Comparison(path)
        session.put("_comparison", held)
    held.refresh()
    return held if held.planned else None


def progress(shown: Shown, found: "Comparison | None", seen: int) -> None:
    """Draw how far a comparison is; draws the page again as soon as it has more."""
    now = look(shown.id, workers)
    if now.live and now.id:
        workers.watch(now.id, session.session_id())
    fresh = comparison(now)
    if now.word != shown.word or len(fresh.entries() if fresh else []) != seen:
        st.rerun()
    if fresh is not None and now.live:
        share = fresh.done / fresh.of if fresh.of else 0.0
        st.progress(min(share, 1.0), f"{fresh.done} of {fresh.of}: {fresh.doing}")
    elif now.live:
        st.progress(0.0, "Starting")


described = frame.described()
workers = frame.workers()
spec = None
if not session.read_only():
    with st.sidebar:
        spec = setup.panel(described)
shown = look(session.current_run(), workers)
if shown.spec.get("kind") != "adjoints" and (other := kinds.newest("adjoints")) is not None:
    shown = look(other, workers)
is_ours = shown.spec.get("kind") == "adjoints"
about = title_of(shown.spec, described) if is_ours else {}
with st.container(horizontal=True, vertical_alignment="center", gap="small"):
    st.title(
        f"Adjoints: {plain(about['title'])}" if about else "Adjoints", anchor=False, width="content"
    )
    if is_ours:
        notices.chip(shown.word)
if is_ours:
    st.caption(plain(results.spec_in_words(shown.spec, about)))
if spec is not None:
    setup.bar(shown, spec, workers)
kinds.instead(
    shown.id if is_ours else None,
    "comparison of gradient modes",
    "choose a problem and some modes on the left and press **Compare**: each is measured against "
    "backpropagation in float64.",
)
found = comparison(shown) if is_ours else None
entries = found.entries() if found else []
if is_ours and (shown.live or shown.word in ("failed", "cancelled", "died", "interrupted")):
    if shown.live:
        st.fragment(progress, run_every=POLL)(shown, found, len(entries))
    else:
        notices.notice(shown, workers)
if found is not None and entries:
    results.show(found, str(shown.spec.get("dtype") or "float64"))
elif is_ours and shown.live:
    st.skeleton(height=420)
