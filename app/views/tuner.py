"""Tuner: which gains of the controller need the fewest attempts?"""

import streamlit as st

from app import frame, kinds, session
from app.components.chart import plain
from app.explore import studies, tuner
from app.live.state import in_words, look

described = frame.described()
workers = frame.workers()
spec = None
if not session.read_only():
    with st.sidebar:
        spec = tuner.setup(described, look(session.current_run(), workers))
shown, ours = studies.top("Tuner", "tune", described, workers)
if ours:
    st.caption(plain(in_words(shown.spec)))
studies.bar(
    shown,
    spec,
    workers,
    label="Tune",
    help="Replay every set of gains, then solve the best for real. The result is kept as a run.",
)
kinds.instead(
    shown.id if ours else None,
    "search for gains",
    "choose a problem on the left, or the problem of a recorded run, and press **Tune**: recorded "
    "error ratios are replayed under other gains, then the best and all presets are solved for "
    "real.",
)
found = studies.study_of(shown) if ours else None
if ours:
    studies.follow(shown, found, workers)
if found is not None and found.entries():
    tuner.show(found, str(shown.id), shown.spec)
elif ours and shown.live:
    st.skeleton(height=420)
