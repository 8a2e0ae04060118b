"""Go to any page or run by a few letters, and what the keys do: one dialog, opened by K."""

from typing import Any

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


def button(pages: list[Any]) -> None:
    """Draw the button that opens the dialog; where one is open, draw it.

    Args:
        pages: as `st.navigation` has them.
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
        dialog(pages)


@st.dialog("Go to")
def dialog(pages: list[Any]) -> None:
    """Draw the field and the list of keys."""
    by_title = {str(page.title): page for page in pages}
    runs = {f"run {run}": run for run in session.run_ids(MOST_RUNS)}
    chosen = st.selectbox(
        "Page or run",
        [*by_title, *runs],
        index=None,
        placeholder="type a few letters, Enter",
        key="palette_choice",
    )
    focus.first_field("palette_focus")
    if chosen in by_title:
        st.switch_page(by_title[chosen])
    if chosen in runs:
        session.show_run(runs[chosen])
        st.rerun()
    if st.button("Show the tour", icon=":material/explore:", type="tertiary", key="palette_tour"):
        tour.begin()
        session.show_run(session.EXAMPLE)
        st.switch_page(next(iter(pages)))
    st.markdown("**Keys**")
    lines = "\n".join(f"| `{keys}` | {what} | {where} |" for keys, where, what in KEYS)
    st.markdown(f"| key | does | on |\n|---|---|---|\n{lines}")
