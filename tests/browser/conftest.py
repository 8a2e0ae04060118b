"""A server with its own runs, and browser pages that accept no error and no request elsewhere."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HOME = Path(__file__).resolve().parents[2]
CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ALLOWED_404 = (
    "/_stcore/health",
    "/_stcore/host-config",
)  # Streamlit's own probes below a deep link


class Server:
    """The dashboard, served from a process of its own."""

    def __init__(self, runs: Path, log: Path, **environment: str) -> None:
        self.runs, self.log = runs, log
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        env = os.environ | {"STEPSCOPE_RUNS": str(runs), "OMP_NUM_THREADS": "1"}
        env |= {"STEPSCOPE_SETTINGS": ""} | environment  # tests share a server, not what it keeps
        self.began = time.perf_counter()
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "streamlit",
                    "run",
                    "app/main.py",
                    f"--server.port={self.port}",
                ],
                cwd=HOME,
                env=env,
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        self.wait()
        self.ready_seconds = time.perf_counter() - self.began

    def wait(self, seconds: float = 60.0) -> None:
        """Return when the server answers."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended:\n{self.log.read_text()[-3000:]}")
            with contextlib.suppress(urllib.error.URLError, OSError):
                urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1).close()
                return
            time.sleep(0.05)
        raise TimeoutError(f"no answer from {self.url}:\n{self.log.read_text()[-3000:]}")

    def close(self) -> None:
        """Stop the server; its workers stop with it."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (Debian: apt install chromium)")
    with sync_api.sync_playwright() as playwright:
        sync_api.expect.set_options(timeout=20_000)
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def server(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all browser tests of a session."""
    folder = tmp_path_factory.mktemp("dashboard")
    (folder / "runs").mkdir()
    running = Server(folder / "runs", folder / "server.log")
    yield running
    running.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a fresh browser context on a server."""
    contexts: list[Any] = []
    pages: list[Any] = []

    def opened(server: Server, path: str = "/", *, wait: bool = True, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}} | options)
        context.set_default_timeout(20_000)
        context.set_default_navigation_timeout(60_000)  # until the address says what was done
        contexts.append(context)
        page = context.new_page()
        watch(page, server.url)
        pages.append(page)
        page.goto(server.url + path)
        if wait:
            page.locator("h1").first.wait_for()
        return page

    yield opened
    found = [problem for page in pages for problem in page.problems]
    broken = [
        page.locator("[data-testid=stException]").count() for page in pages if not page.is_closed()
    ]
    for context in contexts:
        context.close()
    assert not found, "\n".join(found)
    assert not any(broken), "a page shows an exception"


def watch(page: Any, url: str) -> None:
    """Collect console errors, page errors and requests to anywhere else in `page.problems`."""
    page.problems = []

    def console(message: Any) -> None:
        where = (message.location or {}).get("url", "")
        if message.type == "error" and not where.endswith(ALLOWED_404):
            page.problems.append(f"console: {message.text}")

    def route(handler: Any) -> None:
        if handler.request.url.startswith((url, "data:", "blob:")):
            handler.continue_()
        else:
            page.problems.append(f"request elsewhere: {handler.request.url}")
            handler.abort()

    page.on("console", console)
    page.on("pageerror", lambda error: page.problems.append(f"page error: {error}"))
    page.route("**/*", route)


@pytest.fixture
def page(open_page: Callable[..., Any], server: Server) -> Any:
    """The default page, loaded."""
    return open_page(server)


@pytest.fixture(scope="session")
def press_start() -> Callable[[Any, Any, str], None]:
    """Return a function that starts something by its shortcut, until the address has a text."""

    def press(page: Any, button: Any, text: str) -> None:
        for _ in range(12):
            # Whatever has the focus, such as a step button of a number field, takes Enter itself.
            page.evaluate("document.activeElement.blur()")
            if button.is_enabled():
                page.keyboard.press("Control+Enter")
            for _ in range(25):
                if text in page.url:
                    return
                page.wait_for_timeout(200)
        raise AssertionError(f"nothing was started: {page.url}")

    return press
