"""Go to any page or run by a few letters, and what the keys do: one dialog, opened by K."""

from collections.abc import Mapping

import streamlit as st

from app import session
from app.components import focus
from app.live import tour

KEYS = (
    ("K", "every page", "this dialog"),
    ("Ctrl + Enter", "Live, Training, Adjoints, Tuner, Work-precision", "run what is set up"),
    ("T", "Live, Run", "try the change that the first finding advises"),
    ("W", "Live, Instances, Stability", "the slowest row"),
    ("M", "Instances, Stability", "the next slowest"),
    ("P, N", "Instances, Stability", "the row before, the row after"),
    ("Tab, arrows, Enter", "the raster", "walk over its cells, pick a row"),
    ("Tab, Space", "everywhere", "the next control, press it"),
    ("R", "everywhere", "draw the page again"),
)
MOST_RUNS = 200


def button(views: Mapping[str, str]) -> None:
    """Draw the button that opens the dialog.

    Args:
        views: title -> name of each page.
    """
    opened = st.button(
        "Go to, keys",
        icon=":material/keyboard:",
        key="palette",
        shortcut="K",
        type="tertiary",
        help="Any page or run by a few letters; what the keys do.",
    )
    if opened:
        session.drop("palette_choice")
        dialog(views)


@st.dialog("Go to")
def dialog(views: Mapping[str, str]) -> None:
    """Draw the field and the list of keys."""
    runs = {f"run {run}": run for run in session.run_ids(MOST_RUNS)}
    chosen = st.selectbox(
        "Page or run",
        [*views, *runs],
        index=None,
        placeholder="type a few letters, Enter",
        key="palette_choice",
    )
    focus.first_field("palette_focus")
    if chosen is not None and chosen in views:
        session.go_to(views[chosen])
    if chosen in runs:
        session.show_run(runs[chosen])
        st.rerun()
    if st.button("Show the tour", icon=":material/explore:", type="tertiary", key="palette_tour"):
        tour.begin()
        session.show_run(session.EXAMPLE)
        session.go_to("live")
    st.markdown("**Keys**")
    lines = "\n".join(f"| `{keys}` | {what} | {where} |" for keys, where, what in KEYS)
    st.markdown(f"| key | does | on |\n|---|---|---|\n{lines}")
