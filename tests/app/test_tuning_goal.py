"""What the tuner promises on Van der Pol, mu = 25: good gains, and an estimate to be trusted."""

import pytest

from app.tuning import tune

pytestmark = pytest.mark.slow

SPEC = {
    "kind": "tune", "problem": "van_der_pol", "parameters": {"mu": 25.0}, "spread": None,
    "batch": 2, "t1": 40.0, "method": "tsit5", "rtol": 1e-5, "jobs": 1, "verify": 3,
}  # fmt: skip
NEAR = [0.5, 1.0, 2.0]  # times the recorded gains


def real(entries):
    """Return the real solves at the method and tolerance asked for."""
    return [e for e in entries if e["phase"] == "real" and not e["failed"]]


def test_gains_are_found_that_need_no_more_attempts_than_the_best_preset():
    solved = real(tune(SPEC))
    presets = [e["attempts"] for e in solved if e["source"] == "preset"]
    found = [e["attempts"] for e in solved if e["source"] in ("grid", "search")]
    assert len(presets) >= 8
    assert min(found) <= min(presets)


@pytest.mark.parametrize(("kp", "ki"), [(0.2, 0.5), (0.4, 0.3), (0.1, 0.6)])
def test_the_estimate_is_within_a_tenth_for_gains_within_a_factor_of_two(kp, ki):
    spec = SPEC | {
        "controller": {"name": "pid", "kp": kp, "ki": ki},
        "kp": [round(kp * f, 3) for f in NEAR], "ki": [round(ki * f, 3) for f in NEAR],
        "search": False, "verify": 9,
    }  # fmt: skip
    near = [e for e in real(tune(spec)) if e["source"] == "grid"]
    off = {e["title"]: e["estimate"] / e["attempts"] - 1 for e in near}
    assert len(off) == 9
    assert max(map(abs, off.values())) < 0.1, off
