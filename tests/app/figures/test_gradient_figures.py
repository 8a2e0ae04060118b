"""Figures of gradient modes: what is drawn where."""

import numpy as np
import pandas as pd
import pytest

from app.figures.gradient_cost import gradient_cost_figure, nice_ticks
from app.figures.gradient_errors import group_errors_figure, row_errors_figure
from app.figures.gradient_sweep import gradient_sweep_figure
from app.figures.memory_timeline import memory_timeline_figure
from app.figures.modes import FLOOR, error_axis, looks
from app.theme import DARK, LIGHT

TABLE = pd.DataFrame(
    {
        "value": [1e-2, 1e-2, 1e-4, 1e-4],
        "mode": ["backprop", "joint", "backprop", "joint"],
        "error": [0.0, 1e-3, 0.0, 1e-5],
        "peak_bytes": [2.0**22, 2.0**20, 2.0**23, 2.0**20],
        "seconds": [0.1, 0.2, 0.3, 0.4],
    }
)


def test_modes_differ_in_colour_and_shape_and_keep_their_look():
    modes = [f"mode {i}" for i in range(12)]
    for colours in (LIGHT, DARK):
        found = looks(modes, colours)
        assert len({(look.colour, look.dash) for look in found.values()}) == 12
        assert len({look.symbol for look in found.values()}) == 12
        assert looks(modes[:3], colours) == dict(list(found.items())[:3])


def test_an_error_of_zero_stands_at_the_bottom_and_says_so():
    figure = gradient_cost_figure(TABLE.iloc[:2], LIGHT, x="peak_bytes")
    points = {trace.name: trace for trace in figure.data}
    assert points["backprop"].y[0] == FLOOR
    assert points["backprop"].customdata[0] == 0
    assert points["joint"].x[0] == pytest.approx(1.0)
    axis = figure.layout.yaxis
    assert axis.ticktext[0] == "0"
    assert axis.range[0] < np.log10(FLOOR)
    assert axis.range[1] > -3


def test_axes_without_an_exact_zero_have_none():
    ticks = error_axis(np.array([1e-8, 1e-3]))["ticktext"]
    assert "0" not in ticks
    assert error_axis(np.array([np.nan])) == {}


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.6), (1, 900), (1e-4, 1e4), (3.0, 3.0)])
def test_ticks_lie_around_the_values_and_never_crowd(low, high):
    ticks = nice_ticks(low, high)["tickvals"]
    assert 1 <= len(ticks) <= 12
    assert min(ticks) <= high * 2
    assert max(ticks) >= low / 2


def test_memory_is_aligned_by_phase():
    memory = pd.DataFrame(
        {
            "mode": ["a"] * 5 + ["b"] * 3,
            "seconds": [0.0, 1.0, 3.0, 5.0, 6.0, 0.0, 10.0, 40.0],
            "bytes": np.arange(8) * 2.0**20,
            "phase": ["", *["forward"] * 2, *["backward"] * 2, "forward", "backward", "backward"],
        }
    )
    figure = memory_timeline_figure(memory, LIGHT)
    a, b = figure.data
    np.testing.assert_allclose(a.x, [0, 0.5, 1, 2])
    np.testing.assert_allclose(b.x, [0, 1, 2])
    assert list(a.y) == [1, 2, 3, 4]


def test_groups_and_rows_show_every_mode_and_the_worst_row_first():
    groups = pd.DataFrame(
        {"mode": ["a", "a", "b", "b"], "group": ["y0", "net"] * 2, "error": [0, 1e-9, 1e-3, 1e-2],
         "error_exact": [1e-4] * 4}
    )  # fmt: skip
    figure = group_errors_figure(groups, LIGHT)
    assert list(figure.layout.xaxis.ticktext) == ["y0", "net"]
    a, b = figure.data
    assert a.x[0] < 0 < b.x[0]
    np.testing.assert_allclose(
        group_errors_figure(groups, LIGHT, column="error_exact").data[0].y, 1e-4
    )
    rows = pd.DataFrame({"mode": ["a"] * 3, "instance": [0, 1, 2], "error": [1e-9, 1e-3, 1e-6]})
    (trace,) = row_errors_figure(rows, LIGHT).data
    assert trace.customdata[:, 0].tolist() == [1, 2, 0]


def test_a_sweep_has_a_line_for_each_mode_in_order_of_its_value():
    figure = gradient_sweep_figure(TABLE, LIGHT, sweep="rtol", y="error")
    lines = {trace.name: trace for trace in figure.data}
    assert lines["joint"].x.tolist() == [1e-4, 1e-2]
    assert lines["joint"].y.tolist() == [1e-5, 1e-3]
    assert (lines["backprop"].y == FLOOR).all()
    time = gradient_sweep_figure(TABLE, LIGHT, sweep="steps", y="seconds")
    assert time.data[0].y.tolist() == pytest.approx([300, 100])
