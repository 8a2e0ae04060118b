"""The process that solves and records: `python -m app.worker`.

It imports everything first, so that a run begins at once, and waits for a line of input:
`{"path": folder of the run, "spec": what to solve}` as JSON. While it solves it obeys
`control.json` in that folder, and stops when nobody looks.
"""

import json
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

import solver
from app import tuning, work_precision
from app.describe import user_problem
from app.gradients import compare_spec, differentiate, read_spec
from app.own_problem import problem_by_name
from app.trainer import KIND, record_training
from app.workers import read_json
from inspector import Inspector
from inspector.adjoints import ComparisonWriter
from inspector.studies import StudyWriter
from sample_problems.base import LossProblem
from solver.catalogue import controller_by_name
from solver.hooks import Hook, StepBlock
from solver.solution import Solution

LEASE_SECONDS = 60.0
POLL_SECONDS = 0.1
STATE_VALUES = 512  # numbers kept of each attempt's states: as many whole rows as fit
FLUSH_SECONDS = 0.2  # in slow motion and before a pause, so that what is seen is what was done


class Cancelled(BaseException):
    """Somebody pressed Cancel, or nobody looked any more; ends the solve from a hook."""


FAST_BLOCK = 12  # attempts between looks at what viewers ask for, outside slow motion


class Control(Hook):
    """Obeys `control.json`: pause, cancel, slow motion; and watches the lease.

    Args:
        path: folder of the run.
        recorder: written out before a wait, so that viewers see where the solve stands.
        keep_running: whether to go on when nobody looks.
    """

    def __init__(self, path: Path, recorder: Inspector | None, keep_running: bool) -> None:
        self.path = path
        self.recorder = recorder
        self.keep_running = keep_running
        self.command = "run"
        self.rate: float | None = None
        self.polled = self.due = self.flushed = 0.0
        self.poll()

    def on_steps(self, steps: StepBlock) -> None:
        """Wait or stop, if asked to: after every attempt in slow motion, else after each block."""
        now = time.monotonic()
        if now - self.polled >= POLL_SECONDS:
            self.poll()
        if self.command == "pause":
            self.flush()
            while self.command == "pause":
                time.sleep(0.05)
                self.poll()
            self.due = 0.0
        if self.rate:
            self.due = max(self.due, now - 1.0 / self.rate) + len(steps.t) / self.rate
            if now - self.flushed > FLUSH_SECONDS:
                self.flush()
            while self.rate and (left := self.due - time.monotonic()) > 0:
                time.sleep(min(left, 0.05))
                if time.monotonic() - self.polled >= POLL_SECONDS:
                    self.poll()

    def look(self) -> None:
        """Wait or stop, if asked to, between two solves."""
        self.poll()
        while self.command == "pause":
            self.flush()
            time.sleep(POLL_SECONDS)
            self.poll()

    def poll(self) -> None:
        """Read what viewers ask for.

        Raises:
            Cancelled: they asked to stop, or the lease has grown old.
        """
        self.polled = time.monotonic()
        asked = read_json(self.path / "control.json")
        rate = asked.get("attempts_per_second")
        self.rate = float(rate) if isinstance(rate, int | float) and rate > 0 else None
        self.block_size = 1 if self.rate else FAST_BLOCK
        self.command = str(asked.get("command", "run"))
        if self.command == "cancel":
            raise Cancelled("cancelled by a viewer")
        if not self.keep_running:
            try:
                age = time.time() - (self.path / "lease").stat().st_mtime
            except OSError:
                return
            if age > LEASE_SECONDS:
                raise Cancelled(f"stopped: no viewer for {LEASE_SECONDS:g} s")

    def flush(self) -> None:
        """Write out what was recorded so far."""
        self.flushed = time.monotonic()
        if self.recorder is not None:
            self.recorder.flush()


