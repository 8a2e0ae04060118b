"""The first insight and the first gain, by keys alone; the tour; what a visit leaves for the next.

Nothing here clicks, focuses or fills: keys are pressed, and the page is read.
"""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
FOCUS = """() => { let n = document.activeElement;
while (n && n.shadowRoot && n.shadowRoot.activeElement) n = n.shadowRoot.activeElement;
return n ? (n.innerText || n.ariaLabel || "") : ""; }"""


@pytest.fixture(scope="module")
def fresh(server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server that nobody has visited, which keeps what it is told."""
    folder = tmp_path_factory.mktemp("fresh")
    settings = str(folder / "kept.json")
    running = type(server)(folder / "runs", folder / "server.log", STEPSCOPE_SETTINGS=settings)
    yield running
    running.close()


def until(page: Any, check: Callable[[], Any], seconds: float) -> None:
    """Wait until `check()` is true, the page's events going on."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, f"still not so after {seconds} s"
        page.wait_for_timeout(50)


def text(page: Any, part: str) -> str:
    """Return the words of a part of the page; empty while it is not there."""
    return "\n".join(page.locator(part).all_inner_texts())


def press(page: Any, key: str, check: Callable[[], Any], seconds: float) -> None:
    """Press a key until the page answers: one pressed before a page is whole is lost."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, f"{key} does nothing"
        page.keyboard.press(key)
        for _ in range(40):
            if check():
                return
            page.wait_for_timeout(100)


def go_to(page: Any, title: str) -> None:
    """Go to a page by the dialog that K opens."""
    press(page, "k", lambda: page.evaluate(IN_DIALOG), 40)
    page.keyboard.type(title)
    page.get_by_role("option", name=title).first.wait_for()
    page.keyboard.press("Enter")


IN_DIALOG = "() => document.activeElement.matches('[role=dialog] input')"


def tab_to(page: Any, words: str, most: int = 150) -> None:
    """Press Tab until the element that has the focus says `words`."""
    for _ in range(most):
        page.keyboard.press("Tab")
        said = page.evaluate(FOCUS)
        if words in said and len(said) < 80:  # and not the whole page, which takes the focus too
            return
    raise AssertionError(f"Tab never reaches {words!r}")


def test_from_the_default_page_to_the_slowest_row_and_why_within_a_minute(open_page, fresh):
    page = open_page(fresh, wait=False)
    began = time.monotonic()
    until(page, lambda: "Row 15 (mu = 80) took 531 attempts" in text(page, ".st-key-verdict"), 60)
    assert "limited by the stability of the method in 98 %" in text(page, ".st-key-verdict")
    page.keyboard.press("Escape")
    go_to(page, "Instances")
    until(page, lambda: "Row 15 (mu = 80)" in text(page, ".st-key-row_sentence"), 30)
    assert "stability of the method" in text(page, ".st-key-row_sentence")
    assert time.monotonic() - began < 60


def test_from_a_slow_run_to_a_verified_faster_setting_within_three_minutes(open_page, fresh):
    page = open_page(fresh, "/?run=example")
    began = time.monotonic()
    until(page, lambda: "Press T to try it" in text(page, ".st-key-verdict"), 60)
    press(page, "t", lambda: "Press T" not in text(page, ".st-key-verdict"), 40)
    until(page, lambda: "Tried:" in text(page, ".st-key-verdict"), 130)
    found = re.search(
        r"Tried: (\d+) attempts where it took ([\d\u202f]+) \((-\d+) %\)",
        text(page, ".st-key-verdict"),
    )
    assert found, text(page, ".st-key-verdict")
    assert int(found[3]) <= -50
    assert time.monotonic() - began < 180
    new = [path for path in Path(fresh.runs).iterdir() if path.name.startswith("van_der_pol")]
    assert len(new) == 1, "the change was solved for real"


def test_gains_found_by_the_tuner_are_used_and_verified_by_keys(open_page, fresh):
    page = open_page(fresh, "/?run=example")
    page.locator(".raster canvas").wait_for()
    began = time.monotonic()
    go_to(page, "Tuner")
    until(page, lambda: text(page, ".st-key-chart_replay_check"), 60)
    tab_to(page, "Use these in Live")
    page.keyboard.press("Enter")
    until(page, lambda: text(page, ".st-key-do_run"), 30)
    until(page, lambda: gain(page) not in ("", "0.2"), 30)
    press(page, "Control+Enter", lambda: "run=van_der_pol-" in page.url, 40)
    until(page, lambda: "finished" in text(page, ".stMain .stMarkdownBadge"), 60)
    assert time.monotonic() - began < 180


def gain(page: Any) -> str:
    """Return the P gain that is set."""
    slider = page.locator("[class*='st-key-pid-kp'] input[type=range]")
    return str(slider.first.input_value()) if slider.count() else ""


def test_the_tour_has_three_steps_and_does_not_come_back(open_page, server, tmp_path):
    own = type(server)(tmp_path / "runs", tmp_path / "log", STEPSCOPE_SETTINGS=str(tmp_path / "s"))
    try:
        page = open_page(own)
        for step, words in enumerate(("What you see", "Which row is slow", "Try the change")):
            until(
                page, lambda s=step, w=words: f"{s + 1} of 3: {w}" in text(page, ".st-key-tour"), 40
            )
            press(page, "n", lambda w=words: w not in text(page, ".st-key-tour"), 40)
        until(page, lambda: not page.locator(".st-key-tour").count(), 20)
        again = open_page(own)
        until(again, lambda: text(again, ".st-key-verdict"), 40)
        assert not again.locator(".st-key-tour").count()
        press(again, "k", lambda: again.evaluate(IN_DIALOG), 40)
        tab_to(again, "Show the tour", 6)
        again.keyboard.press("Enter")
        until(again, lambda: "1 of 3" in text(again, ".st-key-tour"), 20)
    finally:
        own.close()


def test_the_next_visit_begins_with_what_was_run_last(open_page, server, tmp_path):
    own = type(server)(tmp_path / "runs", tmp_path / "log", STEPSCOPE_SETTINGS=str(tmp_path / "s"))
    try:
        page = open_page(own, "/?problem=lotka_volterra&batch=4&rtol=1e-5")
        page.locator(".raster canvas").wait_for()
        press(page, "Control+Enter", lambda: "run=lotka_volterra-" in page.url, 40)
        again = open_page(own)
        until(again, lambda: "Lotka" in (field(again, "problem") or ""), 30)
        assert field(again, "rtol") == "1e-5"
        linked = open_page(own, "/?batch=8")
        until(linked, lambda: "Van der Pol" in (field(linked, "problem") or ""), 30)
    finally:
        own.close()


def field(page: Any, key: str) -> str | None:
    """Return what a picker shows."""
    found = page.locator(f".st-key-{key} input")
    return str(found.first.input_value()) if found.count() else None
