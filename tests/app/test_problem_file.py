"""A problem in a file of one's own: only the one named at the start is run, then as any other."""

import io
import json
from pathlib import Path

import pytest

from app import describe, worker
from inspector import open_run

MINE = '''
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

import torch

from sample_problems.base import SampleProblem
from solver.bounds import Bounds, Help

Path(__file__).with_suffix(".ran").touch()


@final
@dataclass(frozen=True, kw_only=True)
class Mine(SampleProblem):
    """Decay."""

    name = "mine"
    title = "Mine"
    question = "How fast?"
    latex = "y' = -k y"
    source = "a test"
    components = ("y",)
    phase = None
    t1 = 1.0
    spread = {"parameter": "k", "low": 0.5, "high": 2.0, "scale": "log"}

    k: Annotated[float, Bounds(0.1, 10.0), Help("rate")] = 1.0

    def field(self, t, y, p):
        return -p["k"][:, None] * y

    def start(self, p, generator):
        return torch.ones_like(p["k"])[:, None]
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


def ordered(monkeypatch, tmp_path: Path, problem: str) -> Path:
    """Have a worker solve a problem, as the app does, and return the folder of the run."""
    path = tmp_path / "run"
    order = {"path": str(path), "spec": {"problem": problem, "batch": 2, "keep_running": True}}
    monkeypatch.setattr(worker, "warm_up", lambda: None)
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    monkeypatch.setattr(worker.sys, "stdin", io.StringIO(json.dumps(order) + "\n"))
    worker.main()
    return path


def test_the_file_named_at_the_start_is_offered_first_and_solved(monkeypatch, tmp_path, mine):
    monkeypatch.setenv(describe.PROBLEM_VARIABLE, f"{mine}:Mine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = describe.describe()["problems"][0]
    assert (first["name"], first["spec_name"]) == ("mine", f"{mine}:Mine")
    run = open_run(ordered(monkeypatch, tmp_path, f"{mine}:Mine"))
    assert run.status == "finished"
    assert mine.with_suffix(".ran").exists()


@pytest.mark.parametrize("named", [None, "other"])
def test_any_other_file_is_refused_before_it_is_run(monkeypatch, tmp_path, mine, named):
    if named is None:
        monkeypatch.delenv(describe.PROBLEM_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(describe.PROBLEM_VARIABLE, f"{tmp_path / named}.py:Mine")
    with pytest.raises(ValueError, match="only the one named at start may be a file"):
        ordered(monkeypatch, tmp_path, f"{mine}:Mine")
    assert not mine.with_suffix(".ran").exists()


@pytest.mark.parametrize(
    "trick", ["{}:Mine\ndx = 1", "dx = 1 # {}:Mine", "a=b/../{}:Mine", " {}:Mine"]
)
def test_no_text_of_equations_leads_to_a_file(monkeypatch, tmp_path, mine, trick):
    monkeypatch.delenv(describe.PROBLEM_VARIABLE, raising=False)
    with pytest.raises(ValueError, match="only the one named at start"):
        ordered(monkeypatch, tmp_path, trick.format(mine))
    assert not mine.with_suffix(".ran").exists()
