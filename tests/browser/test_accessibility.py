"""Every view in both themes and two widths: axe-core finds nothing serious, and nothing breaks.

Console errors, exceptions and requests elsewhere are asserted by the `open_page` fixture.
"""

from pathlib import Path
from typing import Any

import pytest

axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
pytestmark = pytest.mark.browser
SCRIPT = (Path(axe.__file__).parent / "axe.min.js").read_text("utf-8")
VIEWS = {
    "live": ("/?run=example", ".raster canvas"),
    "run": ("/run?run=example", ".st-key-chart_limiter_shares .main-svg"),
    "instances": ("/instances?run=example", ".st-key-chart_row_component .main-svg"),
    "stability": ("/stability?run=example", ".st-key-chart_region .main-svg"),
    "training": ("/training?run=example-training", ".st-key-chart_optimizer .main-svg"),
    "adjoints": ("/adjoints?run=example-gradients", ".js-plotly-plot .main-svg"),
    "compare": (
        "/compare?run=example&with=example-implicit",
        ".st-key-chart_compare_work .main-svg",
    ),
    "tuner": ("/tuner?run=example-tuner", ".st-key-chart_replay_check .main-svg"),
    "work_precision": (
        "/work_precision?run=example-precision",
        ".st-key-chart_work_precision .main-svg",
    ),
    "ask": ("/ask?run=example", ".st-key-chart_ask_chart .main-svg"),
    "runs": ("/runs?run=example", ".st-key-run_actions"),
}
# Inside Streamlit's own widgets, where no style of ours reaches: (rule, part of the selector).
NOT_OURS: tuple[tuple[str, str], ...] = ()
RUN = """() => axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations
.filter(v => ["serious", "critical"].includes(v.impact))
.flatMap(v => v.nodes.map(n => [v.id, n.target.join(" "), n.html.slice(0, 160),
  ((n.any[0] || n.all[0] || n.none[0] || {}).message || "").slice(0, 160)])))"""


@pytest.mark.parametrize("width", [1400, 700])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious_in_both_themes(
    open_page: Any, server: Any, view: str, width: int
):
    path, drawn = VIEWS[view]
    page = open_page(server, path, viewport={"width": width, "height": 900})
    page.locator(drawn).first.wait_for(timeout=60_000)
    page.wait_for_function(
        "() => !document.querySelector('[data-stale=true], [data-testid=stSkeleton]')"
    )
    page.evaluate(SCRIPT)
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            "dark => { const [r] = getComputedStyle(document.querySelector('.stApp'))"
            ".backgroundColor.match(/\\d+/g); return (r < 128) === dark; }",
            arg=scheme == "dark",
        )
        page.evaluate(
            "() => Promise.all(document.getAnimations().map(a => a.finished)).catch(() => 0)"
        )
        found += [
            (scheme, *one)
            for one in page.evaluate(RUN)
            if not any(one[0] == rule and part in one[1] for rule, part in NOT_OURS)
        ]
    assert not found, "\n".join(map(str, found))
