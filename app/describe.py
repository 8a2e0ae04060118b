"""What there is to choose from, as JSON: problems, methods, controllers, statistics, bounds.

The dashboard draws its widgets from this and imports no solver. A copy is shipped in
`described.json` and used as long as it matches the sources; else it is made anew by a process of
its own.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

VERSION = 1
HERE = Path(__file__).resolve().parent
HOME = HERE.parent
SNAPSHOT = HERE / "described.json"
SOURCES = (  # what a description is made from
    "solver/methods",
    "solver/controllers",
    "solver/statistics",
    "solver/adjoints",
    "solver/bounds.py",
    "sample_problems",
    "app/describe.py",
    "app/trainer.py",
)
PROBLEM_VARIABLE = "STEPSCOPE_PROBLEM"

LIMITS = {
    "batch": [1, 4096],
    "n_eval": [2, 2000],
    "rtol": [1e-13, 1e-1],
    "atol": [1e-15, 1.0],
    "max_steps": [1, 10_000_000],
    "seed": [0, 2**31 - 1],
    "attempts_per_second": [1, 1000],
    "dtypes": ["float32", "float64"],
    "steppings": ["independent", "joint"],
    "engines": ["auto", "plain", "compiled"],
}


class DescribeFailed(RuntimeError):
    """The process that reads the problems ended with an error; the text is what it said."""


def source_hash(user_problem: str | None = None) -> str:
    """Return a fingerprint of every source file a description depends on."""
    digest = hashlib.sha256(str(VERSION).encode())
    parts = [HOME / part for part in SOURCES]
    files = [file for part in parts for file in (part.rglob("*") if part.is_dir() else [part])]
    if user_problem:
        digest.update(user_problem.encode())
        files.append(Path(user_problem.rpartition(":")[0]))
    for file in sorted(files):
        if file.suffix in (".py", ".json") and "__pycache__" not in file.parts and file.is_file():
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def user_problem() -> str | None:
    """Return the user's own problem, `path/to/file.py:Name`, if the app was started with one."""
    return os.environ.get(PROBLEM_VARIABLE) or None


def load() -> dict[str, Any] | None:
    """Return the description that matches the sources, if there is one at hand; fast, no torch."""
    key = source_hash(user_problem())
    for file in (SNAPSHOT, cache_file(key)):
        try:
            described = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if described.get("sources") == key:
            return described
    return None


def refresh(timeout: float = 120.0) -> dict[str, Any]:
    """Read the sources in a process of its own, keep the result, and return it.

    Raises:
        DescribeFailed: that process failed; the message ends with what it wrote.
    """
    command = [sys.executable, "-m", "app.cli", "describe"]
    paths = os.pathsep.join([str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=os.environ | {"PYTHONPATH": paths},
        )
    except subprocess.TimeoutExpired as error:
        raise DescribeFailed(f"reading the problems took more than {timeout:g} s") from error
    if done.returncode != 0:
        raise DescribeFailed(done.stderr.strip()[-4000:] or f"exit code {done.returncode}")
    described = json.loads(done.stdout)
    file = cache_file(described["sources"])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(described), "utf-8")
    except OSError:
        pass  # a cache only: next time it is read again
    return described


def stale() -> dict[str, Any] | None:
    """Return the shipped description though it may not match the sources."""
    try:
        return json.loads(SNAPSHOT.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def cache_file(key: str) -> Path:
    """Return where a description is kept between starts."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    root = Path(base) if os.access(os.path.dirname(base) or "/", os.W_OK) else tempfile.gettempdir()
    return Path(root) / "stepscope" / f"described-{key}.json"


def describe() -> dict[str, Any]:
    """Build the description from the solver and the problems; imports torch."""
    from app.trainer import OPTIMIZERS
    from sample_problems import catalogue as problems
    from solver import catalogue
    from solver.bounds import describe_settings

    own = user_problem()
    described = [cls.describe() for cls in problems.problems().values()]
    if own:
        described.insert(0, problems.load(own).describe() | {"spec_name": own})
    return {
        "version": VERSION,
        "sources": source_hash(own),
        "problems": described,
        "methods": [describe_method(cls) for cls in catalogue.methods().values()],
        "controllers": [describe_controller(cls) for cls in catalogue.controllers().values()],
        "adjoints": [
            {"name": cls.name, "title": cls.title, "settings": describe_settings(cls)}
            for cls in catalogue.adjoints().values()
        ],
        "statistics": [
            {
                "name": cls.name,
                "unit": cls.unit,
                "help": cls.help,
                "labels": {str(code): word for code, word in (cls.labels or {}).items()},
            }
            for cls in catalogue.statistics().values()
        ],
        "optimizers": list(OPTIMIZERS),
        "limits": LIMITS,
    }


def describe_method(cls: Callable[[], Any]) -> dict[str, Any]:
    """Return what a method's picker shows."""
    method = cls()
    tableau = getattr(method, "tableau", None) or getattr(method, "numbers", None)
    return {
        "name": method.name,
        "title": method.title,
        "order": method.order,
        "error_order": method.error_order,
        "stages": len(tableau.c) if tableau else None,
        "fsal": bool(getattr(tableau, "fsal", False)),
        "dense_order": method.dense_order,
        "adaptive": method.error_order is not None,
        "source": getattr(tableau, "source", ""),
        "settings": [],
    }


def describe_controller(cls: Any) -> dict[str, Any]:
    """Return a controller's settings with bounds, its presets and how its steady state follows."""
    from solver.bounds import describe_settings

    return {
        "name": cls.name,
        "title": cls.title,
        "adaptive": cls.adaptive,
        "settings": describe_settings(cls),
        "presets": [
            {"name": name, "source": source, "values": dict(values)}
            for name, (values, source) in cls.presets.items()
        ],
        "steady": dict(getattr(cls, "steady", {}) or {}),
    }


def steady_error_ratio(
    controller: Mapping[str, Any], settings: Mapping[str, Any], error_order: int | None
) -> float | None:
    """Return the error ratio at which a controller leaves the step as it is.

    That is `safety ** (k / icoeff)`, `k = error_order + 1`. None where the controller has no such
    state (fixed steps).
    """
    steady = controller.get("steady") or {}
    if steady.get("kind") != "gains" or error_order is None:
        return None
    safety = settings[steady["safety"]]
    icoeff = steady["icoeff"]
    gain = settings[icoeff] if isinstance(icoeff, str) else icoeff
    return float(safety) ** ((error_order + 1) / float(gain)) if gain else None
