"""Runs: what is stored, and how do two of them differ?"""

from datetime import datetime
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, run_list, session
from app.components import run_compare, run_header, share
from app.components.chart import code
from app.equations import about as equations
from app.frames import floats, where

MOST_SHOWN = 1_000


def page() -> None:
    """Draw the list, and below it what can be done with the run picked."""
    st.title("Runs", anchor=False)
    with st.spinner("Reading the runs...", show_time=False):
        runs = run_list.listed()
    if runs.empty:
        run_header.nothing_stored()
        share.open_packed()
        return
    total = explain.size(float(floats(runs, "bytes").sum()))
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
    ):
        st.caption(
            f"{explain.count(len(runs))} runs, {total}, in "
            f"`{session.runs_root()}`. One click shows a run everywhere; two compare them.",
            width="content",
        )
        share.open_packed()
    shown = filtered(runs)
    if shown.empty:
        st.info("No run fits the filter.", icon=":material/filter_alt_off:")
        return
    chosen = table(shown.head(MOST_SHOWN))
    if len(shown) > MOST_SHOWN:
        st.caption(
            f"The newest {MOST_SHOWN:,} of {len(shown):,}; narrow the list to reach the others."
        )
    current = session.current_run()
    for line in where(runs, runs["run"] == current).to_dict("records"):
        actions({str(name): value for name, value in line.items()}, chosen)
    run_compare.compare(runs)


def filtered(runs: pd.DataFrame) -> pd.DataFrame:
    """Draw the filter and return the runs that pass it."""
    left, right = st.columns([1, 2], vertical_alignment="bottom")
    text = left.text_input(
        "Find",
        placeholder="name, problem, method, note",
        icon=":material/search:",
        **session.keep("find", "url"),
    )
    states = [state for state in run_header.STATUS if state in set(runs["status"])]
    options = [*states, "damaged"] if any(runs["damaged"]) else states
    with right:
        wanted = st.pills(
            "State",
            options,
            selection_mode="multi",
            format_func=state_word,
            **session.keep("states"),
        )
    passes = np.ones(len(runs), dtype=bool)
    if text:
        columns = [runs[name] for name in ("run", "problem", "method", "controller", "note")]
        lines = [" ".join(map(str, line)).lower() for line in zip(*columns, strict=True)]
        passes &= [all(word in line for word in text.lower().split()) for line in lines]
    if wanted:
        states_of = zip(runs["status"], runs["damaged"], strict=True)
        passes &= [s in wanted or ("damaged" in wanted and bool(d)) for s, d in states_of]
    return where(runs, passes)


def state_word(state: str) -> str:
    """Return a status with its icon."""
    if state == "damaged":
        return ":material/broken_image: damaged"
    word, icon, _ = run_header.STATUS.get(state, (state, ":material/help:", ""))
    return f"{icon} {word.split(',')[0]}"


SYMBOLS = {
    "running": "\u25b6 live",
    "finished": "\u2713 finished",
    "failed": "\u2717 failed",
    "cancelled": "\u25a0 cancelled",
    "interrupted": "\u26a0 interrupted",
    "empty": "\u2026 empty",
}


def table(runs: pd.DataFrame) -> list[str]:
    """Draw the list and return the ids of the lines selected."""
    ids = [str(run) for run in runs["run"]]
    session.put("listed_ids", ids)
    state = [
        SYMBOLS.get(str(status), str(status)) + (", damaged" if damaged else "")
        for status, damaged in zip(runs["status"], runs["damaged"], strict=True)
    ]
    shown = pd.DataFrame(
        {
            "state": state,
            "run": ids,
            "page": [f"/run?run={quote(run)}" for run in ids],
            "problem": [equations.title_of(problem) for problem in runs["problem"]],
            "method": runs["method"].to_numpy(),
            "controller": runs["controller"].to_numpy(),
            "created": [moment(created) for created in runs["created"]],
            "seconds": runs["seconds"].to_numpy(dtype=float),
            "solves": runs["solves"].to_numpy(),
            "rows": runs["rows"].to_numpy(),
            "size": [explain.size(float(size)) for size in runs["bytes"]],
            "note": runs["note"].to_numpy(),
        }
    )
    event: Any = st.dataframe(
        shown,
        key="runs_table",
        hide_index=True,
        height=min(38 + 35 * len(shown), 420),
        on_select=take_selection,
        selection_mode="multi-row",
        column_config={
            "state": st.column_config.TextColumn("state", width=110),
            "run": st.column_config.TextColumn("run", width=190),
            "created": st.column_config.DatetimeColumn("recorded", format="D MMM YYYY HH:mm"),
            "seconds": st.column_config.NumberColumn("seconds", format="%.2f"),
            "solves": st.column_config.NumberColumn("solves", format="localized"),
            "rows": st.column_config.NumberColumn(
                "attempts", format="localized", help="Attempts of all rows of all solves."
            ),
            "note": st.column_config.TextColumn("note", width="medium"),
            "page": st.column_config.LinkColumn(
                "page",
                width=56,
                display_text="open",
                help="Opens in a tab of its own; copy it to share.",
            ),
        },
        alt="Stored runs, newest first. Select one to show it, two to compare them.",
    )
    return [ids[i] for i in event["selection"]["rows"] if i < len(ids)]


