"""Starts, watches and cancels the processes that solve; one spare is kept warm.

A run belongs to its id, not to a browser tab: whoever opens the link sees it. The registry is
shared by all tabs and watched by one thread, which touches no Streamlit state.
"""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal

from app.equations.about import title_of
from app.equations.saved import name_of
from app.equations.system import is_equations

State = Literal["queued", "starting", "running", "paused", "cancelling", "ended"]

HOME = Path(__file__).resolve().parent.parent  # what `app`, `solver`, ... are imported from
AT_ONCE = 2  # processes that solve at the same time; further runs wait
KILL_AFTER = 3.0  # seconds a worker has to obey a cancel
TICK = 0.1
WARM_AFTER = 3.0  # seconds after a start until the next spare process is made ready
LEASE_EVERY = 5.0  # seconds between signs that somebody is looking
STDERR_LINES = 30
EXIT_FILE = "worker_exit.json"


@dataclass
class Job:
    """One run asked for, from waiting in the queue to the end of its process."""

    run: str
    path: Path
    spec: dict[str, Any]
    process: "subprocess.Popen[str] | None" = None
    log: IO[bytes] | None = None
    command: str = "run"
    cancel_at: float | None = None
    killed: bool = False
    code: int | None = None
    ended: bool = False
    viewers: set[str] = field(default_factory=set)
    leased: float = 0.0


@dataclass(frozen=True)
class Exit:
    """How a worker process ended when it did not end well."""

    code: int
    killed: bool
    stderr: tuple[str, ...]

    @property
    def reason(self) -> str:
        """What the exit code says, in words."""
        if self.killed:
            return "did not react to Cancel within 3 s and was killed"
        if self.code < 0:
            return f"was ended by signal {-self.code}"
        return f"ended with exit code {self.code}"


@dataclass
class Spare:
    """A process that has imported everything and waits for one line."""

    process: "subprocess.Popen[str]"
    log: IO[bytes]


