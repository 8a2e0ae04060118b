"""Work against precision: methods at several tolerances on one problem, measured row by row."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from app.studied import Outcome, Studied
from solver.adjoints.measure import allocator_peak, graph_bytes
from solver.catalogue import methods as known_methods
from solver.errors import InvalidArgument, UnknownMethod
from solver.hooks import Hook
from solver.solution import Solution

KIND = "work_precision"
METHODS = ("bosh3", "dopri5", "tsit5", "vern7", "dopri8")
STIFF_METHODS = ("trbdf2", "kvaerno5", "rodas5p", "radau5", "bdf")
RTOLS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
STEPS = (32, 64, 128, 256, 512, 1024, 2048)
ENOUGH = 40  # attempts after which a solve without a gradient has what it ever allocates
LONG = 2.0  # seconds; a solve that takes longer is timed once
About = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Setting:
    """One point of the picture: a method at a tolerance, or in equal steps."""

    method: str
    rtol: float
    steps: int | None = None

    @property
    def words(self) -> str:
        """The tolerance or the steps, to read."""
        return (
            f"rtol {self.rtol:g}".replace("e-0", "e-")
            if self.steps is None
            else f"{self.steps} steps"
        )

    @property
    def label(self) -> str:
        """What tells it from all others."""
        return f"{self.method}, {self.words}"


def settings_of(spec: Mapping[str, Any], studied: Studied) -> list[Setting]:
    """Return what a spec asks to try: each method at each tolerance.

    Methods without an error estimate take `steps` equal steps in place of a tolerance.

    Raises:
        InvalidArgument: a tolerance or a number of steps is not allowed, or none is left.
        UnknownMethod: there is no such method.
    """
    names = list(spec.get("methods") or (STIFF_METHODS if studied.stiff else METHODS))
    rtols = [float(value) for value in spec.get("rtols") or RTOLS]
    if any(not (math.isfinite(value) and 0 < value < 1) for value in rtols):
        raise InvalidArgument(f"rtols={rtols}: must be numbers between 0 and 1")
    steps = [int(value) for value in spec.get("steps") or STEPS]
    if any(value < 1 for value in steps):
        raise InvalidArgument(f"steps={steps}: must be whole numbers from 1 on")
    found, known = [], known_methods()
    for name in dict.fromkeys(names):
        if name not in known:
            raise UnknownMethod.among(name, known)
        if known[name]().error_order is None:
            found += [Setting(name, rtols[0], n) for n in dict.fromkeys(steps)]
        else:
            found += [Setting(name, rtol) for rtol in dict.fromkeys(rtols)]
    return found


def work_precision(
    spec: Mapping[str, Any],
    *,
    about: About = lambda text, done, of: None,
    watchers: Sequence[Hook] = (),
) -> Iterator[dict[str, Any]]:
    """Yield an entry for each setting as it is measured; it comes again with more rounds of timing.

    An entry has `label`, `method`, `setting`, `rtol`, `steps`, `solve` (of the recorded ones, in
    their order), `rows`, `failed`, `failure` (in words), and `measured`: a list over rows for each
    of `inspector.studies.ROW_MEASURES`, the rounds' `seconds`, and `peak_bytes` if asked for.

    Args:
        spec: `problem`, `parameters`, `spread`, `batch`, `seed`, `t1`, `dtype`, `controller`;
            `methods`, `rtols`, `steps`, `atol_ratio`; `rounds` of timing (3), `memory` and
            `gradient` (whether to measure them).
        about: told what comes next, how many parts are done, and of how many.
        watchers: hooks of the first solve of each setting, which is not timed.

    Raises:
        InvalidArgument, InvalidType, UnknownMethod: an entry of the spec is not allowed.
    """
    studied = Studied.of(spec)
    settings = settings_of(spec, studied)
    rounds = int(spec.get("rounds") or 3)
    done, of = 0, 1 + len(settings) * (1 + rounds)
    about("reference solve", done, of)
    reference = studied.reference
    if spec.get("gradient"):
        about("reference gradient", done, of)
        _ = studied.reference_gradient  # kept by `studied`
    yield {"label": "", "reference": reference.how, "doubt": reference.doubt, "phase": "reference"}
    entries: dict[Setting, dict[str, Any]] = {}
    solves = 0
    for turn in range(1 + rounds):
        for setting in settings:
            done += 1
            entry = entries.get(setting)
            if turn and (entry is None or entry["failure"] or _long_enough(entry)):
                continue
            named = setting.label if not turn else f"{setting.label}, round {turn}"
            about(named, done, of)
            if entry is None:
                entry = _first(studied, setting, spec, watchers)
                entry["solve"] = solves if watchers and entry["began"] else -1
                solves += entry.pop("began")
                entries[setting] = entry
            else:
                began = time.perf_counter()
                _solve(studied, setting, spec)
                entry["measured"]["seconds"].append(time.perf_counter() - began)
            yield entry
    about("done", of, of)


def _long_enough(entry: Mapping[str, Any]) -> bool:
    seconds = entry["measured"].get("seconds") or [0.0]
    return bool(max(seconds) > LONG)


def _solve(
    studied: Studied,
    setting: Setting,
    spec: Mapping[str, Any],
    hooks: Sequence[Hook] = (),
    most: int | None = None,
) -> Solution:
    own: dict[str, Any] = {} if most is None else {"max_steps": most}
    return studied.solve(
        setting.method, setting.rtol, controller=spec.get("controller"), steps=setting.steps,
        hooks=hooks, **own,
    )  # fmt: skip


def _first(
    studied: Studied, setting: Setting, spec: Mapping[str, Any], watchers: Sequence[Hook]
) -> dict[str, Any]:
    """Solve a setting for the first time and score every row."""
    rows = len(studied.built.y0)
    entry: dict[str, Any] = {
        "label": setting.label, "method": setting.method, "setting": setting.words,
        "rtol": setting.rtol if setting.steps is None else None, "steps": setting.steps,
        "rows": rows, "failed": rows, "failure": "", "began": False, "measured": dict[str, Any](),
    }  # fmt: skip
    watch = _Began()
    try:
        solution = _solve(studied, setting, spec, [*watchers, watch])
        entry["began"] = watch.began
        outcome = Outcome.of(solution)
        failed = (~outcome.success).nonzero().flatten().tolist()
        entry |= {"failed": len(failed), "reason": outcome.message}
        if len(failed) == rows:
            entry["failure"] = f"every row failed: {entry['reason']}"
            return entry
        entry["measured"] = {**studied.measure(outcome), "seconds": []}
        if spec.get("gradient"):
            errors, kept = graph_bytes(
                lambda: studied.gradient_error(
                    setting.method, setting.rtol, controller=spec.get("controller"),
                    steps=setting.steps,
                ),
                (),
            )  # fmt: skip
            for row in failed:
                errors[row] = math.nan
            entry["measured"] |= {"gradient_error": errors, "graph_bytes": [kept]}
        if spec.get("memory"):
            device = studied.built.y0.device
            with torch.no_grad():
                peak = allocator_peak(lambda: _solve(studied, setting, spec, most=ENOUGH), device)
            entry["measured"] |= {"peak_bytes": [peak]}
    except Exception as error:  # of one setting; the others go on
        entry["began"] = watch.began
        entry["failure"] = f"{type(error).__name__}: {error}"
    return entry


class _Began(Hook):
    """Notes whether a solve began: one that is refused before leaves no record."""

    began = False

    def on_solve_start(self, info: Any) -> None:
        """Take note."""
        self.began = True
