"""What recording costs a training, and how fast a long one opens.

    python tests/benchmarks/training.py

Recording: a flow of two moons, 256 rows, every solve, all statistics, a watched optimizer; the same
iterations with and without the recorder, alternating. `wall` is what a user waits, on a machine
that does other things too; `cpu` is the processor time of all threads, `thread` that of the
training's.

Opening: a training of many iterations as the recorder writes it, without its steps if they are not
asked for, as nothing of the overview reads them; then the time until its tables are there.
"""

import argparse
import tempfile
import time
from pathlib import Path

from common import CLOCKS, describe_machine, interleave, median_ratio, print_table  # isort: skip

import numpy as np
import torch

from inspector import Inspector, open_run
from inspector.store.writer import RunWriter
from inspector.synthetic import ArrayBlock
from sample_problems.catalogue import problem_by_name
from solver.optim import AdamW

MOST = 30  # attempts of a row
SETTINGS = {
    "batch": 256,
    "dim": 3,
    "method": "dopri5",
    "controller": "pid",
    "adjoint": "symplectic",
}


class Training:
    """A flow that goes on learning from call to call."""

    def __init__(
        self, batch: int, hidden: int, iterations: int, recorder: Inspector | None
    ) -> None:
        self.problem = problem_by_name("flow_two_moons", {"hidden": hidden})
        self.iterations, self.recorder = iterations, recorder
        self.model = self.problem.model(0, torch.float32)
        self.optimizer = AdamW(self.model.parameters(), lr=1e-3)
        if recorder is not None:
            recorder.watch(self.model, self.optimizer)
        self.data = self.problem.draw(batch, torch.Generator().manual_seed(0), torch.float32)
        self.ids = torch.arange(batch)
        self.start = {name: t.clone() for name, t in self.model.state_dict().items()}

    def __call__(self) -> None:
        """Do some iterations, always the same ones."""
        self.model.load_state_dict(self.start)
        hooks = [] if self.recorder is None else [self.recorder]
        for _ in range(self.iterations):
            if self.recorder is not None:
                self.recorder.iteration(sample_ids=self.ids)
            sols = self.problem.solve(self.model, self.data, adjoint="symplectic", hooks=hooks)
            loss = self.problem.loss(sols[-1].ys, self.data)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.recorder is not None:
                self.recorder.log(loss=loss.detach())


def recording(options: argparse.Namespace, folder: Path) -> list[list[str]]:
    """Return a line for each clock: ratio of the training's time with and without the recorder."""
    rows = []
    for clock in ("wall", "cpu", "thread"):
        with Inspector(folder / clock, statistics="all") as recorder:
            settings = (options.batch, options.hidden, options.iterations)
            contestants = {
                "plain": Training(*settings, None),
                "recorded": Training(*settings, recorder),
            }
            seconds = interleave(contestants, options.rounds, clock=CLOCKS[clock])
        each = [1e3 * float(np.median(seconds[name])) / options.iterations for name in contestants]
        ratio = median_ratio(seconds["recorded"], seconds["plain"])
        rows.append([clock, f"{each[0]:.2f}", f"{each[1]:.2f}", f"{ratio:.3f}"])
    return rows


def write_training(path: Path, iterations: int, batch: int, steps_too: bool) -> None:
    """Write a training as the recorder does, or all of it but the steps."""
    rng = np.random.default_rng(0)
    writer = RunWriter(path, on_full="block")
    grids = {name: rng.random((MOST, batch)) for name in ("t", "dt")}
    grids["error_ratio"] = rng.random((MOST, batch)).astype("f4")
    grids["accepted"] = (rng.random((MOST, batch)) < 0.9).astype("u1")
    ids = np.arange(batch)
    for step in range(iterations):
        settings = SETTINGS | {"t0": 0.0, "t1": 1.0, "iteration": step}
        number = writer.start_solve(lambda told=settings: told)
        writer.line("solves", lambda n=number: {"kind": "samples", "solve": n, "ids": ids})
        steps = rng.integers(10, MOST, batch)
        if steps_too:
            running = np.arange(MOST)[:, None] < steps
            writer.steps(number, ArrayBlock(0, running, grids))
        ranked = np.sort(steps)
        spread = ranked[(np.array([0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]) * (batch - 1)).astype(int)]
        rows = {"n_steps": steps, "n_accepted": steps - 1, "n_rejected": steps * 0 + 1}
        rows |= {"n_f_evals": 6 * steps + 2, "status": 0 * steps}
        totals = {name: int(values.sum()) for name, values in rows.items()}
        end = {"seconds": 0.02, "n_attempts": 30, "n_f_calls": 182, "n_failed": 0, "totals": totals}
        end |= {"quantiles": {"n_steps": spread, "n_f_evals": 6 * spread}, "memory_bytes": 4e8}
        writer.end_solve(number, lambda told=(end, rows): told)
        backward = {"kind": "backward", "solve": number, "n_f_calls": 160, "seconds": 0.04}
        writer.line("solves", lambda told=backward: told | {"checkpoint_bytes": 10_000})
        values = {"seconds": 0.1, "forward_seconds": 0.02, "grad_norm": 1.0, "lr": 1e-3}
        about = {"iteration": step, "time": float(step), "solves": [number, number + 1]}
        writer.line("iterations", lambda told=about | {"values": values}: told)
        writer.scalars(step, {"loss": 1 / (step + 1)})
        if step % 1000 == 0:
            writer.flush()
    writer.close()


def opening(options: argparse.Namespace, folder: Path) -> list[list[str]]:
    """Return how long each table takes, in order, for a process that opens the run anew."""
    path = folder / "long"
    write_training(path, options.long, options.batch, options.steps)
    rows = []
    began = time.perf_counter()
    run = open_run(path)
    for name, ask in (
        ("open", lambda: run.n_solves),
        ("iterations", run.iterations),
        ("ranks", run.ranks),
        ("again, unchanged", run.refresh),
    ):
        before = time.perf_counter()
        ask()
        now = time.perf_counter()
        rows.append(
            [name, f"{now - (began if name == 'open' else before):.2f}", f"{now - began:.2f}"]
        )
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    rows.append(["(megabytes)", f"{size / 1e6:.0f}", ""])
    return rows


def main() -> None:
    """Parse the command line and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--long", type=int, default=20_000, help="iterations of the run to open")
    parser.add_argument("--steps", action="store_true", help="write its steps too: 1e8 rows, 3 GB")
    options = parser.parse_args()
    print(describe_machine(("torch", "numpy", "pyarrow", "pandas")))
    with tempfile.TemporaryDirectory() as root:
        print(f"flow_two_moons, {options.batch} rows, float32, symplectic adjoint, one thread")
        header = ("clock", "plain ms/iteration", "recorded ms/iteration", "ratio")
        print_table(header, recording(options, Path(root)))
        print(f"opening {options.long} iterations of {options.batch} rows")
        print_table(("what", "seconds", "since the start"), opening(options, Path(root)))


if __name__ == "__main__":
    main()
