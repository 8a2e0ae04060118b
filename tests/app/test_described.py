"""The description the widgets are drawn from: fresh, complete, and read without the solver."""

import json

import pytest

from app import describe


@pytest.fixture(scope="module")
def described():
    return describe.describe()


def test_the_shipped_copy_matches_the_sources(described):
    shipped = json.loads(describe.SNAPSHOT.read_text("utf-8"))
    renew = "renew it with: stepscope describe --snapshot"
    assert shipped["sources"] == describe.source_hash(), renew
    assert shipped == json.loads(json.dumps(described)), renew


def test_every_family_is_there_and_every_default_is_within_its_bounds(described):
    assert {"van_der_pol", "lorenz", "kepler"} <= {p["name"] for p in described["problems"]}
    assert {"tsit5", "dopri5", "rk4"} <= {m["name"] for m in described["methods"]}
    assert {"pid", "fixed"} <= {c["name"] for c in described["controllers"]}
    members = [*described["problems"], *described["controllers"]]
    settings = [
        s for member in members for s in member.get("settings", member.get("parameters", []))
    ]
    assert len(settings) > 40
    for setting in settings:
        if setting["low"] is not None and setting["default"] is not None:
            assert setting["low"] <= setting["default"] <= setting["high"], setting["name"]


def test_the_steady_error_ratio_is_what_the_controllers_say(described):
    from solver.catalogue import controllers, methods

    seen = 0
    for about in described["controllers"]:
        controller = controllers()[about["name"]]()
        values = {s["name"]: s["default"] for s in about["settings"]}
        for method in described["methods"]:
            order = methods()[method["name"]]().error_order
            shown = describe.steady_error_ratio(about, values, order)
            if shown is None:
                assert order is None or not about["adaptive"]
            else:
                seen += 1
                assert shown == pytest.approx(controller.steady_error_ratio(order), rel=1e-12)
    assert seen > 10


def test_another_source_file_makes_the_copy_stale(monkeypatch, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("x = 1\n")
    where = f"{mine}:Mine"
    before = describe.source_hash(where)
    mine.write_text("x = 2\n")
    assert describe.source_hash(where) != before
    monkeypatch.setenv(describe.PROBLEM_VARIABLE, where)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert describe.load() is None


def test_a_problem_file_that_fails_says_why(monkeypatch, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('no such luck')\n")
    monkeypatch.setenv(describe.PROBLEM_VARIABLE, f"{broken}:Mine")
    with pytest.raises(describe.DescribeFailed, match="no such luck"):
        describe.refresh()
