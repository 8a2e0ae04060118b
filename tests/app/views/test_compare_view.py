"""The Compare page: one baseline, up to six runs, every state designed."""

import json

import pytest

from app import worker
from inspector import Inspector

BASE = {"problem": "van_der_pol", "batch": 4, "t1": 5.0, "rtol": 1e-4, "atol": 1e-6, "note": ""}
BASE |= {"engine": "plain"}  # whatever else this process has compiled


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A folder with runs of one problem, one of another, two trainings, and an empty one."""
    root = tmp_path_factory.mktemp("several") / "runs"
    for name, changes in {
        "base": {},
        "gains": {"controller": {"name": "pid", "kp": 0.4, "ki": 0.3}},
        "method": {"method": "bosh3"},
        "tight": {"rtol": 1e-7, "atol": 1e-9},
    }.items():
        worker.record(BASE | changes, root / name, note=f"about {name}")
    worker.record({"problem": "lotka_volterra", "batch": 3, "t1": 2.0}, root / "other")
    for name, rate in (("train-a", 0.5), ("train-b", 0.25)):
        with Inspector(root / name) as recorder:
            for step in range(6):
                with recorder.iteration(step):
                    worker.solve_spec(BASE | {"batch": 2, "t1": 1.0}, [recorder])
                    recorder.log(loss=rate**step)
    return root


def words(app) -> str:
    """Return all words of a page."""
    parts = [*app.title, *app.markdown, *app.caption, *app.info, *app.warning, *app.error]
    return "\n".join(str(part.value) for part in parts)


def test_runs_are_compared_by_settings_numbers_rows_time_and_paths(open_view, several):
    app = open_view("compare", several, run="base", **{"with": "gains"})
    settings = next(d.value for d in app.dataframe if "setting" in d.value)
    assert list(settings["setting"]) == ["pid.kp", "pid.ki"]
    assert list(settings["gains"]) == ["0.4", "0.3"]
    numbers = next(d.value for d in app.dataframe if "attempts %" in d.value)
    assert list(numbers["run"]) == ["base", "gains"]
    figures = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert len(figures) == 5
    assert all(figure["data"] for figure in figures)
    assert all(chart.proto.alt.endswith(".") for chart in app.get("plotly_chart"))
    assert app.metric[0].delta.endswith("%")


def test_more_runs_are_added_and_another_is_looked_at_in_detail(open_view, several):
    app = open_view("compare", several, run="base", **{"with": "gains"})
    app.multiselect(key="with").set_value(["gains", "method", "tight"]).run()
    numbers = next(d.value for d in app.dataframe if "attempts %" in d.value)
    assert list(numbers["run"]) == ["base", "gains", "method", "tight"]
    app.selectbox(key="focus").set_value("tight").run()
    assert not app.exception
    assert app.metric[0].value == next(
        f"{n:,.0f}".replace(",", "\u202f") for n in numbers["attempts"].iloc[[3]]
    )


def test_the_run_compared_on_another_page_is_taken_over(open_view, several):
    app = open_view("compare", several, run="base", cmp="method")
    assert app.multiselect(key="with").value == ["method"]


def test_a_first_visit_compares_the_newest_run_of_the_same_problem(open_view, several):
    app = open_view("compare", several, run="base")
    assert app.multiselect(key="with").value == ["tight"]
    app.multiselect(key="with").set_value([]).run()
    assert app.multiselect(key="with").value == [], "what was taken away stays away"
    alone = open_view("compare", several, run="other")
    assert alone.multiselect(key="with").value == []
    offered = [link.proto.label for link in alone.get("page_link")]
    assert "Compare the recorded examples" in offered
    assert any("train-a" in label and "train-b" in label for label in offered)


def test_an_empty_folder_compares_the_recorded_examples(open_view, tmp_path):
    app = open_view("compare", tmp_path / "none-yet")
    assert app.multiselect(key="with").value == ["example-implicit"]
    assert float(app.metric[0].delta.split()[0]) < -50


def test_a_query_finds_runs_by_any_word_or_by_column(open_view, several):
    app = open_view("compare", several, run="base")
    app.multiselect(key="with").set_value([]).run()
    assert "Pick runs above" in words(app)
    app.text_input(key="cmp_find").set_value("method:bosh3 van_der_pol").run()
    assert app.multiselect(key="with").options == ["method"]
    app.text_input(key="cmp_find").set_value("about van_der_pol tight").run()
    assert app.multiselect(key="with").options == ["tight"]
    grouped = next(d.value for d in app.dataframe if "newest" in d.value)
    assert grouped["runs"].sum() == 1


def test_different_problems_are_warned_about(open_view, several):
    app = open_view("compare", several, run="base", **{"with": "other"})
    assert any("different problems" in w.value for w in app.warning)


def test_trainings_lie_over_each_other(open_view, several):
    app = open_view("compare", several, run="train-a", **{"with": "train-b"})
    assert "How did the loss go" in words(app)
    losses = next(
        f
        for f in (json.loads(chart.proto.spec) for chart in app.get("plotly_chart"))
        if f["layout"]["yaxis"]["title"].get("text") == "loss"
    )
    assert [trace["name"] for trace in losses["data"]] == ["train-a", "train-b"]


def test_a_link_to_runs_that_are_not_there_shows_the_rest(open_view, several):
    app = open_view("compare", several, run="base", **{"with": "gone"})
    assert not app.exception
    assert "Pick runs above" in words(app)
