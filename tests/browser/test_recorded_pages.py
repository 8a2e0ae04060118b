"""Pages of recorded runs in a real browser: links, picks by mouse and keyboard, both themes."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.synthetic import write_synthetic_run

pytestmark = pytest.mark.browser

HOME = Path(__file__).resolve().parents[2]
GROW = (
    "import sys; from inspector.synthetic import write_synthetic_run as write; "
    "write(sys.argv[1], batch=6, attempts=320, seconds_per_block=0.8)"
)


@pytest.fixture(scope="module")
def recorded(server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server over recorded runs that no other test touches."""
    folder = tmp_path_factory.mktemp("recorded")
    write_synthetic_run(folder / "runs" / "whole", batch=24, states=8, attempts=200)
    write_synthetic_run(folder / "runs" / "other", batch=24, attempts=160, seed=1)
    write_synthetic_run(folder / "runs" / "failed", batch=8, failed=(2, 5), attempts=200)
    write_synthetic_run(folder / "runs" / "many", batch=4, solves=5, attempts=40)
    running = type(server)(folder / "runs", folder / "server.log")
    yield running
    running.close()


def until(check: Any, seconds: float = 60.0) -> None:
    """Wait until `check()` is true."""
    began = time.perf_counter()
    while not check():
        if time.perf_counter() - began > seconds:
            raise AssertionError(f"still not so after {seconds} s")
        time.sleep(0.05)


def address(page: Any) -> str:
    """Return what the address bar shows now."""
    return page.evaluate("location.href")


def drawn(page: Any, at_least: int = 1) -> None:
    """Wait until plotly has drawn so many figures with data."""
    page.wait_for_function(
        """n => [...document.querySelectorAll('.js-plotly-plot')]
        .filter(p => p._fullData && p._fullData.length).length >= n""",
        arg=at_least,
        timeout=60_000,
    )


def row_shown(page: Any) -> int:
    """Return the row in the number field."""
    return int(page.locator(".st-key-inst input").input_value())


def tile(page: Any, label: str) -> str:
    """Return the value of a tile."""
    found = page.locator("[data-testid=stMetric]").filter(has_text=label).first
    return found.locator("[data-testid=stMetricValue]").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("path", "figures"),
    [
        ("/run?run=whole", 6),
        ("/instances?run=whole", 6),
        ("/runs?run=whole&cmp=other", 3),
    ],
)
def test_every_page_draws_in_both_themes_without_a_single_error(
    open_page, recorded, path: str, figures: int, theme: str
):
    page = open_page(recorded, path, color_scheme=theme)
    drawn(page, figures)
    labels = page.locator("[role=figure]")
    until(lambda: labels.count() >= figures)
    assert all(labels.nth(i).get_attribute("aria-label") for i in range(figures))
    if path.startswith("/run?"):
        seen = page.locator(".raster canvas").evaluate(
            """c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            const s = new Set(); for (let k = 0; k < d.length; k += 4)
            s.add(d[k] * 65536 + d[k + 1] * 256 + d[k + 2]); return s.size; }"""
        )
        assert seen > 16


def test_a_narrow_window_shows_charts_below_each_other(open_page, recorded):
    page = open_page(recorded, "/run?run=whole", viewport={"width": 700, "height": 900})
    drawn(page, 2)
    boxes = [page.locator(".js-plotly-plot").nth(i).bounding_box() for i in range(2)]
    assert abs(boxes[0]["x"] - boxes[1]["x"]) < 5
    assert boxes[1]["y"] > boxes[0]["y"] + 100
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= 700


def test_a_link_restores_the_row_and_reloading_keeps_it(open_page, recorded):
    page = open_page(recorded, "/instances?run=whole&inst=7")
    page.get_by_text(re.compile(r"Row 7 \(mu = ")).wait_for()
    page.locator(".st-key-go_Next button").first.click()
    page.get_by_text(re.compile(r"Row 8 \(mu = ")).wait_for()
    until(lambda: "inst=8" in address(page))
    page.reload()
    page.get_by_text(re.compile(r"Row 8 \(mu = ")).wait_for()


def test_a_row_is_reached_by_keyboard_alone(open_page, recorded):
    page = open_page(recorded, "/instances?run=whole&inst=3")
    drawn(page, 5)
    page.keyboard.press("n")
    page.get_by_text(re.compile(r"Row 4 \(mu = ")).wait_for()
    page.keyboard.press("p")
    page.get_by_text(re.compile(r"Row 3 \(mu = ")).wait_for()
    page.keyboard.press("w")
    until(lambda: row_shown(page) != 3)


def test_a_bar_of_the_ranking_picks_its_row(open_page, recorded):
    page = open_page(recorded, "/instances?run=whole&inst=3")
    drawn(page, 5)
    bars = page.locator(".st-key-chart_ranking_chart .bars .point path")
    wanted = int(
        page.locator(".st-key-chart_ranking_chart .js-plotly-plot").evaluate(
            "p => { const c = p._fullData[0].customdata; return c[4]; }"
        )
    )
    box = bars.nth(4).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    until(lambda: row_shown(page) == wanted)
    page.get_by_text(re.compile(rf"Row {wanted} \(mu = ")).wait_for()


def test_a_line_of_the_ranking_table_picks_its_row(open_page, recorded):
    page = open_page(recorded, "/instances?run=whole&inst=3")
    drawn(page, 5)
    table = page.locator("[data-testid=stSidebar] [data-testid=stDataFrame]")
    table.click(position={"x": 18, "y": 35 + 35 * 2 + 17})  # the box before the third line
    until(lambda: row_shown(page) != 3)
    until(lambda: f"inst={row_shown(page)}" in address(page))


