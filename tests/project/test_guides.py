"""The guides in docs/ do what they say: their code and commands run, in order, as printed."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = ("tutorial.md", "how-to.md", "explanations.md")
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# file: ([\w.]+)\n")
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def script(text: str) -> str:
    """Return a guide's blocks as one Python script.

    A block that begins with `# file: name` is written to that file, commands are run.
    """
    lines = ["import subprocess, sys", "from pathlib import Path"]
    for language, code in BLOCK.findall(text):
        named = FILE.match(code)
        if named:
            lines.append(f"Path({named[1]!r}).write_text({code!r}, 'utf-8')")
        elif language == "python":
            lines.append(code)
        else:
            for line in code.strip().splitlines():
                program, *words = shlex.split(line)
                assert program == "stepscope", line
                command = f"[sys.executable, '-m', 'app.cli', *{words!r}]"
                lines.append(f"subprocess.run({command}, check=True)")
    return "\n".join(lines)


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_runs_from_top_to_bottom(tmp_path: Path, guide: str):
    text = (ROOT / "docs" / guide).read_text(encoding="utf-8")
    file = tmp_path / "guide.py"
    file.write_text(script(text), "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", str(file)],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT), "STEPSCOPE_RUNS": "runs"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def test_every_guide_is_run_and_nothing_is_left_out():
    others = {"architecture.md", "measurements.md"}  # contracts and tables, no code to run
    assert {path.name for path in (ROOT / "docs").glob("*.md")} == {*GUIDES, *others}
    for guide in GUIDES:
        text = (ROOT / "docs" / guide).read_text(encoding="utf-8")
        fences = re.findall(r"^```(\w*)$", text, re.MULTILINE)
        assert set(fences) <= {"python", "sh", "text", ""}
        assert len(BLOCK.findall(text)) == fences.count("python") + fences.count("sh") > 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_that_is_shown_is_python(document: Path):
    for language, code in BLOCK.findall(document.read_text(encoding="utf-8")):
        if language == "python" and document.name != "architecture.md":
            compile(code, document.name, "exec")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_headings_that_links_name_exist(document: Path):
    for target, heading in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", document.read_text("utf-8")):
        if target.startswith("http"):
            continue
        other = (document.parent / target) if target else document
        headings = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
        slugs = [re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings]
        assert heading in slugs, f"{document.name} points to {target}#{heading}"
