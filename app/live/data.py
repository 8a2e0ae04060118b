"""The question over a chart, and the data behind it as a table and a CSV."""

import streamlit as st

from app.components.chart import Data, data_of


def count(value: float) -> str:
    """Return a count or a number of seconds, with thin groups of thousands."""
    if value != value:
        return "-"
    if value == int(value):
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:.3g}"


def heading(
    text: str,
    note: str = "",
    table: Data | None = None,
    name: str = "data",
    picture: str = "",
) -> None:
    """Draw a chart's question and, at its right, the way to its data and to its picture."""
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", gap="small"
    ):
        st.markdown(f"### {text}", help=note or None, anchors=False, width="content")
        if table is not None:
            data_of(table, key=name, title=text, picture=picture)
