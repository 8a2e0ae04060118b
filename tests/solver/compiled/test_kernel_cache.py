"""What is compiled, and how often: once for a form of problem, whatever its numbers."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from solver import PID, Hook, compile, engines, solve_ivp
from solver.compiled import build
from solver.errors import InvalidArgument

SOLVE = """
import time, torch
from solver import solve_ivp
from solver.compiled import build
def f(t, y, k):
    return -k * y
for batch in (3, 50):
    began = time.perf_counter()
    solve_ivp(f, torch.ones(batch, 2), t0=0.0, t1=1.0, args=torch.tensor(2.0), engine="compiled")
print(build.counts["compiled"], build.counts["loaded"])
"""


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """Start with nothing compiled on disk."""
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def decay(k):
    return lambda t, y: -k * y


def compiled_by(run):
    before = build.counts["compiled"]
    run()
    return build.counts["compiled"] - before


def solve(f, batch=5, **kwargs):
    options = {"t0": 0.0, "t1": 1.0, "engine": "compiled"} | kwargs
    return solve_ivp(f, torch.rand(batch, 2), **options)


def test_only_a_new_form_is_compiled(empty_cache):
    def unlike(t, y):
        return -y * y / (1.125 + y.abs())

    assert compiled_by(lambda: solve(unlike)) == 1
    others = [
        {"batch": 64},
        {"rtol": 1e-7, "atol": 1e-3},
        {"t0": 0.5, "t1": torch.linspace(0.6, 2, 5)},
        {"max_steps": 50},
        {"controller": PID(kp=0.1, ki=0.6, safety=0.8)},
    ]
    for options in others:
        assert compiled_by(lambda options=options: solve(unlike, **options)) == 0, options
    assert compiled_by(lambda: solve(unlike, method="dopri5")) == 1
    assert compiled_by(lambda: solve(unlike, controller="h211b")) == 1


def test_numbers_and_tensors_of_a_field_are_inputs(empty_cache):
    solve(decay(1.5))
    assert compiled_by(lambda: solve(decay(2.5))) == 0
    solve(decay(torch.rand(2)))
    assert compiled_by(lambda: solve(decay(torch.rand(2)))) == 0


def test_a_second_process_loads_what_the_first_compiled(empty_cache):
    root = Path(__file__).parents[3]
    seen = [
        subprocess.run(
            [sys.executable, "-c", SOLVE], cwd=root, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert seen == [["1", "0"], ["0", "1"]]


def test_a_damaged_library_is_not_used_and_made_anew(empty_cache):
    root = Path(__file__).parents[3]

    def run():
        return subprocess.run(
            [sys.executable, "-c", SOLVE], cwd=root, capture_output=True, text=True, check=True
        )

    run()
    (library,) = empty_cache.glob("*.so")
    library.write_bytes(b"no library")
    seen = run()
    assert "cannot be loaded" in seen.stderr
    assert seen.stdout.split()[0] == "1"


def test_without_a_compiler_the_plain_loop_runs_and_one_warning_says_so(empty_cache, monkeypatch):
    monkeypatch.setattr(build, "compiler", lambda: None)
    with pytest.warns(RuntimeWarning, match="no C\\+\\+ compiler is found"):
        sol = solve(lambda t, y: -y / (3.0 + y * y))
    assert sol.success.all()


def test_a_hook_is_told_before_the_compiler_runs(empty_cache):
    class Told(Hook):
        """Keeps what it is told."""

        def __init__(self):
            self.seen = []

        def on_compile(self, info):
            self.seen.append("compile")

        def on_solve_start(self, info):
            self.seen.append(info.engine)

    told = Told()
    for _ in range(2):
        solve(lambda t, y: -y / (5.0 + y * y), hooks=[told])
    assert told.seen == ["compile", "compiled", "compiled"]


def test_auto_compiles_beside_the_solves_once_they_have_cost_enough(empty_cache, monkeypatch):
    monkeypatch.setattr(engines, "LOOK_AFTER", 0.0)
    monkeypatch.setattr(engines, "COMPILE_AFTER", 0.0)

    def f(t, y):
        return -y / (7.0 + torch.sinh(y).abs())

    class Engine(Hook):
        """Keeps the engine's name."""

        def on_solve_start(self, info):
            self.name = info.engine

    hook = Engine()
    solve(f, engine="auto", hooks=[hook])
    assert hook.name == "plain"
    deadline = time.monotonic() + 120
    while hook.name == "plain" and time.monotonic() < deadline:
        solve(f, engine="auto", hooks=[hook])
        time.sleep(0.05)
    assert hook.name == "compiled"


def test_compiling_ahead_leaves_nothing_to_compile(empty_cache):
    calls = []

    class Watch(Hook):
        """Counts what it is told."""

        statistics = ("factor", "limiter")

        def on_solve_start(self, info):
            calls.append(info.engine)

    def f(t, y):
        return -y / (9.0 + torch.sinh(y).abs())

    y0, watch = torch.ones(3, 2), Watch()
    assert compiled_by(lambda: compile(f, y0, t0=0.0, t1=1.0, hooks=[watch])) == 1
    assert calls == []
    for engine in ("compiled", "auto"):
        run = lambda: solve(f, batch=8, engine=engine, hooks=[watch], rtol=1e-6)  # noqa: B023, E731
        assert compiled_by(run) == 0
    assert calls == ["compiled"] * 2
    assert compile(f, y0, t0=0.0, t1=1.0, hooks=[watch]) < 1.0


def test_compiling_ahead_says_why_it_cannot():
    def f(t, y):
        f.count = 1
        return -y

    given = (torch.ones(3, 2),), {"t0": 0.0, "t1": 1.0}
    for field, method, why in (
        (f, "tsit5", "writes to count"),
        (decay(1.0), "radau5", "radau5"),
    ):
        with pytest.raises(InvalidArgument, match=f"f has no compiled form: .*{why}"):
            compile(field, *given[0], **given[1], method=method)


def test_the_solution_tells_which_engine_ran():
    engines_run = [
        solve(lambda t, y: -y, engine=engine).stats.engine for engine in ("plain", "compiled")
    ]
    assert engines_run == ["plain", "compiled"]
