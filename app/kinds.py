"""Runs of one kind: pages of a kind show the newest there is where the run shown is of another."""

import json
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from app import session
from app.components.chart import code

SOLVE = "solve"


class Kind(NamedTuple):
    """What a run holds ("solve", "training", "tune", ...), and the run it was started from."""

    name: str
    parent: str | None


@st.cache_resource(show_spinner=False)
def _known() -> dict[str, Kind]:
    """Kinds of runs that have ended, by folder: they never change."""
    return {}


def kind_of(run_id: str | None) -> Kind | None:
    """Return the kind of a run; None until it has ended well."""
    path = session.run_path(run_id)
    if path is None:
        return None
    known = _known()
    if str(path) not in known:
        kind = _read(path)
        if kind is None:
            return None
        known[str(path)] = kind
    return known[str(path)]


def _read(path: Path) -> Kind | None:
    try:
        meta = json.loads((path / "run.json").read_text("utf-8"))
        spec = meta.get("spec") or {}
        if meta.get("status") != "finished":
            return None
        parent = spec.get("parent")
        name = spec.get("kind") or ("training" if (path / "iterations").is_dir() else SOLVE)
    except (OSError, ValueError, AttributeError):
        return None
    return Kind(str(name), str(parent) if parent else None)


def newest(kind: str) -> str | None:
    """Return the newest run of a kind that has ended well, else the recorded example of it."""
    for run in session.run_ids():
        found = kind_of(run)
        if found is not None and found.name == kind:
            return run
    return None


def instead(name: str | None, what: str, how: str) -> None:
    """Say so where a page shows another run than the one picked, and how to get an own one.

    Args:
        name: the run that the page shows; None if there is none of its kind.
        what: the page is about.
        how: to make one, as the end of a sentence.
    """
    if name is not None and name == session.current_run():
        return
    words = f"The run shown holds no {what}. "
    if name is not None:
        which = "a recorded example" if session.is_example(name) else "the newest that does"
        words += f"Below is {which}, {code(name)}. "
    words += "" if session.read_only() else f"For your own, {how}"
    st.info(words, icon=":material/info:")
