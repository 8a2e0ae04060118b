"""Runs side by side: counts over time add up, states meet, changes are of the first run."""

import numpy as np
import pytest

from inspector import comparing, open_run
from inspector.synthetic import write_synthetic_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("compared")
    write_synthetic_run(root / "a", batch=5, attempts=80, states=3)
    write_synthetic_run(root / "b", batch=5, attempts=150, states=3)
    return {name: open_run(root / name) for name in ("a", "b")}


def test_attempts_over_time_add_up_to_each_row_s_attempts(runs):
    run = runs["a"]
    edges = comparing.time_edges(run, 0, 30)
    instances, counts = comparing.work_over_time(run, 0, edges)
    steps = run.steps(0)
    assert counts.shape == (len(instances), 30)
    for row, own in zip(instances, counts, strict=True):
        assert own.sum() == (steps["instance"] == row).sum()
    assert edges[0] <= steps["t"].min()
    assert edges[-1] >= (steps["t"] + steps["dt"]).max()


def test_a_run_differs_nowhere_from_itself_and_twice_the_work_shows_as_more(runs):
    edges = comparing.time_edges(runs["a"], 0, 10)
    rows, ratio = comparing.work_difference(runs["a"], runs["a"], 0, edges)
    assert len(rows) == 5
    assert not ratio.any()
    _, more = comparing.work_difference(runs["a"], runs["b"], 0, edges)
    _, less = comparing.work_difference(runs["b"], runs["a"], 0, edges)
    np.testing.assert_allclose(more, -less)
    few, _ = comparing.work_difference(runs["a"], runs["b"], 0, edges, rows=2)
    assert list(few) == [0, 4]


def test_states_in_between_are_cubic_and_outside_unknown():
    t = np.array([0.0, 0.1, 0.1, 0.35, 0.5, 0.9, 1.0])
    cubic = lambda x: 2 - x + 3 * x**3  # noqa: E731
    found = comparing.state_at(t, cubic(t), np.array([-0.1, 0.0, 0.2, 0.77, 1.0, 1.1]))
    np.testing.assert_allclose(found[1:5], cubic(np.array([0.0, 0.2, 0.77, 1.0])), rtol=1e-12)
    assert np.isnan(found[[0, 5]]).all()
    assert np.isnan(comparing.state_at(np.array([]), np.array([]), np.array([1.0]))).all()
    backwards = comparing.state_at(t[::-1], cubic(t)[::-1], np.array([0.2]))
    np.testing.assert_allclose(backwards, cubic(np.array([0.2])), rtol=1e-12)


def test_numbers_are_held_to_the_first_run(runs):
    table = comparing.numbers_of(runs).set_index("run")
    assert np.isnan(table.loc["a", "attempts %"])
    change = 100 * (table.loc["b", "attempts"] / table.loc["a", "attempts"] - 1)
    assert table.loc["b", "attempts %"] == pytest.approx(change)
