"""How fast a large run opens: overview, one solve, one instance, rasters that must be pooled.

    python tests/benchmarks/store.py            # 1e7 rows in 200 solves, and one solve of 2000 x
    5000 python tests/benchmarks/store.py --huge     # and one solve of 4096 x 20000, 1.8 GB

Goals: overview 1 s, raster of one solve 0.3 s, 2000 x 5000 pooled 0.3 s, 4096 x 20000 pooled 0.5 s,
one instance across all solves 1 s. Times are of a fresh process with the files in the page cache.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import describe_machine, print_table  # isort: skip

import numpy as np

from inspector.store.writer import RunWriter
from inspector.synthetic import STATISTICS, ArrayBlock

ROOT = Path(__file__).parents[2]
QUESTIONS = {
    "open and overview": "run.solve_table(); run.status; run.spec; run.summary()",
    "status of every instance": "run.solves()",
    "raster of one solve, from opening": "queries.raster(run, {middle})",
    "ranking of one solve, from opening": "run.instances({middle})",
    "dt quantiles of one solve": "queries.dt_quantiles(run, {middle})",
    "one instance, all solves": "run.steps(instances=7, columns=['solve', 't', 'dt'])",
    "check every byte": "run.verify()",
}
TIMING = """
import sys, time
import pandas, pyarrow  # loaded by any viewer anyway
from inspector import open_run, queries
began, busy = time.perf_counter(), time.process_time()
run = open_run({path!r})
{question}
print(time.perf_counter() - began, time.process_time() - busy)
began = time.perf_counter()
{question}
print(time.perf_counter() - began)
import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def write(path: Path, solves: int, batch: int, attempts: int, statistics: bool) -> int:
    """Write a run of random rows in which instances stop one by one; returns the rows."""
    rng = np.random.default_rng(0)
    rows, size = 0, max(1, min(64, 65_536 // batch))
    names = STATISTICS if statistics else ()
    last = np.linspace(attempts, attempts * 0.8, batch).astype(int)
    steps = np.full(batch, 0) + last
    grids = {"t": rng.random((size, batch)), "dt": rng.random((size, batch))}
    grids["error_ratio"] = rng.random((size, batch)).astype("f4")
    grids["accepted"] = (rng.random((size, batch)) < 0.9).astype("u1")
    grids |= {c.name: rng.integers(0, 3, (size, batch)).astype(c.dtype) for c in names}
    writer = RunWriter(path, on_full="block")
    for _ in range(solves):
        settings = {"batch": batch, "dim": 3, "t0": 0.0, "t1": 1.0, "instances": None}
        solve = writer.start_solve(lambda told=settings: told, names)
        for first in range(0, attempts, size):
            n = min(size, attempts - first)
            running = (np.arange(first, first + n)[:, None] < last)[:n]
            writer.steps(solve, ArrayBlock(first, running, {k: v[:n] for k, v in grids.items()}))
        line = {"status": np.zeros(batch, int), "n_steps": steps, "n_accepted": steps}
        line |= {"n_rejected": steps * 0, "n_f_evals": steps * 6, "t_reached": np.ones(batch)}
        end = {"seconds": 1.0, "n_attempts": attempts}
        writer.end_solve(solve, lambda told=(end, line): told)
        rows += int(steps.sum())
    writer.close()
    assert writer.flush(), writer.counts
    return rows


def ask(path: Path, question: str) -> tuple[float, float, float, float]:
    """Return seconds and CPU seconds of the first time, seconds of the second, and memory in MB."""
    code = TIMING.format(path=str(path), question=question)
    found = []
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True
        )
        found.append([float(word) for word in out.stdout.split()])
    return tuple(np.median(found, axis=0))


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--huge", action="store_true", help="add the solve of 4096 x 20000")
    options = parser.parse_args()
    print(describe_machine(("numpy", "pandas", "pyarrow")))
    rows = []
    with tempfile.TemporaryDirectory() as root:
        shapes = [
            ("200 solves of 256 x 196", 200, 256, 219, True),
            ("2000 x 5000", 1, 2000, 5556, True),
        ]
        if options.huge:
            shapes.append(("4096 x 20000", 1, 4096, 20_000, False))
        for name, solves, batch, attempts, statistics in shapes:
            path = Path(root) / name.replace(" ", "-")
            began = time.perf_counter()
            count = write(path, solves, batch, attempts, statistics)
            seconds = time.perf_counter() - began
            size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
            print(f"{name}: {count:.3g} rows, {size / count:.1f} bytes/row, {seconds:.1f} s")
            for question, code in QUESTIONS.items():
                if solves == 1 and not question.startswith(("open", "raster", "ranking", "dt")):
                    continue
                first, busy, second, memory = ask(path, code.format(middle=solves // 2))
                rows.append([name, question, f"{first:.3f}", f"{busy:.3f}", f"{second:.3f}"])
                rows[-1].append(f"{memory:.0f}")
    print_table(("run", "question", "first, s", "CPU, s", "second, s", "memory, MB"), rows)


if __name__ == "__main__":
    main()
