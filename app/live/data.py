"""The question over a chart, and the data behind it as a table and a CSV."""

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    import pandas as pd


def count(value: float) -> str:
    """Return a count or a number of seconds, with thin groups of thousands."""
    if value != value:
        return "-"
    if value == int(value):
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:.3g}"


def heading(
    text: str, note: str = "", table: "pd.DataFrame | None" = None, name: str = "data"
) -> None:
    """Draw a chart's question and, at its right, the way to its data."""
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", gap="small"
    ):
        st.markdown(f"### {text}", help=note or None, anchors=False, width="content")
        if table is not None:
            download(table, name)


def download(table: "pd.DataFrame", name: str, rows: int = 500) -> None:
    """Draw the data behind a chart: as a table, and as a CSV to download."""
    popover = st.popover(
        "Data", icon=":material/table:", type="tertiary", key=f"data_{name}", on_change="rerun"
    )
    if not popover.open:  # what nobody looks at is not sent
        return
    with popover:
        st.dataframe(table.head(rows), hide_index=True, height=260, width=560)
        more = f" (first {rows})" if len(table) > rows else ""
        st.caption(f"{len(table)} rows{more}")
        st.download_button(
            "Download CSV",
            lambda: table.to_csv(index=False),
            f"{name}.csv",
            "text/csv",
            key=f"csv_{name}",
            on_click="ignore",
            icon=":material/download:",
        )
