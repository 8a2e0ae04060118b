"""Comparing modes: errors against float64, memory, evaluations."""

import pytest
import torch

from solver.adjoints.compare import (
    GradientProblem,
    adjoint_entries,
    compare_adjoints,
    exact_gradients,
    label_of,
)
from solver.adjoints.measure import memory_trace
from solver.arguments import read_adjoint
from solver.errors import SolveFailed

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


def test_fields_solved_one_after_another_are_one_problem():
    def chained(dtype):
        one = make(dtype)
        return GradientProblem([one.f, one.f], one.y0, one.parameters, {"t0": 0.0, "t1": 1.5})

    (twice,) = compare_adjoints(chained, ["symplectic"], rtol=1e-9, atol=1e-9)
    (once,) = compare_adjoints(make, ["symplectic"], rtol=1e-9, atol=1e-9)
    assert twice["loss"] == pytest.approx(once["loss"], rel=1e-7)
    assert max(twice["error"].values()) < 1e-12
    assert twice["n_f_backward"] > 0.5 * once["n_f_backward"]


def test_a_mode_that_fails_is_told_of_and_does_not_end_the_others():
    exact = exact_gradients(make, 1e-9, {})
    told = []
    modes = ["continuous:rtol=1e-13,atol=1e-13", "symplectic"]
    entries = dict(
        adjoint_entries(make, modes, exact, keep_going=True, about=told.append, max_steps=50)
    )
    assert "failed" in entries[0]["failure"]
    assert "failure" not in entries[1]
    assert told == ["reference", *modes]
    with pytest.raises(SolveFailed, match="continuous"):
        dict(adjoint_entries(make, modes, exact, max_steps=50))


def test_more_rounds_give_every_entry_again():
    exact = exact_gradients(make, 1e-9, {})
    places = [n for n, _ in adjoint_entries(make, ["aca", "symplectic"], exact, rounds=3)]
    assert places == [0, 1, 0, 1]


def test_a_label_has_the_mode_and_what_differs_from_its_defaults():
    for label in ("symplectic", "symplectic:keep=graphs", "continuous:seminorm=false,rtol=1e-08"):
        assert label_of(read_adjoint(label)) == label


def test_memory_is_followed_through_its_phases():
    def call(mark):
        mark("little")
        small = torch.ones(500)
        mark("much")
        large = torch.ones(50_000)
        return small, large

    trace = memory_trace(call, torch.device("cpu"))
    assert [name for name, _ in trace.phases] == ["little", "much"]
    begins = [begin for _, begin in trace.phases]
    assert trace.seconds == sorted(trace.seconds)
    early = [b for s, b in zip(trace.seconds, trace.bytes, strict=True) if s < begins[1]]
    assert 4000 <= max(early) < 8000
    assert 404_000 <= trace.peak < 420_000


def test_a_long_trace_is_thinned_and_keeps_its_peak():
    def call(mark):
        mark("work")
        for i in range(600):
            torch.ones(100 if i != 333 else 50_000)

    trace = memory_trace(call, torch.device("cpu"), points=50)
    assert len(trace.bytes) <= 52
    assert max(trace.bytes) == trace.peak >= 200_000


def test_memory_of_very_many_evaluations_is_not_followed(monkeypatch):
    monkeypatch.setattr("solver.adjoints.compare.MOST_TRACED", 100)
    options = {"controller": "fixed", "method": "dopri5", "allocator": True}
    few = compare_adjoints(make, ["symplectic"], dt0=1.0, **options)[0]
    many = compare_adjoints(make, ["symplectic"], dt0=0.1, **options)[0]
    assert few["peak_bytes"] > 0
    assert many["peak_bytes"] is None
    assert many["kept_bytes"] > 0
