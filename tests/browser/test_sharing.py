"""Handing runs on, in a real browser."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inspector import open_run
from inspector.packing import pack
from inspector.synthetic import write_synthetic_run
from inspector.unpacking import unpack

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shared(server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server over runs that no other test touches."""
    folder = tmp_path_factory.mktemp("shared")
    write_synthetic_run(folder / "runs" / "mine", batch=12, states=4, attempts=120)
    running = type(server)(folder / "runs", folder / "server.log")
    yield running
    running.close()


def until(check: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait until `check()` is true."""
    began = time.perf_counter()
    while not check():
        if time.perf_counter() - began > seconds:
            raise AssertionError(f"still not so after {seconds} s")
        time.sleep(0.05)


def test_a_packed_run_is_opened_by_uploading_it(open_page, shared, tmp_path):
    theirs = write_synthetic_run(tmp_path / "theirs", batch=3, attempts=40)
    file = pack(theirs, tmp_path / "theirs.stepscope").file
    page = open_page(shared, "/runs?run=mine")
    page.get_by_role("button", name="Open a packed run").click()
    page.locator("input[type=file]").set_input_files(file)
    until(lambda: "run=theirs" in page.evaluate("location.href"))
    assert len(open_run(shared.runs / "theirs").steps()) == len(open_run(theirs).steps())


def test_a_file_that_is_no_packed_run_is_refused_with_the_reason(open_page, shared, tmp_path):
    (tmp_path / "bad.stepscope").write_bytes(b"PK\x03\x04" + bytes(200))
    page = open_page(shared, "/runs?run=mine")
    page.get_by_role("button", name="Open a packed run").click()
    page.locator("input[type=file]").set_input_files(tmp_path / "bad.stepscope")
    page.get_by_text("the packed file is cut short").wait_for()
    assert not [path for path in shared.runs.iterdir() if path.name.startswith((".", "bad"))]


def test_a_run_downloads_as_one_file(open_page, shared, tmp_path):
    page = open_page(shared, "/runs?run=mine")
    button = page.locator(".st-key-pack_run").locator("button").first
    button.wait_for()
    with page.expect_download() as waiting:
        button.click()
    waiting.value.save_as(tmp_path / "mine.stepscope")
    assert waiting.value.suggested_filename == "mine.stepscope"
    path = unpack(tmp_path / "mine.stepscope", tmp_path / "runs")
    assert len(open_run(path).steps()) == len(open_run(shared.runs / "mine").steps())
