"""The dashboard inside a notebook, in one line: `show("runs/my-run")`.

Needs no notebook package: what is returned draws itself as HTML wherever that is understood.
"""

import atexit
import html
import os
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

PAGES = ("live", "run", "training", "instances", "adjoints", "runs")
WAIT_SECONDS = 60.0
_servers: dict[Path, "Server"] = {}


@dataclass
class Server:
    """A dashboard over one folder of runs, in a process of its own that ends with this one."""

    root: Path
    port: int
    process: "subprocess.Popen[bytes]" = field(repr=False)

    def close(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait()
        _servers.pop(self.root, None)


@dataclass(frozen=True)
class Shown:
    """One page of the dashboard; the last value of a notebook's cell is drawn as it."""

    url: str
    server: Server
    height: int

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{html.escape(self.url)}&embed=true" width="100%" '
            f'height="{self.height}" style="border:0" title="Stepscope"></iframe>'
        )

    def close(self) -> None:
        """End the server, and with it all that is shown of its folder."""
        self.server.close()


def show(path: str | os.PathLike[str], page: str = "training", height: int = 800) -> Shown:
    """Show a run, also while it grows; a server is started once for each folder of runs.

    Args:
        path: folder of the run.
        page: what to show of it.
        height: in pixels.

    Raises:
        ValueError: there is no such page.
        RuntimeError: the server did not start; the message has what it wrote.
    """
    if page not in PAGES:
        raise ValueError(f"page={page!r}: must be one of {', '.join(PAGES)}")
    run = Path(path).absolute()
    server = _servers.get(run.parent)
    if server is None or server.process.poll() is not None:
        server = _servers[run.parent] = _start(run.parent)
    return Shown(f"http://127.0.0.1:{server.port}/{page}?run={quote(run.name)}", server, height)


def _start(root: Path) -> Server:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "app.cli", "app", "--runs", str(root), "--port", str(port)]
    home = str(Path(__file__).resolve().parents[1])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [*command, "--no-browser"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    atexit.register(process.terminate)
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1):
                return Server(root, port, process)
        except OSError:
            time.sleep(0.1)
    process.terminate()
    raise RuntimeError(f"the dashboard did not start: try `{' '.join(command)}` in a terminal")
