"""Parts of the Run page about the whole run: what was logged, what happened, files to take away."""

import io
import json
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, session, theme
from app.cached import ask
from app.components import run_header, share
from app.components.chart import draw, heading
from app.figures.scalars import scalars_figure
from app.frames import floats, where

if TYPE_CHECKING:
    from inspector.run import Run

TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}
MOST_NAMES = 12  # logged numbers drawn at once
MOST_CSV_ROWS = 2_000_000


def scalars(run: "Run") -> None:
    """Draw every number that was logged, two in a line."""
    logged = ask(type(run).scalars, run)
    if logged.empty:
        return
    st.header("Logged numbers", anchor=False)
    names = list(dict.fromkeys(logged["name"]))
    shown = names
    if len(names) > MOST_NAMES:
        shown = st.multiselect(
            "Names", names, default=names[:MOST_NAMES], **session.keep("scalar_names")
        )
    columns = st.columns(2)
    for place, name in enumerate(shown):
        part = where(logged, logged["name"] == name)
        values = floats(part, "value")
        finite = values[np.isfinite(values)]
        wide = len(finite) > 1 and finite.min() > 0 and finite.max() / finite.min() > 100
        bad = len(values) - len(finite)
        alt = f"{name} over {len(part)} iterations"
        alt += f", {bad} of them not finite." if bad else "."
        with columns[place % 2]:
            draw(
                scalars_figure(part, theme.current(), name=str(name), log=wide),
                key=f"scalar_{place}",
                question=str(name),
                unit="log scale" if wide else "",
                alt=alt,
                data=part,
            )


def events(run: "Run") -> None:
    """List what was noted while the run was recorded."""
    table = ask(type(run).events, run)
    if table.empty:
        return
    with st.container(key="events", gap="xsmall"):
        count = f"{len(table)} event{'' if len(table) == 1 else 's'}"
        heading("What else happened?", count, data=table, key="events_all")
        shown = table.head(500)
        st.dataframe(
            pd.DataFrame(
                {
                    "time": [
                        datetime.fromtimestamp(float(moment)) if np.isfinite(moment) else None
                        for moment in floats(shown, "time")
                    ],
                    "kind": shown["kind"],
                    "text": shown["text"],
                }
            ),
            key="event_table",
            hide_index=True,
            height=min(38 + 35 * len(shown), 260),
            column_config={
                "time": st.column_config.DatetimeColumn("when", format="D MMM HH:mm:ss"),
                "kind": st.column_config.TextColumn("kind", width="small"),
                "text": st.column_config.TextColumn("what", width="large"),
            },
            alt="Events of the run.",
        )


def downloads(run: "Run", solve: int | None) -> None:
    """Offer a report, the run itself, and a solve's attempts and counts, as files."""
    st.header("Take it away", anchor=False)
    size = float(ask(type(run).summary, run).get("bytes") or 0)
    if solve is None or run_header.too_large(run, solve, say=False):
        with st.container(horizontal=True):
            share.report_button(run.path, solve)
            share.pack_button(run.id, run.path, size)
        return
    with st.container(horizontal=True):
        share.report_button(run.path, solve)
        share.pack_button(run.id, run.path, size)
        name = f"{run.id}-solve{solve}"
        rows = int(floats(ask(type(run).instances, run, solve), "n_steps").sum())
        button("Attempts, Parquet", parquet_of(run, solve), f"{name}.parquet", "attempts_parquet")
        button(
            "Attempts, CSV",
            steps_csv(run, solve),
            f"{name}.csv",
            "attempts_csv",
            disabled=rows > MOST_CSV_ROWS,
            help="Too many attempts for a text file; take Parquet."
            if rows > MOST_CSV_ROWS
            else None,
        )
        button("Rows, CSV", rows_csv(run, solve), f"{name}-rows.csv", "rows_csv")
        if run.spec:
            text = json.dumps(run.spec, indent=1)
            button("Specification, JSON", text.encode, f"{run.id}.json", "spec_json")
        if st.button(
            "Check every byte",
            icon=":material/verified:",
            help="Reads all files and compares their checksums; what is damaged is named on top.",
        ):
            with st.spinner("Reading all files..."):
                found = run.verify()
            n = len(found)
            st.toast(
                f"{n} damaged place{'' if n == 1 else 's'} found." if n else "Everything is whole.",
                icon=":material/broken_image:" if n else ":material/check:",
            )
    st.caption(
        f"{explain.count(rows)} attempts of this solve. The run itself is a folder of JSON and "
        f"Arrow files that any tool reads: `{run.path}`. `stepscope run` takes the specification."
    )


def button(
    label: str,
    make: Callable[[], bytes],
    file: str,
    key: str,
    *,
    disabled: bool = False,
    help: str | None = None,
) -> None:
    """Draw a download button whose file is made when it is pressed."""
    st.download_button(
        label,
        make,
        file_name=file,
        key=key,
        icon=":material/download:",
        on_click="ignore",
        disabled=disabled,
        help=help,
        mime=TYPES[file.rpartition(".")[2]],
    )


def parquet_of(run: "Run", solve: int) -> Callable[[], bytes]:
    """Return a function that writes the attempts of a solve as Parquet."""

    def make() -> bytes:
        buffer = io.BytesIO()
        run.steps(solve).to_parquet(buffer, index=False, compression="zstd")
        return buffer.getvalue()

    return make


def steps_csv(run: "Run", solve: int) -> Callable[[], bytes]:
    """Return a function that writes the attempts of a solve as CSV."""
    return lambda: run.steps(solve).to_csv(index=False).encode()


def rows_csv(run: "Run", solve: int) -> Callable[[], bytes]:
    """Return a function that writes counts and status of every row of a solve as CSV."""

    def make() -> bytes:
        table: pd.DataFrame = run.instances(solve)
        return table.to_csv(index=False).encode()

    return make
