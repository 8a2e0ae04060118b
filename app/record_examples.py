"""Records the runs that a first visit shows: `python -m app.record_examples [FOLDER]`.

They are small, and recorded by the same worker as every other run.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

from app.trainer import record_training
from app.worker import record, record_comparison, record_study

FOLDER = Path(__file__).resolve().parent / "examples"
STIFFER: dict[str, Any] = {
    "problem": "van_der_pol",
    "spread": {"parameter": "mu", "low": 1.0, "high": 80.0, "scale": "log"},
    "batch": 16,
    "t1": 8.0,
    "n_eval": 100,
    "engine": "plain",
    "method": "tsit5",
    "rtol": 1e-4,
    "atol": 1e-6,
    "seed": 0,
    "dtype": "float64",
    "controller": {"name": "pid", "kp": 0.2, "ki": 0.5},
}
TUNED = STIFFER | {
    "kind": "tune", "batch": 3, "spread": None, "parameters": {"mu": 25.0}, "t1": 20.0, "jobs": 1,
}  # fmt: skip
PRECISION = {
    "kind": "work_precision", "problem": "lotka_volterra", "batch": 2, "t1": 4.0,
    "methods": ["bosh3", "tsit5", "vern7"], "rtols": [1e-2, 1e-3, 1e-4, 1e-5, 1e-6],
}  # fmt: skip
GRADIENTS = {
    "kind": "adjoints", "problem": "neural_spiral", "batch": 8, "rounds": 3,
    "modes": ["backprop", "symplectic", "aca", "continuous"], "rtol": 1e-5, "atol": 1e-5,
}  # fmt: skip
TRAINING = {
    "kind": "training", "problem": "neural_spiral", "iterations": 30, "batch": 16, "pool": 64,
    "every": 10, "seed": 0,
}  # fmt: skip


def main(folder: Path) -> None:
    """Record every example anew."""

    def fresh(name: str) -> Path:
        shutil.rmtree(folder / name, ignore_errors=True)
        return folder / name

    record(
        STIFFER, fresh("example"), note="Recorded example: Van der Pol, 16 rows from mild to stiff"
    )
    record(
        STIFFER | {"method": "rodas5p", "parent": "example"},
        fresh("example-implicit"),
        note="Recorded example: the same with an implicit method",
    )
    record_study(TUNED, fresh("example-tuner"), note="Recorded example: gains searched")
    record_study(PRECISION, fresh("example-precision"), note="Recorded example: three methods")
    record_comparison(GRADIENTS, fresh("example-gradients"), note="Recorded example: gradients")
    record_training(TRAINING, fresh("example-training"), note="Recorded example: a training")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
