"""Equations typed on the Live page in a real browser: wrong, right, run, linked, kept, exported."""

import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytestmark = pytest.mark.browser

WRONG = "# Spring\ndx = v\ndv = -k * x - demping * v + x²"
RIGHT = (
    "# Spring\ndx = v\ndv = -k * x - damping * v\nk = 4 in 1..9\ndamping = 0.2\nx(0) = 1 in 0.5..2"
)


def until(page: Any, check: Any, seconds: float = 60.0) -> None:
    """Wait until `check()` is true, the page's events going on."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, f"still not so after {seconds} s at {page.url}"
        page.wait_for_timeout(50)


def typed(page: Any, text: str) -> None:
    """Put a text into the field, as a keyboard does, and have it read."""
    field = page.get_by_label("Equations", exact=True)
    field.focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    page.keyboard.press("Control+Enter")


def start(page: Any) -> str:
    """Press Run until the address names a run of these equations, and return its id."""
    run = page.locator(".st-key-do_run button").first
    until(page, run.is_enabled)
    found = None
    for _ in range(4):
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("Control+Enter")
        for _ in range(100):
            found = re.search(r"run=(spring-[\w-]+)", page.url)
            if found:
                return found[1]
            page.wait_for_timeout(200)
    raise AssertionError(f"nothing was started: {page.url}")


def test_equations_are_typed_corrected_run_and_linked(open_page, server):
    page = open_page(server, "/?problem=equations&run=example")
    page.locator(".katex").first.wait_for()
    typed(page, WRONG)
    page.get_by_text("line 3, column 30").wait_for()
    assert "^" in page.locator(".st-key-pair_equations [data-testid=stCode]").first.inner_text()
    until(page, lambda: page.locator(".st-key-do_run button").first.is_disabled())
    typed(page, WRONG.removesuffix(" + x²"))
    page.get_by_text("line 3, column 7").first.wait_for()
    typed(page, RIGHT)
    page.get_by_text("parameters: k, damping").wait_for()
    run = start(page)
    page.locator(".raster canvas").wait_for(timeout=60_000)
    until(page, lambda: page.locator("h1").first.inner_text() == "Spring")
    until(page, lambda: "damping" in page.url and "problem=" in page.url)
    again = open_page(
        server, page.url.removeprefix(server.url), color_scheme="dark",
        viewport={"width": 700, "height": 900},
    )  # fmt: skip
    until(again, lambda: again.locator("h1").first.inner_text() == "Spring")
    field = again.get_by_label("Equations", exact=True)
    until(again, lambda: field.count() == 1 and field.input_value() == RIGHT)
    again.locator(".raster canvas").wait_for(timeout=60_000)
    again.goto(f"{server.url}/run?run={run}")
    until(again, lambda: again.locator("h1").first.inner_text() == "Spring")
    again.goto(f"{server.url}/runs?run={run}")
    again.locator("h1").first.wait_for()


def test_equations_are_kept_listed_exported_and_deleted(open_page, server, tmp_path):
    text = quote("# Kept decay\ndx = -k * x\nk = 1 in 0.5..2")
    page = open_page(server, f"/?problem=equations&run=example&equations={text}")
    page.get_by_text("parameters: k").wait_for()
    page.get_by_role("button", name="Save as a problem").click()
    page.locator(".st-key-do_keep button").press("Enter")  # wherever the popover has opened
    until(page, lambda: (server.runs / ".problems" / "kept-decay.txt").exists())
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export as Python").click()
    assert waiting.value.suggested_filename == "kept_decay.py"
    assert "solve_ivp(" in Path(waiting.value.path()).read_text("utf-8")
    other = open_page(server, "/?problem=kept-decay&run=example")
    other.get_by_text("parameters: k").wait_for()
    other.get_by_role("button", name="Edit").wait_for()
    other.get_by_role("button", name="Delete").click()
    other.locator(".st-key-do_forget button").click()
    until(other, lambda: not (server.runs / ".problems" / "kept-decay.txt").exists())
    other.get_by_label("Equations", exact=True).wait_for()
