"""The Tuner page: every state of a search is designed, and its gains reach Live."""

import json

import pytest

from app import worker

SPEC = {
    "kind": "tune", "problem": "lotka_volterra", "batch": 2, "t1": 3.0, "jobs": 1, "verify": 2,
    "kp": [0.0, 0.2], "ki": [0.3, 0.6], "search": False, "rtol": 1e-4,
}  # fmt: skip


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A folder with a search, one asked wrongly, and a plain solve."""
    root = tmp_path_factory.mktemp("tuned") / "runs"
    worker.record_study(SPEC, root / "whole")
    with pytest.raises(ValueError, match="rk4"):
        worker.record_study(SPEC | {"method": "rk4"}, root / "wrong")
    plain = {"problem": "lotka_volterra", "batch": 2, "t1": 3.0, "method": "dopri5"}
    worker.record(plain | {"rtol": 1e-5, "atol": 1e-7, "controller": {"name": "pid"}},
                  root / "solved")  # fmt: skip
    return root


def words(app) -> str:
    """Return all words of a page."""
    parts = [*app.title, *app.markdown, *app.caption, *app.info, *app.warning, *app.error]
    return "\n".join(str(part.value) for part in parts)


def test_a_search_shows_map_front_check_and_numbers(open_view, tuned):
    app = open_view("tuner", tuned, run="whole")
    figures = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert len(figures) == 3
    assert figures[0]["data"][0]["type"] == "heatmap"
    assert all(figure["data"] for figure in figures)
    tiles = {tile.label: tile.value for tile in app.metric}
    assert {"As recorded", "Best preset", "Best of all", "Replay was off by"} <= set(tiles)
    numbers = next(d.value for d in app.dataframe if "estimate" in d.value)
    assert numbers["attempts"].is_monotonic_increasing
    assert "an estimate" in words(app)
    assert all(chart.proto.alt.endswith(".") for chart in app.get("plotly_chart"))


def test_the_chosen_gains_are_used_in_live(open_view, tuned):
    app = open_view("tuner", tuned, run="whole")
    box = app.selectbox(key="tuned")
    label = next(o for o in box.options if o.startswith("kp 0.2, ki 0.6"))
    box.select(label).run()
    (link,) = [link for link in app.get("page_link") if link.proto.label.startswith("Use these")]
    assert "setting=" in link.proto.query_string
    held = app.session_state["tuned"]
    live = open_view("live", tuned, run="", again="whole", setting=held)
    assert live.session_state["pid.kp"] == 0.2
    assert live.session_state["pid.ki"] == 0.6
    assert live.session_state["problem"] == "lotka_volterra"


def test_the_problem_and_the_attempts_of_a_recorded_run_are_taken(open_view, tuned):
    app = open_view("tuner", tuned, run="solved")
    assert "holds no search for gains" in words(app)
    app.toggle(key="tune.from_run").set_value(True).run()
    assert not app.exception
    assert "Replays what it recorded, dopri5" in words(app)


def test_a_search_that_failed_says_why(open_view, tuned):
    assert "rk4" in words(open_view("tuner", tuned, run="wrong"))


def test_a_reader_sees_results_and_no_settings(open_view, tuned, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_READ_ONLY", "1")
    app = open_view("tuner", tuned, run="whole")
    assert not [b for b in app.button if b.key == "do_study"]
    assert len(app.get("plotly_chart")) == 3
