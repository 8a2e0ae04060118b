"""The dashboard in a notebook: one line starts a server, shows a page and goes with the process."""

import urllib.request

import pytest

from app.notebook import show


def test_one_line_shows_a_run_and_a_second_one_uses_the_same_server(tmp_path):
    (tmp_path / "a run").mkdir()
    shown = show(tmp_path / "a run")
    try:
        assert shown.url.endswith("/training?run=a%20run")
        assert f'src="{shown.url}&embed=true"' in shown._repr_html_()
        with urllib.request.urlopen(shown.url, timeout=30) as answer:
            assert answer.status == 200
        again = show(tmp_path / "other", page="run", height=300)
        assert again.server is shown.server
        assert 'height="300"' in again._repr_html_()
    finally:
        shown.close()
    assert shown.server.process.poll() is not None


def test_a_page_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="page='nope'"):
        show("runs/x", page="nope")
