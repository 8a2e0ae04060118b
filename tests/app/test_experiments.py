"""The experiments of the published comparison, repeated by one command."""

import pytest

from app import cli
from inspector import open_run


def ask(tmp_path, *more: str) -> list[str]:
    return ["experiment", *more, "--runs", str(tmp_path), "--batch", "12"]


def test_joint_steps_of_shifted_phases_cost_several_times_as_many(tmp_path, capsys):
    assert cli.main(ask(tmp_path, "phases")) == 0
    said = capsys.readouterr().out
    times = float(said.partition("joint stepping takes ")[2].split()[0])
    assert 2 < times < 6  # with 64 phases it is 5
    runs = [open_run(tmp_path / f"experiment-phases-{kind}") for kind in ("independent", "joint")]
    own, joint = (run.solves()["n_steps"] for run in runs)
    assert joint.mean() / own.mean() == pytest.approx(times, abs=0.06)
    assert joint.nunique() == 1
    assert runs[0].spec["problem"] == "van_der_pol_phases"
    assert cli.main(ask(tmp_path, "phases")) == 1  # nothing is overwritten


def test_pid_control_saves_a_few_percent(tmp_path, capsys):
    assert cli.main(ask(tmp_path, "controllers")) == 0
    lines = capsys.readouterr().out.splitlines()
    saved = [float(line.split()[-2]) for line in lines if line.endswith(" %")]
    assert len(saved) == 8
    assert all(1 < share < 9 for share in saved)
    assert 3 <= sum(saved) / len(saved) <= 6


def test_flows_are_trained_with_both_kinds_of_stepping(tmp_path, capsys):
    more = ("flow", "--iterations", "2", "--seeds", "1")
    assert cli.main(ask(tmp_path, *more)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "+-" in line] == ["independent", "joint"]
    for kind in ("independent", "joint"):
        run = open_run(tmp_path / f"experiment-flow-{kind}-0")
        assert run.solve_table()["stepping"].unique().tolist() == [kind]


def test_another_name_is_refused(tmp_path, capsys):
    assert cli.main(ask(tmp_path, "magic")) == 1
    assert "'magic': must be one of flow" in capsys.readouterr().err
