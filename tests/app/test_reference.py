"""`stepscope reference`: complete, made of what is there now, and readable."""

import re

import pytest

from app import cli, describe


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> str:
    file = tmp_path_factory.mktemp("reference") / "reference.md"
    assert cli.main(["reference", "--out", str(file)]) == 0
    return file.read_text("utf-8")


def test_everything_public_and_every_member_of_a_family_is_in_it(reference):
    import inspector
    import solver
    from inspector.diagnosis import rules

    headings = set(re.findall(r"^### (.+)$", reference, re.MULTILINE))
    assert set(solver.__all__) <= headings
    assert set(inspector.__all__) <= headings
    found = describe.describe()
    for family in ("problems", "methods", "controllers", "adjoints", "statistics"):
        assert {member["name"] for member in found[family]} <= headings, family
    assert set(rules()) <= headings
    assert {"stepscope app", "stepscope run", "stepscope reference"} <= headings


def test_it_says_arguments_bounds_sources_and_options(reference):
    assert "solve_ivp(f, y0, t_eval=None, *" in reference
    assert "| `ki` | 0.5 | 0.01 to 2 | gain on the error of this step |" in reference
    assert "Tsitouras (2011)" in reference
    assert "--read-only" in reference
    assert "object at 0x" not in reference  # the same text every time


def test_blocks_are_closed(reference):
    assert reference.count("```") % 2 == 0
    assert not re.findall(r"^Args:$\n(?!```)", reference, re.MULTILINE)


def test_one_name_is_enough(capsys):
    assert cli.main(["reference", "pid"]) == 0
    shown = capsys.readouterr().out
    assert "### PID" in shown
    assert "### Tsit5" not in shown
    assert cli.main(["reference", "nothing"]) == 1
    assert "nothing of that name" in capsys.readouterr().err