def solve_spec(spec: Mapping[str, Any], hooks: Sequence[Hook] = ()) -> Solution:
    """Solve what a spec describes.

    Raises:
        InvalidArgument, InvalidType: an entry of the spec is not allowed; the message names it.
        KeyError: an entry that has no default is missing.
    """
    dtype = {"float32": torch.float32, "float64": torch.float64}[spec.get("dtype") or "float64"]
    problem = problem_by_name(spec["problem"], spec.get("parameters"))
    seed = int(spec.get("seed") or 0)
    built = problem.build(
        batch=spec.get("batch"),
        seed=seed,
        spread=spec.get("spread", "default"),
        dtype=dtype,
    )
    for hook in hooks:
        if isinstance(hook, Inspector):
            hook.note_parameters(built.parameters)
    t1 = built.t1 if spec.get("t1") is None else float(spec["t1"])
    t_eval = torch.linspace(built.t0, t1, int(spec.get("n_eval") or 2), dtype=torch.float64)
    controller = spec.get("controller")
    if isinstance(controller, Mapping):
        settings = {key: value for key, value in controller.items() if key != "name"}
        controller = controller_by_name(controller["name"], settings)
    options: dict[str, Any] = {
        "method": spec.get("method") or "tsit5",
        "controller": controller,
        "rtol": spec.get("rtol", 1e-4),
        "atol": spec.get("atol", 1e-6),
        "dt0": spec.get("dt0"),
        "dt_min": spec.get("dt_min"),
        "dt_max": spec.get("dt_max"),
        "max_steps": spec.get("max_steps") or 100_000,
        "engine": spec.get("engine") or "auto",
        "stepping": spec.get("stepping") or "independent",
        "hooks": hooks,
    }
    if spec.get("gradient") and isinstance(problem, LossProblem):
        data = problem.draw(len(built.y0), torch.Generator().manual_seed(seed), dtype)
        speed = built.parameters["speed"]
        return differentiate(problem, data, speed, str(spec["gradient"]), seed, options)
    with torch.no_grad():
        return solver.solve_ivp(
            built.f,
            built.y0,
            t_eval,
            args=built.args,
            jump_t=built.jump_t,
            events=built.events,
            adjoint=spec.get("adjoint") or "backprop",
            **options,
        )


def record(spec: Mapping[str, Any], path: Path, *, note: str = "", obey: bool = False) -> Solution:
    """Solve a spec and record it into a run.

    Args:
        path: folder of the run.
        note: shown in the list of runs.
        obey: whether to watch `control.json` and `lease`.

    Raises:
        Cancelled: a viewer stopped it; everything until then is recorded.
        Exception: what `solve_spec` raises; it is recorded as the reason.
    """
    statistics = spec.get("statistics", "all")
    recorder = Inspector(
        path,
        statistics="all" if statistics == "all" else tuple(statistics or ()),
        states=rows_of_states(spec),
        note=note,
        spec=dict(spec),
    )
    with ended_as_told(recorder):
        hooks: list[Hook] = [recorder]
        if obey:
            hooks.append(Control(path, recorder, bool(spec.get("keep_running"))))
        with warnings_recorded(recorder):
            return solve_spec(spec, hooks)


