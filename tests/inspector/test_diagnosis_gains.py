"""What a rule proposes is tried by a rerun, and gains what the rule says.

Beside `test_diagnosis.py`, which tries the rules that a sample problem triggers: here are those
that need a solve of their own, or are about gradients.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from inspector import Inspector, open_run, queries
from inspector.diagnosis import diagnose, rules
from inspector.run import Run
from solver import Solution, solve_ivp
from solver.catalogue import controller_by_name

F64 = torch.float64
Options = dict[str, Any]
ONE = torch.ones(1, 1, dtype=F64)


def recorded(path: Path, f: Callable[..., Tensor], options: Options) -> tuple[Run, Solution]:
    """Solve, record and open; entries of a spec that a change may name are understood."""
    options = {"rtol": 1e-5, "atol": 1e-7, "t0": 0.0, "engine": "plain"} | options
    dtype = options.pop("dtype", "float64")
    y0 = options.pop("y0").to(getattr(torch, dtype))
    if isinstance(controller := options.get("controller"), Mapping):
        settings = {key: value for key, value in controller.items() if key != "name"}
        options["controller"] = controller_by_name(controller["name"], settings)
    with Inspector(path) as recorder:
        sol = solve_ivp(f, y0, hooks=[recorder], **options)
    return open_run(path), sol


def tried(tmp_path: Path, name: str, f: Callable[..., Tensor], options: Options):
    """Return run and solution before and after the change that the rule proposes."""
    before, first = recorded(tmp_path / "before", f, options)
    (finding, *_) = diagnose(before, only=[name]).findings
    assert finding.change
    json.dumps(dict(finding.change))  # as it goes into a spec
    after, second = recorded(tmp_path / "after", f, options | dict(finding.change))
    left = [found.title for found in diagnose(after, only=[name]).findings]
    assert finding.title not in left
    table = queries.compare(before, after).set_index("quantity")
    return table, first, second


def decay(t: Tensor, y: Tensor) -> Tensor:
    """y' = -y."""
    return -y


def turning(t: Tensor, y: Tensor) -> Tensor:
    """An oscillation, 8 turns in a unit of time."""
    return 50 * torch.stack([y[:, 1], -y[:, 0]], 1)


@pytest.mark.parametrize(("bound", "value"), [("max_steps", 20), ("dt_min", 0.05)])
def test_rows_that_met_a_bound_arrive_without_it(bound: str, value: float, tmp_path: Path):
    start = torch.tensor([[1.0, 0.0]] * 3, dtype=F64)
    options = {"y0": start, "t1": 2.0, bound: value}
    table, first, second = tried(tmp_path, "bounds_met", turning, options)
    assert table["a"]["failed instances"] == 3
    assert table["b"]["failed instances"] == 0
    assert first.t_reached.max() < 2.0
    assert torch.equal(second.t_reached, torch.full((3,), 2.0, dtype=F64))


def test_a_largest_step_that_is_left_out_costs_fewer_attempts(tmp_path: Path):
    options = {"y0": ONE, "t1": 10.0, "dt_max": 0.02}
    table, _, second = tried(tmp_path, "bounds_met", decay, options)
    assert table["b"]["attempts"] < 0.2 * table["a"]["attempts"]
    assert second.ys.item() == pytest.approx(torch.tensor(-10.0).exp().item(), abs=1e-6)


def test_a_component_with_a_looser_tolerance_lets_steps_grow(tmp_path: Path):
    def mixed(t: Tensor, y: Tensor) -> Tensor:
        return torch.stack([2.5 * (50 * t).cos(), 1e-9 * y[:, 1], 1e-9 * y[:, 2]], 1)

    options = {"y0": torch.tensor([[0.0, 1.0, 1.0]], dtype=F64), "t1": 2.0}
    before, _ = recorded(tmp_path / "before", mixed, options)
    (finding,) = diagnose(before, only=["one_component"]).findings
    assert finding.change
    after, _ = recorded(tmp_path / "after", mixed, options | dict(finding.change))
    table = queries.compare(before, after).set_index("quantity")
    assert table["b"]["attempts"] < 0.85 * table["a"]["attempts"]


def test_numbers_that_resolve_the_tolerance_meet_it(tmp_path: Path):
    options = {"y0": torch.tensor([[1.0, 0.0]]), "t1": 2.0, "rtol": 2e-7, "atol": 1e-9}
    options["dtype"] = "float32"
    _, first, second = tried(tmp_path, "tolerance_resolution", turning, options)
    true = torch.tensor([100.0], dtype=F64).cos()
    before, after = ((sol.ys[0, 0, :1].double() - true).abs().item() for sol in (first, second))
    assert after < 0.3 * before


def test_time_that_is_fine_enough_meets_the_tolerance(tmp_path: Path):
    def pulsed(t: Tensor, y: Tensor) -> Tensor:
        return -(t[:, None] - 1e4).to(y.dtype).cos() * 10 * y

    options = {"y0": torch.ones(1, 1), "dtype": "float32", "time_dtype": torch.float32}
    options |= {"t0": 1e4, "t1": 1e4 + 10, "rtol": 1e-7, "atol": 1e-12}
    before, first = recorded(tmp_path / "before", pulsed, options)
    (finding, *_) = diagnose(before, only=["time_resolution"]).findings
    assert finding.change == {"dtype": "float64"}
    # Of a spec, whose time is float64 as the state is.
    wide = options | {**finding.change, "time_dtype": torch.float64}
    after, second = recorded(tmp_path / "after", pulsed, wide)
    assert not diagnose(after, only=["time_resolution"]).findings
    true = (-10 * torch.tensor(10.0, dtype=F64).sin()).exp()
    off = [((sol.y_reached[0, 0].double() - true) / true).abs().item() for sol in (first, second)]
    assert bool(first.status.any()) or off[1] < 0.1 * off[0]
    assert not second.status.any()


