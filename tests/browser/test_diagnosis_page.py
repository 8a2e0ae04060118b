"""What limits a solve, in a real browser: a change is tried and its gain shown; the region."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.worker import record

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def recorded(server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server over one run that stability limits."""
    folder = tmp_path_factory.mktemp("diagnosis")
    spread = {"parameter": "mu", "low": 5.0, "high": 80.0, "scale": "log"}
    spec = {"problem": "van_der_pol", "spread": spread, "batch": 4, "t1": 6.0, "engine": "plain"}
    record(spec, folder / "runs" / "stiff")
    running = type(server)(folder / "runs", folder / "server.log")
    yield running
    running.close()


@pytest.mark.parametrize("path", ["/run?run=stiff", "/?run=stiff"])
def test_a_change_is_tried_beside_the_original(open_page: Any, recorded: Any, path: str):
    page = open_page(recorded, path)
    finding = page.locator(".st-key-finding_stability_limited_0")
    finding.wait_for(timeout=60_000)
    before = {each.name for each in Path(recorded.runs).iterdir()}
    finding.get_by_role("button", name="Try it").click()
    finding.get_by_text("Tried as").wait_for(timeout=90_000)
    metrics = finding.get_by_test_id("stMetric")
    assert metrics.count() >= 5
    change = metrics.first.get_by_test_id("stMetricDelta").inner_text()
    assert change.startswith("-")
    assert len({each.name for each in Path(recorded.runs).iterdir()} - before) == 1


def test_the_region_holds_the_steps_and_the_exact_spectrum(open_page: Any, recorded: Any):
    page = open_page(recorded, "/stability?run=stiff&inst=3")
    drawn = (
        "name => [...document.querySelectorAll('.js-plotly-plot')]"
        ".some(p => p._fullData && p._fullData.some(d => d.name === name && d.x.length))"
    )
    page.wait_for_function(drawn, arg="row 3", timeout=60_000)
    page.get_by_role("button", name="Exact spectrum").click()
    page.wait_for_function(drawn, arg="exact spectrum", timeout=90_000)
    assert page.get_by_text("An implicit method would take larger steps").count() == 1
