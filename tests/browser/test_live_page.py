"""The Live page in a real browser: run, watch, pick, pause, cancel, come back."""

import json
import re
import time
from typing import Any

import pytest

pytestmark = pytest.mark.browser

SLOW = "/?slow=true&rate=20&batch=8"  # a run that takes long enough to be watched


def button(page: Any, name: str) -> Any:
    """Return an action's button."""
    return page.locator(f".st-key-do_{name} button").first


def gain(page: Any, name: str) -> Any:
    """Return the slider of a gain of the PID controller."""
    return page.locator(f"[class*='st-key-pid-{name}'] input[type=range]").first


def raster(page: Any) -> Any:
    """Return the raster's canvas."""
    return page.locator(".raster canvas")


def attempts(page: Any) -> int:
    """Return how many attempts the raster shows."""
    return int(raster(page).get_attribute("data-attempts") or 0)


def until(page: Any, check: Any, seconds: float = 20.0) -> float:
    """Wait until `check()` is true, the page's events going on, and return how long it took."""
    began = time.perf_counter()
    while not check():
        if time.perf_counter() - began > seconds:
            raise AssertionError(f"still not so after {seconds} s; the badge says {state(page)!r}")
        page.wait_for_timeout(30)
    return time.perf_counter() - began


def state(page: Any) -> str:
    """Return the word in the badge beside the title."""
    badge = page.locator(".stMain [data-testid=stBadge], .stMain .stMarkdownBadge").first
    return badge.inner_text().split("\n")[-1].strip()


def start(page: Any, run_seconds: float = 30.0) -> str:
    """Press Run, wait for the raster of the new run, and return its id."""
    before = page.url
    button(page, "run").click()
    until(page, lambda: "run=" in page.url and page.url != before)
    run = re.search(r"run=([\w-]+)", page.url)
    assert run
    until(
        page,
        lambda: raster(page).count() and "running" in state(page) and attempts(page) > 0,
        run_seconds,
    )
    return run[1]


def colours(page: Any) -> int:
    """Return how many different colours the raster has."""
    return raster(page).evaluate(
        """c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const seen = new Set(); for (let k = 0; k < d.length; k += 4)
        seen.add(d[k] * 65536 + d[k + 1] * 256 + d[k + 2]); return seen.size; }"""
    )


def test_the_first_visit_shows_the_recorded_example(open_page, server, tmp_path):
    own = type(server)(tmp_path / "runs", tmp_path / "server.log")  # that nobody has visited
    try:
        page = open_page(own)
        raster(page).wait_for()
        until(page, lambda: "finished" in state(page))
        until(page, lambda: colours(page) > 16)
    finally:
        own.close()


def test_a_live_raster_advances_in_place_until_it_is_cancelled(open_page, server):
    page = open_page(server, SLOW)
    start(page)
    raster(page).evaluate("c => { c.marked = true; }")
    frames, seen = int(raster(page).get_attribute("data-frames")), attempts(page)
    until(page, lambda: attempts(page) > seen + 10)
    assert int(raster(page).get_attribute("data-frames")) > frames
    assert raster(page).evaluate("c => c.marked === true"), "the canvas was replaced"
    button(page, "cancel").click()
    until(page, lambda: "cancelled" in state(page))
    page.get_by_text("Cancelled: cancelled by a viewer").wait_for()


def test_pause_holds_the_solve_and_resume_goes_on(open_page, server):
    page = open_page(server, SLOW)
    start(page)
    button(page, "pause").click()
    until(page, lambda: "paused" in state(page))
    page.wait_for_timeout(1000)
    held = attempts(page)
    page.wait_for_timeout(1500)
    assert attempts(page) == held
    button(page, "pause").click()
    until(page, lambda: attempts(page) > held)
    button(page, "cancel").click()
    until(page, lambda: "cancelled" in state(page))


def test_a_run_survives_a_reload_and_shows_the_same_view(open_page, server):
    page = open_page(server, SLOW)
    run = start(page)
    page.locator(".st-key-row_number input").fill("3")
    page.keyboard.press("Enter")
    until(page, lambda: "inst=3" in page.url)
    seen = attempts(page)
    page.reload()
    raster(page).wait_for()
    assert f"run={run}" in page.url
    assert "inst=3" in page.url
    until(page, lambda: attempts(page) > seen)
    page.get_by_role("heading", name="What did the controller do in row 3?").wait_for()
    button(page, "cancel").click()
    until(page, lambda: "cancelled" in state(page))


def test_a_closed_tab_does_not_stop_a_run(open_page, server):
    page = open_page(server, SLOW)
    run = start(page)
    page.close()
    time.sleep(1.5)
    again = open_page(server, f"/?run={run}")
    raster(again).wait_for()
    first = attempts(again)
    until(again, lambda: attempts(again) > first)
    button(again, "cancel").click()
    until(again, lambda: "cancelled" in state(again))


