"""Compiles sources to shared libraries, once for a source: kept in the process and on disk."""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FLAGS = [
    "-O3",
    "-march=native",
    "-shared",
    "-fPIC",
    "-std=c++17",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-fno-semantic-interposition",
    "-w",
]
MOST_FILES = 500  # kept on disk; the least recently used go first

Run = Any  # a function of ctypes


class Kernel(NamedTuple):
    """The function `run` of a library, called in two ways."""

    free: Run  # other threads run Python meanwhile
    holding: Run  # they wait: for short calls, as getting the lock back may take 5 ms


_loaded: dict[str, Kernel] = {}
_lock = threading.Lock()
counts = {"compiled": 0, "loaded": 0}  # in this process


class NoCompiler(Exception):
    """There is no C++ compiler, or it refused the source."""


def folder() -> Path:
    """Return where libraries are kept: `STEPSCOPE_CACHE`, or the user's cache folder."""
    chosen = os.environ.get("STEPSCOPE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "stepscope" / "kernels"


@cache
def compiler() -> str | None:
    """Return the C++ compiler: `CXX`, g++ or clang++; None if there is none."""
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    return None


@cache
def _machine() -> str:
    """Return what a library is good for: compiler and processor."""
    found = compiler()
    version = ""
    if found:
        version = subprocess.run(
            [found, "--version"], capture_output=True, text=True, check=False
        ).stdout.partition("\n")[0]
    cpu = Path("/proc/cpuinfo")
    flags = ""
    if cpu.exists():
        lines = [x for x in cpu.read_text().splitlines() if x.startswith(("flags", "model name"))]
        flags = "".join(sorted(set(lines)))
    return f"{version}|{platform.machine()}|{flags}|{' '.join(FLAGS)}"


def key_of(source: str) -> str:
    """Return the name of the library made from `source` on this machine."""
    return hashlib.sha256(f"{_machine()}|{source}".encode()).hexdigest()[:32]


def known(source: str) -> bool:
    """Whether the library of `source` need not be compiled."""
    key = key_of(source)
    return key in _loaded or (folder() / f"{key}.so").exists()


def load(source: str, on_compile: Callable[[], None] | None = None) -> Kernel:
    """Return the function `run` of the compiled source.

    Args:
        source: the text.
        on_compile: called before the compiler is, if it must be.

    Raises:
        NoCompiler: none is found, or it failed.
    """
    key = key_of(source)
    with _lock:
        kernel = _loaded.get(key)
        if kernel is not None:
            return kernel
        path = folder() / f"{key}.so"
        if not path.exists():
            if on_compile is not None:
                on_compile()
            path = _compile(source, path)
            counts["compiled"] += 1
        else:
            os.utime(path)
            counts["loaded"] += 1
        try:
            kernel = Kernel(ctypes.CDLL(str(path)).run, ctypes.PyDLL(str(path)).run)
        except OSError as error:  # cut short, or from another machine
            path.unlink(missing_ok=True)
            raise NoCompiler(f"{path.name} cannot be loaded: {error}") from error
        for run in kernel:
            run.restype = ctypes.c_int64
            run.argtypes = [ctypes.c_void_p] * 4
        _loaded[key] = kernel
        return kernel


def _compile(source: str, path: Path) -> Path:
    found = compiler()
    if found is None:
        raise NoCompiler("no C++ compiler is found: install g++ or clang++, or set CXX")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=path.parent))
    except OSError:  # a folder that cannot be written to: use the library in this process alone
        work = Path(tempfile.mkdtemp(prefix="stepscope-"))
        path = work / path.name
    text, made = work / "step.cpp", work / "step.so"
    text.write_text(source)
    command = [found, *FLAGS, "-o", str(made), str(text), "-lmvec", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "-lmvec" in command:  # not every system has vector functions
        command.remove("-lmvec")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(work, ignore_errors=True)
        raise NoCompiler(f"{Path(found).name} failed: {done.stderr.strip()[:500]}")
    os.replace(made, path)  # in one piece, so that another process never loads half a file
    if path.parent != work:
        shutil.rmtree(work, ignore_errors=True)
        _tidy(path.parent)
    return path


def _tidy(place: Path) -> None:
    files = sorted(place.glob("*.so"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[MOST_FILES:]:
        file.unlink(missing_ok=True)
    for left in place.iterdir():  # of compilers that were killed
        if left.is_dir() and time.time() - left.stat().st_mtime > 3600:
            shutil.rmtree(left, ignore_errors=True)