def moment(created: Any) -> datetime | None:
    """Return a time of creation; None where it is not known."""
    try:
        return datetime.fromtimestamp(float(created))
    except (OverflowError, ValueError, OSError):
        return None


def take_selection() -> None:
    """Show the run that was selected, and compare it with the second one."""
    event: Any = session.get("runs_table")
    ids = session.get("listed_ids") or []
    chosen = [ids[i] for i in event["selection"]["rows"] if i < len(ids)] if event else []
    if chosen:
        session.put("run", chosen[0])
        session.drop("solve", "inst")
        session.put("cmp", chosen[1] if len(chosen) > 1 else "")
        session.put("with", chosen[1:7])


def actions(line: dict[str, Any], chosen: list[str]) -> None:
    """Draw what can be done with the run picked."""
    run_id = str(line["run"])
    own = not session.read_only() and not session.is_example(run_id)
    with st.container(border=True, key="run_actions"):
        st.markdown(f"### {code(run_id)}", anchors=False)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.page_link("views/run.py", label="Open", icon=":material/monitoring:")
            st.page_link("views/instances.py", label="Its rows", icon=":material/table_rows:")
            st.page_link(
                "views/compare.py",
                label="Compare",
                icon=":material/compare_arrows:",
                query_params=[("run", run_id), *(("with", run) for run in chosen if run != run_id)],
            )
            path = session.run_path(run_id)
            if path is not None:
                share.report_button(path, None)
                share.pack_button(run_id, path, float(line["bytes"] or 0))
            if own:
                delete(line, chosen)
        if own:
            note(line)
        elif session.read_only():
            st.caption("This dashboard is read-only: runs stay as they are.")


def note(line: dict[str, Any]) -> None:
    """Draw the field of a run's note, saved when it is left."""
    run_id = str(line["run"])
    session.default(f"note_{run_id}", str(line["note"] or ""))
    st.text_input(
        "Note",
        placeholder="What was this run for?",
        key=f"note_{run_id}",
        max_chars=2_000,
        on_change=save_note,
        args=(run_id,),
        icon=":material/edit_note:",
    )


def save_note(run_id: str) -> None:
    """Store a note; say so where it cannot be."""
    try:
        run_list.set_note(run_id, str(session.get(f"note_{run_id}") or ""))
    except (OSError, ValueError) as problem:
        st.toast(f"The note was not saved: {problem}", icon=":material/error:")
    else:
        st.toast("Note saved.", icon=":material/check:")


def delete(line: dict[str, Any], chosen: list[str]) -> None:
    """Draw the button that deletes the selected runs after a second press."""
    ids = [run for run in chosen if not session.is_example(run)] or [str(line["run"])]
    name = code(ids[0]) if len(ids) == 1 else f"{len(ids)} runs"
    with st.popover(f"Delete {'run' if len(ids) == 1 else name}", icon=":material/delete:"):
        st.write(f"Delete {name} with everything recorded? This cannot be undone.")
        if st.button("Delete for good", type="primary", key="delete_for_good"):
            remove(ids)
            st.rerun()


def remove(ids: list[str]) -> None:
    """Delete runs and say which stayed."""
    gone = 0
    for run_id in ids:
        try:
            run_list.delete(run_id)
            gone += 1
        except (OSError, run_list.RunBusy) as problem:
            st.toast(str(problem), icon=":material/error:")
    if gone:
        st.toast(f"{gone} run{'' if gone == 1 else 's'} deleted.", icon=":material/check:")
    session.drop("runs_table", "cmp")


page()
