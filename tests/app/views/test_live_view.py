"""The Live page: settings become a spec, and every state of a run is designed."""

import json
import shutil
from typing import Any

import pytest

from app import describe
from app.workers import EXIT_FILE, Workers, write_json

RUNS = ["whole", "failed-rows", "many", "killed", "bare", "single"]


@pytest.fixture(autouse=True)
def no_processes(monkeypatch):
    """Keep what is asked of the workers, and start none."""
    asked: list[dict[str, Any]] = []

    def start(self: Workers, spec: Any, viewer: str = "") -> str:
        asked.append(dict(spec))
        return "whole"

    monkeypatch.setattr(Workers, "warm_soon", lambda self, seconds: None)
    monkeypatch.setattr(Workers, "start", start)
    return asked


def words(app) -> str:
    """Return all words of a page."""
    parts = [*app.title, *app.markdown, *app.caption, *app.info, *app.warning, *app.error]
    return "\n".join(str(part.value) for part in parts)


def rasters(app) -> list[Any]:
    """Return the canvas components on a page."""
    return [c for c in app.get("bidi_component") if c.proto.component_name.startswith("stepscope")]


@pytest.mark.parametrize("run", RUNS)
def test_every_run_opens_with_its_raster_and_charts(open_view, run):
    app = open_view("live", run=run)
    names = [c.proto.component_name for c in rasters(app)]
    assert names.count("stepscope_raster") == 1
    assert names.count("stepscope_plot") >= 1
    assert len(app.metric) == 5


@pytest.mark.parametrize("metric", ["error ratio", "accepted / refused", "what limited the step"])
def test_any_statistic_can_be_the_colour(open_view, metric):
    app = open_view("live", run="whole", metric=metric)
    assert app.selectbox(key="metric").value != "dt"
    assert len(rasters(app)) == 5


def test_run_sends_the_settings_of_this_moment(open_view, no_processes):
    app = open_view("live", run="whole")
    app.selectbox(key="problem").set_value("lorenz")
    app.run()
    app.slider(key="pid.kp").set_value(0.35)
    app.button(key="do_run").click()
    app.run()
    assert not app.exception
    (spec,) = no_processes
    lorenz = next(p for p in describe.stale()["problems"] if p["name"] == "lorenz")
    assert spec["problem"] == "lorenz"
    assert spec["controller"]["kp"] == pytest.approx(0.35)
    assert spec["batch"] == lorenz["batch"]
    assert spec["rtol"] == pytest.approx(lorenz["rtol"])
    assert spec["parent"] is None, "another problem is no comparison"
    json.dumps(spec)


@pytest.mark.slow
def test_every_problem_and_preset_makes_a_spec_within_its_bounds(open_view, no_processes):
    app = open_view("live", run="single")
    for problem in describe.stale()["problems"]:
        app.selectbox(key="problem").set_value(problem["name"])
        app.run()
        for preset in [None, *problem["presets"]]:
            if preset is not None:
                app.selectbox(key=f"preset_{problem['name']}").set_value(preset["name"])
            app.button(key="do_run").click()
            app.run()
            assert not app.exception, (problem["name"], preset)
            spec = no_processes[-1]
            assert spec["problem"] == problem["name"]
            for key, value in (preset or {"spec": {}})["spec"].items():
                if key not in ("parameters", "spread", "controller"):
                    assert spec[key] == pytest.approx(value), (problem["name"], preset["name"], key)
            for setting in problem["parameters"]:
                value = spec["parameters"].get(setting["name"])
                if value is not None and setting["low"] is not None:
                    assert setting["low"] <= value <= setting["high"]


def test_every_method_draws_its_settings_and_fixed_steps_get_a_size(open_view, no_processes):
    app = open_view("live", run="single")
    for method in describe.stale()["methods"]:
        app.selectbox(key="method").set_value(method["name"])
        app.button(key="do_run").click()
        app.run()
        assert not app.exception, method["name"]
        spec = no_processes[-1]
        assert spec["method"] == method["name"]
        if not method["adaptive"]:
            assert spec["controller"]["name"] == "fixed"
            assert spec["dt0"] > 0


def test_every_controller_and_published_set_of_gains_reaches_the_spec(open_view, no_processes):
    app = open_view("live", run="single")
    for controller in describe.stale()["controllers"]:
        app.selectbox(key="controller").set_value(controller["name"])
        app.run()
        for preset in controller["presets"][:3]:
            app.selectbox(key=f"controller_preset_{controller['name']}").set_value(preset["name"])
            app.button(key="do_run").click()
            app.run()
            assert not app.exception, (controller["name"], preset["name"])
            sent = no_processes[-1]["controller"]
            assert sent["name"] == controller["name"]
            for name, value in preset["values"].items():
                same = value if isinstance(value, str | bool) else pytest.approx(value)
                assert sent[name] == same, (controller["name"], preset["name"], name)


def test_published_gains_move_the_sliders_and_the_steady_error_ratio(open_view):
    app = open_view("live", run="whole")
    before = words(app)
    app.selectbox(key="controller_preset_pid").set_value("pi42")
    app.run()
    assert app.slider(key="pid.ki").value == pytest.approx(0.4)
    assert app.slider(key="pid.safety").value == pytest.approx(0.9**0.4)
    line = [m.value for m in app.markdown if m.value.startswith("Steady error ratio")]
    assert line == ["Steady error ratio **0.59**"]  # 0.9^5 for a fourth-order error estimate
    assert "0.35" in before


