"""Many settings of a solver on one problem: work against precision, and gains searched.

A study in a run is one file more, `study.jsonl`, one object a line, by `kind`: `plan` (what is
tried), `doing` (what comes next, how many parts are done, of how many), `entry` (what one setting
gave; one of the same `label` replaces it).
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from inspector.store.files import number
from inspector.store.lines import LineFile
from inspector.store.reader import Damage, LineTail

if TYPE_CHECKING:
    import pandas as pd

FILE = "study.jsonl"
ROW_MEASURES = {
    "end_error": "error at the end",
    "trajectory_error": "largest error along the way",
    "gradient_error": "error of the gradient",
    "n_f_evals": "evaluations of a row",
    "n_steps": "attempts of a row",
    "n_rejected": "refused attempts of a row",
    "n_jac_evals": "Jacobians of a row",
}
"""What is measured for each row, in words."""
WHOLE_MEASURES = {
    "seconds": "seconds of the batch",
    "peak_bytes": "peak memory of the solve, bytes",
    "graph_bytes": "memory kept for the gradient, bytes",
}
"""What is measured for the batch."""
MEASURES = ROW_MEASURES | WHOLE_MEASURES
ERRORS = ("end_error", "trajectory_error", "gradient_error")
WORK = tuple(name for name in MEASURES if name not in ERRORS)


@final
class StudyWriter:
    """Appends to the study of a run.

    Args:
        path: folder of the run, which is there.
        plan: what is tried.
    """

    def __init__(self, path: Path, plan: Mapping[str, Any]) -> None:
        self._file = LineFile(path / FILE, make_folder=False)
        self._file.append({**plan, "kind": "plan"})

    def doing(self, text: str, done: int, of: int) -> None:
        """Say what comes next."""
        self._file.append({"kind": "doing", "text": text, "done": done, "of": of})

    def entry(self, entry: Mapping[str, Any]) -> None:
        """Add what one setting gave, or replace it by its `label`."""
        self._file.append({**entry, "kind": "entry"})

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@final
class Study:
    """The study recorded in a run, read as far as it is there; imports no torch.

    Args:
        path: folder of the run.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._tail = LineTail(self.path / FILE, FILE)
        self._forget()
        self.refresh()

    def _forget(self) -> None:
        self.plan: dict[str, Any] = {}
        self.doing = ""
        self.done = self.of = 0
        self.version = 0
        self._entries: dict[str, dict[str, Any]] = {}

    def refresh(self) -> bool:
        """Read what is new; returns whether there was anything."""
        records, again = self._tail.new()
        if again:
            self._forget()
        for record in records:
            if isinstance(record, dict):
                self._take(record)
        return bool(records) or again

    def _take(self, record: dict[str, Any]) -> None:
        kind = record.get("kind")
        if kind == "plan":
            self.plan = record
        elif kind == "doing":
            self.doing = str(record.get("text", ""))
            done, of = record.get("done"), record.get("of")
            self.done = done if isinstance(done, int) else 0
            self.of = of if isinstance(of, int) else 0
        elif kind == "entry":
            self._entries[str(record.get("label"))] = record
            self.version += 1

    @property
    def damage(self) -> list[Damage]:
        """Lines that cannot be read."""
        return self._tail.damage(alive=True)

    def entries(self, phase: str | None = None) -> list[dict[str, Any]]:
        """Return what was found, in the order it came.

        Args:
            phase: of a search, `"replay"` or `"real"`; None for all.
        """
        return [e for e in self._entries.values() if phase in (None, e.get("phase"))]


