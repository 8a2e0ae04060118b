"""The one layer that puts a figure on the page: question, unit, picture, alt text, data."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import session

CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "svg"},
}
MOST_ROWS = 1_000  # of the table below a chart; the download has them all

Data = pd.DataFrame | Callable[[], pd.DataFrame]


def draw(
    figure: go.Figure,
    *,
    key: str,
    question: str,
    unit: str,
    alt: str,
    data: Data,
    help: str | None = None,
    on_pick: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Draw a figure under its question, with its data as a table and CSV one click away.

    Args:
        key: identity on this page; two equal figures need two keys.
        question: what the picture answers; the heading.
        unit: unit of what is drawn, beside the heading.
        alt: what the picture shows, in one sentence, for those who cannot see it.
        data: the values drawn, or a function that makes them when they are asked for.
        help: more about the question, behind a question mark.
        on_pick: called with a clicked point as plotly describes it (`x`, `y`, `customdata`), before
            the page is drawn again; give a keyboard another way to the same.
    """
    with st.container(key=f"chart_{key}", gap="xsmall"):
        heading(question, unit, help, data=data, key=key)
        if on_pick is None:
            st.plotly_chart(figure, key=key, theme=None, config=CONFIG, alt=alt)
        else:
            st.plotly_chart(
                figure,
                key=key,
                theme=None,
                config=CONFIG,
                alt=alt,
                on_select=lambda: pass_on(key, on_pick),
                selection_mode="points",
            )


def pass_on(key: str, on_pick: Callable[[dict[str, Any]], None]) -> None:
    """Hand the point that was clicked in a chart to whoever asked for it."""
    event: Any = session.get(key)
    points = list(event["selection"]["points"]) if event else []
    if points:
        on_pick(points[0])


def pair(key: str) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return two places side by side, one below the other where the window is narrow."""
    with st.container(key=f"pair_{key}"):
        left, right = st.columns(2)
    return left, right


def heading(
    question: str,
    unit: str = "",
    help: str | None = None,
    *,
    data: Data | None = None,
    key: str = "",
) -> None:
    """Write a question as the heading of a chart, its unit beside it, its data at the right."""
    beside = f" :gray[:small[{plain(unit)}]]" if unit else ""
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", gap="small"
    ):
        st.markdown(f"### {plain(question)}{beside}", help=help, anchors=False, width="content")
        if data is not None:
            data_of(data, key=key, title=question)


def data_of(data: Data, *, key: str, title: str) -> None:
    """Offer the values of a picture as a table and a CSV file; made only when it is opened."""
    fold = st.popover(
        "Data", icon=":material/table:", type="tertiary", key=f"data_{key}", on_change="rerun"
    )
    if not fold.open:
        return
    with fold:
        table = data() if callable(data) else data
        if table.empty:
            st.caption("No values yet.")
            return
        shown = table.head(MOST_ROWS)
        st.dataframe(
            shown,
            key=f"table_{key}",
            hide_index=True,
            height=260,
            width=560,
            alt=f"Data of: {title}",
        )
        more = f", the first {len(shown):,} shown" if len(shown) < len(table) else ""
        st.caption(f"{len(table):,} lines{more}")
        st.download_button(
            "Download CSV",
            csv_of(table),
            file_name=f"{key}.csv",
            mime="text/csv",
            key=f"csv_{key}",
            icon=":material/download:",
            on_click="ignore",
        )


def csv_of(table: pd.DataFrame) -> Callable[[], bytes]:
    """Return a function that writes the table as CSV, called when the button is pressed."""
    return lambda: table.to_csv(index=False).encode()


def plain(text: str) -> str:
    """Escape what Markdown would read as more than text."""
    return "".join(f"\\{letter}" if letter in r"\`*_{}[]<>#|$~:" else letter for letter in text)


def code(text: str) -> str:
    """Return a name as Markdown shows code; a backtick in it cannot end that."""
    return "`" + text.replace("`", "'") + "`"
