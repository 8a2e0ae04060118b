"""The Tuner page in a real browser: search, see map and real solves, use the gains in Live."""

import re

import pytest

pytestmark = pytest.mark.browser


def test_gains_are_searched_and_used_in_live_by_keyboard(open_page, server, press_start):
    page = open_page(server, "/tuner?run=&tune.problem=lotka_volterra")
    button = page.locator(".st-key-do_study button").first
    button.wait_for()
    page.get_by_label("Rows (batch)").fill("2")
    page.keyboard.press("Enter")
    press_start(page, button, "run=lotka_volterra-")
    page.locator("h1").filter(has_text="Lotka").first.wait_for()  # in place of the example
    badges = page.locator(".stMain [data-testid=stBadge], .stMain .stMarkdownBadge")
    badges.filter(has_text="finished").first.wait_for(timeout=300_000)
    page.locator(".st-key-chart_replay_check .main-svg").first.wait_for()
    assert page.locator(".js-plotly-plot").count() == 3
    link = page.get_by_role("link", name="Use these in Live").first
    link.focus()
    page.keyboard.press("Enter")
    page.locator(".st-key-do_run button").first.wait_for()
    assert re.search(r"^[^?]+:\d+/(\?|$)", page.url)
