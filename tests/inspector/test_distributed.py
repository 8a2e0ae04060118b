"""Processes that train together record into one run, and one that dies harms nobody else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inspector import open_run
from solver.catalogue import adjoints

HOME = Path(__file__).resolve().parents[2]

DDP = """
import json, os, sys
import torch
from torch import nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from inspector import Inspector
from solver import solve_ivp

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
times = torch.linspace(0, 1, 3)

class Model(nn.Module):
    def __init__(self, mode):
        super().__init__()
        torch.manual_seed(0)
        self.field = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))
        self.mode, self.hooks = mode, []

    def forward(self, y0):
        def f(t, y):
            return self.field(y)
        sol = solve_ivp(f, y0, times, adjoint=self.mode, rtol=1e-9, atol=1e-11,
                        params=tuple(self.field.parameters()), hooks=self.hooks)
        return sol.ys.square().mean()

y0 = torch.linspace(-1, 1, 8).reshape(4, 2)
out = {}
with Inspector(sys.argv[1]) as inspector:
    for step, mode in enumerate(json.loads(sys.argv[2])):
        whole = Model(mode)
        whole(y0).backward()
        model = Model(mode)
        model.hooks = [inspector]
        ddp = DistributedDataParallel(model)
        with inspector.iteration(step, sample_ids=range(rank, 4, world)):
            loss = ddp(y0[rank::world])
            loss.backward()
            inspector.log(loss=loss)
        pairs = zip(model.parameters(), whole.parameters())
        out[mode] = max(float((a.grad - b.grad).abs().max()) for a, b in pairs)
with open(f"{sys.argv[1]}.{rank}.json", "w") as file:
    json.dump(out, file)
dist.destroy_process_group()
"""

ALONE = """
import os, signal, sys, time
import torch
from inspector import Inspector
from solver import solve_ivp

torch.set_num_threads(1)
rank, dies = int(os.environ["RANK"]), int(sys.argv[2])
inspector = Inspector(sys.argv[1], flush="always" if rank == dies else "auto")
open(f"{sys.argv[1]}.{rank}.up", "w").close()
while rank == dies and not os.path.exists(f"{sys.argv[1]}.0.up"):
    time.sleep(0.02)  # who dies before the others begin looks like a run that was resumed
for step in range(12):
    with inspector.iteration(step):
        solve_ivp(lambda t, y: -y, torch.ones(3, 1), t0=0.0, t1=1.0, hooks=[inspector])
        inspector.log(loss=1.0 / (step + 1))
    if rank == dies and step == 5:
        inspector.flush()
        os.kill(os.getpid(), signal.SIGKILL)
inspector.close()
"""


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(HOME), "OMP_NUM_THREADS": "1"} | more


@pytest.mark.parametrize("world", [2, 4])
def test_data_parallel_training_works_with_every_gradient_mode(tmp_path, world):
    script, path, modes = tmp_path / "ddp.py", tmp_path / "run", sorted(adjoints())
    script.write_text(DDP)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={world}", str(script), str(path), json.dumps(modes)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=450, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ranks = list(range(world))
    for rank in ranks:
        differences = json.loads(Path(f"{path}.{rank}.json").read_text())
        assert sorted(differences) == modes
        for mode, difference in differences.items():
            assert difference < 1e-6, (rank, mode)
    run = open_run(path)
    assert run.status == "finished"
    assert run.ranks()["rank"].tolist() == ranks
    assert run.ranks()["iterations"].tolist() == [len(modes)] * world
    assert run.ranks()["slowest_share"].sum() == pytest.approx(1.0)
    table = run.iterations()
    assert table["adjoint"].tolist() == [mode for mode in modes for _ in ranks]
    assert table["loss"].notna().all(), table[["iteration", "rank", "session", "loss"]]
    assert run.verify() == []


@pytest.mark.parametrize("world", [2, 4])
def test_a_rank_that_is_killed_does_not_hurt_the_others(tmp_path, world):
    path = tmp_path / "run"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ALONE, str(path), "1"],
            env=environment(RANK=str(rank), WORLD_SIZE=str(world)),
            cwd=HOME,
        )
        for rank in range(world)
    ]
    codes = [process.wait(300) for process in processes]
    others = world - 2
    assert codes == [0, -9] + [0] * others
    run = open_run(path)
    ranks = run.ranks()
    assert ranks["session"].tolist() == [0] * world
    assert ranks["status"].tolist() == ["finished", "interrupted"] + ["finished"] * others
    assert ranks["last_iteration"].tolist() == [11, 5] + [11] * others
    assert run.status == "interrupted"
    table = run.iterations()
    assert table[table["rank"] == 0]["loss"].tolist() == [1 / (step + 1) for step in range(12)]
    assert table[table["rank"] == 1]["loss"].tolist() == [1 / (step + 1) for step in range(6)]
    steps = run.steps()
    assert steps["solve"].nunique() == 6 + 12 * (world - 1)
    assert [item for item in run.verify() if "cut short" not in item.what] == []


def test_two_trainings_with_one_name_are_both_kept(tmp_path):
    path = tmp_path / "run"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ALONE, str(path), "-1"],
            env=environment(RANK="0", WORLD_SIZE="1"),
            cwd=HOME,
        )
        for _ in (0, 1)
    ]
    assert [process.wait(300) for process in processes] == [0, 0]
    run = open_run(path)
    assert run.ranks()["session"].tolist() == [0, 1]
    assert run.ranks()["iterations"].tolist() == [12, 12]
    assert len(run.scalars()) == 24
    assert run.verify() == []
