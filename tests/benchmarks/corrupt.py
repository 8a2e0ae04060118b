"""Runs with random bytes flipped or tails cut: do they open, say so, and give what is right?

    python tests/benchmarks/corrupt.py

Goals for 200 runs: no exception, no silent damage, no row given that was not recorded so.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from common import describe_machine, print_table  # isort: skip

import numpy as np

from inspector import list_runs, open_run, queries
from inspector.store.segments import END_OF_STREAM
from inspector.synthetic import write_synthetic_run


def break_run(path: Path, rng: np.random.Generator) -> str:
    """Damage one file; returns what was done, empty if it happens to change nothing that counts."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    weights = np.sqrt([file.stat().st_size for file in files])
    file = files[rng.choice(len(files), p=weights / weights.sum())]
    data = bytearray(file.read_bytes())
    body = len(data) - (len(END_OF_STREAM) if file.suffix == ".arrows" else 0)
    if rng.random() < 0.5:
        length = int(rng.integers(0, body))
        file.write_bytes(data[:length])
        return f"{file.suffix}: cut"
    for place in rng.integers(0, body, rng.integers(1, 9)):
        data[place] ^= int(rng.integers(1, 256))
    file.write_bytes(data)
    return f"{file.suffix}: flipped"


def look(path: Path) -> tuple[bool, int]:
    """Ask a run everything; returns whether damage was named, and how many rows it gave."""
    run = open_run(path)
    damage = run.verify()
    for solve in range(run.n_solves):
        run.instances(solve)
        queries.raster(run, solve, rows=4, cols=20)
        queries.dt_quantiles(run, solve, 20)
        queries.limiter_shares(run, solve)
        queries.tiles(run, solve)
    for table in (run.solves, run.solve_table, run.scalars, run.events, run.states):
        table()
    list_runs(path.parent)
    return bool(damage), len(run.steps())


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=200)
    options = parser.parse_args()
    print(describe_machine(("numpy", "pandas", "pyarrow")))
    found: dict[str, list[tuple[int, int, int, float, float]]] = {}
    with tempfile.TemporaryDirectory() as root:
        whole = write_synthetic_run(
            Path(root) / "whole", batch=16, solves=4, attempts=200, states=2
        )
        truth = open_run(whole).steps()
        for seed in range(options.times):
            path = Path(root) / "broken" / "run"
            shutil.copytree(whole, path)
            what = break_run(path, np.random.default_rng(seed))
            began = time.perf_counter()
            try:
                said, rows = look(path)
                raised = 0
            except Exception as error:  # what is counted here
                print(f"seed {seed}, {what}: {type(error).__name__}: {error}")
                said, rows, raised = False, 0, 1
            seconds = time.perf_counter() - began
            merged = open_run(path).steps().merge(truth, how="left", indicator=True)
            wrong = int((merged["_merge"] != "both").sum())
            found.setdefault(what, []).append((raised, not said, wrong, rows / len(truth), seconds))
            shutil.rmtree(path.parent)
    rows = []
    for what, results in sorted(found.items()):
        raised, silent, wrong, kept, seconds = np.array(results, float).T
        counts = [f"{x.sum():.0f}" for x in (raised, silent, wrong)]
        rows.append(
            [what, str(len(results)), *counts, f"{100 * kept.min():.0f}", f"{seconds.max():.2f}"]
        )
    print_table(
        ("file: damage", "runs", "raised", "silent", "wrong rows", "rows kept, least %", "s, most"),
        rows,
    )


if __name__ == "__main__":
    main()
