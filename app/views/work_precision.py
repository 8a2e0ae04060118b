"""Work-precision: which method reaches an accuracy with the least work?"""

import streamlit as st

from app import frame, kinds, session
from app.components.chart import plain
from app.explore import precision, studies
from app.live.state import look, title_of

described = frame.described()
workers = frame.workers()
spec = None
if not session.read_only():
    with st.sidebar:
        spec = precision.setup(described, look(session.current_run(), workers))
shown, ours = studies.top("Work-precision", "work_precision", described, workers)
if ours:
    st.caption(plain(precision.in_words(shown.spec, title_of(shown.spec, described))))
studies.bar(
    shown,
    spec,
    workers,
    label="Measure",
    help="Solve with each method at each tolerance. The result is kept as a run.",
)
kinds.instead(
    shown.id if ours else None,
    "work-precision study",
    "choose a problem, methods and tolerances on the left and press **Measure**: each is solved "
    "and compared with a reference, row by row.",
)
found = studies.study_of(shown) if ours else None
if ours:
    studies.follow(shown, found, workers)
if found is not None and found.entries():
    precision.show(found, str(shown.id))
elif ours and shown.live:
    st.skeleton(height=420)
