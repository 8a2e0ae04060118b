"""The top of every page that shows a run: which, in what state, and whether it is whole."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import describe, explain, run_facts, run_list, session
from app.cached import ask
from app.components.chart import code, plain
from app.frames import floats

if TYPE_CHECKING:
    from inspector.run import Run

Colour = Literal["blue", "green", "red", "gray", "orange"]

STATUS: dict[str, tuple[str, str, Colour]] = {
    "running": ("live, updating", ":material/sync:", "blue"),
    "finished": ("finished", ":material/check:", "green"),
    "failed": ("failed", ":material/error:", "red"),
    "cancelled": ("cancelled", ":material/cancel:", "gray"),
    "interrupted": ("interrupted", ":material/power_off:", "orange"),
    "empty": ("empty", ":material/hourglass_empty:", "gray"),
}
"""Status of a run -> word, icon, colour of its badge."""

EMBEDDING = """\
from inspector import Inspector

with Inspector("runs/my-run") as insp:
    solve_ivp(f, y0, t_eval, hooks=[insp])
"""
TOO_LARGE = 100_000_000  # rows of a run above which only its overview is drawn


@st.cache_resource(show_spinner=False, ttl=60.0)
def described() -> dict[str, Any] | None:
    """Return what there is to choose from, for titles and names; None if it is not known."""
    return describe.load() or describe.stale()


def opened() -> "Run":
    """Return the run this page shows; where there is none, say what to do and stop the page."""
    name = session.current_run()
    run = session.open_run(name)
    if run is None:
        nothing_stored()
        st.stop()
    return run


def nothing_stored() -> None:
    """The designed state of a runs folder without a run."""
    with st.container(border=True):
        st.subheader("No run is stored yet")
        st.write(
            f"Runs are kept in `{session.runs_root()}`. Solve something in Live, or record "
            "your own script with four lines:"
        )
        st.code(EMBEDDING, language="python")
        if not session.read_only():
            st.page_link("views/live.py", label="Solve in Live", icon=":material/play_circle:")


def summary_of(run: "Run") -> dict[str, Any]:
    """Return the run's line in the list of runs."""
    about = dict(ask(type(run).summary, run))
    if run.status in ("running", "interrupted"):  # its writer may not have said how many yet
        counted = np.nansum(floats(ask(type(run).solve_table, run), "rows"))
        about["rows"] = max(int(about.get("rows") or 0), int(counted))
    return about


def draw_header(run: "Run") -> DeltaGenerator:
    """Draw title, badge and facts; return the place of the banners, filled by `banners` at the end.

    Damage of a file shows when it is read, so the banners are drawn last and stand on top.
    """
    about = summary_of(run)
    word, icon, colour = STATUS.get(run.status, STATUS["empty"])
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        title = run_facts.title_of(described(), run.id, about.get("problem"))
        st.title(plain(title), anchor=False, width="content")
        st.badge(word, icon=icon, color=colour)
    st.caption(" \u00b7 ".join([code(run.id), *facts_of(about)]))
    if run.live:
        st.page_link(
            "views/live.py",
            label="Watch it in Live",
            icon=":material/play_circle:",
        )
    note = str(about.get("note") or "")
    if note:
        st.caption(f":material/edit_note: {plain(note)}")
    return st.container()


FOLLOW_EVERY = 2.0  # seconds between looks at a run that still grows
FOLLOW_LARGE = 10.0  # the same once it holds so much that drawing it takes a second
LARGE = 500_000  # attempts
MOST_OF_A_SOLVE = 20_000_000  # attempts of one solve that are drawn


def follow(run: "Run") -> None:
    """Draw the page again as soon as a run that still grows has something new, or has ended."""
    if not run.live:
        return
    seen = run.version

    large = int(summary_of(run).get("rows") or 0) > LARGE

    @st.fragment(run_every=FOLLOW_LARGE if large else FOLLOW_EVERY)
    def look() -> None:
        now = session.open_run(run.id)
        if now is None or not now.live or now.version != seen:
            st.rerun()

    look()


