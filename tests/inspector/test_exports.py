"""Runs leave for other viewers."""

import json
from importlib.util import find_spec

import pytest
import torch

from app import cli
from inspector import Inspector, exports, open_run
from solver import solve_ivp


@pytest.fixture
def run(tmp_path):
    """A training of two iterations with a backward pass each."""
    rate = torch.tensor(1.0, requires_grad=True)
    with Inspector(tmp_path / "runs" / "mine") as inspector:
        for step in range(2):
            with inspector.iteration(step):
                sol = solve_ivp(
                    lambda t, y, k: -k * y, torch.ones(3, 1), t0=0.0, t1=1.0, args=rate,
                    adjoint="continuous", hooks=[inspector],
                )  # fmt: skip
                sol.ys.sum().backward()
                inspector.log(loss=float(step))
    return open_run(tmp_path / "runs" / "mine")


def test_a_trace_has_every_phase_inside_its_iteration(run, tmp_path):
    assert exports.write_chrome_trace(run, tmp_path / "trace.json") == 2 + 4 + 2
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    phases = [event for event in events if event["ph"] == "X"]
    outer = {e["name"]: e for e in phases if e["cat"] == "iteration"}
    assert sorted(outer) == ["iteration 0", "iteration 1"]
    slack = 5e3  # us
    for number, solve in ((0, "solve 0"), (1, "solve 2"), (1, "backward of 2")):
        inner = next(e for e in phases if e["name"] == solve)
        around = outer[f"iteration {number}"]
        assert inner["ts"] >= around["ts"] - slack
        assert inner["ts"] + inner["dur"] <= around["ts"] + around["dur"] + slack
    assert {e["cat"] for e in phases} == {"iteration", "solve", "backward solve", "backward"}


def test_the_command_exports_a_training(run, tmp_path, capsys):
    ask = ["export", "mine", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    assert cli.main([*ask, "--to", "chrome"]) == 0
    assert cli.main(ask) == 0
    assert (tmp_path / "out" / "iterations.csv").exists()
    capsys.readouterr()


@pytest.mark.skipif(find_spec("tensorboard") is not None, reason="TensorBoard is installed")
def test_without_tensorboard_it_says_what_to_install(run, tmp_path, capsys):
    with pytest.raises(ModuleNotFoundError, match="pip install tensorboard"):
        exports.to_tensorboard(run, tmp_path / "tb")
    ask = ["export", "mine", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    assert cli.main([*ask, "--to", "tensorboard"]) == 1
    assert "pip install tensorboard" in capsys.readouterr().err


def test_event_files_hold_the_numbers(run, tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert exports.to_tensorboard(run, tmp_path / "tb") > 10
    seen = EventAccumulator(str(tmp_path / "tb" / "rank0"))
    seen.Reload()
    assert [event.value for event in seen.Scalars("loss")] == [0.0, 1.0]
