"""Tuning: candidates, the search as a whole, recorded runs, and the command."""

import json

import pytest

from app import cli, tuning, worker
from app.tuning import candidates, tune
from inspector.studies import Study, tuning_table
from solver.errors import InvalidArgument, UnknownMethod

SMALL = {
    "kind": "tune", "problem": "lotka_volterra", "batch": 2, "t1": 4.0, "jobs": 1, "verify": 2,
    "kp": [0.0, 0.2], "ki": [0.3, 0.6], "search": False,
}  # fmt: skip
MU25 = {
    "problem": "van_der_pol", "parameters": {"mu": 25.0}, "spread": None, "batch": 1,
    "jobs": 1, "verify": 6, "search": False,
}  # fmt: skip


def test_gains_found_on_van_der_pol_are_at_least_as_good_as_the_best_preset():
    table = tuning_table(tune(MU25))
    real = table[(table["phase"] == "real") & (table["failed"] == 0)]
    presets = real[real["source"] == "preset"]["attempts"].min()
    found = real[real["source"] == "grid"]["attempts"].min()
    assert len(presets_of(real)) > 15
    assert found <= presets
    near = real[real["source"] == "grid"]
    assert ((near["estimate"] / near["attempts"] - 1).abs() < 0.1).all()


def presets_of(real):
    return set(real[real["source"] == "preset"]["title"])


def test_all_gains_aim_at_the_same_error_unless_told_otherwise():
    equal = [c for c in candidates(SMALL) if c.source == "grid"]
    assert len(equal) == 4
    assert {round(c.settings["safety"] ** (1 / c.settings["ki"]), 9) for c in equal} == {0.9}
    fixed = [c for c in candidates(SMALL | {"safety": 0.8}) if c.source == "grid"]
    assert {c.settings["safety"] for c in fixed} == {0.8}
    assert all(c.settings["kd"] == 0 for c in equal)


def test_search_finds_gains_off_the_grid_that_replay_prefers():
    table = tuning_table(tune(SMALL | {"search": True}))
    replayed = table[table["phase"] == "replay"]
    found = replayed[replayed["source"] == "search"]["attempts"]
    assert found.min() <= replayed[replayed["source"] == "grid"]["attempts"].min()
    assert "search" in set(table[table["phase"] == "real"]["source"])


def test_the_best_are_tried_with_other_methods_and_tolerances():
    spec = SMALL | {"methods": ["tsit5", "bosh3"], "rtols": [1e-4, 1e-6], "rtol": 1e-4}
    table = tuning_table(tune(spec))
    real = table[table["phase"] == "real"]
    assert {("bosh3", 1e-6), ("tsit5", 1e-6), ("bosh3", 1e-4)} <= set(
        zip(real["method"], real["rtol"], strict=True)
    )
    errors = real[real["method"] == "bosh3"].groupby("rtol")["end_error"].median()
    assert errors[1e-6] < errors[1e-4] / 10


def test_processes_find_what_one_process_finds():
    counts = ["label", "attempts", "refused", "end_error"]
    one, two = (
        tuning_table(tune(SMALL | {"jobs": jobs})).sort_values("label")[counts] for jobs in (1, 2)
    )
    assert one.reset_index(drop=True).equals(two.reset_index(drop=True))


def test_a_recorded_run_is_replayed_without_solving_it_again(tmp_path):
    solved = {k: v for k, v in SMALL.items() if k in ("problem", "batch", "t1")}
    solved |= {"controller": {"name": "pid", "ki": 0.4}, "rtol": 1e-5, "atol": 1e-7}
    recorded = worker.record(solved, tmp_path / "first")
    spec = SMALL | solved | {"run": "first", "solve": 0, "method": "tsit5"}
    worker.record_study(spec, tmp_path / "tuned")
    entries = Study(tmp_path / "tuned").entries()
    table = tuning_table(entries)
    own = table[table["label"] == "recorded: as it is"].iloc[0]
    assert own["ki"] == 0.4
    assert own["attempts"] == pytest.approx(int(recorded.stats.n_steps.sum()), abs=0.6)
    again = table[table["label"].str.startswith("real: recorded")].iloc[0]
    assert again["attempts"] == int(recorded.stats.n_steps.sum())


@pytest.mark.parametrize(
    ("wrong", "error", "named"),
    [
        ({"method": "rk4"}, InvalidArgument, "rk4"),
        ({"methods": ["tsit"]}, UnknownMethod, "tsit5"),
        ({"controller": {"name": "fixed"}}, InvalidArgument, "fixed"),
        ({"ki": [7.0]}, InvalidArgument, "ki"),
        ({"t1": 4.0, "dtype": "int8"}, InvalidArgument, "dtype"),
    ],
)
def test_a_wrong_entry_of_the_spec_is_named(wrong, error, named):
    with pytest.raises(error, match=named):
        list(tune(SMALL | wrong))


def test_a_solve_that_fails_is_listed_and_the_others_go_on(monkeypatch):
    plain = tuning._solve

    def failing(spec, place, *rest):
        return (place, "RuntimeError: lost") if place == 3 else plain(spec, place, *rest)

    monkeypatch.setattr(tuning, "_solve", failing)
    table = tuning_table(tune(SMALL))
    real = table[table["phase"] == "real"]
    assert (real["failed"] > 0).sum() == 1
    assert "lost" in set(real["failure"].str.removeprefix("RuntimeError: "))


def test_the_command_prints_the_best_first(tmp_path, capfd):
    given = ["tune", "lotka_volterra", "--batch", "2", "--t1", "3", "--jobs", "1", "--no-search"]
    given += ["--kp", "0,0.2", "--ki", "0.4", "--verify", "1", "--runs", str(tmp_path)]
    assert cli.main([*given, "--name", "tuned"]) == 0
    lines = capfd.readouterr().out.splitlines()
    column = lines[0].split().index("attempts")
    first, second = (int(line.split()[-4]) for line in lines[1:3])
    assert first <= second
    assert column > 0
    assert cli.main([*given, "--json"]) == 0
    found = [json.loads(line) for line in capfd.readouterr().out.splitlines() if line[0] == "{"]
    assert {entry.get("phase") for entry in found} == {"model", "replay", "real", "reference"}
    assert cli.main([*given, "--safety", "much"]) == 1
    assert "--safety" in capfd.readouterr().err
