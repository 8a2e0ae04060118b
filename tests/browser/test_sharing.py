"""Handing runs on, in a real browser."""

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from app.report import write_report
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


def reported(shared: Any, folder: Path) -> Path:
    """Write the report of a run."""
    return write_report(open_run(shared.runs / "mine"), folder / "mine.html")


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1400), ("dark", 1400), ("light", 700), ("dark", 700)]
)
def test_a_report_opens_offline_without_a_request_or_an_error(
    browser, shared, tmp_path, scheme, width
):
    file = reported(shared, tmp_path)
    view = {"width": width, "height": 900}
    context = browser.new_context(viewport=view, color_scheme=scheme, offline=True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector(f"html[data-drawn={scheme}]")
    charts = page.locator(".chart").count()
    assert charts >= 8
    assert page.locator(".chart .main-svg >> nth=0").count()
    assert page.evaluate("[...document.querySelectorAll('.chart')].every(c => c._fullData.length)")
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, "the page is wider than the window"
    page.emulate_media(color_scheme="dark" if scheme == "light" else "light")
    page.wait_for_selector(f"html[data-drawn={'dark' if scheme == 'light' else 'light'}]")
    assert said == [file.as_uri()]
    context.close()


def test_a_report_prints_in_light_colours_and_its_figures_are_saved(browser, shared, tmp_path):
    file = reported(shared, tmp_path)
    context = browser.new_context(color_scheme="dark", accept_downloads=True)
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-drawn=dark]")
    page.evaluate(
        """addEventListener('beforeprint', () => {
        document.title = document.documentElement.dataset.drawn; })"""
    )
    page.pdf(path=tmp_path / "mine.pdf")
    assert (tmp_path / "mine.pdf").read_bytes().count(b"/Type /Page\n") >= 3
    assert page.title() == "light"
    page.wait_for_selector("html[data-drawn=dark]")
    page.locator(".chart").nth(1).hover()
    for kind in ("svg", "png"):
        with page.expect_download() as waiting:
            page.locator(".chart").nth(1).locator(f"[data-title='Save as {kind.upper()}']").click()
        assert waiting.value.suggested_filename == f"how-large-were-the-steps.{kind}"
    context.close()


def test_the_report_of_a_run_is_downloaded_from_its_page(open_page, shared, tmp_path):
    page = open_page(shared, "/run?run=mine")
    button = page.locator(".st-key-report_run").locator("button").first
    button.wait_for()
    with page.expect_download() as waiting:
        button.click()
    waiting.value.save_as(tmp_path / "mine.html")
    assert (tmp_path / "mine.html").read_text("utf-8").startswith("<!doctype html>")


def saved(page: Any, button: Any, path: Path) -> bytes:
    """Press a button that saves something; return what."""
    button.wait_for()
    with page.expect_download() as waiting:
        button.click()
    waiting.value.save_as(path)
    return path.read_bytes()


def opaque(png: bytes) -> int:
    """Return how many colours a picture has."""
    from PIL import Image

    small = Image.open(io.BytesIO(png)).convert("RGB").resize((120, 60))
    return len(np.unique(np.asarray(small).reshape(-1, 3), axis=0))


def test_a_figure_is_saved_as_picture_page_and_data(open_page, browser, shared, tmp_path):
    page = open_page(shared, "/run?run=mine")
    page.locator(".st-key-chart_dt_quantiles .main-svg").first.wait_for()
    page.locator(".st-key-data_dt_quantiles button").first.click()
    picture = page.get_by_role("group", name="Save the picture")
    svg = saved(page, picture.get_by_role("button", name="SVG"), tmp_path / "a.svg").decode()
    assert svg.startswith("<svg")
    assert "step size" in svg
    png = saved(page, picture.get_by_role("button", name="PNG"), tmp_path / "a.png")
    assert opaque(png) > 8
    assert picture.get_by_role("button").count() == 2
    html = page.locator(".st-key-html_dt_quantiles button").first
    assert saved(page, html, tmp_path / "a.html").startswith(b"<!doctype html>")
    context = browser.new_context(offline=True)
    alone = context.new_page()
    said: list[str] = []
    alone.on("console", lambda message: said.append(message.text))
    alone.goto((tmp_path / "a.html").as_uri())
    alone.wait_for_selector(".chart .main-svg")
    assert said == []
    context.close()
    parquet = page.locator(".st-key-parquet_dt_quantiles button").first
    saved(page, parquet, tmp_path / "a.parquet")
    table = pd.read_parquet(tmp_path / "a.parquet")
    assert table.columns[0] == "attempt"
    assert len(table) > 50


def test_a_raster_is_saved_as_picture_and_page(open_page, shared, tmp_path):
    page = open_page(shared, "/run?run=mine")
    page.locator(".st-key-raster_card canvas").first.wait_for()
    page.locator(".st-key-data_raster button").first.click()
    picture = page.get_by_role("group", name="Save the picture")
    png = saved(page, picture.get_by_role("button", name="PNG"), tmp_path / "a.png")
    assert opaque(png) > 8
    svg = saved(page, picture.get_by_role("button", name="SVG"), tmp_path / "a.svg").decode()
    assert "data:image/png" in svg
    html = saved(page, picture.get_by_role("button", name="HTML"), tmp_path / "a.html").decode()
    assert "Which rows step small" in html
    assert "<script" not in html


def address(page: Any) -> str:
    """Return what the address bar shows now."""
    return page.evaluate("decodeURIComponent(location.href)")


def test_what_a_viewer_sets_goes_into_the_address_and_reopens(open_page, shared):
    page = open_page(shared, "/work_precision?run=mine")
    field = page.locator(".st-key-wp-rounds input")
    field.wait_for(state="attached")
    for fold in page.locator("[data-testid=stSidebar] summary").all():
        fold.click()
    field.fill("7")
    field.press("Enter")
    until(lambda: "wp.rounds=7" in address(page))
    page.locator(".st-key-wp-memory label").first.click()
    until(lambda: "wp.memory=true" in address(page))
    ends = page.locator(".st-key-wp-rtols input[type=range]")
    ends.last.focus()
    page.keyboard.press("ArrowLeft")
    until(lambda: address(page).count("wp.rtols=") == 2)
    kept = page.evaluate("location.pathname + location.search")
    again = open_page(shared, kept)
    until(lambda: again.locator(".st-key-wp-rounds input").input_value() == "7")
    assert again.locator(".st-key-wp-memory input").is_checked()
    last = again.locator(".st-key-wp-rtols input[type=range]").last
    assert last.input_value() == ends.last.input_value()


def test_a_state_picked_in_the_list_is_linked(open_page, shared):
    page = open_page(shared, "/runs?run=mine")
    page.get_by_test_id("stButtonGroup").get_by_text("finished").click()
    until(lambda: "states=" in address(page))
    again = open_page(shared, page.evaluate("location.pathname + location.search"))
    chosen = again.get_by_test_id("stButtonGroup").locator(
        "[aria-pressed=true], [aria-checked=true]"
    )
    chosen.first.wait_for()
    assert "finished" in chosen.first.inner_text()
