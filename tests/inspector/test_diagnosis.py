"""Each rule has a solve that must trigger it and one that must not; all solves are real."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from app import cli
from inspector import Inspector, open_run
from inspector.diagnosis import Case, Finding, diagnose, rule, rules
from inspector.diagnosis.base import _registered
from inspector.run import Run
from solver import solve_ivp


def van_der_pol(mu: float | list[float]) -> Callable[..., torch.Tensor]:
    """Return the oscillator's field."""
    stiffness = torch.tensor(mu).reshape(-1, 1)

    def f(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, v = y[:, :1], y[:, 1:]
        return torch.cat([v, stiffness * (1 - x * x) * v - x], 1)

    return f


def decay(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """y' = -y."""
    return -y


def lorenz(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Lorenz's attractor."""
    a, b, c = y.unbind(1)
    return torch.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], 1)


def square_wave(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A charge that is switched over twice in a unit of time."""
    return (1 - 2 * (2 * t).floor().remainder(2))[:, None] * 3 - y


def root(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Not defined below 0, which it reaches at t = 2."""
    return -y.sqrt()


def mixed(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """One oscillation and two components that hardly move."""
    return torch.stack([50 * (50 * t).cos(), 1e-9 * y[:, 1], 1e-9 * y[:, 2]], 1)


START = torch.tensor([[2.0, 0.0]])
ONE = torch.ones(1, 1)
Solve = tuple[Callable[..., torch.Tensor], torch.Tensor, float, dict[str, Any]]
CASES: dict[str, tuple[Solve, Solve]] = {  # rule -> one that triggers it, one that does not
    "stability_limited": (
        (van_der_pol(100.0), START, 20.0, {}),
        (van_der_pol(100.0), START, 20.0, {"method": "rodas5p"}),
    ),
    "refusals": (
        (lorenz, torch.ones(1, 3), 10.0, {"controller": "i", "safety": 0.999}),
        (lorenz, torch.ones(1, 3), 10.0, {"controller": "i", "safety": 0.7}),
    ),
    "one_component": (
        (mixed, torch.ones(1, 3), 2.0, {}),
        (lorenz, torch.ones(1, 3), 10.0, {}),
    ),
    "tolerance_resolution": (
        (decay, ONE.float(), 1.0, {"rtol": 1e-7, "atol": 1e-9}),
        (decay, ONE.float(), 1.0, {"rtol": 1e-4, "atol": 1e-6}),
    ),
    "time_resolution": (
        (lambda t, y: -(t[:, None] - 1e4).cos() * 40 * y, ONE, 10.0,
         {"t0": 1e4, "time_dtype": torch.float32, "rtol": 1e-8, "atol": 1e-10}),
        (lambda t, y: -(t[:, None] - 1e4).cos() * 40 * y, ONE, 10.0,
         {"t0": 1e4, "rtol": 1e-8, "atol": 1e-10}),
    ),
    "stragglers": (
        (van_der_pol([1.0, 1.0, 1.0, 50.0]), START.expand(4, 2), 20.0, {"engine": "plain"}),
        (van_der_pol([1.0, 1.0, 1.0, 1.1]), START.expand(4, 2), 20.0, {"engine": "plain"}),
    ),
    "bounds_met": (
        (decay, ONE, 10.0, {"max_steps": 3}),
        (decay, ONE, 10.0, {"max_steps": 300}),
    ),
    "first_step": (
        (decay, ONE, 1.0, {"dt0": 1e-9, "rtol": 1e-6}),
        (decay, ONE, 1.0, {"rtol": 1e-6}),
    ),
    "discontinuity": (
        (square_wave, torch.zeros(4, 1), 4.0, {"rtol": 1e-6, "atol": 1e-8}),
        (square_wave, torch.zeros(4, 1), 4.0,
         {"rtol": 1e-6, "atol": 1e-8, "jump_t": torch.arange(1, 8) / 2}),
    ),
    "non_finite": (
        (root, ONE, 5.0, {}),
        (root, ONE, 1.5, {}),
    ),
    "joint_stepping": (
        (decay, torch.ones(3, 1), 1.0, {"stepping": "joint"}),
        (decay, torch.ones(3, 1), 1.0, {}),
    ),
}  # fmt: skip


def recorded(path: Path, solve: Solve, **more: Any) -> Run:
    """Solve, record and open."""
    f, y0, span, options = solve
    options = {"rtol": 1e-5, "atol": 1e-7} | options
    t0 = options.pop("t0", 0.0)
    if "safety" in options:
        from solver.catalogue import controller_by_name

        options["controller"] = controller_by_name(
            options.pop("controller"), {"safety": options.pop("safety")}
        )
    with Inspector(path, **more) as recorder:
        solve_ivp(f, y0, t0=t0, t1=t0 + span, hooks=[recorder], **options)
    return open_run(path)


@pytest.mark.parametrize("name", CASES)
def test_a_rule_finds_what_it_is_for_and_only_that(name: str, tmp_path: Path):
    bad, good = CASES[name]
    found = diagnose(recorded(tmp_path / "bad", bad), only=[name])
    assert [finding.rule for finding in found.findings][:1] == [name]
    first = found.findings[0]
    assert first.evidence
    assert first.advice
    assert first.certainty in ("measured", "likely", "possible")
    assert json.loads(json.dumps(first.to_json()))["rule"] == name
    assert not diagnose(recorded(tmp_path / "good", good), only=[name]).findings


def test_no_rule_fires_on_lorenz(tmp_path: Path):
    starts = torch.ones(8, 3) + torch.linspace(0, 1, 8)[:, None]
    run = recorded(tmp_path / "run", (lorenz, starts, 20.0, {"rtol": 1e-6, "atol": 1e-8}))
    found = diagnose(run)
    assert found.findings == ()
    assert not found.not_judged


def test_what_was_not_recorded_is_said_and_not_guessed(tmp_path: Path):
    solve = CASES["stability_limited"][0]
    run = recorded(tmp_path / "run", solve, statistics=())
    found = diagnose(run)
    assert "stability_limited" not in [finding.rule for finding in found.findings]
    assert found.not_judged["stability_limited"] == "stiffness was not recorded"


def test_a_user_adds_a_rule_and_one_that_raises_hides_nothing(tmp_path: Path):
    @rule("many", title="More than one attempt")
    def many(case: Case):
        yield Finding(evidence="two", certainty="measured", advice="wait", rows=(0,))

    @rule("broken", title="Raises")
    def broken(case: Case):
        raise RuntimeError("no")

    try:
        run = recorded(tmp_path / "run", (decay, ONE, 1.0, {}))
        with pytest.warns(RuntimeWarning, match="broken"):
            found = diagnose(run)
        assert [finding.rule for finding in found.findings] == ["many"]
        assert found.not_judged["broken"] == "RuntimeError: no"
    finally:
        del _registered["many"], _registered["broken"]


def test_the_command_prints_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = recorded(tmp_path / "run", CASES["joint_stepping"][0])
    assert cli.main(["diagnose", str(run.path)]) == 0
    assert "joint_stepping" in capsys.readouterr().out
    assert cli.main(["diagnose", str(run.path), "--json", "--only", "joint_stepping"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["findings"][0]["change"] == {"stepping": "independent"}
    assert cli.main(["diagnose", str(run.path), "--only", "nothing"]) == 1


def test_every_rule_says_what_it_is():
    for name, each in rules().items():
        assert name == each.name
        assert each.title


def test_reading_a_diagnosis_needs_no_torch():
    import subprocess

    script = "import sys, inspector.diagnosis as d; d.rules(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0
