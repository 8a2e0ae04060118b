"""Run, Pause, Cancel, and running the same problem again with other gains."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import remembered, session
from app.controls.spec import put_spec
from app.live.state import Shown, filled
from app.workers import Workers

SAME = ("problem", "parameters", "spread", "batch", "seed", "t1", "dtype")
"""Two runs are compared row by row when these agree."""


def comparable(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two specs set the same problems, so that only the solver differs."""
    return bool(one) and bool(other) and all(one.get(key) == other.get(key) for key in SAME)


def start(workers: Workers, spec: dict[str, Any]) -> None:
    """Start a run and show it: the script runs again, with the new run picked."""
    session.show_run(workers.start(spec, session.session_id()))
    remembered.keep_spec(spec)
    st.rerun()


def adopt(
    shown: Shown, spec: Mapping[str, Any], problem: Mapping[str, Any], described: dict[str, Any]
) -> None:
    """Offer to set the widgets to the settings of the run shown, where they differ."""
    ours, theirs = filled(dict(spec), described), filled(shown.spec, described)
    if theirs and any(ours.get(key) != theirs.get(key) for key in (*SAME, "method", "controller")):
        st.button(
            "Use its settings",
            type="tertiary",
            icon=":material/tune:",
            key="do_adopt",
            help="Sets everything on the left to what this run was solved with.",
            on_click=put_spec,
            args=(problem, theirs),
        )


def bar(
    shown: Shown,
    spec: dict[str, Any],
    workers: Workers,
    described: dict[str, Any],
    *,
    refused: str | None = None,
) -> None:
    """Draw the buttons; what cannot be done now is disabled.

    Args:
        spec: what the settings on the left add up to.
        refused: why that cannot be solved, if it cannot.
    """
    active = shown.live and shown.id is not None and workers.obeys(shown.id)
    run_id = shown.id or ""
    before, after = filled(shown.spec, described), filled(spec, described)
    parent = run_id if comparable(before, after) and not shown.live else None
    same = all(before.get(key) == after.get(key) for key in ("method", "controller"))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        run = st.button(
            "Run",
            type="primary",
            icon=":material/play_arrow:",
            key="do_run",
            shortcut="Ctrl+Enter",
            disabled=refused is not None,
            help=refused if refused else "Solve with the settings on the left. The run is kept.",
        )
        paused = shown.word == "paused"
        st.button(
            "Resume" if paused else "Pause",
            icon=":material/resume:" if paused else ":material/pause:",
            key="do_pause",
            disabled=not active or shown.word in ("queued", "cancelling"),
            on_click=workers.control,
            args=(run_id,),
            kwargs={"command": "run" if paused else "pause"},
        )
        st.button(
            "Cancel",
            icon=":material/stop:",
            key="do_cancel",
            disabled=not active or shown.word == "cancelling",
            on_click=workers.cancel,
            args=(run_id,),
        )
        again = st.button(
            "Same seed, new gains",
            icon=":material/compare_arrows:",
            key="do_again",
            disabled=not shown.spec or shown.live or same,
            help="Solves the problem of the run shown, same rows and seed, with the method and "
            "controller on the left; the run shown stays as a dashed line. Change a gain first.",
        )
    # Started here and not in a callback: the spec is that of this moment.
    if run:
        start(workers, spec | {"parent": parent})
    if again:
        ours = ("method", "controller", "attempts_per_second", "keep_running")
        start(workers, shown.spec | {key: spec[key] for key in ours} | {"parent": run_id})
    if active and shown.spec:
        follow_pace(shown, spec, workers)


def follow_pace(shown: Shown, spec: Mapping[str, Any], workers: Workers) -> None:
    """Tell the run under way when slow motion was changed."""
    rate = spec["attempts_per_second"]
    last = session.get("_pace")
    now = (shown.id, rate)
    if last is not None and last[0] == shown.id and last != now:
        workers.control(str(shown.id), attempts_per_second=rate)
    session.put("_pace", now)
