"""The Adjoints page in a real browser: compare, watch it grow, cancel, come back by the link."""

import re
from typing import Any

import pytest

pytestmark = pytest.mark.browser

# Whether five charts are drawn, the first with a trace for each of the names.
DRAWN = """names => {
  const plots = [...document.querySelectorAll(".js-plotly-plot")];
  const traces = plots.length === 5 && (plots[0]._fullData || []).map(trace => trace.name);
  return traces && traces.join() === names.join();
}"""


def sidebar(page: Any) -> Any:
    """Return the settings."""
    return page.locator("[data-testid=stSidebar]")


def pick(page: Any, label: str, option: str) -> None:
    """Choose an option of a picker in the settings."""
    box = sidebar(page).get_by_role("combobox", name=re.compile(f"{re.escape(label)}$"))
    box.click()
    page.get_by_role("option", name=option, exact=True).click()


def badge(page: Any, word: str) -> Any:
    """Return the badge beside the title once it says that word."""
    badges = page.locator(".stMain [data-testid=stBadge], .stMain .stMarkdownBadge")
    return badges.filter(has_text=word).first


def test_modes_are_compared_live_and_the_link_shows_them_again(open_page, server):
    page = open_page(server, "/adjoints")
    pick(page, "Problem", "Neural ODE: learning a spiral")
    compare = page.locator(".st-key-do_compare button").first
    compare.click()
    page.wait_for_url(re.compile("run=neural_spiral-"))
    badge(page, "finished").wait_for(timeout=60_000)
    page.locator(".st-key-chart_memory_timeline .main-svg").first.wait_for()
    # The recorded example was shown before, finished too: its charts make way for these.
    modes = ["backprop", "aca", "symplectic", "continuous", "joint"]
    page.wait_for_function(DRAWN, arg=modes, timeout=60_000)
    page.locator(".stProgress").first.wait_for(state="detached")
    run = re.search(r"run=([\w-]+)", page.url)
    assert run
    again = open_page(server, f"/adjoints?run={run[1]}", color_scheme="dark")
    again.get_by_text("Least memory").wait_for()
    again.locator(".st-key-chart_group_errors .main-svg").first.wait_for()


def test_a_long_comparison_shows_progress_and_is_cancelled(open_page, server):
    page = open_page(server, "/adjoints")
    pick(page, "Problem", "Cahn-Hilliard: phases learnt through their energy")
    pick(page, "Vary", "the number of steps")
    page.locator(".st-key-do_compare button").first.click()
    page.wait_for_url(re.compile("run=cahn_hilliard_hnn-"))
    page.locator(".stProgress").get_by_text(re.compile(r"\d+ of \d+: ")).wait_for(timeout=60_000)
    page.locator(".st-key-do_cancel_comparison button").first.click()
    badge(page, "cancelled").wait_for(timeout=30_000)
    page.get_by_text("Everything solved until then is kept").wait_for()
