"""Gradient modes side by side, as data frames: compared here and now, or recorded in a run.

A comparison in a run is one file more, `adjoints.jsonl`, one object a line, by `kind`: `plan` (what
is swept, its values, the modes), `doing` (what comes next, how many parts are done, of how many),
`entry` (a mode at one value, as `solver.adjoints.compare` gives it).
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from inspector.store.files import number
from inspector.store.lines import LineFile
from inspector.store.reader import Damage, LineTail

if TYPE_CHECKING:
    import pandas as pd

    from solver.adjoints.base import Adjoint
    from solver.adjoints.compare import GradientProblem

FILE = "adjoints.jsonl"
_COUNTS = (
    *("kept_bytes", "checkpoint_bytes", "graph_bytes", "gradient_bytes", "predicted_bytes"),
    *("peak_bytes", "seconds_forward", "seconds_backward", "n_f_forward", "n_f_backward"),
    *("n_vjps", "n_accepted", "n_failed", "loss"),
)
TABLE_COLUMNS = (
    *("value", "mode", "error", "error_exact", "error_y0", "peak_bytes", "kept_bytes"),
    *("checkpoint_bytes", "graph_bytes", "gradient_bytes", "predicted_bytes", "seconds"),
    *("seconds_forward", "seconds_backward", "n_f_forward", "n_f_backward", "n_vjps"),
    *("n_accepted", "n_failed", "loss", "title", "failure"),
)


def compare_adjoints(
    make: "Callable[[Any], GradientProblem]", modes: "Sequence[str | Adjoint]", **options: Any
) -> "pd.DataFrame":
    """Return a line for each gradient mode: error, memory, seconds, evaluations; imports torch.

    Args:
        make, modes, options: see `solver.adjoints.compare.compare_adjoints`.

    Returns:
        Columns as `Comparison.table` says. `attrs["entries"]` has all of it, also for `groups` and
        `rows`.
    """
    from solver.adjoints.compare import compare_adjoints as compare

    entries = compare(make, modes, **options)
    found = table(entries)
    found.attrs["entries"] = entries
    return found


def table(entries: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return one line for each entry, see `Comparison.table`."""
    import pandas as pd

    lines = []
    for entry in entries:
        error, exact = entry.get("error") or {}, entry.get("error_exact") or {}
        line: dict[str, Any] = {
            "value": number(entry.get("value")),
            "mode": entry.get("label") or entry.get("mode"),
            "error": _largest(error),
            "error_exact": _largest(exact),
            "error_y0": number(error.get("y0")),
            "title": entry.get("title", ""),
            "failure": entry.get("failure", ""),
        }
        line |= {name: number(entry.get(name)) for name in _COUNTS}
        line["seconds"] = line["seconds_forward"] + line["seconds_backward"]
        lines.append(line)
    return pd.DataFrame(lines, columns=list(TABLE_COLUMNS))


