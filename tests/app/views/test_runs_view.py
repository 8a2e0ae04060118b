"""The Runs page: list, filter, note, deletion after a second press, difference of two runs."""

import json

import pandas as pd
import pytest
import streamlit as st

from inspector import open_run


def listed(app) -> pd.DataFrame:
    return next(d.value for d in app.dataframe if "recorded" in d.value or "created" in d.value)


def test_every_run_is_listed_with_its_state(open_view, recorded):
    table = listed(open_view("runs")).set_index("run")
    assert {"whole", "failed-rows", "many", "killed", "bare", "single"} <= set(table.index)
    assert table.loc["killed", "state"].endswith("interrupted")
    assert table.loc["killed", "rows"] == 240  # counted, since its writer never said
    assert table.loc["whole", "state"].endswith("finished")
    assert table.loc["many", "solves"] == 5
    assert table.loc["whole", "page"] == "/run?run=whole"


def test_the_filter_takes_words_of_name_and_note(open_view):
    app = open_view("runs", find="fail row")
    assert listed(app)["run"].tolist() == ["failed-rows"]
    app.text_input(key="find").set_value("no such run").run()
    assert "No run fits" in app.info[0].value


def test_a_state_can_be_picked(open_view):
    app = open_view("runs")
    app.get("button_group")[0].set_value(["interrupted"]).run()
    assert not app.exception
    assert listed(app)["run"].tolist() == ["killed"]


def test_a_note_is_kept_with_the_run(open_view, own_runs):
    app = open_view("runs", own_runs, run="first")
    app.text_input(key="note_first").set_value("gains of Gustafsson").run()
    assert not app.exception
    assert open_run(own_runs / "first").meta["note"] == "gains of Gustafsson"
    assert "gains of Gustafsson" in listed(open_view("runs", own_runs))["note"].tolist()


def test_a_run_is_deleted_only_by_the_second_button(open_view, own_runs):
    app = open_view("runs", own_runs, run="first")
    assert (own_runs / "first").is_dir()
    app.button(key="delete_for_good").click().run()
    assert not app.exception
    assert not (own_runs / "first").exists()
    assert (own_runs / "second").is_dir()
    assert [path.name for path in own_runs.iterdir()] == ["second"]


def test_a_growing_run_is_not_deleted(open_view, growing):
    app = open_view("runs", growing.parent, run="growing")
    app.button(key="delete_for_good").click().run()
    assert growing.is_dir()
    assert any("still being recorded" in toast.value for toast in app.toast)


def test_a_read_only_dashboard_changes_nothing(open_view, own_runs, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_READ_ONLY", "1")
    app = open_view("runs", own_runs, run="first")
    assert "delete_for_good" not in [button.key for button in app.button]
    assert not [field for field in app.text_input if field.key == "note_first"]
    assert any("read-only" in caption.value for caption in app.caption)


def test_two_runs_are_compared_in_numbers_and_pictures(open_view, own_runs):
    app = open_view("runs", own_runs, run="first", cmp="second")
    tiles = {tile.label: (tile.value, tile.delta) for tile in app.metric}
    assert tiles["Attempts"] == ("135 \u2192 138", "+2.2 %")
    specs = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert len(specs) == 3
    assert all(spec["data"] for spec in specs)


def test_a_run_to_compare_with_that_is_gone_is_forgotten(open_view, own_runs):
    app = open_view("runs", own_runs, run="first", cmp="gone")
    assert app.selectbox(key="cmp").value == ""
    assert not app.metric


def test_nothing_is_compared_with_itself(open_view, own_runs):
    app = open_view("runs", own_runs, run="first")
    assert "first" not in app.selectbox(key="cmp").options
    assert "second" in app.selectbox(key="cmp").options


def test_a_run_that_has_ended_is_read_once_for_the_list(own_runs, monkeypatch):
    from app import run_list

    monkeypatch.setenv("STEPSCOPE_RUNS", str(own_runs))
    st.cache_resource.clear()
    read: list[str] = []
    real = run_list.summary
    monkeypatch.setattr(run_list, "summary", lambda path: read.append(path.name) or real(path))
    first, second = run_list.listed(), run_list.listed()
    assert sorted(set(read)) == sorted(read)
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.parametrize("name", ["../first", "example", "gone"])
def test_only_runs_of_the_folder_can_be_deleted(own_runs, monkeypatch, name: str):
    from app import run_list

    monkeypatch.setenv("STEPSCOPE_RUNS", str(own_runs / "first"))
    with pytest.raises(PermissionError):
        run_list.delete(name)
    assert (own_runs / "first").is_dir()


def test_a_run_in_which_a_page_found_damage_is_marked(own_runs, monkeypatch):
    from app import run_list

    monkeypatch.setenv("STEPSCOPE_RUNS", str(own_runs))
    st.cache_resource.clear()
    run_list.mark_damaged(own_runs / "first")
    table = run_list.listed().set_index("run")
    assert table.loc["first", "damaged"]
    assert not table.loc["second", "damaged"]
