"""A report says what the run says, whatever the run is, and nothing in it can be markup."""

import json
import re

import pytest

from app.cli import main
from app.report import report, write_report
from app.report.parts import marked, tag, text
from inspector import Inspector, open_run
from inspector.synthetic import write_synthetic_run

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("reported")
    write_synthetic_run(root / "whole", batch=6, attempts=80, states=3, note="a note")
    write_synthetic_run(root / "failed", batch=6, attempts=200, failed=(1, 4))
    write_synthetic_run(root / "many", batch=3, attempts=40, solves=4)
    return root


def without_library(page: str) -> str:
    """Return the page without plotly's own source."""
    scripts = re.findall(r"<script>.*?</script>", page, re.DOTALL)
    return page.replace(max(scripts, key=len), "")


def figures(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page)
    assert found
    return json.loads(found[1])


def test_a_report_names_the_numbers_of_the_run(runs):
    page = report(open_run(runs / "failed"))
    assert "2 of 6" in page
    assert "Rows that failed" in page
    assert "met values that are not finite" in page
    assert "The field is not finite there" in page  # what the rules find
    assert "stepscope run spec.json" in page
    assert "a note" in report(open_run(runs / "whole"))


def test_each_figure_of_the_page_is_there_in_both_themes(runs):
    page = report(open_run(runs / "whole"))
    told = figures(page)
    assert len(told["figures"]) >= 8
    for number, figure in enumerate(told["figures"]):
        assert f'id="figure-{number}"' in page
        assert figure["light"]["data"]
        assert figure["light"]["layout"] != figure["dark"]["layout"]
        assert len(figure["light"]["data"]) == len(figure["dark"]["data"])


def test_what_both_themes_share_is_written_once(runs):
    told = figures(report(open_run(runs / "whole")))
    light, dark = (
        json.dumps([f[mode]["data"] for f in told["figures"]]) for mode in ("light", "dark")
    )
    assert len(json.dumps(told["pool"])) > 3 * max(len(light), len(dark))


def test_a_report_asks_nobody_for_anything(runs):
    page = without_library(report(open_run(runs / "whole")))
    assert not re.findall(r"https?://|//[a-z]+\.[a-z]+/|@import|url\(", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert "default-src &#x27;none&#x27;" in policy[1]
    assert "unsafe-eval" not in policy[1]
    assert "script-src &#x27;sha256-" in policy[1]


def test_names_notes_and_tags_cannot_be_markup(tmp_path):
    name = "<script>alert(1)<script>".replace("/", "")
    with Inspector(tmp_path / name, note=HOSTILE, tags=[HOSTILE], spec={"problem": HOSTILE}) as one:
        one.log(**{HOSTILE: 1.0})
        one.note(HOSTILE)
    page = without_library(report(open_run(tmp_path / name)))
    body = page[page.index("<body>") :]
    assert body.count("<script") == 2  # the figures and ours
    assert "<img" not in body
    assert "&lt;script&gt;alert(1)" in body
    assert HOSTILE not in page


def test_a_run_of_any_state_has_a_report(tmp_path, runs):
    growing = []

    def look(writer):
        if not growing:
            writer.flush()
            growing.append(report(open_run(tmp_path / "grows")))

    write_synthetic_run(tmp_path / "grows", batch=3, attempts=60, on_block=look)
    assert "still being recorded" in growing[0]
    with Inspector(tmp_path / "empty"):
        pass
    assert "This run is empty" in report(open_run(tmp_path / "empty"))
    damaged = write_synthetic_run(tmp_path / "damaged", batch=3, attempts=40)
    (stream,) = (damaged / "steps").glob("*.arrows")
    stream.write_bytes(stream.read_bytes()[:-300])
    run = open_run(damaged)
    run.verify()
    assert "This run is damaged" in report(run)
    bare = write_synthetic_run(tmp_path / "bare", batch=2, attempts=40, statistics=False)
    assert "What limits it" in report(open_run(bare))


def test_the_costliest_solve_is_looked_into_unless_one_is_named(runs):
    run = open_run(runs / "many")
    assert "are of solve 2, of 4" in report(run, 2)
    assert "of 4" in report(run)
    with pytest.raises(KeyError, match="solve=7"):
        report(run, 7)


def test_the_command_writes_the_file_and_keeps_what_is_there(runs, tmp_path, capsys):
    out = tmp_path / "r.html"
    assert main(["report", "whole", "--runs", str(runs), "-o", str(out)]) == 0
    first = out.read_text("utf-8")
    assert first.startswith("<!doctype html>")
    assert main(["report", "whole", "--runs", str(runs), "-o", str(out)]) == 1
    assert "there already" in capsys.readouterr().err
    assert main(["report", "whole", "--runs", str(runs), "-o", str(out), "--force"]) == 0
    assert main(["report", "many", "--solve", "9", "--runs", str(runs), "-o", str(out)]) == 1
    with pytest.raises(FileExistsError):
        write_report(open_run(runs / "whole"), out)


def test_text_is_escaped_and_code_set_apart():
    assert text('<a href="x">') == "&lt;a href=&quot;x&quot;&gt;"
    assert tag("p", "<", tag("b", ">"), class_='"') == '<p class="&quot;">&lt;<b>&gt;</b></p>'
    assert marked("use `a<b` here") == "use <code>a&lt;b</code> here"
    assert marked("one ` alone") == "one ` alone"
