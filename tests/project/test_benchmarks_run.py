"""Every benchmark still runs, on its smallest setting; what it measures is never asserted."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALLEST = {
    "peers.py": ("--batch", "2", "--dtype", "float64", "--rounds", "1"),
    "floor.py": ("--batch", "2", "--rounds", "1"),
    "hooks.py": ("--batch", "2", "--rounds", "1"),
    "optim.py": ("--tensors", "2", "--rounds", "1"),
    "training.py": (
        *("--batch", "8", "--hidden", "8", "--iterations", "1", "--rounds", "1", "--long", "5"),
    ),
    "adjoints.py": ("--small", "--steps", "20", "--rounds", "1"),
    "stiff.py": ("--batch", "2", "--rows", "1"),
    "robertson_batch.py": ("--batch", "2", "--rtol", "1e-3", "--methods", "rodas5p"),
    "stiff_cases.py": ("--only", "curtiss_hirschfelder", "--methods", "rodas5p"),
    "stiff_counts.py": ("--rtol", "1e-3", "--cases", "hires"),
    "stiffness.py": ("--batch", "2", "--rounds", "1"),
    "torchdiffeq_drop_in.py": ("--only", "bouncing_ball", "--rounds", "1"),
}


@pytest.mark.parametrize("script", SMALLEST)
def test_a_benchmark_prints_machine_versions_and_a_table(script: str):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "benchmarks" / script), *SMALLEST[script]],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "machine: " in done.stdout
    assert "torch 2." in done.stdout
    assert "ratio" in done.stdout
    if script == "peers.py":
        missing = [p for p in ("torchode", "torchdiffeq", "diffrax") if not find_spec(p)]
        named = done.stdout.partition("missing: ")[2].partition(";")[0].split(", ")
        assert missing == [name for name in named if name]