def test_settings_survive_a_page_switch_and_sit_in_the_link(open_page, server):
    page = open_page(server, "/?batch=16")
    slider = gain(page, "kp")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    until(page, lambda: "pid.kp=0.25" in page.url)
    page.get_by_role("link", name="Runs").click()
    page.get_by_role("heading", name=re.compile("runs", re.IGNORECASE)).first.wait_for()
    page.get_by_role("link", name="Live").click()
    raster(page).wait_for()
    assert gain(page, "kp").input_value() == "0.25"
    assert page.get_by_text("Rows (batch)").count() == 1
    assert "pid.kp=0.25" in page.url
    assert "batch=16" in page.url


def test_a_link_restores_settings_and_value(open_page, server):
    page = open_page(
        server,
        "/?metric=error+ratio&order=most+attempts+first&method=Dormand-Prince+5(4)&pid.ki=0.7",
    )
    raster(page).wait_for()
    page.get_by_role("heading", name="Where is the error close to the tolerance").wait_for()
    assert page.locator(".st-key-method input").first.input_value() == "Dormand-Prince 5(4)"
    assert gain(page, "ki").input_value() == "0.7"


def test_from_load_to_a_picked_row_by_keyboard_alone(open_page, server):
    page = open_page(server, "/?batch=8&van_der_pol.t1=5")
    raster(page).wait_for()
    page.keyboard.press("Control+Enter")
    until(page, lambda: "run=" in page.url)
    until(page, lambda: "finished" in state(page) and attempts(page) > 0, 40)
    for _ in range(80):
        page.keyboard.press("Tab")
        inside = page.evaluate(
            "() => { let n = document.activeElement; while (n && n.shadowRoot) "
            "n = n.shadowRoot.activeElement; return !!(n && n.closest && n.closest('.raster')); }"
        )
        if inside:
            break
    else:
        raise AssertionError("Tab never reaches the raster")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert page.locator(".raster .readout").inner_text().startswith("row 2, attempt 2")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="What did the controller do in row 2?").wait_for()


def test_the_same_seed_with_new_gains_states_the_difference(open_page, server):
    page = open_page(server, "/?batch=8&van_der_pol.t1=5&pid.kp=0")
    raster(page).wait_for()
    button(page, "run").click()
    until(page, lambda: "run=" in page.url and "finished" in state(page), 40)
    first = page.url
    slider = gain(page, "ki")
    slider.focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    until(page, lambda: "pid.ki=0.6" in page.url)
    button(page, "again").click()
    until(page, lambda: re.search(r"run=([\w-]+)", page.url)[1] not in first)
    until(page, lambda: "finished" in state(page), 40)
    page.get_by_role("heading", name="What did the change do?").wait_for()
    page.get_by_text("ki 0.5 → 0.6").wait_for()
    page.get_by_text("Steady error ratio", exact=False).last.wait_for()
    run = re.search(r"run=([\w-]+)", page.url)[1]
    spec = json.loads((server.runs / run / "run.json").read_text())["spec"]
    assert spec["controller"]["ki"] == pytest.approx(0.6)
    assert spec["parent"] in first


def test_two_tabs_have_their_own_settings_and_see_the_same_run(open_page, server):
    one, two = open_page(server, SLOW), open_page(server, "/?batch=32")
    run = start(one)
    two.goto(f"{server.url}/?batch=32&run={run}")
    two.locator("h1").first.wait_for()
    until(two, lambda: raster(two).count() and attempts(two) > 0)
    assert "batch=32" in two.url
    button(two, "cancel").click()
    until(one, lambda: "cancelled" in state(one))
    until(two, lambda: "cancelled" in state(two))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_themes_draw_the_raster_and_all_charts(open_page, server, scheme):
    page = open_page(server, "/?run=example", color_scheme=scheme)
    raster(page).wait_for()
    until(page, lambda: raster(page).get_attribute("data-theme") == scheme)
    assert colours(page) > 16
    until(page, lambda: page.locator(".plot canvas").count() == 4)
    assert all(
        label for label in page.locator("canvas").evaluate_all("cs => cs.map(c => c.ariaLabel)")
    )


def test_a_run_that_is_not_there_is_named(open_page, server):
    page = open_page(server, "/?run=no-such-run")
    page.get_by_text("There is no run no-such-run").wait_for()


def test_the_data_behind_a_chart_is_a_table_and_a_csv(open_page, server):
    page = open_page(server, "/?run=example")
    raster(page).wait_for()
    page.locator(".st-key-data_step-sizes button").first.click()
    page.locator("[data-testid=stDataFrame]").first.wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").first.click()
    text = download.value.path().read_text()
    assert text.startswith("attempt,q05")
    assert len(text.splitlines()) > 100


def test_a_refresh_of_a_live_page_is_small(open_page, server):
    page = open_page(server, SLOW.replace("batch=8", "batch=256"), wait=False)
    received: list[int] = []
    page.on("websocket", lambda ws: ws.on("framereceived", lambda data: received.append(len(data))))
    page.goto(f"{server.url}{SLOW.replace('batch=8', 'batch=256')}")
    start(page)
    page.wait_for_timeout(1500)
    received.clear()
    frames = int(raster(page).get_attribute("data-frames"))
    page.wait_for_timeout(4000)
    drawn = int(raster(page).get_attribute("data-frames")) - frames
    assert drawn >= 2
    assert sum(received) / drawn < 200_000
    button(page, "cancel").click()
    until(page, lambda: "cancelled" in state(page))