def too_large(run: "Run", solve: int, say: bool = True) -> bool:
    """Say so, and return true, if a solve holds more attempts than a page can draw."""
    rows = float(floats(ask(type(run).solve_table, run), "rows")[solve])
    if not rows > MOST_OF_A_SOLVE:
        return False
    if not say:
        return True
    st.info(
        f"This solve holds {explain.count(rows)} attempts, more than the "
        f"{explain.count(MOST_OF_A_SOLVE)} that a page draws. Its files are whole: read them with "
        "`inspector.open_run`, or record less with `Inspector(..., instances=..., every=...)`.",
        icon=":material/database:",
    )
    return True


def facts_of(about: dict[str, Any]) -> list[str]:
    """Return when, how long, how much, as short texts."""
    facts = []
    created = about.get("created")
    if isinstance(created, int | float) and created > 0:
        facts.append(when(float(created)))
    if about.get("seconds"):
        facts.append(explain.duration(float(about["seconds"])))
    solves, rows = about.get("solves") or 0, about.get("rows") or 0
    facts.append(f"{explain.count(solves)} solve{'' if solves == 1 else 's'}")
    facts.append(f"{explain.count(rows)} attempts recorded")
    facts.append(explain.size(about.get("bytes")))
    return facts


def when(created: float) -> str:
    """Return a time as people say it: today with the hour, else the date."""
    then, now = datetime.fromtimestamp(created), datetime.now()
    if then.date() == now.date():
        return f"today {then:%H:%M}"
    return f"{then:%d %b %H:%M}" if then.year == now.year else f"{then:%d %b %Y}"


def banners(run: "Run", place: DeltaGenerator) -> None:
    """Say what is wrong with a run, and what that means for what is shown."""
    with place:
        _banners(run, summary_of(run))


def _banners(run: "Run", about: dict[str, Any]) -> None:
    rows = explain.count(about.get("rows") or 0)
    if run.status == "interrupted":
        st.warning(
            f"The process that recorded this run is gone without a word. Everything it had written "
            f"is here: {rows} attempts.",
            icon=":material/power_off:",
        )
    elif run.status == "failed":
        st.error("This run was broken off by an error; see Events below.", icon=":material/error:")
    lost = {name: number for name, number in run.lost.items() if number}
    if lost:
        words = {
            "rows_dropped": "attempts were left out because the disk was too slow",
            "rows_lost": "attempts could not be written",
            "lines_lost": "lines could not be written",
            "errors": "errors of the disk",
        }
        parts = [
            f"{explain.count(number)} {words.get(name, name)}" for name, number in lost.items()
        ]
        st.warning("While recording: " + "; ".join(parts) + ".", icon=":material/hard_drive:")
    damage = run.damage
    if damage:
        run_list.mark_damaged(run.path)
        n = len({item.file for item in damage})
        st.warning(
            f"This run is damaged: {n} file{' holds' if n == 1 else 's hold'} something that "
            "cannot be trusted. What is whole is shown, the rest is left out.",
            icon=":material/broken_image:",
        )
        with st.expander("What is damaged"):
            table = pd.DataFrame(
                [(item.file, item.what) for item in damage], columns=["file", "what"]
            )
            st.dataframe(table.head(200), hide_index=True, key="damage")
    if (about.get("rows") or 0) > TOO_LARGE:
        st.info(
            f"This run holds {rows} attempts. Pages draw one solve at a time; questions over all "
            "solves are answered from its summary.",
            icon=":material/database:",
        )


def solve_picker(run: "Run") -> int | None:
    """Draw the picker of the solve if there is more than one; None if there is no solve yet."""
    if run.n_solves == 0:
        st.info(
            "No solve has begun. The page fills as soon as the first step is recorded."
            if run.live
            else "This run holds no solve: nothing was recorded before it ended.",
            icon=":material/hourglass_empty:",
        )
        return None
    last = run.n_solves - 1
    if last == 0:
        session.drop("solve")
        return 0
    session.put("solve", session.int_param("solve", 0, last, 0))
    return int(
        st.number_input(
            f"Solve (0 to {explain.count(last)})",
            min_value=0,
            max_value=last,
            step=1,
            width=220,
            help="A run holds every solve of a script, in the order they began.",
            **session.keep("solve", "url"),
        )
    )
