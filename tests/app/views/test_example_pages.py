"""Pages of studies on a first visit: never blank, the recorded example is shown and named."""

import pytest


@pytest.mark.parametrize(
    ("view", "charts", "name"),
    [
        ("tuner", 3, "example-tuner"),
        ("work_precision", 1, "example-precision"),
        ("adjoints", 5, "example-gradients"),
        ("training", 4, "example-training"),
        ("stability", 3, "example"),
    ],
)
def test_a_first_visit_shows_the_recorded_example(open_view, tmp_path, view, charts, name):
    app = open_view(view, tmp_path / "none-yet")
    assert len(app.get("plotly_chart")) >= charts
    said = [*app.info, *app.caption]
    assert any(f"`{name}`" in text.value for text in said), [text.value for text in said]


def test_an_own_study_comes_before_the_example(open_view, tmp_path):
    from app import worker

    spec = {"kind": "work_precision", "problem": "lotka_volterra", "batch": 2, "t1": 2.0,
            "methods": ["tsit5"], "rtols": [1e-3, 1e-4], "rounds": 1}  # fmt: skip
    worker.record_study(spec, tmp_path / "own")
    worker.record({"problem": "lotka_volterra", "batch": 2, "t1": 1.0}, tmp_path / "later")
    app = open_view("work_precision", tmp_path)
    assert any("the newest that does, `own`" in text.value for text in app.info)
