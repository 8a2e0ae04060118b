"""What recording costs each of the two threads: CPU time in the solver's and in the writer's.

    python tests/benchmarks/recorder.py

CPU time of a thread does not depend on what else the machine does, so this can be read on a busy
one. It
leaves out what the solver spends on gathering attempts and measuring statistics: see `hooks.py`.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

from common import describe_machine, print_table  # isort: skip

import torch

from inspector import Inspector
from inspector.store.output import Output, Status
from solver.catalogue import statistic_by_name, statistics
from solver.hooks import SolveInfo, StepBlock


def make_info(batch: int, names: tuple[str, ...]) -> SolveInfo:
    """Return a solve that looks like Tsit5 on Van der Pol."""
    return SolveInfo(
        batch=batch,
        dim=2,
        dtype="float32",
        time_dtype="float64",
        device="cpu",
        method="tsit5",
        method_order=5,
        error_order=4,
        controller="pid",
        controller_settings={},
        adjoint="backprop",
        engine="plain",
        stepping="independent",
        t0=torch.zeros(batch),
        t1=torch.ones(batch),
        rtol=torch.tensor(1e-4),
        atol=torch.tensor(1e-6),
        max_steps=1000,
        y0=torch.zeros(batch, 2),
        statistics=tuple(statistic_by_name(name) for name in names),
    )


def make_block(info: SolveInfo, first: int, attempts: int, all_running: bool) -> StepBlock:
    """Return a block of random attempts."""
    shape = (attempts, info.batch)
    running = torch.ones(shape, dtype=torch.bool) if all_running else torch.rand(shape) < 0.7
    columns = {}
    for statistic in info.statistics:
        whole = bool(statistic.labels) or statistic.unit == "index"
        columns[statistic.name] = torch.randint(0, 2, shape) if whole else torch.rand(shape)
    return StepBlock(
        solve=info,
        first=first,
        t=torch.rand(shape, dtype=torch.float64),
        dt=torch.rand(shape, dtype=torch.float64),
        error_ratio=torch.rand(shape),
        accepted=torch.rand(shape) < 0.9,
        running=running,
        columns=columns,
    )


def measure(
    folder: Path, batch: int, names: tuple[str, ...], all_running: bool, blocks: int, size: int
) -> tuple[float, float, float]:
    """Return us per attempt of the solver's and of the writer's thread, and bytes per row."""
    spent: list[float] = []
    begun: list[float] = []
    original = Output.finish
    main = threading.get_ident()

    def finish(self: Output, status: Status) -> None:
        assert threading.get_ident() != main
        spent.append(time.thread_time())
        original(self, status)

    Output.finish = finish
    try:
        info = make_info(batch, names)
        made = [make_block(info, i * size, size, all_running) for i in range(blocks)]
        with Inspector(folder, statistics=names) as inspector:
            inspector.on_solve_start(info)
            for block in made[:3]:
                inspector.on_steps(block)
            inspector.flush()
            begun.append(0.0)
            before = time.thread_time()
            for block in made[3:]:
                inspector.on_steps(block)
                time.sleep(0.002)  # as the solver would be at work
            mine = time.thread_time() - before - sleeping_cost(blocks - 3)
            inspector.flush()
    finally:
        Output.finish = original
    attempts = size * (blocks - 3)
    rows = sum(int(block.running.sum()) for block in made)
    stored = sum(file.stat().st_size for file in (folder / "steps").iterdir())
    return 1e6 * mine / attempts, 1e6 * spent[0] / (size * blocks), stored / rows


def sleeping_cost(count: int) -> float:
    """Return the CPU seconds that `count` naps themselves take."""
    before = time.thread_time()
    for _ in range(count):
        time.sleep(0.002)
    return time.thread_time() - before


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=300)
    options = parser.parse_args()
    print(describe_machine(("torch", "numpy", "pyarrow")))
    rows = []
    with tempfile.TemporaryDirectory() as root:
        for batch in (1, 32, 256, 4096):
            for names in ((), tuple(statistics())):
                for all_running in (True, False):
                    folder = Path(root) / f"{batch}-{len(names)}-{all_running}"
                    count = options.blocks if batch < 4096 else options.blocks // 6
                    mine, writers, size = measure(folder, batch, names, all_running, count, 16)
                    rows.append(
                        [
                            str(batch),
                            "all" if names else "none",
                            "all" if all_running else "70 %",
                            f"{mine:.1f}",
                            f"{writers:.1f}",
                            f"{size:.1f}",
                        ]
                    )
    print_table(
        ("B", "statistics", "running", "solver us/attempt", "writer us/attempt", "bytes/row"), rows
    )


if __name__ == "__main__":
    main()
