"""A run for other people's viewers: scalars for TensorBoard, phases for Perfetto."""

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inspector.store.files import number
from inspector.store.state import rank_of

if TYPE_CHECKING:
    from inspector.run import Run

_NO_SCALARS = ("iteration", "session", "rank", "current", "time", "solve", "adjoint")


def to_tensorboard(run: "Run", folder: str | os.PathLike[str]) -> int:
    """Write what `Run.iterations` has as TensorBoard event files, a folder for each rank.

    Iterations that a later session has taken over are left out.

    Returns:
        How many numbers were written.

    Raises:
        ModuleNotFoundError: TensorBoard is not installed.
    """
    if find_spec("tensorboard") is None:
        raise ModuleNotFoundError(
            "event files need the package tensorboard: pip install tensorboard"
        )
    from torch.utils.tensorboard import SummaryWriter

    table = run.iterations()
    table = table[table["current"]]
    count = 0
    for rank, mine in table.groupby("rank"):
        with SummaryWriter(str(Path(folder) / f"rank{rank}")) as writer:
            steps = mine["iteration"].to_numpy("i8")
            times = mine["time"].to_numpy("f8", na_value=np.nan)
            for name in sorted({*mine.columns} - {*_NO_SCALARS}):
                values = mine[name].to_numpy("f8", na_value=np.nan)
                tag = str(name)
                for step, value, at in zip(steps, values, times, strict=True):
                    if not np.isnan(value) or tag == "loss":
                        writer.add_scalar(tag, float(value), int(step), float(at))
                        count += 1
    return count


def chrome_trace(run: "Run") -> dict[str, Any]:
    """Return iterations, solves and backward passes as a trace that Perfetto and Chrome open.

    A rank is a process, its sessions are threads; times are those of each machine's clock.
    """
    sessions = run.sessions()
    events: list[dict[str, Any]] = []
    for token, session in sessions.items():
        where = {"pid": rank_of(token), "tid": session}
        events.append({"ph": "M", "name": "process_name", **where,
                       "args": {"name": f"rank {rank_of(token)}"}})  # fmt: skip
        events.append({"ph": "M", "name": "thread_name", **where,
                       "args": {"name": f"session {session} ({token})"}})  # fmt: skip
    for token, record in run.raw_iterations():
        values: Any = record.get("values")
        seconds = number(values.get("seconds")) if isinstance(values, dict) else float("nan")
        if seconds == seconds:
            name = f"iteration {record.get('iteration')}"
            at = number(record.get("time")) - seconds
            events.append(_phase(name, "iteration", token, sessions[token], at, seconds, values))
    for solve in range(run.n_solves):
        state = run.solve_state(solve)
        session = sessions.get(state.writer, 0)
        end = state.end or {}
        seconds = number(end.get("seconds"))
        if seconds == seconds and state.started == state.started:
            kind = "backward solve" if "backward_of" in state.start else "solve"
            told = {name: end.get(name) for name in ("n_attempts", "n_f_calls", "n_failed")}
            events.append(
                _phase(f"{kind} {solve}", kind, state.writer, session, state.started, seconds, told)
            )
        for one in state.backward:
            took, ended = number(one.get("seconds")), number(one.get("time"))
            if took == took and ended == ended:
                events.append(
                    _phase(
                        f"backward of {solve}", "backward", state.writer, session,
                        ended - took, took, one,
                    )
                )  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _phase(
    name: str, kind: str, writer: str, session: int, at: float, seconds: float, told: Any
) -> dict[str, Any]:
    args = {k: v for k, v in dict(told).items() if isinstance(v, int | float | str)}
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "pid": rank_of(writer),
        "tid": session,
        "ts": round(at * 1e6, 1),
        "dur": round(seconds * 1e6, 1),
        "args": args,
    }


def write_chrome_trace(run: "Run", file: str | os.PathLike[str]) -> int:
    """Write `chrome_trace` as JSON; returns how many phases it has."""
    trace = chrome_trace(run)
    Path(file).write_text(json.dumps(trace), "utf-8")
    return sum(event["ph"] == "X" for event in trace["traceEvents"])
