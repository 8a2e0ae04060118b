"""Set up a problem, run it, and watch every step of every row."""

import streamlit as st

from app import frame, session
from app.components import diagnosis
from app.components.chart import plain
from app.controls import again
from app.controls.spec import by_name, settings_panel
from app.live import actions, compare, equations, notices, panel
from app.live.state import evals_per_attempt, in_words, look, title_of

POLL = 0.5  # seconds between looks at a run that grows

heading = st.empty()
waiting = st.empty()
if session.get("_live_seen") is None:  # later the old picture stays until the new one is there
    heading.title("Live", anchor=False)
    waiting.skeleton(height=620)

described = frame.described()
workers = frame.workers()
spec = None
if not session.read_only():
    again.take_up(described)
    with st.sidebar:
        spec = settings_panel(described)

shown = look(session.current_run(), workers)
about = title_of(shown.spec or spec or {}, described)
with heading.container(horizontal=True, vertical_alignment="center", gap="small"):
    st.title(plain(about.get("title") or shown.id or "Live"), anchor=False, width="content")
    notices.chip(shown.word)
    if about.get("latex"):
        with st.popover("Equations", icon=":material/function:", type="tertiary"):
            st.latex(about["latex"])
            st.caption(about.get("source", ""))
    if spec is not None and about:
        actions.adopt(shown, spec, about, described)


def body() -> None:
    """Draw what changes; while the run grows this is repeated."""
    now = look(shown.id, workers)
    if now.live and now.id:
        workers.watch(now.id, session.session_id())
    if now.word != shown.word:
        st.rerun()  # buttons and badge stand outside
    drawable = now.has_steps
    notices.notice(now, workers)
    above = st.container()
    if not drawable:
        with above:
            notices.damage(now)
        if now.live:
            st.skeleton(height=420)
        elif now.word in ("finished", "cancelled", "failed"):
            st.info("No attempt of this run can be read, so there is nothing to draw.")
        return
    other = compare.other_run(now)
    run = now.run
    assert run is not None
    panel.draw(
        now, other, about, evals_per_attempt(now.spec, described),
        below=lambda: diagnosis.panel(run, now.solve, live=now.live),
    )  # fmt: skip
    rows = run.solves()
    rows = rows[rows["solve"] == now.solve]
    failed = rows[(rows["status"] > 0) & ~rows["status_name"].isin(["INTERRUPTED", "EVENT"])]
    with above:
        notices.damage(now)
        notices.warned(now)
        notices.failed_rows(failed, list(about.get("components") or []))
    if other is not None and not now.live:
        compare.section(now, other, described)


st.caption(" — ".join(t for t in (about.get("question", ""), plain(in_words(shown.spec))) if t))
if spec is not None:
    refused = equations.panel(by_name(described["problems"], session.get("problem")), spec)
    actions.bar(shown, spec, workers, described, refused=refused)
st.fragment(body, run_every=POLL if shown.live else None)()
waiting.empty()
session.put("_live_seen", True)
