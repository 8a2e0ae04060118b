"""What the pages of studies share: which study is shown, how far it is, its problem's widgets."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import frame, kinds, session
from app.components.chart import plain
from app.controls import setting as one
from app.controls.spec import by_name, choose, names
from app.live import notices
from app.live.state import Shown, look, title_of
from app.workers import Workers
from inspector.studies import Study

POLL = 1.0  # seconds between looks at a study that grows
MOST_BATCH = 512
CARRIED = ("parameters", "spread", "batch", "seed", "t1", "dtype", "method", "rtol", "atol")
"""What a study of a recorded run's problem takes over from its spec."""
Described = Mapping[str, Any]


def study_of(shown: Shown) -> Study | None:
    """Return the study that a run holds, kept from one run of the script to the next."""
    path = session.run_path(shown.id)
    if path is None:
        return None
    held = session.get("_study")
    if held is None or held.path != path:
        held = Study(path)
        session.put("_study", held)
    held.refresh()
    return held if held.plan else None


def progress(shown: Shown, version: int) -> None:
    """Draw how far a study is; draws the page again as soon as it has more."""
    workers = frame.workers()
    now = look(shown.id, workers)
    if now.live and now.id:
        workers.watch(now.id, session.session_id())
    fresh = study_of(now)
    if now.word != shown.word or (fresh is not None and fresh.version != version):
        st.rerun()
    if not now.live:
        return
    if fresh is None:
        st.progress(0.0, "Starting")
        return
    share = fresh.done / fresh.of if fresh.of else 0.0
    st.progress(min(share, 1.0), f"{fresh.done} of {fresh.of}: {fresh.doing}")


def bar(
    shown: Shown, spec: dict[str, Any] | None, workers: Workers, *, label: str, help: str
) -> None:
    """Draw the buttons that start and cancel a study.

    Args:
        spec: what is started; None where nothing may be.
        label: of the button that starts it.
        help: what it does.
    """
    if spec is None:
        return
    active = shown.live and shown.id is not None and workers.obeys(shown.id)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        started = st.button(
            label,
            type="primary",
            icon=":material/play_arrow:",
            key="do_study",
            shortcut="Ctrl+Enter",
            disabled=spec.get("refused") is not None,
            help=spec.get("refused") or help,
        )
        st.button(
            "Cancel",
            icon=":material/stop:",
            key="do_cancel_study",
            disabled=not active or shown.word == "cancelling",
            on_click=workers.cancel,
            args=(shown.id or "",),
        )
    if started:
        session.show_run(workers.start(spec, session.session_id()))
        st.rerun()


def top(title: str, kind: str, described: Described, workers: Workers) -> tuple[Shown, bool]:
    """Draw a page's title with the state of its study; returns the run, and if it is ours.

    Where the run that all pages show holds no such study, the newest that does takes its place.
    """
    shown = look(session.current_run(), workers)
    if shown.spec.get("kind") != kind and (other := kinds.newest(kind)) is not None:
        shown = look(other, workers)
    ours = shown.spec.get("kind") == kind
    about = title_of(shown.spec, dict(described)) if ours else {}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        words = f"{title}: {plain(about['title'])}" if about else title
        st.title(words, anchor=False, width="content")
        if ours:
            notices.chip(shown.word)
    return shown, ours


def follow(shown: Shown, found: Study | None, workers: Workers) -> None:
    """Draw progress, or how the study ended if it did not end well."""
    if shown.live:
        st.fragment(progress, run_every=POLL)(shown, found.version if found else 0)
    elif shown.word in ("failed", "cancelled", "died", "interrupted"):
        notices.notice(shown, workers)


def problem_section(described: Described, prefix: str, shown: Shown) -> dict[str, Any]:
    """Draw which problem is studied: one of the list, or that of the run shown.

    Args:
        prefix: of the widgets' keys.
        shown: the run of which the problem may be taken.

    Returns:
        The spec's part that says so, with `about`, the problem's description.
    """
    problems = list(described["problems"])
    wanted = shown.spec.get("problem")
    theirs = title_of(shown.spec, dict(described)) or None
    key = f"{prefix}.from_run"
    if theirs is not None and shown.id:
        taken = st.toggle(
            "Problem of the run shown",
            help="Same problem, parameters, rows, seed and end of time as the run picked above.",
            **session.keep(key),
        )
        if taken:
            spec = {k: shown.spec[k] for k in CARRIED if shown.spec.get(k) is not None}
            if "spread" in shown.spec:
                spec["spread"] = shown.spec["spread"]
            spec["problem"] = wanted
            st.caption(f"{plain(theirs['title'])}, {spec.get('batch', theirs['batch'])} rows.")
            return spec | {"about": theirs}
    start = theirs["name"] if theirs is not None else "van_der_pol"
    problem = by_name(problems, choose("Problem", f"{prefix}.problem", names(problems), start))
    spec: dict[str, Any] = {"problem": problem.get("spec_name", problem["name"])}
    spec["batch"] = int(
        st.number_input(
            "Rows (batch)",
            1,
            MOST_BATCH,
            min(int(problem["batch"]), 16),
            **session.keep(f"{prefix}.batch"),
        )
    )
    spread = problem.get("spread")
    own = list(problem["parameters"])
    if own:
        with st.expander("Parameters"):
            spec |= parameters(own, spread, f"{prefix}.{problem['name']}")
    return spec | {"about": problem}


def parameters(
    settings: list[dict[str, Any]], spread: Mapping[str, Any] | None, prefix: str
) -> dict[str, Any]:
    """Draw the parameters; the one that is spread over the rows may be held fixed."""
    found: dict[str, Any] = {}
    if spread:
        name = str(spread["parameter"])
        fixed = st.toggle(f"Same {name} in every row", **session.keep(f"{prefix}.fixed"))
        if fixed:
            found["spread"] = None
        else:
            low, high = spread["low"], spread["high"]
            st.caption(f"{name} goes from {low:g} to {high:g} over the rows.")
            settings = [s for s in settings if s["name"] != name]
    values = {s["name"]: one.draw(s, f"{prefix}.{s['name']}") for s in settings}
    return found | {"parameters": values}
