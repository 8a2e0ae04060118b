"""The Stability page and the panel that says what limits a solve, on solves that really ran."""

import json
from pathlib import Path

import pytest

from app import cli
from app.components.diagnosis import changed, in_words
from app.worker import record
from inspector import open_run
from inspector.diagnosis import Finding
from inspector.stiffness import limited_shares, ranking


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of a stiff oscillator: explicitly, implicitly, and without the statistic."""
    root = tmp_path_factory.mktemp("stability") / "runs"
    spread = {"parameter": "mu", "low": 1.0, "high": 80.0, "scale": "log"}
    spec = {"problem": "van_der_pol", "spread": spread, "batch": 4, "t1": 6.0, "engine": "plain"}
    record(spec | {"method": "tsit5"}, root / "stiff")
    record(spec | {"method": "rodas5p"}, root / "implicit")
    record(spec | {"statistics": ["limiter"]}, root / "bare")
    record({"problem": "lorenz", "rtol": 1e-6, "atol": 1e-8, "batch": 4}, root / "lorenz")
    return root


def words(app) -> str:
    """Return all words of a page."""
    parts = [*app.title, *app.markdown, *app.caption, *app.info, *app.warning, *app.success]
    return "\n".join(str(part.value) for part in parts)


@pytest.mark.parametrize("run", ["stiff", "implicit", "lorenz"])
def test_the_page_shows_region_shares_and_ranking(open_view, solved: Path, run: str):
    app = open_view("stability", root=solved, run=run)
    figures = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    assert len(figures) == 3
    assert all(figure["data"] for figure in figures)
    assert "Which rows are stiff" in words(app)


def test_the_page_says_when_nothing_was_recorded(open_view, solved: Path):
    app = open_view("stability", root=solved, run="bare")
    assert "was not recorded" in words(app)
    assert not app.get("plotly_chart")


def test_shares_split_stability_from_accuracy_and_add_up(solved: Path):
    stiff = limited_shares(open_run(solved / "stiff"))
    parts = stiff.drop(columns="attempt")
    assert (parts.fillna(0).sum(axis=1) - 1).abs().max() < 1e-9
    assert stiff["stability"].mean() > 0.5
    calm = limited_shares(open_run(solved / "lorenz"))
    assert calm.get("stability", calm["accuracy"] * 0).mean() < 0.01
    assert "stability" not in limited_shares(open_run(solved / "implicit"))


def test_the_ranking_begins_with_the_stiffest_row(solved: Path):
    ranked = ranking(open_run(solved / "stiff"))
    assert ranked["instance"].tolist()[0] == 3
    assert ranked["stability_share"].tolist()[0] > 0.8
    assert ranking(open_run(solved / "bare")).empty


@pytest.mark.parametrize("view", ["run", "live"])
def test_findings_stand_on_the_page_with_a_way_to_try_them(open_view, solved: Path, view: str):
    app = open_view(view, root=solved, run="stiff")
    assert "Stability limits the steps" in words(app)
    buttons = [button.label for button in app.button]
    assert "Try it" in buttons
    calm = open_view(view, root=solved, run="lorenz")
    assert "No rule has anything to say" in words(calm)


def test_a_viewer_who_may_only_read_cannot_try(open_view, solved: Path, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_READ_ONLY", "1")
    app = open_view("run", root=solved, run="stiff")
    assert "Stability limits the steps" in words(app)
    assert "Try it" not in [button.label for button in app.button]


def test_a_change_makes_a_spec_of_its_own():
    finding = Finding(evidence="", certainty="likely", advice="", change={"method": "rodas5p"})
    spec = {"problem": "x", "method": "tsit5", "parent": "y", "attempts_per_second": 5}
    assert changed(spec, finding) == {"problem": "x", "method": "rodas5p"}
    gains = {"kp": 0.2, "safety": 0.9}
    change = {"controller": {"name": "pid", "kp": 0.2, "safety": 0.75}, "dt0": None}
    assert in_words(change, gains) == "controller = pid safety 0.75; dt0 = none"


def test_the_exact_spectrum_of_a_row_on_the_command_line(
    solved: Path, capsys: pytest.CaptureFixture[str]
):
    command = ["spectrum", str(solved / "stiff"), "--row", "3", "--moments", "5", "--json"]
    assert cli.main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == 10
    first = min(found, key=lambda one: one["re"])
    assert first["re"] == pytest.approx(-240, rel=0.05)  # mu (1 - x^2) = -3 mu at the start
    assert cli.main(["spectrum", str(solved / "stiff"), "--row", "99"]) == 1