@contextmanager
def warnings_recorded(recorder: Inspector) -> Iterator[None]:
    """Write warnings of the solver into the run, where people see them."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, *place: Any) -> None:
            recorder.event("warning", str(message))
            shown(message, *place)

        warnings.showwarning = show
        yield


def record_comparison(
    spec: Mapping[str, Any], path: Path, *, note: str = "", obey: bool = False
) -> int:
    """Compare gradient modes as a spec says and record it; returns how many entries there are.

    One solve and backward pass of each mode is recorded as any other solve.

    Raises:
        Cancelled: a viewer stopped it; everything until then is recorded.
        Exception: what `compare_spec` raises; it is recorded as the reason.
    """
    recorder = Inspector(path, statistics=("limiter",), note=note, spec=dict(spec))
    control = Control(path, recorder, bool(spec.get("keep_running"))) if obey else None
    places: set[tuple[int, str]] = set()
    with ended_as_told(recorder), ExitStack() as stack:
        asked = read_spec(spec)
        made = ComparisonWriter(path, asked.sweep, asked.values, asked.modes)
        writer = stack.enter_context(closing(made))

        def about(text: str, done: int, of: int) -> None:
            writer.doing(text, done, of)
            if control is not None:
                control.look()

        with nullcontext() if control is None else cancelled_at_once(control):
            for place, value, entry in compare_spec(spec, about=about, watchers=[recorder]):
                writer.entry(place, value, entry)
                places.add((place, entry["label"]))
    return len(places)


def record_study(spec: Mapping[str, Any], path: Path, *, note: str = "", obey: bool = False) -> int:
    """Try many settings as a spec says and record what they give; returns how many did.

    The first solve of each is recorded as any other solve.

    Raises:
        Cancelled: a viewer stopped it; everything until then is recorded.
        Exception: what the study raises; it is recorded as the reason.
    """
    recorder = Inspector(path, statistics=("limiter",), note=note, spec=dict(spec))
    control = Control(path, recorder, bool(spec.get("keep_running"))) if obey else None
    labels: set[str] = set()
    with ended_as_told(recorder), ExitStack() as stack:
        study = STUDIES[str(spec["kind"])]
        more = {"root": path.parent} if spec.get("run") else {}
        writer = stack.enter_context(closing(StudyWriter(path, {"spec": dict(spec)})))

        def about(text: str, done: int, of: int) -> None:
            writer.doing(text, done, of)
            if control is not None:
                control.look()

        with nullcontext() if control is None else cancelled_at_once(control):
            for entry in study(spec, about=about, watchers=[recorder], **more):
                writer.entry(entry)
                labels.add(str(entry["label"]))
    return len(labels)


STUDIES: dict[str, Any] = {
    work_precision.KIND: work_precision.work_precision,
    tuning.KIND: tuning.tune,
}
"""What many settings are tried for, by the `kind` of a spec."""


@contextmanager
def ended_as_told(recorder: Inspector) -> Iterator[None]:
    """Close a recorder with how what is done in here ended, and why."""
    try:
        yield
    except Cancelled as reason:
        recorder.event("cancelled", str(reason))
        recorder.close("cancelled")
        raise
    except BaseException as error:
        recorder.event("failed", f"{type(error).__name__}: {error}")
        recorder.close("failed" if isinstance(error, Exception) else "interrupted")
        raise
    recorder.close()


@contextmanager
def cancelled_at_once(control: Control) -> Iterator[None]:
    """Raise `Cancelled` in here when viewers ask for it, also in solves that no hook may slow down.

    A thread looks, and a signal carries what it found to the main thread, the only one that may
    call this.
    """
    over, found = threading.Event(), list[Cancelled]()

    def look() -> None:
        while not over.wait(POLL_SECONDS):
            try:
                control.poll()
            except Cancelled as reason:
                if not over.is_set():
                    found.append(reason)
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
                return

    def stop(_signal: int, _frame: object) -> None:
        if found and not over.is_set():
            raise found.pop()

    before = signal.signal(signal.SIGUSR1, stop)
    thread = threading.Thread(target=look, name="cancel-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)


def obeying_training(spec: Mapping[str, Any], path: Path) -> None:
    """Train and record, and obey `control.json` during every solve and between them.

    Raises:
        Cancelled: a viewer stopped it.
    """
    controls: list[Hook] = []

    def hooks(recorder: Inspector) -> list[Hook]:
        controls.append(Control(path, recorder, bool(spec.get("keep_running"))))
        return controls

    record_training(spec, path, hooks=hooks, cancelled=Cancelled)


def rows_of_states(spec: Mapping[str, Any]) -> int:
    """Return of how many rows the states are recorded."""
    cls = type(problem_by_name(spec["problem"]))
    batch = spec.get("batch") or cls.batch
    return max(1, min(batch, STATE_VALUES // max(1, len(cls.components))))


def warm_up() -> None:
    """Solve something tiny, so that what loads late is loaded before a run begins."""
    solve_spec({"problem": "lotka_volterra", "batch": 2, "n_eval": 2, "t1": 0.1})


def main() -> int:
    """Wait for an order and carry it out; the exit code is 0 unless the solve failed."""
    torch.set_num_threads(1)
    warm_up()
    line = sys.stdin.readline()
    if not line.strip():
        return 0  # the server is gone

    def stop(_signal: int, _frame: object) -> None:
        raise Cancelled("the server was stopped")

    signal.signal(signal.SIGTERM, stop)
    order = json.loads(line)
    spec, path = order["spec"], Path(order["path"])
    if ".py:" in str(spec.get("problem")) and spec["problem"] != user_problem():
        raise ValueError(f"problem {spec['problem']!r}: only the one named at start may be a file")
    try:
        if spec.get("kind") == "adjoints":
            record_comparison(spec, path, obey=True)
        elif spec.get("kind") in STUDIES:
            record_study(spec, path, obey=True)
        elif spec.get("kind") == KIND:
            obeying_training(spec, path)
        else:
            record(spec, path, obey=True)
    except Cancelled:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
