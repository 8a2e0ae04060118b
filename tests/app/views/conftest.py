"""The recorded runs that the views are tested on, and a way to open a view on one of them."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from inspector.synthetic import write_synthetic_run

MAIN = Path(__file__).resolve().parents[3] / "app" / "main.py"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: whole, failed rows, many solves, killed, without statistics, one row."""
    root = tmp_path_factory.mktemp("recorded") / "runs"
    write_synthetic_run(root / "whole", batch=12, states=4, attempts=120)
    write_synthetic_run(root / "failed-rows", batch=6, failed=(1, 4), attempts=400)
    write_synthetic_run(root / "many", batch=4, solves=5, attempts=40)
    kill(root / "killed")
    write_synthetic_run(root / "bare", batch=3, attempts=60, statistics=False)
    write_synthetic_run(root / "single", batch=1, attempts=60)
    return root


def kill(path: Path) -> None:
    """Leave a run as a process does that is gone without a word."""
    script = (
        "import os, sys; from inspector.synthetic import write_synthetic_run as write; "
        "write(sys.argv[1], batch=4, attempts=60, finish=False); os._exit(9)"
    )
    home = MAIN.parents[1]
    subprocess.run([sys.executable, "-c", script, str(path)], cwd=home, timeout=60, check=False)


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Path]:
    """A run whose writer is still alive: this very process."""
    path = tmp_path / "alive" / "growing"
    writers: list[Any] = []
    write_synthetic_run(path, batch=4, attempts=60, finish=False, on_block=writers.append)
    yield path
    writers[0].close()


@pytest.fixture
def own_runs(tmp_path: Path) -> Path:
    """A folder of two small runs that a test may change."""
    for name in ("first", "second"):
        write_synthetic_run(tmp_path / "runs" / name, batch=3, attempts=40 + len(name))
    return tmp_path / "runs"


@pytest.fixture
def open_view(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Return a function that opens a view as a link does and checks that it raised nothing."""

    def opened(view: str, root: Path = recorded, **link: Any) -> AppTest:
        monkeypatch.setenv("STEPSCOPE_RUNS", str(root))
        st.cache_data.clear()
        st.cache_resource.clear()
        app = AppTest.from_file(str(MAIN), default_timeout=30)
        app.switch_page(f"views/{view}.py")
        for name, value in link.items():
            app.query_params[name] = (
                [str(v) for v in value] if isinstance(value, list) else str(value)
            )
        app.run()
        assert not app.exception, app.exception[0].value
        return app

    return opened
