"""Numbers in plain words."""

import math

import numpy as np
import pandas as pd
import pytest

from app import explain

LABELS = {0: "accuracy", 2: "dt_max", 6: "non-finite", 7: "first step"}


def instances(status: str = "SUCCESS") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "instance": [2, 0, 1],
            "n_steps": [1240, 300, 200],
            "n_accepted": [856, 300, 150],
            "n_rejected": [384, 0, 50],
            "status_name": [status, "SUCCESS", "SUCCESS"],
            "t_reached": [1.25, 20.0, 20.0],
        }
    )


def steps(limiter: list[int], component: list[int] | None = None) -> pd.DataFrame:
    table = pd.DataFrame({"attempt": range(len(limiter)), "limiter": limiter})
    return table if component is None else table.assign(limiting_component=component)


def test_a_slow_row_is_put_into_one_sentence():
    said = explain.row_in_words(
        2,
        instances(),
        steps([7] + [0] * 92 + [2] * 7, [0] * 70 + [1] * 30),
        LABELS,
        parameter="mu = 50",
        components=["x", "v"],
    )
    assert said == (
        "Row 2 (mu = 50) took 1\u202f240 attempts, 4.1\u00d7 the batch median; 31 % were refused; "
        "steps were limited by accuracy in 92 %; x made most of the error in 70 %."
    )


def test_a_row_like_all_others_is_not_called_unusual():
    said = explain.row_in_words(0, instances(), steps([0, 0]), LABELS)
    assert said == (
        "Row 0 took 300 attempts, as many as the batch median; none was refused; "
        "steps were limited by accuracy in all of them."
    )


@pytest.mark.parametrize("status", ["NON_FINITE", "REACHED_MAX_STEPS", "REACHED_DT_MIN", "NEW_ONE"])
def test_a_failed_row_ends_with_how_it_ended(status: str):
    said = explain.row_in_words(2, instances(status), steps([]), LABELS)
    assert said.endswith("and ended at t = 1.25.")


def test_a_row_without_a_step_says_so():
    empty = instances().assign(n_steps=0)
    assert explain.row_in_words(1, empty, steps([]), LABELS) == "Row 1 has not taken a step."
    assert "not taken" in explain.row_in_words(99, instances(), steps([]), LABELS)


def test_every_status_of_the_store_has_its_words():
    from inspector.schema import STATUS_NAMES

    assert set(STATUS_NAMES.values()) == set(explain.STATUSES)


def test_every_limiter_of_the_solver_has_its_words():
    from app.figures.limiter import PATTERNS, WORDS
    from app.theme import DARK, LIGHT
    from solver.statistics.limiter import Limiter

    labels = set(Limiter.labels.values())
    for known in (explain.LIMITS, WORDS, PATTERNS, LIGHT.limiters, DARK.limiters):
        assert labels <= set(known)


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0 %"), (0.004, "< 1 %"), (0.306, "31 %"), (1.0, "100 %"), (None, "\u2013")],
)
def test_percent(share, said):
    assert explain.percent(share) == said


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (4.13, "4.1\u00d7"),
        (0.048, "0.048\u00d7"),
        (1234.0, "1\u202f234\u00d7"),
        (math.nan, "\u2013"),
    ],
)
def test_times(ratio, said):
    assert explain.times(ratio) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(999, "999 B"), (13_800_000, "13.8 MB"), (5e12, "5000 GB"), (math.nan, "\u2013")],
)
def test_size(value, said):
    assert explain.size(value) == said


@pytest.mark.parametrize(
    ("value", "said"), [(0.32, "320 ms"), (12.0, "12.0 s"), (600.0, "10.0 min"), (7200.0, "2.0 h")]
)
def test_duration(value, said):
    assert explain.duration(value) == said


def test_the_median_of_zero_gives_no_ratio():
    table = pd.DataFrame({"instance": [0, 1, 2], "n_rejected": [0, 0, 5]})
    own, ratio = explain.against_median(table, 2, "n_rejected")
    assert own == 5
    assert np.isnan(ratio)
