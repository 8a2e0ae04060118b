"""README.md does what it says: its code runs as printed, its commands are those of CI."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_the_code_runs_as_printed_and_leaves_a_run_that_can_be_read(tmp_path: Path):
    assert len(blocks("python")) >= 2
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for code in blocks("python"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{code}\n{done.stderr}"

    from inspector import open_run

    (folder,) = (tmp_path / "runs").iterdir()
    run = open_run(folder)
    assert run.status == "finished"
    assert not run.damage
    assert run.solve_table()["finished"].all()
    assert set(run.scalars()["name"]) == {"loss"}
    assert (run.solves()["status_name"] == "SUCCESS").all()


def test_there_are_two_commands_and_ci_ends_with_the_second_word_for_word():
    commands = [block.strip() for block in blocks("sh")][:2]
    assert [len(command.splitlines()) for command in commands] == [1, 1]
    assert "stepscope app" in commands[0] or "streamlit run app/main.py" in commands[0]
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1] == commands[1]
    for command in commands:
        assert "pip install -q -c constraints.txt -e" in command


def test_ci_script_is_executable_bash():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    bash = shutil.which("bash")
    assert bash is not None
    assert subprocess.run([bash, "-n", str(script)], check=False).returncode == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_images_of_the_documents_exist(document: Path):
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("https://", "http://", "mailto:")):
            assert (document.parent / target).exists(), f"{document.name} points to {target}"


def test_changelog_describes_this_version():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert any(PROJECT["version"] in heading for heading in headings)


def test_constraints_pin_every_dependency_at_an_allowed_version():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.lower().split("==") for line in lines if line and not line.startswith("#"))
    wanted = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]
    for requirement in map(Requirement, wanted):
        pinned = pins.get(requirement.name.lower())
        assert pinned is not None, f"{requirement.name} is not in constraints.txt"
        assert requirement.specifier.contains(pinned), f"{requirement} excludes {pinned}"
    for requirement in map(Requirement, PROJECT["optional-dependencies"]["peers"]):
        pinned = pins.get(requirement.name.lower())
        assert pinned is None or requirement.specifier.contains(pinned)


def test_what_is_installed_here_is_what_the_constraints_say():
    assert version("torch").split("+")[0] in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def table(kind: str) -> list[list[str]]:
    """Return the rows of the README's table that follows the comment `<!-- kind -->`."""
    _, _, rest = README.partition(f"<!-- {kind} -->\n")
    lines = rest.partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return rows[2:]


def described() -> dict:
    """Return what `stepscope describe` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "describe"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_tables_list_exactly_the_methods_controllers_and_problems_there_are():
    found = described()
    methods = []
    for m in found["methods"]:
        orders = [str(m[key] or "-") for key in ("order", "error_order", "dense_order", "stages")]
        methods.append([f"`{m['name']}`", m["title"], *orders])
    controllers = [
        [f"`{c['name']}`", c["title"], ", ".join(p["name"] for p in c["presets"]) or "-"]
        for c in found["controllers"]
    ]
    problems = [[f"`{p['name']}`", p["title"], p["question"]] for p in found["problems"]]
    for kind, rows in {
        "methods": methods,
        "controllers": controllers,
        "problems": problems,
    }.items():
        expected = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        assert table(kind) == rows, f"the {kind} in README.md should be\n{expected}"
