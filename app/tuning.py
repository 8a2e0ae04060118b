"""The gains of a step-size controller searched: by replay first, then by real solves."""

import dataclasses
import math
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from app.replay_model import Attempts, Replay, attempts_of_run, attempts_of_solve, model_of
from app.studied import Outcome, Studied, controller_of
from solver.catalogue import controllers, methods
from solver.controllers._power_law import PowerLawController
from solver.controllers.pid import PID
from solver.errors import InvalidArgument, UnknownMethod
from solver.hooks import Hook

KIND = "tune"
KP = tuple(round(-0.3 + 0.1 * i, 2) for i in range(11))
KI = tuple(round(0.1 * i, 2) for i in range(1, 11))
SET_POINT = 0.9  # of the steady error: its k-th root, as the published presets have it
GENERATIONS = 8
POPULATION = 48
About = Callable[[str, int, int], None]
Settings = dict[str, Any]  # of a controller, with its `name`


class Candidate(NamedTuple):
    """A controller to try, and where it comes from."""

    source: str  # "recorded", "preset", "grid", "search"
    title: str
    settings: Settings


def pid_of(kp: float, ki: float, kd: float, spec: Mapping[str, Any], **more: Any) -> Settings:
    """Return PID settings; safety from the spec, or so that the steady error is the same for all.

    With `safety = 0.9^ki` every set of gains meets `0.9^k`, `k = error_order + 1`.
    """
    safety = spec.get("safety")
    value = SET_POINT**ki if safety in (None, "equal") else float(safety)
    value = min(max(value, 0.1), 0.999)
    settings = {"name": "pid", "kp": kp, "ki": ki, "kd": kd, "safety": value}
    return settings | {"limiter": spec.get("limiter") or "clamp"} | more


def candidates(spec: Mapping[str, Any]) -> list[Candidate]:
    """Return the controller recorded, all presets, and the grid of gains."""
    found = [Candidate("recorded", "as it is", _recorded(spec))]
    for name, cls in controllers().items():
        if not issubclass(cls, PowerLawController):
            continue
        for preset, (values, _) in cls.presets.items():
            found.append(Candidate("preset", preset, {"name": name, **values}))
        if not cls.presets:
            found.append(Candidate("preset", cls.title, {"name": name}))
    kps = [float(value) for value in spec.get("kp") or KP]
    kis = [float(value) for value in spec.get("ki") or KI]
    kd = float(spec.get("kd") or 0.0)
    for kp in kps:
        for ki in kis:
            if ki + kp + kd > 0:
                title = f"kp {kp:g}, ki {ki:g}" + (f", kd {kd:g}" if kd else "")
                found.append(Candidate("grid", title, pid_of(kp, ki, kd, spec)))
    return [c._replace(settings=full(c.settings)) for c in found]


def full(settings: Settings) -> Settings:
    """Return a controller's settings with the defaults written out.

    Raises:
        InvalidArgument: one of them is not allowed.
    """
    return {"name": settings["name"], **dataclasses.asdict(controller_of(settings))}


def _recorded(spec: Mapping[str, Any]) -> Settings:
    """Return the controller that the search starts from.

    Raises:
        InvalidArgument: it has no error to control.
    """
    given = spec.get("controller") or {"name": "pid"}
    given = {"name": given} if isinstance(given, str) else dict(given)
    if not isinstance(controller_of(given), PowerLawController):
        raise InvalidArgument(f"controller={given['name']!r}: has no gains to tune")
    return full(given)


