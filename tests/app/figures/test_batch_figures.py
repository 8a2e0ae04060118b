"""Figures of a whole batch: rows by name stay few, gaps stay gaps, comparisons have a direction."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from app.figures.active_rows import active_rows_figure
from app.figures.comparison import comparison_bars_figure, comparison_scatter_figure
from app.figures.counts_histogram import counts_histogram_figure
from app.figures.dt_quantiles import dt_quantiles_figure
from app.figures.instance_ranking import instance_ranking_figure
from app.figures.limiter import limiter_shares_figure
from app.figures.phase_portrait import phase_portrait_figure
from app.figures.scalars import scalars_figure
from app.figures.solve_costs import solve_costs_figure
from app.figures.trajectories import components_figure, trajectories_figure
from app.theme import LIGHT


def test_at_most_six_rows_are_named_and_all_others_share_one_trace_with_gaps(
    frames: SimpleNamespace,
):
    figure = trajectories_figure(frames.states(40), LIGHT, rows=range(10))
    assert [trace.name for trace in figure.data] == [
        "34 other rows",
        *(f"row {row}" for row in range(6)),
    ]
    assert np.isnan(figure.data[0].x).sum() == 34
    assert len({trace.line.dash for trace in figure.data[1:]}) == 6


def test_rows_that_have_no_states_are_passed_over(frames: SimpleNamespace):
    figure = trajectories_figure(frames.states(3), LIGHT, rows=[99, 1])
    assert [trace.name for trace in figure.data] == ["2 other rows", "row 1"]


def test_a_diverged_row_leaves_a_gap(frames: SimpleNamespace):
    states = frames.states(2)
    states.loc[states.instance.eq(1) & (states.t > 5), "y0"] = np.inf
    figure = trajectories_figure(states, LIGHT, rows=[1])
    row = figure.data[-1]
    assert np.isnan(row.y[np.asarray(row.x) > 5]).all()
    assert np.isfinite(row.y[np.asarray(row.x) <= 5]).all()


def test_many_components_show_six_by_name_and_the_rest_behind(frames: SimpleNamespace):
    figure = components_figure(frames.states(1, dim=64), LIGHT)
    assert len(figure.data) == 7
    assert figure.data[0].name == "60 of 64 components"


def test_the_phase_portrait_marks_where_rows_start(frames: SimpleNamespace):
    figure = phase_portrait_figure(frames.states(5), LIGHT, rows=[2], names=("x", "v"))
    start = figure.data[-1]
    assert start.mode == "markers"
    assert start.x[0] == pytest.approx(3.0)
    assert figure.layout.xaxis.title.text == "x"


def test_the_ghost_run_is_dashed_and_behind_the_median(frames: SimpleNamespace):
    figure = dt_quantiles_figure(
        frames.quantiles(50), LIGHT, ghost=frames.quantiles(40), ghost_name="before"
    )
    names = [trace.name for trace in figure.data]
    assert names[-1] == "median"
    ghosts = [trace for trace in figure.data if trace.name.startswith("before")]
    assert all(trace.line.dash in ("dash", "dot") for trace in ghosts)


def test_active_rows_reach_up_to_the_batch(frames: SimpleNamespace):
    figure = active_rows_figure(frames.quantiles(10), LIGHT, batch=64)
    assert list(figure.data[0].y) == [64, 63, 62, 61, 60, 59, 58, 57, 56, 55]
    assert set(figure.data[1].y) == {64}


@pytest.mark.parametrize("batch", [1, 64, 65, 4096])
def test_the_ranking_counts_every_attempt_and_points_at_the_row(
    frames: SimpleNamespace, batch: int
):
    table = frames.instances(batch)
    row = int(table.instance.iloc[0])
    figure = instance_ranking_figure(table, LIGHT, selected=row)
    assert [trace.name for trace in figure.data] == ["accepted", "refused"]
    top = figure.data[0].y[0] + figure.data[1].y[0]
    assert top == table.n_steps.max()
    assert figure.data[0].customdata[0] == row
    assert figure.layout.annotations[0].text == f"row {row}"


@pytest.mark.parametrize("batch", [1, 2, 64, 5_000])
def test_the_histogram_counts_each_row_once(frames: SimpleNamespace, batch: int):
    figure = counts_histogram_figure(frames.instances(batch), LIGHT)
    assert figure.data[0].y.sum() == batch


def test_nan_and_infinity_break_the_line_and_are_marked_apart():
    value = np.array([1.0, np.nan, 2.0, np.inf, 3.0, -np.inf])
    table = pd.DataFrame({"iteration": np.arange(6), "value": value})
    figure = scalars_figure(table, LIGHT, name="loss")
    line = figure.data[0]
    assert line.connectgaps is False
    np.testing.assert_array_equal(np.isnan(line.y), [False, True, False, True, False, True])
    assert "markers" in line.mode  # single values between gaps would be invisible as a line
    assert {trace.name: list(trace.x) for trace in figure.data[1:]} == {
        "NaN (1)": [1],
        "+inf (1)": [3],
        "-inf (1)": [5],
    }


def test_zero_is_a_gap_on_a_log_axis_and_a_value_on_a_linear_one():
    table = pd.DataFrame({"iteration": [0, 1, 2], "value": [1.0, 0.0, 2.0]})
    assert np.isnan(scalars_figure(table, LIGHT, name="loss", log=True).data[0].y[1])
    assert scalars_figure(table, LIGHT, name="loss").data[0].y[1] == 0


def test_less_is_not_told_from_more_by_colour_alone():
    table = pd.DataFrame(
        {"quantity": ["attempts", "refused", "x"], "a": [10.0, 4, 0], "b": [9.0, 5, 1]}
    )
    table["percent"] = [-10.0, 25.0, np.inf]
    less, more = comparison_bars_figure(table, LIGHT).data
    assert list(less.y) == ["attempts  -10.0 %"]
    assert list(more.y) == ["refused  +25.0 %"]
    assert less.marker.pattern.shape != more.marker.pattern.shape


def test_paired_rows_fall_on_either_side_of_the_diagonal():
    table = pd.DataFrame({"instance": [0, 1, 2], "a": [10, 20, 30], "b": [10, 10, 60]})
    diagonal, no_more, more = comparison_scatter_figure(table, LIGHT, a="I", b="PID").data
    assert diagonal.name == "equal"
    assert list(no_more.customdata) == [0, 1]
    assert list(more.customdata) == [2]


def test_only_causes_that_occur_are_drawn():
    table = pd.DataFrame(
        {"attempt": [0, 1], "accuracy": [1.0, 0.5], "event": 0.0, "end of span": [0, 0.5]}
    )
    figure = limiter_shares_figure(table, LIGHT)
    assert [trace.name for trace in figure.data] == ["accuracy (75%)", "end of the span (25%)"]


def test_solves_with_failed_rows_are_crossed():
    table = pd.DataFrame({"solve": [0, 1, 2], "n_attempts": [5, 6, 7], "n_failed": [0, 2, 0]})
    figure = solve_costs_figure(table, LIGHT, selected=1)
    assert list(figure.data[1].x) == [1]
