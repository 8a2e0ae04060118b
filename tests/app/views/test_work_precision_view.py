"""The Work-precision page: every state of a study is designed."""

import json

import pytest

from app import worker

SPEC = {
    "kind": "work_precision", "problem": "lotka_volterra", "batch": 2, "t1": 3.0, "rounds": 1,
    "methods": ["tsit5", "rk4"], "rtols": [1e-3, 1e-5], "steps": [4, 40],
}  # fmt: skip


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder of studies: a whole one, one in which everything failed, one asked wrongly."""
    root = tmp_path_factory.mktemp("measured") / "runs"
    worker.record_study(SPEC, root / "whole")
    worker.record_study(SPEC | {"methods": ["tsit5"], "max_steps": 3}, root / "nothing")
    with pytest.raises(ValueError, match="rtols"):
        worker.record_study(SPEC | {"rtols": [7.0]}, root / "wrong")
    return root


def words(app) -> str:
    """Return all words of a page."""
    parts = [*app.title, *app.markdown, *app.caption, *app.info, *app.warning, *app.error]
    return "\n".join(str(part.value) for part in parts)


def figure(app) -> dict:
    """Return the one figure on the page."""
    (chart,) = app.get("plotly_chart")
    assert chart.proto.alt.endswith(".")
    return json.loads(chart.proto.spec)


def test_a_study_shows_a_line_a_method_and_all_numbers(open_view, measured):
    app = open_view("work_precision", measured, run="whole")
    named = [trace["name"] for trace in figure(app)["data"]]
    assert {"tsit5", "rk4"} <= set(named)
    table = next(d.value for d in app.dataframe if "end error" in d.value)
    assert list(table["setting"]) == ["rtol 0.001", "rtol 1e-5", "4 steps", "40 steps"]
    assert "Reference: dopri8" in words(app)


def test_any_measure_is_drawn_against_any_other(open_view, measured):
    app = open_view("work_precision", measured, run="whole", wp_x="seconds", wp_y="n_steps")
    layout = figure(app)["layout"]
    assert layout["xaxis"]["title"]["text"].startswith("time of the batch")
    assert layout["yaxis"]["title"]["text"].startswith("attempts")
    before = len(figure(app)["data"])
    app.toggle(key="wp_cloud").set_value(True).run()
    assert len(figure(app)["data"]) == before  # a batch's seconds belong to no row
    app.selectbox(key="wp_x").set_value("n_f_evals").run()
    with_cloud = len(figure(app)["data"])
    app.toggle(key="wp_cloud").set_value(False).run()
    assert len(figure(app)["data"]) == with_cloud - 2


def test_the_solve_behind_a_point_is_linked(open_view, measured):
    app = open_view("work_precision", measured, run="whole", wp_solve="rk4, 4 steps")
    assert app.selectbox(key="wp_solve").value == 2
    (link,) = [link for link in app.get("page_link") if link.proto.label == "Show it"]
    assert "solve=2" in link.proto.query_string


def test_failures_and_wrong_specs_are_said(open_view, measured):
    app = open_view("work_precision", measured, run="nothing")
    assert "every row failed" in words(app)
    assert "rtols" in words(open_view("work_precision", measured, run="wrong"))


def test_a_run_of_another_kind_leads_to_the_settings_and_lends_its_problem(open_view):
    app = open_view("work_precision", run="whole")
    assert "holds no work-precision study" in words(app)
    assert not app.button(key="do_study").disabled
    app.multiselect(key="wp.methods").set_value([]).run()
    assert app.button(key="do_study").disabled


def test_a_reader_sees_results_and_no_settings(open_view, measured, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_READ_ONLY", "1")
    app = open_view("work_precision", measured, run="whole")
    assert not [b for b in app.button if b.key == "do_study"]
    assert figure(app)["data"]
