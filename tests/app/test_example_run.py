"""The recorded example that the first visit shows."""

from app import session
from inspector import open_run


def test_the_example_is_whole_and_small():
    run = open_run(session.EXAMPLE_PATH)
    assert run.verify() == []
    assert run.status == "finished"
    assert not run.states(0).empty
    assert {"share_p", "share_i", "share_d", "limiter"} <= set(run.columns)
    size = sum(file.stat().st_size for file in session.EXAMPLE_PATH.rglob("*") if file.is_file())
    assert size < 400_000
