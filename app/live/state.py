"""What the Live page shows, and the words for where it stands."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app import session
from app.equations import about as equations
from app.equations.system import is_equations
from app.workers import Exit, Workers

if TYPE_CHECKING:
    from inspector.run import Run

LIVE = ("queued", "starting", "running", "paused", "cancelling")


@dataclass(frozen=True)
class Shown:
    """One run as this page sees it."""

    id: str | None
    run: "Run | None"  # None before anything was written
    spec: dict[str, Any]
    word: str  # one of LIVE, or finished, failed, cancelled, interrupted, died, empty, none
    solve: int = 0
    exit: Exit | None = None

    @property
    def live(self) -> bool:
        """Whether more is to come."""
        return self.word in LIVE

    @property
    def has_steps(self) -> bool:
        """Whether there is a solve with at least one attempt to draw."""
        if self.run is None or self.run.n_solves == 0:
            return False
        return bool(self.run.places(self.solve))


def look(run_id: str | None, workers: Workers) -> Shown:
    """Find out where a run stands."""
    if run_id is None:
        return Shown(None, None, {}, "none")
    run = session.open_run(run_id)
    job = workers.state(run_id)
    spec = (run.spec if run else None) or workers.spec(run_id) or {}
    ended = job in (None, "ended")
    problem = workers.exit_of(run_id) if ended and run_id != session.EXAMPLE else None
    if not ended:
        closed = run is not None and run.status in ("finished", "cancelled", "failed")
        word = run.status if run is not None and closed else str(job)  # before its process is gone
    elif run is None:
        word = "died" if problem else "cancelled" if job == "ended" else "empty"
    else:
        word = run.status
        if word == "running":  # recorded by a process this server did not start
            word = {"pause": "paused", "cancel": "cancelling"}.get(workers.asked(run_id), word)
        if problem and word not in ("finished", "cancelled", "failed"):
            word = "died"
    solve = session.int_param("solve", 0, max(0, run.n_solves - 1), 0) if run else 0
    return Shown(run_id, run, spec, word, solve, problem)


def title_of(spec: dict[str, Any], described: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a spec's problem; empty for one that is not known."""
    wanted = spec.get("problem")
    if is_equations(wanted):
        kept = next((p for p in described["problems"] if p.get("spec_name") == wanted), {})
        return equations.described(wanted) | {k: v for k, v in kept.items() if k == "name"}
    return next((p for p in described["problems"] if wanted in (p["name"], p.get("spec_name"))), {})


def in_words(spec: dict[str, Any]) -> str:
    """Return a spec in one line: method, controller with what is not default, tolerances, rows."""
    from app.controls.numbers import short

    if not spec:
        return ""
    controller = spec.get("controller") or {}
    gains = [
        f"{key}={short(controller[key])}"
        for key in ("filter", "kp", "ki", "kd", "safety")
        if key in controller and controller[key] is not None
    ]
    parts = [
        str(spec.get("method", "")),
        " ".join([str(controller.get("name", "")), *gains]).strip(),
    ]
    parts += [f"{key} {short(spec[key])}" for key in ("rtol", "atol") if key in spec]
    spread = spec.get("spread")
    rows = f"{spec['batch']} rows" if "batch" in spec else ""  # a training names none
    if spread:
        rows += f", {spread['parameter']} {short(spread['low'])} to {short(spread['high'])}"
    parts += [rows, f"seed {spec['seed']}" if "seed" in spec else ""]
    if spec.get("gradient"):
        parts.append(f"gradient by {spec['gradient']}")
    return " · ".join(part for part in parts if part)


def evals_per_attempt(spec: dict[str, Any], described: dict[str, Any]) -> float:
    """Return how often a method evaluates the field in one attempt; NaN if it is not known."""
    method = next((m for m in described["methods"] if m["name"] == spec.get("method")), None)
    if method is None or not method.get("stages"):
        return float("nan")
    return float(method["stages"] - bool(method["fsal"]))


def filled(spec: dict[str, Any], described: dict[str, Any]) -> dict[str, Any]:
    """Return a spec with everything it leaves to the defaults written out; empty stays empty."""
    problem = title_of(spec, described)
    if not spec or not problem:
        return dict(spec)
    full = {"batch": problem["batch"], "seed": 0, "t1": problem["t1"], "dtype": "float64"}
    full |= {"spread": problem.get("spread"), "method": problem["method"]}
    full |= {key: value for key, value in spec.items() if value is not None or key == "spread"}
    spread = full["spread"]
    kept = {s["name"]: s["default"] for s in problem["parameters"]} | (spec.get("parameters") or {})
    kept.pop(spread["parameter"] if spread else None, None)
    full["parameters"] = kept
    wanted = spec.get("controller") or {"name": "pid"}
    wanted = {"name": wanted} if isinstance(wanted, str) else dict(wanted)
    about = next((c for c in described["controllers"] if c["name"] == wanted["name"]), None)
    defaults = {s["name"]: s["default"] for s in about["settings"]} if about else {}
    return full | {"controller": defaults | wanted}