def precision_table(entries: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return one line for each method at each tolerance.

    Returns:
        `method`, `setting` (in words), `rtol`, `steps` (of a method without error estimate),
        `solve` (its number in the run), `rows`, `failed` (rows), `failure`; and for each of
        `MEASURES` its median over rows (over rounds for `seconds`) under its own name, and the
        ends of its spread as `<name>_low` and `<name>_high`. Failed rows count in `failed` alone.
        What is not known is NaN.
    """
    import pandas as pd

    lines = []
    for entry in entries:
        line: dict[str, Any] = {
            "method": str(entry.get("method")),
            "setting": str(entry.get("setting") or ""),
            "rtol": number(entry.get("rtol")),
            "steps": number(entry.get("steps")),
            "solve": entry.get("solve") if isinstance(entry.get("solve"), int) else -1,
            "rows": entry.get("rows") or 0,
            "failed": entry.get("failed") or 0,
            "failure": str(entry.get("failure") or ""),
        }
        measured = entry.get("measured") or {}
        for name in MEASURES:
            line |= _spread(name, measured.get(name))
        lines.append(line)
    columns = ["method", "setting", "rtol", "steps", "solve", "rows", "failed", "failure"]
    columns += [f"{name}{end}" for name in MEASURES for end in ("", "_low", "_high")]
    return pd.DataFrame(lines, columns=columns)


def precision_rows(entries: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return `method, setting, instance` and every measure of a row: the cloud behind the table."""
    import pandas as pd

    parts = []
    for entry in entries:
        measured = entry.get("measured") or {}
        known = {n: _numbers(measured.get(n)) for n in ROW_MEASURES if measured.get(n)}
        length = max((len(values) for values in known.values()), default=0)
        frame = pd.DataFrame(known)
        frame.insert(0, "instance", np.arange(length))
        frame.insert(0, "setting", str(entry.get("setting") or ""))
        frame.insert(0, "method", str(entry.get("method")))
        parts.append(frame)
    if not parts:
        return pd.DataFrame(columns=["method", "setting", "instance"])
    return pd.concat(parts, ignore_index=True)


def _numbers(values: Any) -> np.ndarray:
    """Return a list of numbers, null among them, as float64."""
    listed = values if isinstance(values, list) else [values]
    return np.array([number(value) for value in listed], "f8")


def _spread(name: str, values: Any) -> dict[str, float]:
    found = _numbers(values) if values is not None else np.empty(0)
    found = found[np.isfinite(found)]
    if not len(found):
        return {name: np.nan, f"{name}_low": np.nan, f"{name}_high": np.nan}
    ends = {f"{name}_low": float(found.min()), f"{name}_high": float(found.max())}
    return {name: float(np.median(found))} | ends


def pareto(cost: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return the places of the points `(n,)` that no other beats in both, by rising cost.

    What is not finite takes no part; of equal points the first stays.
    """
    places = np.flatnonzero(np.isfinite(cost) & np.isfinite(error))
    kept: list[int] = []
    best = np.inf
    for place in places[np.lexsort((error[places], cost[places]))]:
        if error[place] < best:
            kept.append(int(place))
            best = error[place]
    return np.array(kept, dtype=np.intp)


TUNING_NUMBERS = (
    *("rtol", "attempts", "refused", "estimate", "evaluations", "roughness", "steady"),
    *("end_error", "seconds", "failed"),
)
GAINS = ("kp", "ki", "kd", "safety")


def tuning_table(entries: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return one line for each controller that was tried.

    Returns:
        `label`, `phase` (`"replay"` estimates, `"real"` solves), `source`, `title`, `method`,
        `name` (of the controller), `kp, ki, kd, safety` where it has them, `attempts`, `refused`
        (sums over rows), `estimate` (replay's attempts, of real solves), `evaluations`,
        `roughness`, `steady`, `end_error`, `seconds`, `failed`, `failure`. NaN where not known.
    """
    import pandas as pd

    lines = []
    for entry in entries:
        if entry.get("phase") not in ("replay", "real"):
            continue
        settings = entry.get("controller") or {}
        line = {n: str(entry.get(n) or "") for n in ("label", "phase", "source", "title", "method")}
        line["name"] = str(settings.get("name"))
        line["failure"] = str(entry.get("failure") or "")
        own: dict[str, Any] = {name: number(settings.get(name)) for name in GAINS}
        own |= {name: number(entry.get(name)) for name in TUNING_NUMBERS}
        lines.append(line | own)
    columns = ["label", "phase", "source", "title", "method", "name", "failure"]
    return pd.DataFrame(lines, columns=[*columns, *GAINS, *TUNING_NUMBERS])
