"""How a run stands, in words: every state has its own."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from app import session
from app.live.state import Shown
from app.workers import Workers

if TYPE_CHECKING:
    import pandas as pd

CHIPS = {
    "queued": (":material/hourglass:", "waiting", "gray"),
    "starting": (":material/hourglass_top:", "starting", "blue"),
    "running": (":material/play_arrow:", "running", "blue"),
    "paused": (":material/pause:", "paused", "orange"),
    "cancelling": (":material/stop:", "cancelling", "orange"),
    "finished": (":material/check:", "finished", "green"),
    "failed": (":material/error:", "failed", "red"),
    "cancelled": (":material/stop:", "cancelled", "orange"),
    "interrupted": (":material/power_off:", "interrupted", "red"),
    "died": (":material/power_off:", "worker died", "red"),
    "empty": (":material/circle:", "empty", "gray"),
    "none": (":material/circle:", "no run", "gray"),
}


def chip(word: str) -> None:
    """Draw the state as a badge: icon, word and colour."""
    icon, text, colour = CHIPS.get(word, (":material/circle:", word, "gray"))
    st.badge(text, icon=icon, color=colour)  # pyright: ignore[reportArgumentType]


def notice(shown: Shown, workers: Workers) -> None:
    """Say what there is to say about a run's state; nothing for one that runs or ended well."""
    word = shown.word
    if word == "none":
        st.info(
            "No run yet. Choose a problem on the left and press **Run**; what is recorded appears "
            f"here while it solves and is kept in `{session.runs_root()}`."
        )
    elif word == "queued":
        place = workers.place(str(shown.id))
        ahead = f"{place} more before it" if place else "it is next"
        st.info(f"Waiting for a free worker ({workers.at_once} solve at a time; {ahead}).")
    elif word in ("empty", "starting", "running") and compiling(shown):
        st.info(
            f"{compiling(shown)}: some seconds, once. It is kept for all later solves of this kind."
        )
    elif word == "empty":
        st.info("This run has no step yet. It appears here as soon as the first is recorded.")
    elif word == "died" and shown.exit is not None:
        kept = "What was recorded until then is shown below." if shown.has_steps else ""
        st.error(f"The worker process {shown.exit.reason}. {kept}")
        with st.expander("What it wrote last"):
            st.code("\n".join(shown.exit.stderr) or "(nothing)", language=None)
    elif word == "interrupted":
        st.warning(
            "The process that recorded this run is gone without having closed it. Everything it "
            "had written is shown below; at most the last quarter second is missing."
        )
    elif word == "failed":
        st.error(f"The solve was broken off: {error_text(shown)}")
    elif word == "cancelled":
        st.info(f"Cancelled: {error_text(shown)}. Everything solved until then is kept.")


def compiling(shown: Shown) -> str:
    """Return what is being compiled before the first attempt, "" if nothing is."""
    if shown.run is None or shown.has_steps:
        return ""
    events = shown.run.events()
    waits = not events.empty and events["kind"].iloc[-1] == "compile"
    return _sentence(events["text"].iloc[-1]) if waits else ""


def warned(shown: Shown) -> None:
    """Say what the solver has warned of."""
    events = shown.run.events() if shown.run is not None else None
    if events is not None and not events.empty:
        for text in dict.fromkeys(events.loc[events["kind"] == "warning", "text"].dropna()):
            st.warning(_sentence(text))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def error_text(shown: Shown) -> str:
    """Return what the record says of the end, or what the worker wrote last."""
    if shown.run is not None:
        table = shown.run.solve_table()
        errors = [str(e) for e in table["error"].dropna()] if "error" in table else []
        if errors:
            return errors[-1].removeprefix("Cancelled: ")
        events = shown.run.events()
        texts = [] if events.empty else [str(t) for t in events["text"].dropna() if str(t)]
        if texts:
            return texts[-1]
    if shown.exit is not None and shown.exit.stderr:
        return shown.exit.stderr[-1]
    return "by a viewer" if shown.word == "cancelled" else "no reason was recorded"


def damage(shown: Shown) -> None:
    """Say which files of the run are damaged; what was read so far is known, so call this last."""
    found = shown.run.damage if shown.run is not None else []
    if not found:
        return
    st.warning(
        f"This run is damaged in {len(found)} place{'s' if len(found) > 1 else ''}; "
        "the rest is shown."
    )
    with st.expander("What is damaged"):
        for item in found[:50]:
            st.markdown(f"- `{item.file}`: {item.what}")


def failed_rows(rows: "pd.DataFrame", components: list[str]) -> None:
    """Say which rows failed, when and why.

    Args:
        rows: those of `Run.solves()` with a status above 0.
        components: a name for each component of the state.
    """
    if rows.empty:
        return
    first = rows.sort_values("t_reached").iloc[0]
    count = len(rows)
    plural = "s" if count > 1 else ""
    st.warning(f"**{count} row{plural} failed.** First in time: {first['message']}")
    with st.expander(f"All failed rows ({count})"):
        st.dataframe(failure_table(rows, components), hide_index=True, width="stretch")


def failure_table(rows: "pd.DataFrame", components: list[str]) -> Any:
    """Return failed rows as people read them: row, t, why, component, what to do."""
    table = rows[["instance", "t_reached", "status_name", "component", "message"]].copy()
    names = dict(enumerate(components))
    table["component"] = [names.get(int(c), "") if c == c else "" for c in table["component"]]
    return table.rename(
        columns={
            "instance": "row",
            "t_reached": "t reached",
            "status_name": "status",
            "message": "what happened",
        }
    )
