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
from solver.catalogue import controller_by_name


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
        (decay, ONE, 1.0, {"narrow": True, "rtol": 1e-7, "atol": 1e-9}),
        (decay, ONE, 1.0, {"narrow": True, "rtol": 1e-4, "atol": 1e-6}),
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
    y0 = y0.float() if options.pop("narrow", False) else y0.double()
    if "safety" in options:
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


def jumping(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Slides along y = 1, where it jumps: Newton's iteration goes from one side to the other."""
    return torch.where(y > 1, -300.0 * (1 + (y - 1).abs().sqrt()), 300.0 * (1 + (1 - y)))


def network(width: int) -> tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]:
    """Return a field that is a small network, and its weights."""
    generator = torch.Generator().manual_seed(0)
    first, second = (
        torch.randn(shape, generator=generator).div_(width**0.5).requires_grad_()
        for shape in ((2, width), (width, 2))
    )
    return lambda t, y: torch.tanh(y @ first) @ second, (first, second)


def learnt(path: Path, adjoint: str, width: int = 64, batch: int = 32, **options: Any) -> Run:
    """Take one gradient through a network and record it."""
    f, weights = network(width)
    with Inspector(path) as recorder:
        sol = solve_ivp(
            f, torch.ones(batch, 2), t0=0.0, t1=20.0, adjoint=adjoint, params=weights,
            hooks=[recorder], **({"rtol": 1e-6, "atol": 1e-8} | options),
        )  # fmt: skip
        torch.autograd.grad(sol.ys.square().sum(), weights)
    return open_run(path)


def test_memory_that_another_mode_would_save(tmp_path: Path):
    found = diagnose(learnt(tmp_path / "bad", "backprop"), only=["memory"])
    assert [finding.change for finding in found.findings] == [{"adjoint": "symplectic"}]
    assert found.findings[0].numbers["bytes"] > 3 * found.findings[0].numbers["needed"]
    assert not diagnose(learnt(tmp_path / "good", "symplectic"), only=["memory"]).findings


def test_an_error_of_the_continuous_adjoint(tmp_path: Path):
    name = "continuous_adjoint"
    found = diagnose(learnt(tmp_path / "bad", "continuous", 4, 2), only=[name])
    assert [finding.rule for finding in found.findings] == [name]
    assert not diagnose(learnt(tmp_path / "good", "symplectic", 4, 2), only=[name]).findings


def test_newton_failing(tmp_path: Path):
    bad = (jumping, torch.zeros(1, 1), 1.0, {"method": "kvaerno5", "max_steps": 400})
    found = diagnose(recorded(tmp_path / "bad", bad), only=["newton"])
    assert [finding.rule for finding in found.findings] == ["newton"]
    good = (van_der_pol(100.0), START, 20.0, {"method": "kvaerno5"})
    assert not diagnose(recorded(tmp_path / "good", good), only=["newton"]).findings


@pytest.mark.parametrize(("grows", "expected"), [(3.0, ["growing_nfe"]), (1.0, [])])
def test_a_training_whose_solves_become_dearer(tmp_path: Path, grows: float, expected: list[str]):
    with Inspector(tmp_path / "run") as recorder:
        for step in range(30):
            speed = 5.0 * grows ** (step / 10)
            with recorder.iteration(step):
                solve_ivp(
                    lambda t, y, speed=speed: speed * y.flip(1) * torch.tensor([1.0, -1.0]),
                    torch.ones(4, 2), t0=0.0, t1=2.0, rtol=1e-5, atol=1e-7, hooks=[recorder],
                )  # fmt: skip
                recorder.log(loss=1.0)
    found = diagnose(open_run(tmp_path / "run"), only=["growing_nfe"])
    assert [finding.rule for finding in found.findings] == expected


def test_compiling_for_a_single_short_solve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    number = 1.0 + torch.rand(1).item()
    solve = (lambda t, y: -y * number - y.tanh() * 0.25, ONE, 1.0, {"engine": "compiled"})
    found = diagnose(recorded(tmp_path / "bad", solve), only=["compiling"])
    assert [finding.change for finding in found.findings] == [{"engine": "plain"}]
    again = diagnose(recorded(tmp_path / "good", solve), only=["compiling"])
    assert not again.findings


def test_accepting_and_refusing_in_turn(tmp_path: Path):
    # Where stability limits the steps, a controller without memory overshoots each time.
    stiff = (lambda t, y: -200 * (y - t[:, None].cos()), ONE, 10.0)
    gains = controller_by_name("i", {"safety": 0.999})
    bad = {"method": "dopri8", "controller": gains, "rtol": 1e-4, "atol": 1e-6}
    found = diagnose(recorded(tmp_path / "bad", (*stiff, bad)), only=["oscillating"])
    assert [finding.rule for finding in found.findings] == ["oscillating"]
    assert found.findings[0].change == {"controller": {"name": "digital_filter", "filter": "h211b"}}
    good = bad | {"controller": "h211b"}
    assert not diagnose(recorded(tmp_path / "good", (*stiff, good)), only=["oscillating"]).findings


GAIN = {  # rule -> what its change must bring down, and to what share
    "stability_limited": ("attempts", 0.4),
    "refusals": ("refused", 0.7),
    "stragglers": ("evaluated rows", 0.8),
    "first_step": ("attempts", 0.9),
    "discontinuity": ("attempts", 0.5),
    "joint_stepping": ("evaluations", 0.6),
}


@pytest.mark.parametrize("name", GAIN)
def test_trying_a_change_gains_what_the_rule_says(name: str, tmp_path: Path):
    from app.worker import record
    from inspector import queries

    spread = {"parameter": "mu", "low": 2.0, "high": 60.0, "scale": "log"}
    oscillator = {"problem": "van_der_pol", "spread": spread, "batch": 6, "engine": "plain"}
    specs: dict[str, dict[str, Any]] = {
        "stability_limited": oscillator,
        "refusals": {
            "problem": "lorenz", "batch": 4, "controller": {"name": "integral", "safety": 0.999},
        },
        "stragglers": oscillator,
        "first_step": {"problem": "lotka_volterra", "batch": 4, "dt0": 1e-12, "t1": 4.0},
        "discontinuity": {"problem": "discontinuous", "batch": 4, "rtol": 1e-6, "atol": 1e-8},
        "joint_stepping": oscillator | {"stepping": "joint"},
    }  # fmt: skip
    record(specs[name], tmp_path / "before")
    before = open_run(tmp_path / "before")
    finding = diagnose(before, only=[name]).findings[0]
    assert finding.change is not None
    record(specs[name] | dict(finding.change), tmp_path / "after")
    table = queries.compare(before, open_run(tmp_path / "after")).set_index("quantity")
    quantity, share = GAIN[name]
    assert float(table["b"][quantity]) < share * float(table["a"][quantity])
    assert float(table["b"]["failed instances"]) == 0
