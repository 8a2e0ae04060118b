"""The Ask page in a real browser: a query by keyboard, its answer, its link, a refusal."""

import re

import pytest

from inspector.synthetic import write_synthetic_run

pytestmark = pytest.mark.browser


def test_a_query_is_typed_answered_and_linked(open_page, server):
    write_synthetic_run(server.runs / "asked", batch=3, attempts=50)
    page = open_page(server, "/ask?run=asked")
    page.locator(".st-key-chart_ask_chart .main-svg").first.wait_for(timeout=60_000)
    field = page.get_by_label("Query", exact=True)
    field.focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("select attempt, max(dt) as biggest from steps group by 1 order by 1")
    page.keyboard.press("Control+Enter")
    page.get_by_text("biggest over attempt").first.wait_for(timeout=60_000)
    page.wait_for_url(re.compile("sql="))
    again = open_page(
        server, page.url.removeprefix(server.url), color_scheme="dark",
        viewport={"width": 700, "height": 900},
    )  # fmt: skip
    again.get_by_text("biggest over attempt").first.wait_for(timeout=60_000)
    again.goto(f"{server.url}/ask?run=asked&sql=select+*+from+read_text('/etc/passwd')")
    again.get_by_text("function read_text: not allowed").first.wait_for(timeout=60_000)