def test_smaller_steps_stay_where_the_field_is_finite(tmp_path: Path):
    def root(t: Tensor, y: Tensor) -> Tensor:  # comes to rest at y = 0.01
        return -2.0 * (y.sqrt() - 0.1)

    options = {"y0": ONE, "t1": 40.0, "rtol": 1e-3, "atol": 5e-2}
    before, first = recorded(tmp_path / "before", root, options)
    found = diagnose(before, only=["non_finite"]).findings
    assert [finding.rule for finding in found] == ["non_finite"]
    assert not first.status.any()
    assert found[0].change
    after, second = recorded(tmp_path / "after", root, options | dict(found[0].change))
    assert not second.status.any()
    assert not diagnose(after, only=["non_finite"]).findings
    table = queries.compare(before, after).set_index("quantity")
    assert table["b"]["refused"] < 0.2 * table["a"]["refused"]


def test_a_linear_system_in_place_of_newtons_iteration_allows_larger_steps(tmp_path: Path):
    def stepped(t: Tensor, y: Tensor) -> Tensor:  # its slope changes by a factor of 1e9 nearby
        return -1e6 * torch.tanh(1e3 * (y - t[:, None].cos()))

    options = {"y0": 0.3 * ONE, "t1": 2.0, "method": "kvaerno5"}
    table, _, second = tried(tmp_path, "newton", stepped, options)
    assert table["b"]["attempts"] < 0.5 * table["a"]["attempts"]
    assert table["b"]["evaluations"] < 0.5 * table["a"]["evaluations"]
    assert not second.status.any()


def test_a_controller_with_memory_is_refused_less_often(tmp_path: Path):
    gains = {"name": "integral", "safety": 0.999}
    options = {"y0": ONE, "t1": 10.0, "method": "dopri8", "controller": gains}
    options |= {"rtol": 1e-4, "atol": 1e-6}
    table, _, _ = tried(
        tmp_path, "oscillating", lambda t, y: -200 * (y - t[:, None].cos()), options
    )
    assert table["b"]["refused"] < 0.6 * table["a"]["refused"]


def test_the_plain_loop_is_quicker_than_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    number = 1.0 + torch.rand(1).item()
    options = {"y0": ONE, "t1": 1.0, "engine": "compiled"}
    table, _, _ = tried(tmp_path, "compiling", lambda t, y: -y * number - y.tanh() / 4, options)
    assert table["b"]["seconds"] < table["a"]["seconds"]


def gradient(path: Path, adjoint: str, width: int, batch: int, **options: Any):
    """Take a gradient through a network and record it."""
    generator = torch.Generator().manual_seed(0)
    first, second = (
        torch.randn(shape, generator=generator, dtype=F64).div_(width**0.5).requires_grad_()
        for shape in ((2, width), (width, 2))
    )
    given: Options = {"rtol": 1e-6, "atol": 1e-8} | options
    with Inspector(path) as recorder:
        sol = solve_ivp(
            lambda t, y: torch.tanh(y @ first) @ second, torch.ones(batch, 2, dtype=F64), t0=0.0,
            t1=20.0, adjoint=adjoint, params=(first, second), hooks=[recorder], engine="plain",
            **given,
        )  # fmt: skip
        found = torch.autograd.grad(sol.ys.square().sum(), (first, second))
    return open_run(path), torch.cat([each.flatten() for each in found])


def test_another_gradient_mode_keeps_less(tmp_path: Path):
    before, one = gradient(tmp_path / "before", "backprop", 64, 16)
    (finding,) = diagnose(before, only=["memory"]).findings
    assert finding.change
    after, other = gradient(tmp_path / "after", str(finding.change["adjoint"]), 64, 16)
    kept = [
        max(each["graph_bytes"] for each in run.solve_state(0).backward) for run in (before, after)
    ]
    assert kept[1] < 0.5 * kept[0]
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_another_gradient_mode_is_exact(tmp_path: Path):
    before, one = gradient(tmp_path / "before", "continuous", 4, 2)
    (finding,) = diagnose(before, only=["continuous_adjoint"]).findings
    assert finding.change
    _, other = gradient(tmp_path / "after", str(finding.change["adjoint"]), 4, 2)
    _, true = gradient(tmp_path / "true", "backprop", 4, 2)  # of the states that are returned
    off = [(each - true).norm().item() for each in (one, other)]
    assert off[1] < 1e-3 * off[0]


def test_every_rule_has_a_gain_that_is_measured_or_proposes_nothing_to_try():
    here = Path(__file__).read_text() + (Path(__file__).parent / "test_diagnosis.py").read_text()
    nothing_to_try = {"growing_nfe"}
    for name in rules().keys() - nothing_to_try:
        assert f'"{name}"' in here