def groups(entries: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return `value, mode, group, error, error_exact`, one line for each group of parameters."""
    import pandas as pd

    lines = [
        (number(entry.get("value")), entry.get("label"), group, number(error),
         number((entry.get("error_exact") or {}).get(group)))
        for entry in entries
        for group, error in (entry.get("error") or {}).items()
    ]  # fmt: skip
    return pd.DataFrame(lines, columns=["value", "mode", "group", "error", "error_exact"])


def rows(entries: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return `value, mode, instance, error`: the error of each row's gradient by y0."""
    import pandas as pd

    lines = [
        (number(entry.get("value")), entry.get("label"), instance, number(error))
        for entry in entries
        for instance, error in enumerate(entry.get("error_rows") or ())
    ]
    return pd.DataFrame(lines, columns=["value", "mode", "instance", "error"])


def memory(entries: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Return `value, mode, seconds, bytes, phase`: memory in the course of each mode.

    Empty if it was not measured. Seconds are those under the profiler, ten times longer than they
    would be.
    """
    import pandas as pd

    lines: list[tuple[float, Any, float, float, str]] = []
    for entry in entries:
        trace = entry.get("trace") or {}
        phases = [(number(begin), str(name)) for name, begin in trace.get("phases") or ()]
        value, mode = number(entry.get("value")), entry.get("label")
        for second, level in zip(trace.get("seconds") or (), trace.get("bytes") or (), strict=True):
            at = number(second)
            phase = next((name for begin, name in reversed(phases) if begin <= at), "")
            lines.append((value, mode, at, number(level), phase))
    return pd.DataFrame(lines, columns=["value", "mode", "seconds", "bytes", "phase"])


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _largest(errors: Mapping[str, Any]) -> float:
    values = [number(error) for error in errors.values()]
    if any(math.isnan(value) for value in values):
        return math.nan
    return max(values, default=math.nan)


@final
class ComparisonWriter:
    """Appends to the comparison of a run.

    Args:
        path: folder of the run, which is there.
        sweep: what is varied, such as `"rtol"`; empty for nothing.
        values: of what is varied.
        modes: labels of the modes.
    """

    def __init__(
        self, path: Path, sweep: str, values: Sequence[float], modes: Sequence[str]
    ) -> None:
        self._file = LineFile(path / FILE, make_folder=False)
        self._file.append(
            {"kind": "plan", "sweep": sweep, "values": list(values), "modes": list(modes)}
        )

    def doing(self, text: str, done: int, of: int) -> None:
        """Say what comes next."""
        self._file.append({"kind": "doing", "text": text, "done": done, "of": of})

    def entry(self, place: int, value: float, entry: Mapping[str, Any]) -> None:
        """Add a mode at one value, or replace it.

        Args:
            place: which of the plan's values.
            value: that value.
        """
        self._file.append({"kind": "entry", "place": place, **entry, "value": value})

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@final
class Comparison:
    """The comparison recorded in a run, read as far as it is there; imports no torch.

    Args:
        path: folder of the run.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._tail = LineTail(self.path / FILE, FILE)
        self._forget()
        self.refresh()

    def _forget(self) -> None:
        self.sweep = ""
        self.values: list[float] = []
        self.modes: list[str] = []
        self.doing = ""
        self.done = self.of = 0
        self._entries: dict[tuple[int, str], dict[str, Any]] = {}

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
            self.sweep = str(record.get("sweep") or "")
            self.values = [number(value) for value in record.get("values") or ()]
            self.modes = [str(mode) for mode in record.get("modes") or ()]
        elif kind == "doing":
            self.doing = str(record.get("text", ""))
            self.done, self.of = (_whole(record.get(name)) for name in ("done", "of"))
        elif kind == "entry":
            place = _whole(record.get("place"))
            self._entries[place, str(record.get("label"))] = record

    @property
    def planned(self) -> bool:
        """Whether the run holds a comparison."""
        return bool(self.modes)

    @property
    def damage(self) -> list[Damage]:
        """Lines that cannot be read."""
        return self._tail.damage(alive=True)

    def entries(self, place: int | None = None) -> list[dict[str, Any]]:
        """Return what was found, in the order of values and modes.

        Args:
            place: of one of the values; None for all.
        """
        order = {mode: i for i, mode in enumerate(self.modes)}
        keys = sorted(self._entries, key=lambda key: (key[0], order.get(key[1], len(order))))
        return [self._entries[key] for key in keys if place in (None, key[0])]

    def table(self, place: int | None = None) -> "pd.DataFrame":
        """Return one line for each mode at each value.

        `value` of what is swept, `mode`, `error` (relative, of the group of parameters that has the
        largest; against backpropagation in float64 over the same steps), `error_exact` (against a
        tight tolerance), `error_y0`; `peak_bytes` of the allocator, `kept_bytes` from forward to
        backward, `checkpoint_bytes`, `graph_bytes`, `gradient_bytes`, `predicted_bytes` by the
        mode's law; `seconds`, `seconds_forward`, `seconds_backward`; `n_f_forward`, `n_f_backward`,
        `n_vjps`, `n_accepted`, `n_failed`, `loss`, `title`, `failure`. What is not known is NaN.
        """
        return table(self.entries(place))

    def groups(self, place: int | None = None) -> "pd.DataFrame":
        """Return the errors of groups of parameters, see `groups`."""
        return groups(self.entries(place))

    def rows(self, place: int | None = None) -> "pd.DataFrame":
        """Return the errors of rows, see `rows`."""
        return rows(self.entries(place))

    def memory(self, place: int | None = None) -> "pd.DataFrame":
        """Return memory in the course of time, see `memory`."""
        return memory(self.entries(place))