def test_fewer_attempts_are_shown_and_linked(open_page, recorded):
    page = open_page(recorded, "/instances?run=whole&inst=20&window=10&window=60")
    drawn(page, 5)
    page.get_by_text("accepted (").first.wait_for()
    names = page.locator(".st-key-chart_row_dt .js-plotly-plot").evaluate(
        "p => p._fullData.map(t => t.name)"
    )
    counted = [int(n) for name in names for n in re.findall(r"^(?:accepted|refused) \((\d+)", name)]
    assert sum(counted) == 51


def test_a_cell_picked_by_keyboard_names_the_row_and_leads_to_its_page(open_page, recorded):
    page = open_page(recorded, "/run?run=whole")
    canvas = page.locator(".raster canvas")
    canvas.wait_for()
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    until(lambda: "inst=" in address(page))
    picked = int(re.search(r"inst=(\d+)", address(page))[1])  # type: ignore[index]
    link = page.get_by_role("link", name=re.compile(rf"Why did row {picked} take"))
    link.click()
    page.get_by_text(re.compile(rf"Row {picked} \(mu = ")).wait_for()


def test_switching_pages_keeps_run_solve_and_row(open_page, recorded):
    page = open_page(recorded, "/instances?run=many&solve=3&inst=2")
    page.get_by_text(re.compile(r"Row 2 \(mu = ")).wait_for()
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("heading", name="Runs").wait_for()
    page.get_by_role("link", name="Instances", exact=True).click()
    page.get_by_text(re.compile(r"Row 2 \(mu = ")).wait_for()
    until(lambda: page.locator(".st-key-solve input").input_value() == "3")


def test_a_click_on_the_cost_of_a_solve_opens_it(open_page, recorded):
    page = open_page(recorded, "/run?run=many")
    drawn(page, 2)
    box = page.locator(".st-key-chart_solve_costs .scatterlayer .point").nth(2).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    until(lambda: page.locator(".st-key-solve input").input_value() == "2")
    until(lambda: "solve=2" in address(page))


def test_the_data_of_a_chart_opens_as_a_table_and_downloads_as_csv(open_page, recorded, tmp_path):
    page = open_page(recorded, "/run?run=whole")
    drawn(page, 4)
    page.locator(".st-key-data_dt_quantiles button").first.click()
    button = page.locator(".st-key-csv_dt_quantiles button")
    button.wait_for()
    with page.expect_download() as waiting:
        button.click()
    waiting.value.save_as(tmp_path / "data.csv")
    lines = (tmp_path / "data.csv").read_text().splitlines()
    assert lines[0] == "attempt,q05,q25,q50,q75,q95,active"
    assert len(lines) > 100


def test_attempts_download_as_parquet(open_page, recorded, tmp_path):
    import pandas as pd

    page = open_page(recorded, "/run?run=failed")
    button = page.locator(".st-key-attempts_parquet button")
    button.wait_for()
    with page.expect_download() as waiting:
        button.click()
    waiting.value.save_as(tmp_path / "attempts.parquet")
    table = pd.read_parquet(tmp_path / "attempts.parquet")
    assert {"attempt", "instance", "t", "dt", "error_ratio", "accepted"} <= set(table.columns)
    assert set(table["instance"]) == set(range(8))


def test_two_lines_of_the_list_are_compared_and_linked(open_page, recorded):
    page = open_page(recorded, "/runs")
    table = page.locator("[data-testid=stMain] [data-testid=stDataFrame]").first
    table.wait_for()
    table.click(position={"x": 18, "y": 35 + 17})
    until(lambda: "run=" in address(page))
    table.click(position={"x": 18, "y": 35 + 35 + 17})
    until(lambda: "cmp=" in address(page))
    drawn(page, 3)
    page.reload()
    drawn(page, 3)


def test_a_run_that_grows_is_followed_until_it_has_ended(open_page, recorded):
    grown = recorded.runs / "growing"
    writer = subprocess.Popen([sys.executable, "-c", GROW, str(grown)], cwd=HOME)
    try:
        until(lambda: any((grown / "steps").glob("*.arrows")))
        page = open_page(recorded, "/run?run=growing")
        page.get_by_text("live, updating").first.wait_for()
        until(lambda: tile(page, "Attempts").isdigit())
        before = int(tile(page, "Attempts"))
        until(lambda: int(tile(page, "Attempts")) > before)
        assert writer.wait(90) == 0
        page.get_by_text("finished").first.wait_for()
        until(lambda: tile(page, "Attempts") == "320")
        until(lambda: page.get_by_text("live, updating").count() == 0)
    finally:
        writer.kill()
        writer.wait(5)


def test_a_run_is_deleted_by_the_second_press(open_page, recorded):
    write_synthetic_run(recorded.runs / "to-delete", batch=2, attempts=20)
    page = open_page(recorded, "/runs?run=to-delete")
    page.locator(".st-key-run_actions").get_by_text("Delete run").click()
    assert (recorded.runs / "to-delete").is_dir()
    page.get_by_role("button", name="Delete for good").click()
    until(lambda: not (recorded.runs / "to-delete").exists())
    page.get_by_text("1 run deleted.").wait_for()


def test_run_again_opens_live_with_the_settings_of_the_run(open_page, recorded):
    page = open_page(recorded, "/run?run=whole")
    page.get_by_role("link", name="Run again with other gains").click()
    page.locator(".st-key-do_run button").first.wait_for()
    until(lambda: "cmp=whole" in address(page))
    until(lambda: "24" in page.locator(".st-key-batch").inner_text().split())
