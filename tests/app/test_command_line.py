"""The command `stepscope`."""

import json
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from app import cli

HOME = Path(cli.__file__).resolve().parents[1]
SPEC = {"problem": "lotka_volterra", "batch": 2, "t1": 1.0, "n_eval": 3}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with one recorded run, `one`."""
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    folder = tmp_path / "runs"
    assert (
        cli.main(["run", str(tmp_path / "spec.json"), "--runs", str(folder), "--name", "one"]) == 0
    )
    return folder


def test_run_prints_one_line_that_sums_it_up(runs, tmp_path, capsys):
    assert (
        cli.main(["run", str(runs / "one" / "run.json"), "--runs", str(runs), "--name", "two"]) == 0
    )
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith(f"{runs / 'two'}: 2 rows, ")
    assert "0 failed" in line


def test_run_reports_failed_rows_by_its_exit_code(tmp_path, capsys):
    (tmp_path / "spec.json").write_text(json.dumps(SPEC | {"t1": 100.0, "max_steps": 3}))
    code = cli.main(
        ["run", str(tmp_path / "spec.json"), "--runs", str(tmp_path), "--name", "short"]
    )
    assert code == 1
    assert "row 0" in capsys.readouterr().out


def test_ls_and_show_list_what_is_there(runs, capsys):
    assert cli.main(["ls", "--runs", str(runs), "--json"]) == 0
    (line,) = capsys.readouterr().out.strip().splitlines()
    assert json.loads(line)["run"] == "one"
    assert cli.main(["show", "one", "--runs", str(runs)]) == 0
    shown = capsys.readouterr().out
    assert "one: finished, 1 solves" in shown
    assert cli.main(["ls", "--runs", str(runs / "none")]) == 0
    assert "no run in" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_export_writes_tables_others_can_read(runs, tmp_path, kind, capsys):
    out = tmp_path / "out"
    assert cli.main(["export", "one", "--runs", str(runs), "--to", kind, "--out", str(out)]) == 0
    read = pd.read_csv if kind == "csv" else pd.read_parquet
    steps = read(out / f"steps.{kind}")
    assert {"attempt", "instance", "dt", "error_ratio", "accepted"} <= set(steps.columns)
    assert f"steps.{kind}: {len(steps)} rows" in capsys.readouterr().out


def test_describe_prints_json(capsys):
    assert cli.main(["describe"]) == 0
    assert {"problems", "methods", "controllers"} <= set(json.loads(capsys.readouterr().out))


def test_doctor_finds_this_machine_well(tmp_path, capsys):
    assert cli.main(["doctor", "--runs", str(tmp_path)]) == 0
    assert "solver: ok" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (["show", "no-such-run"], "no-such-run"),
        (["run", "no-such-file.json"], "No such file"),
        (["app", "--problem", "nowhere.py"], "path/to/file.py:ClassName"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(command, word, tmp_path, capsys):
    assert cli.main([*command, "--runs", str(tmp_path)]) == 1
    assert word in capsys.readouterr().err


def test_an_existing_run_is_not_overwritten(runs, capsys):
    spec = str(runs / "one" / "run.json")
    assert cli.main(["run", spec, "--runs", str(runs), "--name", "one"]) == 1
    assert "already" in capsys.readouterr().err


def test_app_hands_over_to_streamlit_on_loopback(monkeypatch, tmp_path):
    seen = {}

    def execve(program, command, environment):
        seen.update(program=program, command=command, environment=environment)
        raise SystemExit(0)

    monkeypatch.setattr(cli.os, "execve", execve)
    with pytest.raises(SystemExit):
        cli.main(["app", "--runs", str(tmp_path), "--read-only", "--port", "8765"])
    assert "--server.address=127.0.0.1" in seen["command"]
    assert "--server.port=8765" in seen["command"]
    assert "--browser.gatherUsageStats=false" in seen["command"]
    assert seen["environment"]["STEPSCOPE_RUNS"] == str(tmp_path)
    assert seen["environment"]["STEPSCOPE_READ_ONLY"] == "1"


def test_the_shipped_settings_listen_on_loopback_and_send_nothing():
    settings = tomllib.loads((HOME / ".streamlit" / "config.toml").read_text("utf-8"))
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["client"]["showErrorDetails"] == "none"
    for option in ("enableCORS", "enableXsrfProtection"):
        assert settings["server"].get(option, True) is True
    packaged = tomllib.loads((HOME / "app" / "streamlit.toml").read_text("utf-8"))
    assert packaged == settings, "app/streamlit.toml must be the same as .streamlit/config.toml"


def test_adjoints_are_compared_as_a_table_and_as_json(tmp_path, capfd):
    ask = ["adjoints", "neural_spiral", "--batch", "3", "--rounds", "1", "--set", "hidden=8"]
    ask += ["--modes", "symplectic:keep=graphs,budget=8;joint"]
    assert cli.main([*ask, "--csv", str(tmp_path / "table.csv")]) == 0
    printed = capfd.readouterr()
    assert "profiler" not in printed.err
    lines = printed.out.splitlines()
    assert lines[0].split()[:2] == ["mode", "error"]
    assert lines[1].startswith("symplectic:keep=graphs,budget=8 ")
    assert lines[2].startswith("joint ")
    assert pd.read_csv(tmp_path / "table.csv")["peak_bytes"].gt(0).all()
    assert cli.main([*ask, "--json", "--no-allocator", "--sweep", "steps", "--values", "4,8"]) == 0
    entries = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [entry["value"] for entry in entries] == [4, 4, 8, 8]
    assert cli.main(["adjoints", "neural_spiral", "--set", "hidden"]) == 1
    assert "must be NAME=VALUE" in capfd.readouterr().err


def test_a_comparison_is_recorded_by_run(tmp_path, capsys):
    spec = {"kind": "adjoints", "problem": "neural_spiral", "batch": 2, "allocator": False}
    (tmp_path / "spec.json").write_text(json.dumps(spec | {"modes": ["aca"]}))
    ask = ["run", str(tmp_path / "spec.json"), "--runs", str(tmp_path), "--name", "compared"]
    assert cli.main(ask) == 0
    assert "1 comparisons of gradient modes" in capsys.readouterr().out


def test_modes_are_trained_with_and_compared_by_what_they_learn(capfd):
    ask = ["adjoints", "neural_spiral", "--batch", "4", "--train", "3", "--modes", "aca,symplectic"]
    assert cli.main([*ask, "--json"]) == 0
    one, other = (json.loads(line) for line in capfd.readouterr().out.splitlines())
    assert one["measure"] == pytest.approx(other["measure"], rel=1e-9)
    assert one["peak_bytes"] > other["peak_bytes"] > 0
    assert cli.main(ask) == 0
    assert capfd.readouterr().out.splitlines()[2].startswith("symplectic ")
    assert cli.main(["adjoints", "lorenz", "--train", "2"]) == 1
    assert "has no loss" in capfd.readouterr().err
