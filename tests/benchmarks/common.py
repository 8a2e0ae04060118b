"""What the benchmarks share: one thread, interleaved rounds, the machine's description, tables."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import gc
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

torch.set_num_threads(1)

CLOCKS = {
    "wall": time.perf_counter,
    "cpu": time.process_time,  # of all threads of this process
    "thread": time.thread_time,  # of the thread that solves
}


def describe_machine(packages: Sequence[str]) -> str:
    """Return two lines: processor and system; interpreter and the versions of `packages`."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    load = f", load {os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else ""
    found = [f"{name} {version_of(name)}" for name in packages if version_of(name)]
    return (
        f"machine: {model}, {os.cpu_count()} cores, 1 thread used{load}; {platform.platform()}\n"
        f"versions: Python {platform.python_version()}, {', '.join(found)}"
    )


def version_of(package: str) -> str | None:
    """Return the installed version of a distribution, None where it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def interleave(
    contestants: Mapping[str, Callable[[], object]],
    rounds: int,
    warmup: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Time every contestant once a round, starting with another one each round.

    Whatever else the machine does then falls on all of them alike.

    Args:
        contestants: what to call, by name.
        rounds: how often.
        warmup: calls of each before, not timed.
        clock: one of `CLOCKS`, in seconds; those of the processor hardly notice a busy machine, nor
            waiting for the disk.

    Returns:
        Seconds of each call, `rounds` entries a contestant, in the order of the rounds.
    """
    for run in contestants.values():
        for _ in range(warmup):
            run()
    names = list(contestants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i in range(rounds):
            gc.collect()
            shift = i % len(names)
            for name in names[shift:] + names[:shift]:
                start = clock()
                contestants[name]()
                seconds[name].append(clock() - start)
    finally:
        if collecting:
            gc.enable()
    return seconds


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the median over the rounds of `above / below`, pairing calls of the same round."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns, the first to the left, the others to the right."""
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    for line in [header, *rows]:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells))
