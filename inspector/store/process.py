"""Which process writes a run, and whether it is still there."""

import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from inspector.store.files import number

HEARTBEAT_LIMIT = 30.0  # seconds without a sign of life of a process on another machine


def identity() -> dict[str, Any]:
    """Return `host, pid, pid_started` of this process; a number used again starts later."""
    return {"host": _host(), "pid": os.getpid(), "pid_started": _start_time(os.getpid())}


def is_alive(record: Mapping[str, Any], heartbeat: float) -> bool:
    """Tell whether the process of an `identity` record still runs.

    Args:
        record: as written by `identity`.
        heartbeat: its last sign of life, seconds since 1970; decides for a process of another
            machine.
    """
    pid = record.get("pid")
    if record.get("host") != _host():
        return time.time() - heartbeat < HEARTBEAT_LIMIT
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    started = _start_time(pid)
    return started is None or started == record.get("pid_started")


def started(record: Mapping[str, Any]) -> float:
    """When the writer began, seconds since 1970; infinity if that is not known."""
    value = number(record.get("started"))
    return value if value == value else float("inf")


def _host() -> str:
    """Name of the machine and, in containers, of the space its process numbers live in."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}".strip()


def _start_time(pid: int) -> str | None:
    """When a process began, in ticks since boot; None if not known, "" for a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return "" if fields[0] in "ZX" else fields[19]