class Workers:
    """All worker processes of one runs folder.

    Args:
        root: the runs folder.
        at_once: how many may solve at the same time.
        alive: says of a viewer (session id) whether its tab is still connected.
        read_only: refuse to start, change or cancel anything, and write nothing.
    """

    def __init__(
        self,
        root: Path,
        at_once: int = AT_ONCE,
        alive: Callable[[str], bool] | None = None,
        read_only: bool = False,
    ) -> None:
        self.read_only = read_only
        self.root = root
        self.at_once = at_once
        self.alive = alive or (lambda viewer: True)
        self.jobs: dict[str, Job] = {}
        self.queue: list[str] = []
        self.spare: Spare | None = None
        self.warm_at: float | None = None
        self.lock = threading.RLock()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._watch, name="stepscope-workers", daemon=True)
        self.thread.start()

    def warm(self) -> None:
        """Start the spare process unless there is one."""
        with self.lock:
            if self.spare is None or self.spare.process.poll() is not None:
                self.spare = self._spawn()

    def warm_soon(self, seconds: float) -> None:
        """Start the spare process a little later, so that the first picture comes first."""
        with self.lock:
            if self.spare is None and self.warm_at is None:
                self.warm_at = time.monotonic() + seconds

    def start(self, spec: Mapping[str, Any], viewer: str = "") -> str:
        """Start a run, or queue it, and return its id.

        Raises:
            PermissionError: the dashboard is read-only.
        """
        self._check_allowed()
        run = new_run_id(str(spec.get("problem", "run")))
        path = self.root / run
        path.mkdir(parents=True)
        write_json(
            path / "control.json",
            {"command": "run", "attempts_per_second": spec.get("attempts_per_second")},
        )
        job = Job(run, path, dict(spec))
        with self.lock:
            self.jobs[run] = job
            if viewer:
                job.viewers.add(viewer)
            self.queue.append(run)
            self._touch(job)
            self._start_queued()
        return run

    def _check_allowed(self) -> None:
        if self.read_only:
            raise PermissionError(
                "This dashboard is read-only: nothing is started or changed here."
            )

    def state(self, run: str) -> State | None:
        """Return what a run of this server does; None for a run it did not start."""
        with self.lock:
            job = self.jobs.get(run)
            if job is None:
                return None
            if job.ended:
                return "ended"
            if run in self.queue:
                return "queued"
            if job.command == "cancel":
                return "cancelling"
            if job.command == "pause":
                return "paused"
            return "running" if (job.path / "run.json").exists() else "starting"

    def obeys(self, run: str) -> bool:
        """Whether a run has a process that reads `control.json`, whoever started it."""
        if self.read_only:
            return False
        if self.state(run) not in (None, "ended"):
            return True
        return self.state(run) is None and (self.root / run / "control.json").exists()

    def asked(self, run: str) -> str:
        """Return the command a run was given last."""
        return str(read_json(self.root / run / "control.json").get("command", "run"))

    def spec(self, run: str) -> dict[str, Any] | None:
        """Return what was asked for, also before the worker has written it."""
        with self.lock:
            job = self.jobs.get(run)
            return dict(job.spec) if job else None

    def place(self, run: str) -> int:
        """Return how many runs wait before this one."""
        with self.lock:
            return self.queue.index(run) if run in self.queue else 0

    def running(self) -> list[str]:
        """Return the runs that have a process."""
        with self.lock:
            return [job.run for job in self.jobs.values() if job.process and not job.ended]

    def control(self, run: str, **changes: Any) -> None:
        """Change what a run is asked to do: `command`, `attempts_per_second`.

        Raises:
            PermissionError: the dashboard is read-only.
        """
        self._check_allowed()
        path = self.root / run / "control.json"
        with self.lock:
            asked = {"command": "run", "attempts_per_second": None} | read_json(path) | changes
            write_json(path, asked)
            job = self.jobs.get(run)
            if job is None:
                return
            job.command = str(asked["command"])
            if job.command == "cancel" and job.cancel_at is None:
                job.cancel_at = time.monotonic()
                if run in self.queue:
                    self.queue.remove(run)
                    job.ended = True

    def cancel(self, run: str) -> None:
        """Ask a run to stop; its process is killed if it does not obey in time."""
        self.control(run, command="cancel")

    def watch(self, run: str, viewer: str) -> None:
        """Say that a tab looks at a run; the lease is renewed while the tab is connected."""
        if self.read_only:
            return
        with self.lock:
            job = self.jobs.get(run)
            if job is not None:
                if viewer:
                    job.viewers.add(viewer)
                return
        path = self.root / run
        if (path / "control.json").exists():  # started by a server that is gone, or by hand
            with suppress(OSError):
                (path / "lease").touch()

    def exit_of(self, run: str) -> Exit | None:
        """Return how the worker of a run ended, if it did not end well."""
        about = read_json(self.root / run / EXIT_FILE)
        if not about:
            return None
        lines = tuple(str(line) for line in about.get("stderr", []))
        return Exit(int(about.get("code", 0)), bool(about.get("killed")), lines)

    def close(self) -> None:
        """Stop watching, and stop every process that was not told to keep running."""
        if self.stopped.is_set():
            return
        self.stopped.set()
        self.thread.join(timeout=2)
        with self.lock:
            if self.spare is not None:
                self._end(self.spare.process)
                self.spare.log.close()
            open_jobs = [job for job in self.jobs.values() if job.process and not job.ended]
            for job in open_jobs:
                if not job.spec.get("keep_running"):
                    self.cancel(job.run)
            deadline = time.monotonic() + 1.5
            for job in open_jobs:
                if job.spec.get("keep_running") or job.process is None:
                    continue
                with suppress(subprocess.TimeoutExpired):
                    job.process.wait(max(0.05, deadline - time.monotonic()))
                self._end(job.process)
                self._finish(job, job.process.returncode)

    def _spawn(self) -> Spare:
        log = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        paths = [str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
        env.setdefault("OMP_NUM_THREADS", "1")
        process = subprocess.Popen(
            [sys.executable, "-m", "app.worker"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=env,
            text=True,
            start_new_session=True,  # Ctrl-C at the server is answered by `close`
        )
        return Spare(process, log)

    def _start_queued(self) -> None:
        while self.queue and len(self.running()) < self.at_once:
            job = self.jobs[self.queue.pop(0)]
            spare = self.spare
            if spare is None or spare.process.poll() is not None:
                spare = self._spawn()
            self.spare, self.warm_at = None, time.monotonic() + WARM_AFTER
            job.process, job.log = spare.process, spare.log
            order = json.dumps({"path": str(job.path), "spec": job.spec})
            with suppress(OSError):  # a process that died before: found by the watch
                assert job.process.stdin is not None
                job.process.stdin.write(order + "\n")
                job.process.stdin.flush()

    def _watch(self) -> None:
        while not self.stopped.wait(TICK):
            with suppress(OSError):  # a runs folder deleted under us must not end the watch
                self.tick()

    def tick(self) -> None:
        """Look after every process once: ends, cancels, leases, queue, spare."""
        now = time.monotonic()
        with self.lock:
            for job in list(self.jobs.values()):
                if job.ended or job.process is None:
                    continue
                code = job.process.poll()
                if code is not None:
                    self._finish(job, code)
                elif job.cancel_at is not None and now - job.cancel_at > KILL_AFTER:
                    job.killed = True
                    job.process.kill()
                elif now - job.leased > LEASE_EVERY and any(map(self.alive, job.viewers)):
                    self._touch(job)
            self._start_queued()
            due = self.warm_at is not None and now >= self.warm_at
            if self.spare is None and due and len(self.running()) < self.at_once:
                self.warm()

    def _touch(self, job: Job) -> None:
        job.leased = time.monotonic()
        with suppress(OSError):
            (job.path / "lease").touch()

    def _finish(self, job: Job, code: int) -> None:
        job.ended, job.code = True, code
        lines: list[str] = []
        if job.log is not None:
            size = job.log.seek(0, os.SEEK_END)
            job.log.seek(max(0, size - 16_384))
            lines = job.log.read().decode("utf-8", "replace").splitlines()[-STDERR_LINES:]
            job.log.close()
        if job.process is not None and job.process.stdin is not None:
            with suppress(OSError):
                job.process.stdin.close()
        if code != 0:
            write_json(job.path / EXIT_FILE, {"code": code, "killed": job.killed, "stderr": lines})

    @staticmethod
    def _end(process: "subprocess.Popen[str]") -> None:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(0.3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(2)


def new_run_id(problem: str) -> str:
    """Return a run id: problem, time of day and three letters, safe as a folder and in a link."""
    if is_equations(problem):
        problem = name_of(title_of(problem)) or "equations"
    named = problem.rpartition(":")[2] or problem  # of path/to/file.py:Name the name
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in named)[:32]
    return f"{name}-{datetime.now():%m%d-%H%M%S}-{secrets.token_hex(2)}"


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a small JSON file whole or not at all."""
    part = path.with_suffix(f".{secrets.token_hex(3)}.part")
    part.write_text(json.dumps(value), "utf-8")
    part.replace(path)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a small JSON file; empty if there is none that can be read."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
