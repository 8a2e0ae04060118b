"""A read-only dashboard offers nothing that starts, changes or deletes, and refuses it besides."""

import io
import os

import pytest

from app import cli, run_list
from app.frame import VIEWS
from app.workers import Workers
from inspector.packing import pack

ACTIONS = ("do_", "delete", "try_", "note_", "upload")  # how the keys of all actions begin


@pytest.fixture
def read_only(monkeypatch):
    monkeypatch.setenv("STEPSCOPE_READ_ONLY", "1")


def keys(app) -> set[str]:
    """Return the keys of whatever can be pressed, typed into or uploaded to."""
    kinds = ("button", "text_input", "text_area", "file_uploader", "download_button")
    return {str(element.key or element.label) for kind in kinds for element in app.get(kind)}


@pytest.mark.parametrize("view", [name for name, *_ in VIEWS])
def test_no_view_offers_an_action(open_view, read_only, own_runs, view):
    before = {path: path.stat().st_mtime_ns for path in own_runs.rglob("*")}
    app = open_view(view, own_runs, run="first")
    offered = {key for key in keys(app) if key.startswith(ACTIONS)}
    assert not offered
    assert not app.get("file_uploader")
    assert {path: path.stat().st_mtime_ns for path in own_runs.rglob("*")} == before


def test_the_same_views_offer_actions_where_they_are_allowed(open_view, own_runs):
    found = set()
    for view in ("live", "training", "adjoints", "tuner", "work_precision", "runs"):
        found |= {k for k in keys(open_view(view, own_runs, run="first")) if k.startswith(ACTIONS)}
    assert {"do_run", "do_cancel", "delete_for_good", "note_first"} <= found
    assert len(found) > 8


def test_questions_may_still_be_asked(open_view, read_only, own_runs):
    app = open_view("ask", own_runs, run="first", sql="select count(*) as n from steps")
    assert not app.error
    assert app.dataframe[0].value["n"].tolist() == [3 * 45]


def test_each_action_is_refused_where_it_is_done(read_only, own_runs, monkeypatch, tmp_path):
    monkeypatch.setenv("STEPSCOPE_RUNS", str(own_runs))
    packed = pack(own_runs / "first", tmp_path / "x").file.read_bytes()
    before = sorted(os.walk(own_runs))
    for action in (
        lambda: run_list.delete("first"),
        lambda: run_list.set_note("first", "mine"),
        lambda: run_list.take_in(io.BytesIO(packed)),
    ):
        with pytest.raises(PermissionError, match="read-only"):
            action()
    workers = Workers(own_runs, read_only=True)
    try:
        for action in (
            lambda: workers.start({"problem": "van_der_pol"}),
            lambda: workers.control("first", command="pause"),
            lambda: workers.cancel("first"),
        ):
            with pytest.raises(PermissionError, match="read-only"):
                action()
        workers.watch("first", "tab")
        assert not workers.obeys("first")
        assert workers.running() == []
    finally:
        workers.close()
    assert sorted(os.walk(own_runs)) == before


def test_the_command_makes_the_server_read_only(monkeypatch, tmp_path):
    started = []

    def instead(program, command, env):
        started.append(env)
        raise SystemExit

    monkeypatch.setattr(os, "execve", instead)
    for arguments, value in ((["--read-only"], "1"), ([], None)):
        with pytest.raises(SystemExit):
            cli.main(["app", "--runs", str(tmp_path), *arguments])
        assert started.pop().get("STEPSCOPE_READ_ONLY") == value
