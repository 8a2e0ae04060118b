"""How fast the dashboard is: first picture, Run to first column, record to pixel, load, Cancel.

Run it as `python tests/benchmarks/dashboard.py`; it needs Playwright and a Chromium. Times are wall
clock and depend on what else the machine does: the load average is printed with them.
"""

import importlib.util
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME))
_spec = importlib.util.spec_from_file_location("browser", HOME / "tests/browser/conftest.py")
assert _spec is not None
assert _spec.loader is not None
browser_tools = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(browser_tools)

SLOW = "slow=true&rate=20&batch=64"


def until(page: Any, check: Any, seconds: float = 60.0) -> float:
    """Wait until `check()` is true; return the time."""
    end = time.perf_counter() + seconds
    while not check():
        if time.perf_counter() > end:
            raise TimeoutError("it never came")
        page.wait_for_timeout(10)
    return time.perf_counter()


def attempts(page: Any) -> int:
    """Return how many attempts the raster shows; 0 without one."""
    canvas = page.locator(".raster canvas")
    return int(canvas.get_attribute("data-attempts") or 0) if canvas.count() else 0


def badge(page: Any) -> str:
    """Return the words of the badge beside the title."""
    return page.locator(
        ".stMain [data-testid=stBadge], .stMain .stMarkdownBadge"
    ).first.inner_text()


def press_run(page: Any) -> float:
    """Press Run; return the seconds until the first column of the new run is drawn."""
    before = page.url
    began = time.perf_counter()
    page.locator(".st-key-do_run button").first.click()
    until(page, lambda: page.url != before and "run=" in page.url)
    run = page.url.split("run=")[1].split("&")[0]
    until(page, lambda: "running" in badge(page) and 0 < attempts(page) < 200)
    assert run
    return time.perf_counter() - began


def lag(page: Any, runs: Path, seconds: float) -> np.ndarray:
    """Return, for each new picture, how long ago its last attempt was in the files, in seconds."""
    from inspector import open_run

    run = open_run(runs / page.url.split("run=")[1].split("&")[0])
    on_disk: list[tuple[float, int]] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.02):
            run.refresh()
            places = run.places(0)
            if places:
                last = max(batch.high for _, batches in places for batch in batches)
                on_disk.append((time.perf_counter(), last))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    shown, found, end = attempts(page), [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        now = attempts(page)
        if now != shown:
            shown = now
            there = [t for t, last in on_disk if last >= now]
            if there:
                found.append(time.perf_counter() - there[0])
        page.wait_for_timeout(15)
    stop.set()
    thread.join()
    return np.asarray(found)


def load(page: Any, received: list[int], process: int, seconds: float) -> str:
    """Return what a live page takes: bytes of a picture, long tasks, memory of the server."""
    page.evaluate(
        "() => { window.long = 0; new PerformanceObserver(l => l.getEntries().forEach("
        "e => { window.long += e.duration; })).observe({entryTypes: ['longtask']}); }"
    )
    canvas = page.locator(".raster canvas")
    received.clear()
    before = int(canvas.get_attribute("data-frames") or 0)
    page.wait_for_timeout(1000 * seconds)
    drawn = max(int(canvas.get_attribute("data-frames") or 0) - before, 1)
    busy = float(page.evaluate("() => window.long")) / (1000 * seconds)
    status = Path(f"/proc/{process}/status").read_text()
    memory = int(status.split("VmRSS:")[1].split()[0]) / 1024
    return (
        f"live page                 {sum(received) / drawn / 1000:6.0f} kB a picture, "
        f"{drawn / seconds:.1f} pictures/s, long tasks {100 * busy:.0f} %, server {memory:.0f} MB"
    )


def main() -> None:
    """Measure and print."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        runs = Path(folder) / "runs"
        runs.mkdir()
        chromium = playwright.chromium.launch(
            executable_path=browser_tools.CHROMIUM, args=browser_tools.FLAGS
        )
        server = browser_tools.Server(runs, Path(folder) / "log")
        try:
            page = chromium.new_context(viewport={"width": 1400, "height": 900}).new_page()
            received: list[int] = []
            page.on(
                "websocket",
                lambda ws: ws.on("framereceived", lambda data: received.append(len(data))),
            )
            began = time.perf_counter()
            page.goto(f"{server.url}/?{SLOW}")
            until(page, lambda: page.locator("h1").count() > 0)
            print(f"server ready              {server.ready_seconds:6.2f} s")
            print(f"ready -> title            {time.perf_counter() - began:6.2f} s")
            until(page, lambda: attempts(page) > 0)
            print(f"ready -> first raster     {time.perf_counter() - began:6.2f} s (cold browser)")
            print(f"Run -> first column       {press_run(page):6.2f} s (worker still warming)")
            page.wait_for_timeout(4000)
            late = lag(page, runs, 8.0)
            print(
                f"file -> pixel             {np.median(late):6.2f} s median, "
                f"{np.quantile(late, 0.95):.2f} s p95, {len(late)} pictures"
            )
            print(load(page, received, server.process.pid, 8.0))
            began = time.perf_counter()
            page.locator(".st-key-do_cancel button").first.click()
            until(page, lambda: "cancelled" in badge(page))
            print(f"Cancel -> shown cancelled {time.perf_counter() - began:6.2f} s")
            page.wait_for_timeout(4000)
            print(f"Run -> first column       {press_run(page):6.2f} s (warm worker)")
            began = time.perf_counter()
            page.reload()
            until(page, lambda: attempts(page) > 0)
            print(f"reload -> raster          {time.perf_counter() - began:6.2f} s")
            page.locator(".st-key-do_cancel button").first.click()
            until(page, lambda: "cancelled" in badge(page))
        finally:
            server.close()
            chromium.close()
    print("load average", *os.getloadavg())


if __name__ == "__main__":
    main()
