"""The Training page in a real browser: live from another process, a click opens its solve."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app import trainer

pytestmark = pytest.mark.browser

HOME = Path(__file__).resolve().parents[2]
SPEC = {"kind": "training", "problem": "neural_spiral", "batch": 8, "pool": 32, "iterations": 25}
POINTS = """() => { const p = [...document.querySelectorAll('.js-plotly-plot')]
  .find(p => p._fullData && p._fullData.some(t => t.name === 'slowest row'));
  return p ? p._fullData.find(t => t.name === 'loss').x.length : 0; }"""
# where on the screen the loss of an iteration is drawn
PLACE = """at => { const p = [...document.querySelectorAll('.js-plotly-plot')]
  .find(p => p._fullData && p._fullData.some(t => t.name === 'slowest row'));
  p.scrollIntoView({block: 'center'});
  const t = p._fullData.find(t => t.name === 'loss'), l = p._fullLayout,
        b = p.getBoundingClientRect();
  return [b.left + l.xaxis._offset + l.xaxis.d2p(t.x[at]),
          b.top + l.yaxis._offset + l.yaxis.d2p(t.y[at])]; }"""


@pytest.fixture(scope="module")
def trainings(server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server over a training that is done."""
    folder = tmp_path_factory.mktemp("trainings")
    trainer.record_training(SPEC, folder / "runs" / "spiral")
    running = type(server)(folder / "runs", folder / "server.log")
    yield running
    running.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 700])
def test_the_page_draws_everything_at_every_width(open_page, trainings, scheme, width):
    page = open_page(
        trainings, "/training?run=spiral",
        color_scheme=scheme, viewport={"width": width, "height": 900},
    )  # fmt: skip
    page.wait_for_function(
        """() => [...document.querySelectorAll('.js-plotly-plot')]
        .filter(p => p._fullData && p._fullData.length).length >= 5""",
        timeout=60_000,
    )
    page.get_by_role("heading", name="Hard samples", exact=True).wait_for()
    assert page.evaluate(POINTS) == 25
    wide = "document.querySelector('[data-testid=stMain]')"
    assert page.evaluate(f"{wide}.scrollWidth <= {wide}.clientWidth + 1")


def test_a_click_on_an_iteration_opens_its_solve(open_page, trainings):
    page = open_page(trainings, "/training?run=spiral")
    page.wait_for_function(f"({POINTS})() > 0", timeout=60_000)
    page.get_by_text("iteration 0 · forward").wait_for()
    time.sleep(1.0)  # the layout settles
    page.mouse.click(*page.evaluate(PLACE, 12))
    page.get_by_text("iteration 12 · forward").wait_for()
    assert "solve=12" in page.url


def test_a_training_of_another_process_is_followed_live(open_page, trainings):
    spec = SPEC | {"iterations": 100_000}
    code = "import json, sys; from app.trainer import record_training as train; "
    code += "train(json.loads(sys.argv[1]), sys.argv[2])"

    process = subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(spec), str(trainings.runs / "live")],
        cwd=HOME, env=os.environ | {"PYTHONPATH": str(HOME), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not (trainings.runs / "live" / "iterations").is_dir():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        page = open_page(trainings, "/training?run=live")
        page.wait_for_function(f"({POINTS})() > 0", timeout=60_000)
        before = page.evaluate(POINTS)
        page.wait_for_function(f"({POINTS})() > {before}", timeout=60_000)
        process.kill()
        page.get_by_text("gone without a word").first.wait_for(timeout=60_000)
    finally:
        process.kill()
        process.wait()
