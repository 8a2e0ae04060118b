"""Handing runs on: as one file, as a report, and opening such a file of somebody else."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from app import explain, run_list, session
from app.components.chart import plain

MOST_UPLOAD = 500  # MB of a packed run taken through the browser
MOST_DOWNLOAD = 1_000_000_000  # bytes of a run packed through the browser, which holds it in memory


def open_packed() -> None:
    """Draw the field that takes a packed run; it is not there where nothing may be changed."""
    if session.read_only():
        return
    with st.popover("Open a packed run", icon=":material/upload_file:", key="open_packed"):
        st.file_uploader(
            "Packed run",
            type=["stepscope", "zip"],
            key=f"upload_{session.get('_uploads', 0)}",
            on_change=take_upload,
            max_upload_size=MOST_UPLOAD,
            help="Made by `stepscope pack`, or by the button Pack. It is checked before it is "
            "opened, and no run is replaced.",
        )
        st.caption(f"Larger than {MOST_UPLOAD} MB: `stepscope unpack FILE`.")
        problem = session.get("_upload_problem")
        if problem:
            st.error(plain(problem), icon=":material/block:")


def take_upload() -> None:
    """Unpack what was uploaded and show it, or say why not."""
    number = int(session.get("_uploads", 0))
    file: Any = session.get(f"upload_{number}")
    session.drop("_upload_problem")
    if file is None:
        return
    try:
        run_id = run_list.take_in(file)
    except (ValueError, OSError) as problem:
        session.put("_upload_problem", f"{file.name}: {problem}")
    else:
        session.show_run(run_id)
        st.toast(f"{plain(run_id)} is open.", icon=":material/check:")
    session.put("_uploads", number + 1)  # an empty field


def pack_button(run_id: str, path: Path, size: float, key: str = "pack_run") -> None:
    """Draw the button that packs a run into one file."""
    large = size > MOST_DOWNLOAD
    st.download_button(
        "Pack",
        packed_of(path),
        file_name=f"{run_id}.stepscope",
        mime="application/zip",
        key=key,
        icon=":material/archive:",
        on_click="ignore",
        disabled=large,
        help=f"{explain.size(size)} are too much for the browser: `stepscope pack {run_id}`."
        if large
        else "The whole run as one file. Somebody else opens it here, or by `stepscope unpack`.",
    )


def packed_of(path: Path) -> Callable[[], bytes]:
    """Return a function that packs a run, called when the button is pressed."""

    def make() -> bytes:
        from inspector.packing import pack

        with tempfile.TemporaryDirectory() as folder:
            return pack(path, Path(folder) / "run").file.read_bytes()

    return make


def report_button(path: Path, solve: int | None, key: str = "report_run") -> None:
    """Draw the button that writes a run as one HTML file."""
    st.download_button(
        "Report",
        report_of(path, solve),
        file_name=f"{path.name}.html",
        mime="text/html",
        key=key,
        icon=":material/article:",
        on_click="ignore",
        help="One HTML file with the figures, what limits the run and its settings: to read, "
        "print or send. It needs no network.",
    )


def report_of(path: Path, solve: int | None) -> Callable[[], bytes]:
    """Return a function that writes the report of a run, called when the button is pressed."""

    def make() -> bytes:
        from app.report import report
        from inspector import open_run

        return report(open_run(path), solve).encode()

    return make
