"""The Adjoints page: every state of a comparison is designed."""

import json

import pytest

from app import worker

SPEC = {
    "kind": "adjoints", "problem": "neural_spiral", "batch": 3, "dtype": "float64",
    "modes": ["backprop", "symplectic", "continuous"], "rtol": 1e-4, "atol": 1e-6,
}  # fmt: skip


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A folder of comparisons: one with a sweep, one that measured no memory, one that failed."""
    root = tmp_path_factory.mktemp("compared") / "runs"
    worker.record_comparison(SPEC | {"sweep": "rtol", "values": [1e-2, 1e-4]}, root / "swept")
    worker.record_comparison(SPEC | {"allocator": False}, root / "plain")
    with pytest.raises(ValueError, match="values"):
        worker.record_comparison(SPEC | {"sweep": "rtol"}, root / "wrong")
    failing = {"modes": ["symplectic", "continuous:rtol=1e-13,atol=1e-13"], "max_steps": 12}
    worker.record_comparison(SPEC | failing | {"allocator": False}, root / "failing")
    return root


def words(app) -> str:
    """Return all words of a page."""
    parts = [*app.title, *app.markdown, *app.caption, *app.info, *app.warning, *app.error]
    return "\n".join(str(part.value) for part in parts)


def charts(app) -> dict[str, dict]:
    """Return the figures on a page by their key."""
    found = app.get("plotly_chart")
    return {chart.proto.id.rpartition("-")[2]: json.loads(chart.proto.spec) for chart in found}


def test_a_sweep_shows_table_costs_errors_memory_and_lines(open_view, compared):
    app = open_view("adjoints", compared, run="swept")
    drawn = charts(app)
    assert len(drawn) == 9
    assert all(figure["data"] for figure in drawn.values())
    table = next(d.value for d in app.dataframe if "to exact" in d.value)
    assert list(table["mode"]) == SPEC["modes"]
    assert table["error"].iloc[1] < 1e-11 < table["error"].iloc[2]
    assert (table["peak MiB"] > 0).all()
    tiles = {tile.label: tile.value for tile in app.metric}
    assert tiles["Largest error"] == "continuous"
    assert tiles["Exact to rounding"] == "2 of 3"
    assert "What does a looser tolerance do" in words(app)
    assert all(chart.proto.alt.endswith(".") for chart in app.get("plotly_chart"))


def test_another_value_of_the_sweep_is_shown_when_picked(open_view, compared):
    app = open_view("adjoints", compared, run="swept")
    tight = next(d.value for d in app.dataframe if "to exact" in d.value)
    (picker,) = [b for b in app.button_group if b.key == "adj.place"]
    picker.set_value(0).run()
    loose = next(d.value for d in app.dataframe if "to exact" in d.value)
    assert loose["error"].iloc[2] > tight["error"].iloc[2]


def test_without_the_course_of_memory_its_chart_says_how_to_get_it(open_view, compared):
    app = open_view("adjoints", compared, run="plain")
    drawn = charts(app)
    assert len(drawn) == 5
    notes = [note["text"] for f in drawn.values() for note in f["layout"].get("annotations", [])]
    assert any("Switch it on" in note for note in notes)


def test_a_mode_that_failed_is_named_with_its_reason(open_view, compared):
    app = open_view("adjoints", compared, run="failing")
    (said,) = [warning.value for warning in app.warning]
    assert said.startswith("**continuous:rtol=1e-13,atol=1e-13** gave no gradient: SolveFailed")


def test_a_comparison_that_failed_says_why(open_view, compared):
    app = open_view("adjoints", compared, run="wrong")
    assert "values=[]" in words(app)


def test_a_run_of_another_kind_leads_to_the_settings(open_view):
    app = open_view("adjoints", run="whole")
    assert "holds no comparison" in words(app)
    assert app.selectbox(key="adj.problem").value == "flow_two_moons"
    assert not app.button(key="do_compare").disabled


def test_settings_follow_the_problem_and_nothing_to_compare_disables_the_button(open_view):
    app = open_view("adjoints", run="whole")
    app.selectbox(key="adj.problem").set_value("kdv_hnn").run()
    assert not app.exception
    assert app.selectbox(key="adj.kdv_hnn.rtol").value == 1e-6
    app.selectbox(key="adj.problem").set_value("lorenz").run()
    assert "Mean square of the end states" in words(app)
    app.selectbox(key="adj.sweep").set_value("steps").run()
    assert not app.exception
    app.multiselect(key="adj.modes").set_value([]).run()
    assert app.button(key="do_compare").disabled


def test_a_reader_sees_results_and_no_settings(open_view, compared, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_READ_ONLY", "1")
    app = open_view("adjoints", compared, run="plain")
    assert not [b for b in app.button if b.key == "do_compare"]
    assert len(charts(app)) == 5
