"""The Compare page in a real browser: pick runs by keyboard, look into one, come back by link."""

import re

import pytest

from inspector.synthetic import write_synthetic_run

pytestmark = pytest.mark.browser


def test_runs_are_picked_by_keyboard_and_the_link_shows_them_again(open_page, server):
    for name, attempts in (("compare-a", 60), ("compare-b", 90), ("compare-c", 120)):
        write_synthetic_run(server.runs / name, batch=4, attempts=attempts, states=2)
    page = open_page(server, "/compare?run=compare-a&with=")
    box = page.get_by_role("combobox", name=re.compile("Compared with"))
    box.focus()
    for name in ("compare-b", "compare-c"):
        page.keyboard.type(name)
        page.get_by_role("option", name=name).first.wait_for()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(f"with=.*{name}"))
    page.locator(".st-key-chart_compare_raster .main-svg").first.wait_for()
    page.locator(".st-key-chart_compare_apart .main-svg").first.wait_for()
    assert page.locator("[class*=st-key-chart_compare_] .js-plotly-plot").count() >= 5
    again = open_page(
        server, page.url.removeprefix(server.url), color_scheme="dark",
        viewport={"width": 700, "height": 900},
    )  # fmt: skip
    again.locator(".st-key-chart_compare_work .main-svg").first.wait_for()
    names = again.locator(".st-key-chart_compare_work .js-plotly-plot").first.evaluate(
        "plot => plot._fullData.map(trace => trace.name)"
    )
    assert names == ["compare-a", "compare-b", "compare-c"]
