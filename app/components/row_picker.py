"""Picks one row of a batch: by ranking, by number, by walking; each way works from the keyboard."""

from typing import Any

import pandas as pd
import streamlit as st

from app import explain, run_facts, session

MOST_RANKED = 1_000


def pick(instances: pd.DataFrame) -> int:
    """Draw the ways to pick a row and return the row picked.

    Args:
        instances: of the solve, most attempts first; not empty.
    """
    ranked = [int(row) for row in instances["instance"]]
    low, high = min(ranked), max(ranked)
    row = session.int_param("inst", low, high, ranked[0])
    session.put("inst", row)
    ordered = sorted(ranked)
    below = [other for other in ordered if other < row]
    above = [other for other in ordered if other > row]
    place = ranked.index(row) if row in ranked else -1
    cheaper = ranked[place + 1] if 0 <= place < len(ranked) - 1 else None
    ways = (
        ("Previous", below[-1] if below else None, ":material/chevron_left:", "P", "row before"),
        ("Next", above[0] if above else None, ":material/chevron_right:", "N", "row after"),
        ("Worst", ranked[0], ":material/vertical_align_top:", "W", "row with most attempts"),
        ("Next worst", cheaper, ":material/trending_down:", "M", "next in the ranking"),
    )
    with st.container(horizontal=True, vertical_alignment="bottom", key="row_picker"):
        st.number_input(
            f"Row ({low} to {high})",
            min_value=low,
            max_value=high,
            step=1,
            width=150,
            on_change=forget_window,
            **session.keep("inst", "url"),
        )
        for label, target, icon, key, help in ways:
            st.button(
                label,
                icon=icon,
                key=f"go_{label}",
                on_click=go,
                args=(target,),
                disabled=target is None or target == row,
                shortcut=key,
                help=f"Go to the {help}.",
            )
    return row


def ranking(instances: pd.DataFrame, row: int) -> None:
    """Draw the ranking; a click on a line picks its row."""
    parameters = run_facts.parameters_of(instances)[:2]
    shown = instances.head(MOST_RANKED)
    table = pd.DataFrame(
        {
            "row": shown["instance"],
            "attempts": shown["n_steps"],
            **{name: shown[name] for name in parameters},
            "refused": 100 * (shown["n_rejected"] / shown["n_steps"].where(shown["n_steps"] > 0)),
            "end": [short_status(str(name)) for name in shown["status_name"]],
        }
    )
    rows = table["row"].tolist()
    st.markdown("**Costliest rows**", help="A click on a line shows its row.")
    st.dataframe(
        table,
        key="ranking",
        hide_index=True,
        height=min(38 + 35 * len(table), 560),
        on_select=picked_in_table,
        selection_mode="single-row",
        column_config={
            "row": st.column_config.NumberColumn("row", width=38),
            "attempts": st.column_config.NumberColumn("attempts", format="localized", width=60),
            "refused": st.column_config.NumberColumn("refused", format="%.0f %%", width=54),
            **{
                name: st.column_config.NumberColumn(name, format="%.3g", width=44)
                for name in parameters
            },
            "end": st.column_config.TextColumn("end", width="small"),
        },
        alt="Rows of the batch, the one with most attempts first. Select a line to look into it.",
    )
    session.put("ranking_rows", rows)
    if row in rows:
        st.caption(f"Row {row} is number {explain.count(rows.index(row) + 1)} of {len(instances)}.")
    if len(instances) > MOST_RANKED:
        st.caption(f"The {MOST_RANKED:,} costliest rows; the number field reaches all of them.")


def short_status(name: str) -> str:
    """Return how a row ended in a word or two."""
    words = {
        "SUCCESS": "done",
        "RUNNING": "solving",
        "REACHED_DT_MIN": "dt_min",
        "REACHED_MAX_STEPS": "max steps",
        "NON_FINITE": "not finite",
        "NON_FINITE_START": "bad start",
        "TIME_RESOLUTION": "dt too small",
        "INTERRUPTED": "broken off",
        "EVENT": "event",
        "NOT_CONVERGED": "no solution",
    }
    return words.get(name, name.lower())


def picked_in_table() -> None:
    """Take the row that was clicked in the ranking."""
    event: Any = session.get("ranking")
    rows = session.get("ranking_rows") or []
    chosen = list(event["selection"]["rows"]) if event else []
    if chosen and chosen[0] < len(rows):
        go(int(rows[chosen[0]]))


def go(row: int) -> None:
    """Show another row, all of its attempts."""
    session.put("inst", row)
    forget_window()


def forget_window() -> None:
    """Show all attempts again, since another row has others."""
    session.put("window_whole", True)


def window(attempts: int) -> tuple[int, int]:
    """Draw the slider over the attempts of a row and return the first and last attempt shown."""
    last = attempts - 1
    if last < 1:
        return 0, max(last, 0)
    held = session.get("window")
    if session.get("window_whole") or not (isinstance(held, tuple | list) and len(held) == 2):
        if held is not None:
            session.put("window", (0, last))
        session.drop("window_whole")
    else:
        low = max(0, min(int(held[0]), last - 1))
        session.put("window", (low, max(low + 1, min(int(held[1]), last))))
    start = (0, last) if session.get("window") is None else {}
    given = {"value": start} if start else {}
    low, high = st.slider(
        "Attempts shown",
        0,
        last,
        step=1,
        help="All pictures below show this part; fewer attempts show more detail.",
        **given,
        **session.keep("window", "url"),
    )
    return int(low), int(high)
