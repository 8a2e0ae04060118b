"""Comparing modes: errors against float64, memory, evaluations."""

import pytest
import torch

from solver.adjoints.compare import GradientProblem, compare_adjoints

MODES = ["backprop", "checkpoint_steps", "aca", "symplectic", "continuous", "joint", "interpolated"]


def make(dtype):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    net = net.to(torch.float32).to(dtype)
    y0 = torch.linspace(-1, 1, 12).to(torch.float32).reshape(4, 3).to(dtype)
    parameters = {"weights": [net[0].weight, net[2].weight], "biases": [net[0].bias, net[2].bias]}
    return GradientProblem(lambda t, y: net(y), y0, parameters, {"t0": 0.0, "t1": 3.0})


def test_every_mode_has_its_entry_with_errors_memory_and_evaluations():
    entries = compare_adjoints(make, MODES, rtol=1e-5, atol=1e-5, method="dopri5")
    assert [entry["mode"] for entry in entries] == MODES
    by_mode = {entry["mode"]: entry for entry in entries}
    for mode in ("backprop", "checkpoint_steps", "aca", "symplectic"):
        assert max(by_mode[mode]["error"].values()) < 1e-12, mode
        assert len(by_mode[mode]["error_rows"]) == 4
    for mode in ("continuous", "joint", "interpolated"):
        assert 1e-9 < max(by_mode[mode]["error"].values()) < 1e-2, mode
    for entry in entries:
        assert set(entry["error"]) == {"y0", "weights", "biases"}
        assert entry["error_exact"]["weights"] < 1e-3
        assert entry["seconds_forward"] > 0
        assert entry["n_f_backward"] is not None or entry["mode"] in MODES[:2]
    graphs = {mode: by_mode[mode]["graph_bytes"] for mode in ("aca", "symplectic")}
    assert graphs["aca"] == pytest.approx(6 * graphs["symplectic"], rel=0.1)
    assert by_mode["backprop"]["kept_bytes"] > 5 * by_mode["aca"]["kept_bytes"]


def test_float32_is_measured_against_float64():
    (entry,) = compare_adjoints(make, ["symplectic"], dtype=torch.float32, rtol=1e-4, atol=1e-4)
    assert 1e-9 < entry["error"]["weights"] < 1e-3


def test_the_allocator_sees_less_for_the_symplectic_mode_than_for_backpropagation():
    entries = compare_adjoints(make, ["backprop", "symplectic"], allocator=True, rtol=1e-6, t1=30.0)
    backprop, symplectic = (entry["peak_bytes"] for entry in entries)
    assert 0 < symplectic < backprop / 3
