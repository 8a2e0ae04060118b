"""The Run page: every state of a run is designed, a link opens as it stands."""

import json
import shutil
from pathlib import Path

import pytest

RUNS = ["whole", "failed-rows", "many", "killed", "bare", "single"]


def text_of(app) -> str:
    """Return all words of a page."""
    parts = [*app.title, *app.markdown, *app.caption, *app.info, *app.warning, *app.error]
    return "\n".join(str(part.value) for part in parts)


def figures_of(app) -> dict[str, dict]:
    """Return the figures on a page by the question above each, as plotly gets them."""
    charts = app.get("plotly_chart")
    return {chart.proto.id: json.loads(chart.proto.spec) for chart in charts}


@pytest.mark.parametrize("run", RUNS)
def test_every_run_opens_and_every_figure_holds_data_or_says_why_not(open_view, run: str):
    app = open_view("run", run=run)
    figures = figures_of(app)
    assert len(figures) >= 4
    for figure in figures.values():
        notes = figure["layout"].get("annotations", [])
        assert figure["data"] or any("not recorded" in note["text"] for note in notes)


def test_every_chart_has_alt_text_and_a_question_above(open_view):
    app = open_view("run", run="whole")
    charts = app.get("plotly_chart")
    assert all(chart.proto.alt.endswith(".") for chart in charts)
    questions = [m.value for m in app.markdown if m.value.startswith("### ")]
    assert len(questions) > len(charts)  # the raster has one too


def test_a_finished_run_says_so_and_offers_its_numbers(open_view):
    app = open_view("run", run="whole")
    assert "finished" in text_of(app)
    tiles = {tile.label: tile.value for tile in app.metric}
    assert tiles["Attempts"] == "120"
    assert tiles["Failed rows"] == "0 of 12"
    assert tiles["Slowest row"].isdigit()
    assert not app.warning
    assert not app.error


def test_failed_rows_are_listed_with_time_cause_and_component(open_view):
    app = open_view("run", run="failed-rows")
    (table,) = [d.value for d in app.dataframe if "message" in d.value]
    assert table["instance"].tolist() == [1, 4]
    assert set(table["status_name"]) == {"met values that are not finite"}
    assert table["t_reached"].tolist() == [10.0, 10.0]
    assert all("infinite" in message for message in table["message"])


def test_a_killed_run_shows_what_it_had_written(open_view):
    app = open_view("run", run="killed")
    assert "interrupted" in text_of(app)
    assert "240 attempts" in app.warning[0].value


def test_a_growing_run_is_marked_live_and_followed(open_view, growing):
    app = open_view("run", growing.parent, run="growing")
    assert "live, updating" in text_of(app)
    assert "interrupted" not in text_of(app)


def test_a_damaged_file_is_named_and_the_rest_is_shown(open_view, recorded, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(recorded / "whole", root / "hurt")
    (file,) = (root / "hurt" / "steps").glob("*.arrows")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    app = open_view("run", root, run="hurt")
    assert "damaged" in app.warning[0].value
    (table,) = [d.value for d in app.dataframe if "what" in d.value]
    assert "arrows" in table["file"].iloc[0]
    assert len(figures_of(app)) >= 4


def test_a_run_without_statistics_says_which_are_missing(open_view):
    app = open_view("run", run="bare")
    notes = [
        note["text"]
        for figure in figures_of(app).values()
        for note in figure["layout"].get("annotations", [])
    ]
    assert any("limiter" in note for note in notes)


@pytest.mark.parametrize(("asked", "shown"), [(3, 3), (999, 4), (-5, 0), ("x", 0)])
def test_a_link_to_a_solve_opens_it_and_a_wrong_one_the_nearest(open_view, asked, shown):
    app = open_view("run", run="many", solve=asked)
    assert app.number_input(key="solve").value == shown


def test_a_run_of_one_solve_has_no_solve_picker(open_view):
    app = open_view("run", run="whole")
    assert [field.key for field in app.number_input] == []


@pytest.mark.parametrize("run", ["nope", "../recorded", "..", "/etc", "a" * 300, "<b>x</b>"])
def test_an_unknown_run_in_the_link_opens_no_path_and_shows_the_newest(open_view, run: str):
    app = open_view("run", run=run)
    assert "single" in text_of(app)
    assert "no run" in app.warning[0].value


def test_an_empty_folder_says_how_to_get_a_run(open_view, tmp_path: Path, monkeypatch):
    from app import session

    monkeypatch.setattr(session, "EXAMPLES_PATH", tmp_path / "no-examples")
    app = open_view("run", tmp_path)
    assert "No run is stored yet" in [header.value for header in app.subheader]
    assert "Inspector" in app.code[0].value


def test_settings_that_were_changed_come_first(open_view):
    app = open_view("run", run="whole")
    (line,) = [m.value for m in app.markdown if "At their default" in m.value]
    changed, same = line.split("At their default")
    assert "pcoeff" in changed
    assert "rtol" in same
    assert "rtol" not in changed


def test_a_read_only_dashboard_starts_nothing(open_view, monkeypatch):
    def links() -> list[str]:
        return [link.proto.label for link in open_view("run", run="whole").get("page_link")]

    assert "Run again with other gains" in links()
    monkeypatch.setenv("STEPSCOPE_READ_ONLY", "1")
    assert "Run again with other gains" not in links()


def test_the_colour_of_the_raster_comes_from_the_link(open_view):
    app = open_view("run", run="whole", metric="limiter", order="attempts")
    assert app.selectbox(key="metric").value == "limiter"
    assert app.selectbox(key="order").value == "attempts"
    wrong = open_view("run", run="bare", metric="limiter")
    assert wrong.selectbox(key="metric").value == "dt"


def test_logged_numbers_are_drawn(open_view):
    app = open_view("run", run="many")
    names = [m.value for m in app.markdown if m.value.startswith("### loss")]
    assert names


@pytest.mark.parametrize("view", ["run", "instances"])
def test_a_solve_too_large_to_draw_says_so_and_shows_its_numbers(open_view, view, monkeypatch):
    from app.components import run_header

    monkeypatch.setattr(run_header, "MOST_OF_A_SOLVE", 100)
    app = open_view(view, run="whole")
    assert "more than the 100" in app.info[0].value
    assert not app.get("plotly_chart") or view == "run"
    if view == "run":
        assert {tile.label for tile in app.metric} >= {"Attempts", "Refused"}
