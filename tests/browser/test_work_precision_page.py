"""The Work-precision page in a real browser: measure, watch it grow, open a point, come back."""

import re

import pytest

pytestmark = pytest.mark.browser

# Whether a method has a trace in the chart.
MEASURED = """name => {
  const plot = document.querySelector(".st-key-chart_work_precision .js-plotly-plot");
  return plot && (plot._fullData || []).some(trace => trace.name === name);
}"""


def test_methods_are_measured_by_keyboard_and_the_link_shows_them_again(
    open_page, server, press_start
):
    page = open_page(server, "/work_precision?run=&wp.problem=van_der_pol&wp_x=n_steps")
    button = page.locator(".st-key-do_study button").first
    button.wait_for()
    page.get_by_label("Rows (batch)").fill("2")
    page.keyboard.press("Enter")
    press_start(page, button, "run=van_der_pol-")
    page.wait_for_function(
        MEASURED, arg="dopri5", timeout=120_000
    )  # not by the example shown before
    cancel = page.locator(".st-key-do_cancel_study button").first
    cancel.focus()
    page.keyboard.press("Enter")
    badges = page.locator(".stMain [data-testid=stBadge], .stMain .stMarkdownBadge")
    badges.filter(has_text=re.compile("cancelled|finished")).first.wait_for(timeout=60_000)
    run = re.search(r"run=([\w-]+)", page.url)
    assert run
    again = open_page(
        server, f"/work_precision?run={run[1]}&wp_x=n_steps", color_scheme="dark",
        viewport={"width": 700, "height": 900},
    )  # fmt: skip
    chart = again.locator(".st-key-chart_work_precision .js-plotly-plot").first
    chart.wait_for()
    again.get_by_text(re.compile("Reference: ")).first.wait_for()
    assert chart.evaluate("plot => plot.layout.xaxis.title.text") == "attempts of a row"
    again.get_by_role("link", name="Show it").first.click()
    again.wait_for_url(re.compile(r"/run\?.*solve="))
    again.locator("h1").filter(has_text="Van der Pol").first.wait_for()