def tune(
    spec: Mapping[str, Any],
    *,
    about: About = lambda text, done, of: None,
    watchers: Sequence[Hook] = (),
    root: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield an entry for each controller: all by replay, then the best ones and presets for real.

    Every entry has `label`, `phase` (`"replay"` or `"real"`), `source`, `title`, `controller`,
    `method`, `rtol`, `attempts`, `refused` (sums over rows). Replayed ones have `roughness` (mean
    of |ln factor|), real ones `estimate` (replay's attempts), `evaluations`, `end_error` (median
    over rows), `seconds`, `failed`.

    Args:
        spec: of the problem as for a solve, with `method`, `rtol`, `atol`, `controller` as the
            start; `run` and `solve`, a recorded one to replay; `kp`, `ki` (grids), `kd`, `safety`
            (a number, or "equal" for the same steady error everywhere), `limiter`, `search`
            (whether kp, ki, kd are searched together), `verify` (how many real solves of the
            best), `methods` and `rtols` that the best are tried with too, `jobs` (processes).
        about: told what comes next, how many parts are done, and of how many.
        watchers: hooks of the first solve.
        root: folder of the runs, for `run`.

    Raises:
        InvalidArgument, InvalidType, UnknownMethod: an entry of the spec is not allowed.
    """
    studied = Studied.of(spec)
    method = str(spec.get("method") or studied.problem.method)
    rtol = float(spec.get("rtol") or studied.problem.rtol)
    _check_methods([method, *(spec.get("methods") or ())])
    atol = spec.get("atol")
    atol = rtol * studied.atol_ratio if atol is None else float(atol)
    found, verify = candidates(spec), int(spec.get("verify") or 8)
    about("recording", 0, 4)
    recorded = _recorded(spec)
    attempts = _attempts(spec, studied, method, rtol, atol, recorded, watchers, root)
    about("model of the error", 1, 4)
    model = model_of(studied, attempts, method, rtol, atol, controller_of(recorded))
    yield {"label": "", "phase": "model", "method": method, "rtol": rtol, **model.about}
    about("replay", 2, 4)
    estimates = dict(_replayed(model, found, method, rtol))
    yield from estimates.values()
    if spec.get("search", True):
        about("search", 3, 4)
        more = dict(_searched(model, estimates.values(), spec, method, rtol))
        estimates |= more
        yield from more.values()
    chosen = _chosen(estimates.values(), verify)
    tasks = [(entry, method, rtol, atol) for entry in chosen]
    jobs = int(spec.get("jobs") or min(4, os.cpu_count() or 1))
    of = 4 + len(tasks)
    about("reference solve", 4, of)
    reference = studied.reference
    yield {"label": "reference", "phase": "reference", "how": reference.how,
           "doubt": reference.doubt}  # fmt: skip
    done = 4
    real: list[dict[str, Any]] = []
    for entry in _real(spec, studied, tasks, jobs):
        done += 1
        about(f"real solve: {entry['title']}", done, of)
        real.append(entry)
        yield entry
    tasks = _elsewhere(spec, real, method, rtol, atol)
    of += len(tasks)
    for entry in _real(spec, studied, tasks, jobs):
        done += 1
        about(f"real solve: {entry['title']}, {entry['method']}", done, of)
        yield entry
    about("done", of, of)


def _check_methods(names: Iterable[str]) -> None:
    known = methods()
    for name in names:
        if name not in known:
            raise UnknownMethod.among(name, known)
        if known[name]().error_order is None:
            raise InvalidArgument(f"method={name!r}: has no error estimate, so nothing to control")


def _attempts(
    spec: Mapping[str, Any],
    studied: Studied,
    method: str,
    rtol: float,
    atol: float,
    controller: Settings,
    watchers: Sequence[Hook],
    root: Path | None,
) -> Attempts:
    """Return the attempts of the recorded run, or of a solve made now."""
    if spec.get("run") and root is not None:
        from inspector import open_run, run_path

        run = open_run(run_path(root, str(spec["run"])))
        return attempts_of_run(run, int(spec.get("solve") or 0), studied)
    return attempts_of_solve(studied, method, rtol, atol, controller, watchers)


def _label(candidate: Candidate) -> str:
    return f"{candidate.source}: {candidate.title}"


def _replayed(
    model: Replay, found: Sequence[Candidate], method: str, rtol: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    laws = [controller_of(c.settings).law for c in found]
    attempts, refused, rough, ended = model.estimate(laws)
    for i, candidate in enumerate(found):
        label = _label(candidate)
        yield label, {
            "label": label, "phase": "replay", "source": candidate.source,
            "title": candidate.title, "controller": candidate.settings, "method": method,
            "rtol": rtol, "attempts": attempts[i] if ended[i] else None, "refused": refused[i],
            "roughness": rough[i], "steady": controller_of(candidate.settings).steady_error_ratio(
                model.k - 1
            ),
        }  # fmt: skip


def _searched(
    model: Replay,
    before: Iterable[Mapping[str, Any]],
    spec: Mapping[str, Any],
    method: str,
    rtol: float,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Search kp, ki and kd together by differential evolution on the replay; yields the best.

    Storn & Price (1997), J. Global Optimization 11, 341-359, rand/1/bin, all of a generation
    replayed at once.
    """
    low, high = (-0.6, 0.02, -0.3), (1.2, 1.2, 0.3)
    chance = random.Random(int(spec.get("seed") or 0))
    grid = sorted((e for e in before if e["source"] == "grid" and e["attempts"]),
                  key=lambda e: e["attempts"])  # fmt: skip
    people = [[e["controller"][n] for n in ("kp", "ki", "kd")] for e in grid[: POPULATION // 3]]
    while len(people) < POPULATION:
        person = [chance.uniform(a, b) for a, b in zip(low, high, strict=True)]
        if sum(person) > 0.02:
            people.append(person)
    costs = _costs(model, people, spec)
    for _ in range(GENERATIONS):
        children = []
        for person in people:
            a, b, c = chance.sample(people, 3)
            child = [
                min(max(x + 0.7 * (y - z), lo), hi) if chance.random() < 0.8 else own
                for x, y, z, own, lo, hi in zip(a, b, c, person, low, high, strict=True)
            ]
            children.append(child if sum(child) > 0.02 else person)
        new = _costs(model, children, spec)
        for i, cost in enumerate(new):
            if cost < costs[i]:
                people[i], costs[i] = children[i], cost
    best = sorted(range(POPULATION), key=costs.__getitem__)[:6]
    found = []
    for rank, place in enumerate(best):
        kp, ki, kd = (round(value, 3) for value in people[place])
        settings = full(pid_of(kp, ki, kd, spec))
        found.append(Candidate("search", f"found {rank + 1}", settings))
    yield from _replayed(model, found, method, rtol)


def _costs(
    model: Replay, people: Sequence[Sequence[float]], spec: Mapping[str, Any]
) -> list[float]:
    laws = [PID.with_settings(_unnamed(pid_of(p[0], p[1], p[2], spec))).law for p in people]
    attempts, _, _, ended = model.estimate(laws)
    return [a if good else math.inf for a, good in zip(attempts, ended, strict=True)]


def _unnamed(settings: Settings) -> Settings:
    return {key: value for key, value in settings.items() if key != "name"}


def _chosen(entries: Iterable[dict[str, Any]], verify: int) -> list[dict[str, Any]]:
    """Return the recorded controller, all presets, and the best of the rest."""
    every = list(entries)
    always = [e for e in every if e["source"] in ("recorded", "preset")]
    rest = [e for e in every if e not in always and e["attempts"]]
    rest.sort(key=lambda e: (e["attempts"], e["refused"]))
    kept, seen = [], set()
    for entry in rest:
        gains = tuple(round(entry["controller"].get(n, 0.0), 2) for n in ("kp", "ki", "kd"))
        if gains not in seen:
            seen.add(gains)
            kept.append(entry)
    return always + kept[:verify]


def _elsewhere(
    spec: Mapping[str, Any], real: Sequence[Mapping[str, Any]], method: str, rtol: float,
    atol: float,
) -> list[tuple[dict[str, Any], str, float, float]]:  # fmt: skip
    """Return the best three and the recorded controller at other methods and tolerances."""
    names = list(spec.get("methods") or [method])
    rtols = [float(value) for value in spec.get("rtols") or [rtol]]
    good = sorted((e for e in real if not e["failed"]), key=lambda e: e["attempts"])
    picked = good[:3] + [e for e in good[3:] if e["source"] == "recorded"]
    return [
        (dict(entry), name, value, atol * value / rtol)
        for entry in picked
        for name in dict.fromkeys(names)
        for value in dict.fromkeys(rtols)
        if (name, value) != (method, rtol)
    ]


def _real(
    spec: Mapping[str, Any],
    studied: Studied,
    tasks: Sequence[tuple[dict[str, Any], str, float, float]],
    jobs: int,
) -> Iterator[dict[str, Any]]:
    """Yield an entry for each task as soon as it is solved, in `jobs` processes.

    More than one goes through joblib, so that its backends take the sweep elsewhere too:
    `with joblib.parallel_config(backend="dask"): ...`.
    """
    if jobs == 1 or len(tasks) < 2:
        results: Any = (
            _solve(spec, i, name, rtol, atol, entry["controller"])
            for i, (entry, name, rtol, atol) in enumerate(tasks)
        )
    else:
        from joblib import Parallel, delayed

        call: Any = delayed(_solve)
        results = Parallel(n_jobs=jobs, return_as="generator_unordered")(
            call(spec, i, name, rtol, atol, entry["controller"])
            for i, (entry, name, rtol, atol) in enumerate(tasks)
        )
    for place, outcome in results:
        replayed, method, rtol, atol = tasks[place]
        here = replayed["phase"] == "replay"
        entry = {
            "label": f"real: {replayed['source']}: {replayed['title']}, {method}, {rtol:g}",
            "phase": "real", "method": method, "rtol": rtol, "atol": atol,
            "estimate": replayed["attempts"] if here else None,
            **{n: replayed[n] for n in ("source", "title", "controller")},
        }  # fmt: skip
        yield entry | _scored(studied, outcome)


def _scored(studied: Studied, outcome: Outcome | str) -> dict[str, Any]:
    if isinstance(outcome, str):
        rows = len(studied.built.y0)
        return {"attempts": None, "refused": None, "evaluations": None, "end_error": None,
                "seconds": None, "failed": rows, "failure": outcome}  # fmt: skip
    scores = studied.measure(outcome)
    errors = torch.tensor(scores["end_error"]).nanmedian()
    counts = {name: int(values.sum()) for name, values in outcome.counts.items()}
    return {
        "attempts": counts["n_steps"], "refused": counts["n_rejected"],
        "evaluations": counts["n_f_evals"], "end_error": float(errors),
        "seconds": outcome.seconds, "failed": int((~outcome.success).sum()),
        "failure": outcome.message,
    }  # fmt: skip


def _solve(
    spec: Mapping[str, Any], place: int, method: str, rtol: float, atol: float, settings: Settings
) -> tuple[int, Outcome | str]:
    """Solve with one controller, in whatever process this is."""
    torch.set_num_threads(1)
    try:
        solution = Studied.of(spec).solve(method, rtol, atol=atol, controller=settings)
    except Exception as error:  # of one setting; the others go on
        return place, f"{type(error).__name__}: {error}"
    return place, Outcome.of(solution)
