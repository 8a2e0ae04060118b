"""What `kill -9` costs: solves are killed at random moments, and what was stored is counted.

    python tests/benchmarks/kill.py

Goals: every run opens, nothing that `flush` had acknowledged is missing, at most 16 attempts are
lost. The solver's own count of attempts is taken from the calls of the vector field, in memory
shared with this process.
"""

import argparse
import mmap
import os
import signal
import struct
import tempfile
import time
from pathlib import Path

from common import describe_machine, print_table  # isort: skip

import numpy as np
import torch
from torch import Tensor

from inspector import Inspector, open_run
from solver import solve_ivp

COUNTS = struct.Struct("qqq")  # solves begun, calls of f in the last one, rows acknowledged
STAGES = 6  # of Tsit5 that each attempt pays; two more calls come first


def work(path: Path, shared: mmap.mmap, flush: str, pause: float, seed: int) -> None:
    """Solve until killed."""
    rng = np.random.default_rng(seed)
    mu = torch.linspace(0.5, 20.0, 64)
    y0 = torch.tensor([2.0, 0.0]).expand(64, 2)
    solves = calls = rows = 0

    def field(t: Tensor, y: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        COUNTS.pack_into(shared, 0, solves, calls, rows)
        time.sleep(pause)
        x, v = y.unbind(-1)
        return torch.stack((v, mu * (1 - x * x) * v - x), dim=-1)

    with torch.no_grad(), Inspector(path, flush=flush) as inspector:
        while True:
            calls, solves = 0, solves + 1
            solve_ivp(field, y0, t0=0.0, t1=10.0, rtol=1e-5, hooks=[inspector])
            if rng.random() < 0.7:
                inspector.flush()
                rows = inspector.rows_written


def try_once(path: Path, flush: str, pause: float, seed: int) -> tuple[int, int, int, int]:
    """Kill one process; returns attempts done and lost, rows acknowledged and missing."""
    shared = mmap.mmap(-1, COUNTS.size)
    child = os.fork()
    if child == 0:
        try:
            work(path, shared, flush, pause, seed)
        finally:
            os._exit(1)
    time.sleep(np.random.default_rng(seed).uniform(0.05, 2.0))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    solves, calls, acknowledged = COUNTS.unpack_from(shared)
    if not solves:
        return 0, 0, 0, 0
    run = open_run(path)
    allowed = ("torn", "cut short", "no line in its index")  # the last batch, half written
    damage = [one for one in run.verify() if not any(word in one.what for word in allowed)]
    assert not damage, damage
    assert run.status == "interrupted", run.status
    steps = run.steps(columns=["solve", "attempt"])
    last = steps.loc[steps["solve"] == solves - 1, "attempt"]
    done, stored = max(calls - 2, 0) // STAGES, len(last.unique())
    return done, done - stored, acknowledged, max(acknowledged - len(steps), 0)


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    print(describe_machine(("torch", "numpy", "pyarrow")))
    rows = []
    with tempfile.TemporaryDirectory() as root:
        for flush in ("auto", "always"):
            for name, pause in (("fast", 0.0), ("slow, 6 ms an attempt", 0.001)):
                found = np.array(
                    [
                        try_once(Path(root) / f"{flush}-{name[:4]}-{seed}", flush, pause, seed)
                        for seed in range(options.times // 2)
                    ]
                )
                _, lost, acknowledged, missing = found.T
                rows.append(
                    [
                        flush,
                        name,
                        str(len(found)),
                        f"{np.median(lost):g}",
                        str(lost.max()),
                        str(acknowledged.sum()),
                        str(missing.sum()),
                    ]
                )
    heads = (
        "flush",
        "solve",
        "kills",
        "lost attempts, median",
        "most",
        "rows acknowledged",
        "missing",
    )
    print_table(heads, rows)


if __name__ == "__main__":
    main()
