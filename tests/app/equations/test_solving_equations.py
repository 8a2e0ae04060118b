"""Typed equations as problems: solved like any other, kept, exported, recorded, compared."""

import json
import os
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
import torch

from app import cli
from app.equations.about import TEMPLATE, described, title_of
from app.equations.export import export
from app.equations.saved import delete, name_of, save, saved
from app.equations.system import read
from app.own_problem import problem_by_name
from app.worker import record, solve_spec
from app.workers import new_run_id
from inspector import open_run
from solver import solve_ivp
from solver.errors import InvalidArgument, InvalidType

ROOT = Path(__file__).parents[3]
VAN_DER_POL = """dx = v
dv = mu * (1 - x^2) * v - x
mu = 5 in 0.5..50 log
x(0) = 2
v(0) = 0"""
EVERYTHING = """# Everything at once
dx = sin(x) + cos(x)*tan(x/9) + asin(x/99) + acos(x/99) - atan(x) + sinh(x/9)*cosh(x/9)/tanh(2+x^2)
dy = -y + log10(2+y**2) + sqrt(1+y^2) + abs(y)*sign(-y) + floor(y) + atan2(y, 1) + min(x, y, 3)
dz = 1 + where(x > 0.5 and not (y < 2 or t > 3), 1, 0) - max(z, 1, t)/9 + exp(-z) - log(2 + z*z)
dw = where(t <= 1, z, -w) + a * pi - e * w + 2**(-x*x) + (1+x*x)**-1.5 + force
dtorch = 2
force = c * state - torch
c = 1/3
a = 1 in 0.5..2
state = 2
x(0) = a * 2
t = 0..3"""


def rows(text: str, batch: int = 5):
    return problem_by_name(text).build(batch=batch)


def test_equations_give_what_the_sample_problem_gives():
    spread = {"parameter": "mu", "low": 0.5, "high": 50.0, "scale": "log"}
    spec = {"batch": 6, "spread": spread, "t1": 5.0, "n_eval": 4}
    typed = solve_spec({"problem": VAN_DER_POL} | spec)
    known = solve_spec({"problem": "van_der_pol"} | spec)
    torch.testing.assert_close(typed.ys, known.ys, rtol=1e-12, atol=1e-12)
    assert torch.equal(typed.stats.n_steps, known.stats.n_steps)


