"""The recorded examples that the first visit shows."""

import pytest

from app import session
from inspector import open_run
from inspector.adjoints import Comparison
from inspector.diagnosis import diagnose
from inspector.studies import Study


@pytest.mark.parametrize("name", session.examples())
def test_an_example_is_whole_and_small(name: str):
    run = open_run(session.EXAMPLES_PATH / name)
    assert run.verify() == []
    assert run.status == "finished"
    assert run.meta["note"].startswith("Recorded example")
    size = sum(file.stat().st_size for file in run.path.rglob("*") if file.is_file())
    assert size < 400_000


def test_the_first_example_has_everything_to_look_at_and_something_to_find():
    run = open_run(session.EXAMPLES_PATH / session.EXAMPLE)
    assert not run.states(0).empty
    assert {"share_p", "share_i", "share_d", "limiter", "stiffness"} <= set(run.columns)
    (first, *_) = diagnose(run).findings
    assert first.rule == "stability_limited"
    assert first.change is not None


def test_every_page_that_studies_something_has_an_example():
    folder = session.EXAMPLES_PATH
    assert Study(folder / "example-tuner").entries("real")
    assert len(Study(folder / "example-precision").entries()) >= 12
    assert len(Comparison(folder / "example-gradients").entries()) >= 4
    assert len(open_run(folder / "example-training").iterations()) == 30
