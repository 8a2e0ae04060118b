"""The one layer that puts a figure on the page: question, unit, picture, alt text, data."""

import io
from collections.abc import Callable
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import session, theme
from app.components.save_picture import save_picture

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
        heading(question, unit, help, data=data, key=key, picture=f"chart_{key}", figure=figure)
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
    picture: str = "",
    figure: go.Figure | None = None,
) -> None:
    """Write a question as the heading of a chart, its unit beside it, its data at the right.

    Args:
        picture: key of what holds the picture, so that it can be saved; none where empty.
        figure: it, where it is one of plotly's.
    """
    beside = f" :gray[:small[{plain(unit)}]]" if unit else ""
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", gap="small"
    ):
        st.markdown(f"### {plain(question)}{beside}", help=help, anchors=False, width="content")
        if data is not None:
            data_of(data, key=key, title=question, picture=picture, figure=figure)


def data_of(
    data: Data, *, key: str, title: str, picture: str = "", figure: go.Figure | None = None
) -> None:
    """Offer the values of a picture as a table and as files; made only when it is opened."""
    fold = st.popover(
        "Data", icon=":material/table:", type="tertiary", key=f"data_{key}", on_change="rerun"
    )
    if not fold.open:
        return
    with fold:
        table = data() if callable(data) else data
        if picture:
            save_picture(picture, key=f"save_{key}", name=key, title=title, page=figure is None)
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
        files_of(table, key, page=None if figure is None else page_of(figure, title))


def files_of(
    table: pd.DataFrame,
    key: str,
    name: str | None = None,
    page: Callable[[], bytes] | None = None,
) -> None:
    """Draw the buttons that take a table away as CSV and as Parquet, and its picture as a page.

    Args:
        key: identity on this page.
        name: of the file, without its ending; the key if None.
        page: makes an HTML page of the picture.
    """
    with st.container(horizontal=True, gap="small"):
        if page is not None:
            st.download_button(
                "Picture, HTML",
                page,
                file_name=f"{name or key}.html",
                mime="text/html",
                key=f"html_{key}",
                icon=":material/download:",
                on_click="ignore",
                help="A page of its own in which the picture can be zoomed; it needs no network.",
            )
        for label, make, ending, mime in (
            ("CSV", csv_of(table), "csv", "text/csv"),
            ("Parquet", parquet_of(table), "parquet", "application/vnd.apache.parquet"),
        ):
            st.download_button(
                f"Download {label}",
                make,
                file_name=f"{name or key}.{ending}",
                mime=mime,
                key=f"{ending}_{key}",
                icon=":material/download:",
                on_click="ignore",
            )


def page_of(figure: go.Figure, title: str) -> Callable[[], bytes]:
    """Return a function that makes a page of a figure, called when the button is pressed."""
    colours = theme.current()

    def make() -> bytes:
        from app.report import single_page

        return single_page(figure, title, colours).encode()

    return make


def csv_of(table: pd.DataFrame) -> Callable[[], bytes]:
    """Return a function that writes the table as CSV, called when the button is pressed."""
    return lambda: table.to_csv(index=False).encode()


def parquet_of(table: pd.DataFrame) -> Callable[[], bytes]:
    """Return a function that writes the table as Parquet; mixed values become text there."""

    def make() -> bytes:
        buffer = io.BytesIO()
        texts = {
            str(name): table[name].map(lambda v: v if v is None or isinstance(v, str) else str(v))
            for name in table.columns
            if table[name].dtype == object
        }
        named = table.assign(**texts).rename(columns=str)
        named.to_parquet(buffer, index=False, compression="zstd")
        return buffer.getvalue()

    return make


def plain(text: str) -> str:
    """Escape what Markdown would read as more than text."""
    return "".join(f"\\{letter}" if letter in r"\`*_{}[]<>#|$~:" else letter for letter in text)


def code(text: str) -> str:
    """Return a name as Markdown shows code; a backtick in it cannot end that."""
    return "`" + text.replace("`", "'") + "`"
