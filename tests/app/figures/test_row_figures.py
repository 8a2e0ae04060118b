"""Figures of one row tell accepted from refused, keep extremes, and mark what is not a number."""

from types import SimpleNamespace

import numpy as np
import pytest

from app.figures.controller_shares import controller_shares_figure
from app.figures.error_ratio import error_ratio_figure
from app.figures.grouping import group_attempts
from app.figures.limiter import limiter_ribbon_figure
from app.figures.step_size import step_size_figure
from app.figures.style import thin
from app.theme import LIGHT


def named(figure, start: str):
    (trace,) = [trace for trace in figure.data if trace.name.startswith(start)]
    return trace


def test_refused_attempts_are_another_marker_and_another_colour(frames: SimpleNamespace):
    steps = frames.steps(200)
    figure = step_size_figure(steps, LIGHT)
    accepted, refused = named(figure, "accepted"), named(figure, "refused")
    assert len(accepted.x) + len(refused.x) == 200
    assert (accepted.marker.symbol or "circle") != refused.marker.symbol
    assert accepted.line.color != refused.marker.color
    np.testing.assert_array_equal(refused.customdata, steps.attempt[steps.accepted == 0])


def test_a_single_tiny_step_survives_thinning(frames: SimpleNamespace):
    steps = frames.steps(50_000)
    at = int(np.flatnonzero(steps.accepted.to_numpy())[20_001])
    steps.loc[at, "dt"] = 1e-11
    figure = step_size_figure(steps, LIGHT, x="attempt")
    assert np.nanmin(named(figure, "accepted").y) == pytest.approx(1e-11)


def test_backward_steps_are_drawn_by_their_size(frames: SimpleNamespace):
    steps = frames.steps(50)
    steps["dt"] *= -1
    assert (named(step_size_figure(steps, LIGHT), "accepted").y > 0).all()


def test_a_row_without_refusals_has_no_refused_trace(frames: SimpleNamespace):
    figure = step_size_figure(frames.steps(50, tried=0.0), LIGHT)
    assert [trace.name for trace in figure.data] == ["accepted (50)"]


def test_the_error_ratio_shows_tolerance_and_steady_state(frames: SimpleNamespace):
    figure = error_ratio_figure(frames.steps(100), LIGHT, steady=0.25)
    assert [shape.y0 for shape in figure.layout.shapes] == [1.0, 0.25]
    assert [note.text for note in figure.layout.annotations] == ["tolerance", "steady 0.25"]
    low, high = figure.layout.yaxis.range
    assert low < np.log10(0.25)
    assert high > 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_error_ratio_that_is_not_finite_is_marked_and_not_drawn_as_a_number(
    frames: SimpleNamespace, bad: float
):
    steps = frames.steps(100)
    steps.loc[[10, 11], "error_ratio"] = bad
    steps.loc[[10, 11], "accepted"] = 0
    figure = error_ratio_figure(steps, LIGHT, x="attempt")
    marked = named(figure, "not finite")
    assert list(marked.x) == [10, 11]
    assert np.isfinite(marked.y).all()
    others = [x for trace in figure.data if trace is not marked for x in trace.x]
    assert 10 not in others


def test_fixed_steps_say_that_there_is_no_error_estimate(frames: SimpleNamespace):
    steps = frames.steps(30, tried=0.0)
    steps["error_ratio"] = 0.0
    figure = error_ratio_figure(steps, LIGHT)
    assert "fixed steps" in figure.layout.annotations[0].text


@pytest.mark.parametrize("n", [1, 7, 240, 241, 5_000])
@pytest.mark.parametrize("x", ["t", "attempt"])
def test_bars_tile_the_axis(frames: SimpleNamespace, n: int, x):
    steps = frames.steps(n, tried=0.0)
    groups = group_attempts(steps, x, 240)
    assert len(groups.left) <= 240
    np.testing.assert_allclose(groups.left[1:], (groups.left + groups.width)[:-1], rtol=1e-12)
    assert (groups.width > 0).all()
    assert np.bincount(groups.of).sum() == n


def test_shares_stack_to_the_mean_of_their_sum(frames: SimpleNamespace):
    steps = frames.steps(240)
    figure = controller_shares_figure(steps, LIGHT, x="attempt")
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert [bar.name for bar in bars] == ["P", "I", "D"]
    assert len({bar.marker.pattern.shape for bar in bars}) == 3
    total = (steps.share_p + steps.share_i + steps.share_d).to_numpy()
    np.testing.assert_allclose(sum(bar.y for bar in bars), total, atol=1e-12)
    assert figure.layout.barmode == "relative"


def test_clamped_factors_are_marked_with_their_direction(frames: SimpleNamespace):
    figure = controller_shares_figure(frames.steps(180), LIGHT, x="attempt")
    assert list(named(figure, "growth cut").x) == [5, 95]
    assert list(named(figure, "shrinking cut").x) == [50, 140]
    assert named(figure, "growth cut").marker.symbol != named(figure, "shrinking cut").marker.symbol


def test_unused_parts_are_left_out(frames: SimpleNamespace):
    steps = frames.steps(60)
    steps[["share_p", "share_d", "clamped"]] = 0.0
    assert [trace.name for trace in controller_shares_figure(steps, LIGHT).data] == ["I"]


def test_the_limiter_ribbon_names_causes_and_adds_up_to_everything(frames: SimpleNamespace):
    figure = limiter_ribbon_figure(frames.steps(100), LIGHT, frames.labels, x="attempt")
    assert {trace.name for trace in figure.data} == {
        "accuracy (49%)",
        "smallest step allowed (50%)",
        "first step (1%)",
    }
    whole = np.zeros(100)
    for trace in figure.data:
        whole[np.asarray(trace.x, dtype=int)] += trace.y
    np.testing.assert_allclose(whole, 100)
    assert len({trace.marker.pattern.shape for trace in figure.data}) == 3


def test_an_unknown_code_is_shown_and_not_dropped(frames: SimpleNamespace):
    steps = frames.steps(10)
    steps["limiter"] = 42
    (trace,) = limiter_ribbon_figure(steps, LIGHT, frames.labels).data
    assert trace.name.startswith("code 42")


@pytest.mark.parametrize("most", [4, 10, 333])
def test_thinning_keeps_ends_extremes_and_order(most: int):
    y = np.sin(np.arange(10_000) * 0.37) * np.arange(10_000)
    kept = thin(y, most)
    assert len(kept) <= most
    assert (np.diff(kept) > 0).all()
    assert {0, 9_999, int(y.argmax()), int(y.argmin())} <= set(kept.tolist())


def test_thinning_of_nothing_but_nan_keeps_gaps():
    kept = thin(np.full(1_000, np.nan), 10)
    assert 2 <= len(kept) <= 10