def test_failed_rows_are_named_with_time_and_reason(open_view):
    app = open_view("live", run="failed-rows")
    text = words(app)
    assert "2 rows failed" in text
    assert "t = " in text


def test_a_killed_run_says_so_and_shows_what_is_left(open_view):
    text = words(open_view("live", run="killed"))
    assert "gone without having closed it" in text


def test_a_worker_that_died_is_explained(open_view, own_runs):
    shutil.rmtree(own_runs / "second")
    path = own_runs / "first"
    meta = json.loads((path / "run.json").read_text())
    for writer in (path / "writers").iterdir():
        writer.unlink()
    (path / "run.json").write_text(json.dumps(meta | {"status": "running"}))
    write_json(path / EXIT_FILE, {"code": -9, "killed": False, "stderr": ["last words"]})
    app = open_view("live", own_runs, run="first")
    assert "ended by signal 9" in words(app)
    assert any("last words" in code.value for code in app.code)


def test_damage_is_named_and_the_rest_is_shown(open_view, own_runs):
    file = next((own_runs / "first" / "steps").glob("*.arrows"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(bytes(content))
    app = open_view("live", own_runs, run="first")
    assert "damaged in 1 place" in words(app)
    assert len(app.metric) == 5


def test_an_empty_folder_shows_the_example(open_view, tmp_path):
    app = open_view("live", tmp_path / "none-yet")
    assert len(rasters(app)) == 5


def test_a_read_only_server_offers_no_run(open_view, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_READ_ONLY", "1")
    app = open_view("live", run="whole")
    assert not [b for b in app.button if b.key and b.key.startswith("do_")]
    assert len(rasters(app)) == 5


def test_a_picked_row_is_kept_and_named_in_the_link(open_view):
    app = open_view("live", run="whole", inst="3")
    assert "### What did the controller do in row 3?" in [m.value for m in app.markdown]
    app.number_input(key="row_number").set_value(5)
    app.run()
    assert app.session_state["picked"] == [3, 5]
    assert "### What did the controller do in row 5?" in [m.value for m in app.markdown]
    app.button(key="pick_none").click()
    app.run()
    assert app.session_state["picked"] == []


@pytest.mark.parametrize("value", ["99999", "-1", "x", "../etc"])
def test_nonsense_in_the_link_is_ignored(open_view, value):
    app = open_view("live", run="whole", inst=value, solve=value, metric=value, batch=value)
    assert len(rasters(app)) == 5


def test_a_run_too_large_for_one_cell_each_says_what_a_cell_stands_for(open_view, tmp_path):
    from inspector.synthetic import write_synthetic_run

    write_synthetic_run(tmp_path / "large", batch=2, attempts=700)
    app = open_view("live", tmp_path, run="large")
    assert "a cell stands for several attempts" in words(app)


def test_a_run_of_many_solves_offers_each(open_view):
    app = open_view("live", run="many", solve="3")
    assert app.number_input(key="solve").value == 3
    assert app.number_input(key="solve").max == 4


def test_problems_with_a_loss_offer_how_to_differentiate_it(open_view, no_processes):
    app = open_view("live", run="whole")
    assert not [box for box in app.selectbox if box.key == "gradient"]
    app.selectbox(key="problem").set_value("neural_spiral").run()
    app.selectbox(key="gradient").set_value("symplectic").run()
    app.button(key="do_run").click().run()
    assert not app.exception
    assert no_processes[-1]["gradient"] == "symplectic"


TYPED = "# ![x](http://elsewhere/x.png) *loud*\ndx = -k * x\nk = 1 in 0.5..2"


def test_equations_are_set_up_run_and_shown_by_a_title_that_is_only_text(
    open_view, no_processes, tmp_path, monkeypatch
):
    app = open_view("live", run="whole")
    app.session_state["equations"] = TYPED
    app.selectbox(key="problem").set_value("equations")
    app.run()
    assert not app.exception
    assert [latex.value for latex in app.latex if "-k" in latex.value]
    app.button(key="do_run").click()
    app.run()
    asked = no_processes[-1]
    assert asked["problem"] == TYPED
    assert asked["spread"] == {"parameter": "k", "low": 0.5, "high": 2.0, "scale": "linear"}
    assert asked["parameters"] == {"x0": 1.0}
    app.session_state["equations"] = TYPED.replace("-k", "-kk") + "\ndy = 2x"
    app.run()
    assert app.button(key="do_run").disabled
    assert any("line 2, column 7" in error.value for error in app.error)
    assert "![" not in words(app)


def test_titles_from_a_run_are_only_text(open_view, recorded, no_processes):
    meta = recorded / "whole" / "run.json"
    before = meta.read_text("utf-8")
    about = json.loads(before)
    about["spec"] = {"problem": TYPED, "method": "![y](http://elsewhere/y.png)"}
    try:
        meta.write_text(json.dumps(about), "utf-8")
        app = open_view("live", run="whole")
        assert "loud" in app.title[0].value
        assert "![" not in words(app)
    finally:
        meta.write_text(before, "utf-8")