def test_both_engines_take_every_operation():
    built = rows(EVERYTHING)
    options = {"t0": 0.0, "t1": 3.0, "args": built.args, "rtol": 1e-6, "atol": 1e-8}
    plain = solve_ivp(built.f, built.y0, engine="plain", **options)
    compiled = solve_ivp(built.f, built.y0, engine="compiled", **options)
    assert bool(plain.success.all())
    torch.testing.assert_close(plain.ys, compiled.ys, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_knows_nothing_of_other_rows(dtype):
    built = problem_by_name(EVERYTHING).build(batch=4, dtype=dtype)
    t, y = torch.tensor([0.0, 0.5, 1.0, 2.0], dtype=torch.float64), built.y0
    together = built.f(t, y, built.args)
    assert together.dtype == dtype
    for row in range(4):
        one = {name: value[row : row + 1] for name, value in built.args.items()}
        alone = built.f(t[row : row + 1], y[row : row + 1], one)
        torch.testing.assert_close(alone[0], together[row])


def test_stiff_methods_and_gradients_take_equations():
    built = rows(VAN_DER_POL)
    mu = built.args["mu"].clone().requires_grad_()
    for method in ("radau5", "tsit5"):
        sol = solve_ivp(
            built.f, built.y0, t0=0.0, t1=1.0, args=built.args | {"mu": mu}, method=method
        )
        (slope,) = torch.autograd.grad(sol.ys[:, -1].sum(), mu)
        assert bool(slope.isfinite().all())
        assert bool((slope != 0).all())


def test_values_outside_the_range_are_refused():
    with pytest.raises(InvalidArgument, match=r"mu=90\.0: must be between 0.5 and 50"):
        problem_by_name(VAN_DER_POL, {"mu": 90.0})
    with pytest.raises(InvalidArgument, match="no parameter 'nu': they have mu, x0, v0"):
        problem_by_name(VAN_DER_POL, {"nu": 1.0})
    with pytest.raises(InvalidType, match="must be a number"):
        problem_by_name(VAN_DER_POL, {"mu": "1"})
    assert problem_by_name(VAN_DER_POL, {"mu": 9}).settings()["mu"] == 9


def test_starts_can_differ_between_rows():
    spread = {"parameter": "x0", "low": -1.0, "high": 3.0, "scale": "linear"}
    built = problem_by_name(VAN_DER_POL).build(batch=3, spread=spread)
    assert built.y0.tolist() == [[-1.0, 0.0], [1.0, 0.0], [3.0, 0.0]]


def test_a_run_of_equations_is_recorded_and_can_be_done_again(tmp_path):
    spec = {"problem": TEMPLATE, "batch": 3, "t1": 2.0, "n_eval": 3, "parameters": {"push": 1.0}}
    record(spec, tmp_path / "one")
    run = open_run(tmp_path / "one")
    assert run.status == "finished"
    assert run.spec is not None
    assert run.spec["problem"] == TEMPLATE
    assert described(run.spec["problem"])["components"] == ["angle", "speed"]
    assert title_of(TEMPLATE) == "Pendulum, driven"
    assert set(run.instances(0)["friction"]) == {0.1, 0.55, 1.0}
    record(run.spec, tmp_path / "two")
    assert (
        run.solves()["n_steps"].tolist() == open_run(tmp_path / "two").solves()["n_steps"].tolist()
    )
    assert new_run_id(TEMPLATE).startswith("pendulum_driven-")
    assert new_run_id("dx = 1").startswith("own_equations-")


def test_equations_that_cannot_be_read_end_a_run_with_the_place(tmp_path, capsys):
    (tmp_path / "spec.json").write_text(json.dumps({"problem": "dx = y", "batch": 1}))
    ask = ["run", str(tmp_path / "spec.json"), "--runs", str(tmp_path), "--name", "bad"]
    assert cli.main(ask) == 1
    assert "line 1, column 6: there is no `y`" in capsys.readouterr().err


def test_a_file_of_equations_is_solved_and_listed_by_its_title(tmp_path, capsys):
    (tmp_path / "decay.txt").write_text("# Decay of two\ndx = -k * x\nk = 1 in 0.5..2\nt = 0..1\n")
    ask = ["run", str(tmp_path / "decay.txt"), "--runs", str(tmp_path)]
    assert cli.main(ask) == 0
    assert "decay_of_two-" in capsys.readouterr().out
    assert cli.main(["ls", "--runs", str(tmp_path)]) == 0
    assert " Decay of two " in capsys.readouterr().out
    (tmp_path / "bad.txt").write_text("no equations")
    assert cli.main(["run", str(tmp_path / "bad.txt"), "--runs", str(tmp_path)]) == 1


@pytest.mark.parametrize("kind", ["adjoints", "work_precision", "tune"])
def test_studies_take_equations(tmp_path, kind):
    spec = {"kind": kind, "problem": VAN_DER_POL, "batch": 2, "t1": 2.0}
    spec |= {
        "adjoints": {"modes": ["aca"], "allocator": False},
        "work_precision": {"methods": ["tsit5"], "rtols": [1e-3, 1e-4], "rounds": 1},
        "tune": {"search": False, "verify": 1, "kp": [0.2], "ki": [0.5], "jobs": 2},
    }[kind]
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    ask = ["run", str(tmp_path / "spec.json"), "--runs", str(tmp_path), "--name", "study"]
    assert cli.main(ask) == 0


@pytest.mark.parametrize("text", [VAN_DER_POL, EVERYTHING, "dx = -x", "# '''\ndx = 1 # \\\"\"\""])
def test_an_exported_file_runs_on_its_own_and_gives_the_same(tmp_path, text):
    spec = {
        "problem": text, "batch": 2, "method": "dopri5", "rtol": 1e-6, "atol": 1e-9, "t1": 2.0,
        "controller": {"name": "pid", "kp": 0.1, "ki": 0.4, "kd": 0.0},
        "spread": {"parameter": "x0", "low": 0.5, "high": 1.5, "scale": "log"},
    }  # fmt: skip
    if text == EVERYTHING:
        spec["spread"] = {"parameter": "a", "low": 0.5, "high": 2.0, "scale": "linear"}
    file = tmp_path / "exported.py"
    file.write_text(export(read(text), spec), "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(file)],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    wanted = solve_spec(spec)
    assert len(lines) == 2
    for row, line in enumerate(lines):
        assert "SUCCESS" in line
        ends = json.loads(line.partition("ends at ")[2])
        torch.testing.assert_close(
            torch.tensor(ends).double(), wanted.y_reached[row], rtol=1e-6, atol=1e-6
        )
        assert f" {int(wanted.stats.n_steps[row])} attempts" in line


def test_no_comment_decides_how_an_exported_file_is_read(tmp_path):
    text = "# coding: utf-7\n# +AAo-raise SystemExit(7)\ndx = -x # \u2028 coding: utf-7 +AAo-import"
    file = tmp_path / "exported.py"
    file.write_text(export(read(text), {}), "utf-8")
    with tokenize.open(file) as opened:
        assert opened.encoding == "utf-8"
        code = [line for line in opened.read().splitlines() if not line.startswith("#")]
    assert not any("raise" in line and "failed" not in line for line in code)
    assert read(text).title == "coding: utf-7"


def test_kept_equations_are_listed_changed_and_deleted(tmp_path):
    assert saved(tmp_path) == {}
    assert save(tmp_path, "My Pendulum!", TEMPLATE) == "my-pendulum"
    assert list(saved(tmp_path)) == ["my-pendulum"]
    assert read(saved(tmp_path)["my-pendulum"]).title == "My Pendulum!"
    save(tmp_path, "my pendulum", "dx = -x")
    assert saved(tmp_path) == {"my-pendulum": "# my pendulum\ndx = -x"}
    assert delete(tmp_path, "my-pendulum")
    assert not delete(tmp_path, "my-pendulum")
    assert saved(tmp_path) == {}


def test_nothing_outside_the_folder_is_kept_read_or_deleted(tmp_path):
    runs = tmp_path / "runs"
    save(runs, "../../../out", "dx = 1")
    assert list(saved(runs)) == ["out"]
    (tmp_path / "other.txt").write_text("dx = 1")
    (runs / ".problems" / "link.txt").symlink_to(tmp_path / "other.txt")
    (runs / ".problems" / "big.txt").write_text("# \n" * 100_000 + "dx = 1")
    (runs / ".problems" / "bad.txt").write_bytes(b"\xff\xfe")
    assert list(saved(runs)) == ["out"]
    assert not delete(runs, "../../other")
    assert (tmp_path / "other.txt").exists()
    for title in ("", "///", "\u4e00"):
        assert name_of(title) == ""
        with pytest.raises(ValueError, match="letter or digit"):
            save(runs, title, "dx = 1")
    with pytest.raises(ValueError, match="line 1"):
        save(runs, "bad", "dx = os.system")
