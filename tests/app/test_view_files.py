"""A view is a file: it appears among the pages by its name."""

from app import frame


def test_a_file_in_the_folder_becomes_a_page_behind_the_others(monkeypatch, tmp_path):
    (tmp_path / "views").mkdir()
    for name in ("live", "runs", "my_own_view", "__init__"):
        (tmp_path / "views" / f"{name}.py").write_text("")
    made = []
    monkeypatch.setattr(frame, "HERE", tmp_path)
    monkeypatch.setattr(frame.st, "Page", lambda path, **about: made.append((path, about)))
    frame.pages()
    assert [path for path, _ in made] == ["views/live.py", "views/runs.py", "views/my_own_view.py"]
    assert [about["title"] for _, about in made] == ["Live", "Runs", "My own view"]
    assert [about["default"] for _, about in made] == [True, False, False]
