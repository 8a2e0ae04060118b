"""Batches cut into slices or spread over processes give what one solve gives."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from solver import Hook, solve_ivp
from solver.errors import InvalidArgument

Y0 = torch.linspace(-1, 1, 14).reshape(7, 2)
RATE = torch.linspace(0.5, 3, 7)


def f(t, y, args):
    return -args["rate"][:, None] * y + args["shift"]


GIVEN = {
    "t_eval": torch.linspace(0, 1, 6).expand(7, 6) * RATE[:, None],
    "args": {"rate": RATE, "shift": torch.tensor([0.1, 0.2])},
    "rtol": torch.logspace(-3, -6, 7)[:, None],
    "max_steps": torch.full((7,), 500),
    "dense": True,
}


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_slices_give_the_solution_of_the_whole(size, engine):
    whole = solve_ivp(f, Y0, engine=engine, **GIVEN)
    sliced = solve_ivp(f, Y0, engine=engine, batch_size=size, **GIVEN)
    torch.testing.assert_close(sliced.ys, whole.ys, rtol=1e-12, atol=1e-12)
    for name in ("n_steps", "n_accepted", "n_f_evals"):
        assert torch.equal(sliced.stats[name], whole.stats[name])
    at = 0.25 * RATE[:, None]
    torch.testing.assert_close(sliced(at), whole(at), rtol=1e-12, atol=1e-12)


def test_slices_keep_structure_events_and_gradients():
    y0 = {"a": torch.rand(5, 2, requires_grad=True), "b": torch.rand(5)}

    def field(t, y):
        return {"a": -y["a"], "b": torch.ones_like(y["b"])}

    options = {"t0": 0.0, "t1": 1.0, "events": lambda t, y: y["b"] - 1.0}
    whole = solve_ivp(field, y0, **options)
    sliced = solve_ivp(field, y0, batch_size=2, **options)
    torch.testing.assert_close(sliced.ys, whole.ys)
    assert sliced.events is not None
    torch.testing.assert_close(sliced.events.times, whole.events.times, equal_nan=True)
    (gradient,) = torch.autograd.grad(sliced.ys["a"].sum(), y0["a"])
    torch.testing.assert_close(gradient, torch.full((5, 2), 0.36787944), rtol=1e-3, atol=1e-3)


def test_progress_is_told_after_each_slice():
    class Progress(Hook):
        """Keeps what it is told."""

        def __init__(self):
            self.seen = []

        def on_progress(self, done, total):
            self.seen.append((done, total))

    hook = Progress()
    solve_ivp(lambda t, y: -y, Y0, t0=0.0, t1=1.0, batch_size=3, hooks=[hook])
    assert hook.seen == [(3, 7), (6, 7), (7, 7)]


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "3"])
def test_a_size_that_makes_no_sense_is_refused(size):
    with pytest.raises(InvalidArgument, match="batch_size is"):
        solve_ivp(lambda t, y: -y, Y0, t0=0.0, t1=1.0, batch_size=size)


SHARDED = """
import torch, torch.distributed as dist
from solver import solve_ivp
from solver.slices import solve_sharded
dist.init_process_group("gloo")
rate = torch.linspace(0.5, 3.0, 7)
def f(t, y, rate):
    return -rate[:, None] * y
y0 = torch.linspace(-1, 1, 14).reshape(7, 2)
given = dict(t0=0.0, t1=torch.linspace(1, 2, 7), args=rate)
ours, whole = solve_sharded(f, y0, **given), solve_ivp(f, y0, **given)
assert torch.allclose(ours.ys, whole.ys, rtol=1e-10), (ours.ys, whole.ys)
assert torch.equal(ours.stats.n_steps, whole.stats.n_steps)
def broken(t, y):
    if dist.get_rank() == 1:
        raise ValueError("one process is broken")
    return -y
try:
    solve_sharded(broken, y0, t0=0.0, t1=1.0)
except Exception as error:
    assert "broken" in str(error)
else:
    raise SystemExit("nothing raised")
print("done", dist.get_rank())
dist.destroy_process_group()
"""


def test_two_processes_solve_a_batch_together(tmp_path):
    script = tmp_path / "sharded.py"
    script.write_text(SHARDED)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
         str(script)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300, check=False,
        env=None,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("done") == 2  # lines of two processes may run together


def test_sharding_needs_a_process_group():
    from solver.slices import solve_sharded

    with pytest.raises(InvalidArgument, match="process group"):
        solve_sharded(lambda t, y: -y, Y0, t0=0.0, t1=1.0)
