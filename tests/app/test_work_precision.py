"""Work against precision: what is measured is right, failures are kept apart, the file is read."""

import json
import math

import numpy as np
import pytest

from app import cli, worker
from app.studied import Studied
from app.work_precision import settings_of, work_precision
from inspector import open_run
from inspector.studies import Study, pareto, precision_rows, precision_table
from solver.errors import InvalidArgument, UnknownMethod

LOTKA = {"kind": "work_precision", "problem": "lotka_volterra", "batch": 2, "t1": 4.0, "rounds": 1}


def table_of(spec):
    entries = {entry["label"]: entry for entry in work_precision(spec)}
    reference = entries.pop("")
    return reference, precision_table(entries.values()), entries


def test_errors_fall_with_the_tolerance_by_the_order_of_a_method():
    spec = LOTKA | {"methods": ["bosh3", "dopri8"], "rtols": [1e-4, 1e-7]}
    reference, table, _ = table_of(spec)
    assert 0 <= reference["doubt"] < 1e-10
    assert (table["failure"] == "").all()
    errors = table.pivot(index="method", columns="rtol", values="end_error")
    assert (errors[1e-4] > 100 * errors[1e-7]).all()
    steps = table.pivot(index="method", columns="rtol", values="n_steps")
    assert steps.loc["bosh3", 1e-7] > 5 * steps.loc["bosh3", 1e-4]  # 10^(3/3) times as many
    assert steps.loc["dopri8", 1e-7] < 5 * steps.loc["dopri8", 1e-4]
    assert (table["trajectory_error"] >= table["end_error"]).all()
    assert (table["seconds"] > 0).all()


def test_a_known_solution_is_the_reference_without_doubt():
    from sample_problems.catalogue import problems

    exact = next(
        name for name in problems() if Studied.of({"problem": name, "batch": 2}).reference_is_exact
    )
    reference, table, _ = table_of(
        {"problem": exact, "batch": 2, "methods": ["tsit5"], "rtols": [1e-9], "rounds": 1}
    )
    assert reference["reference"] == "exact solution"
    assert reference["doubt"] == 0
    assert table["end_error"].iloc[0] < 1e-5


def test_methods_without_error_estimate_are_tried_in_equal_steps():
    _, table, _ = table_of(LOTKA | {"methods": ["rk4"], "steps": [64, 128]})
    assert list(table["setting"]) == ["64 steps", "128 steps"]
    assert list(table["n_steps"]) == [64, 128]
    ratio = table["end_error"].iloc[0] / table["end_error"].iloc[1]
    assert 2**3 < ratio < 2**5


def test_rows_that_fail_count_and_leave_the_medians_alone():
    spec = {"problem": "van_der_pol", "batch": 3, "methods": ["euler"], "steps": [60], "rounds": 1}
    _, table, entries = table_of(spec)
    (line,) = table.to_dict("records")
    assert line["failed"] == 2
    assert line["failure"] == ""
    assert np.isfinite(line["end_error"])
    rows = precision_rows(entries.values())
    assert rows["end_error"].isna().sum() == 2


def test_a_setting_that_fails_altogether_is_listed_with_its_reason():
    _, table, _ = table_of(LOTKA | {"methods": ["tsit5"], "rtols": [1e-9], "max_steps": 5})
    assert table["failure"].iloc[0].startswith("every row failed: ")
    assert math.isnan(table["end_error"].iloc[0])


def test_gradient_and_memory_are_measured_when_asked_for():
    spec = LOTKA | {"methods": ["tsit5"], "rtols": [1e-3, 1e-6], "gradient": True, "memory": True}
    _, table, _ = table_of(spec)
    errors = list(table["gradient_error"])
    assert errors[0] > 10 * errors[1] > 0
    assert table["graph_bytes"].iloc[1] > table["graph_bytes"].iloc[0] > 1_000
    assert (table["peak_bytes"] > 100).all()


@pytest.mark.parametrize(
    ("wrong", "error", "named"),
    [
        ({"methods": ["tsit"]}, UnknownMethod, "tsit5"),
        ({"rtols": [0.0]}, InvalidArgument, "rtols"),
        ({"rtols": [math.nan]}, InvalidArgument, "rtols"),
        ({"steps": [0]}, InvalidArgument, "steps"),
        ({"dtype": "float16"}, InvalidArgument, "dtype"),
        ({"atol_ratio": -1.0}, InvalidArgument, "atol_ratio"),
    ],
)
def test_a_wrong_entry_of_the_spec_is_named(wrong, error, named):
    with pytest.raises(error, match=named):
        settings_of(LOTKA | wrong, Studied.of(LOTKA | wrong))


def test_a_recorded_study_is_read_again_with_its_solves(tmp_path):
    spec = LOTKA | {"methods": ["bosh3", "tsit5"], "rtols": [1e-3, 1e-5]}
    worker.record_study(spec, tmp_path / "study")
    study = Study(tmp_path / "study")
    table = precision_table(e for e in study.entries() if e.get("phase") != "reference")
    assert list(table["solve"]) == [0, 1, 2, 3]
    assert study.done == study.of
    run = open_run(tmp_path / "study")
    assert run.status == "finished"
    assert list(run.solve_table()["method"]) == ["bosh3", "bosh3", "tsit5", "tsit5"]
    counts = run.solves().groupby("solve")["n_steps"].median()
    assert list(counts) == list(table["n_steps"])
    with (tmp_path / "study" / "study.jsonl").open("ab") as file:
        file.write(b'{"kind": "entry", torn')
    again = Study(tmp_path / "study")
    assert len(again.entries()) == 5


def test_the_front_holds_what_nothing_beats_in_both():
    cost = np.array([1.0, 2.0, 3.0, 4.0, np.nan, 2.0])
    error = np.array([1.0, 0.1, 0.5, 0.01, 0.0, 0.1])
    assert list(pareto(cost, error)) == [0, 1, 3]
    assert len(pareto(np.array([]), np.array([]))) == 0


def test_the_command_prints_a_table_and_takes_a_run_s_problem(tmp_path, capfd):
    runs = ["--runs", str(tmp_path)]
    given = ["--methods", "tsit5,rk4", "--rtols", "1e-4", "--steps", "50", "--rounds", "1"]
    base = ["work-precision", "lotka_volterra", "--batch", "2", "--t1", "3"]
    assert cli.main([*base, *given, *runs, "--name", "first"]) == 0
    first = capfd.readouterr().out
    assert "tsit5" in first
    assert "50 steps" in first
    assert cli.main(["work-precision", "--run", "first", *given, *runs, "--json"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["method"] for line in lines] == ["tsit5", "rk4"]
    assert len(lines[0]["measured"]["n_steps"]) == 2
    assert cli.main(["work-precision", *runs]) == 1
    assert "--run RUN" in capfd.readouterr().err
    assert cli.main([*base, *runs, "--rtols", "small"]) == 1
    assert "parted by commas" in capfd.readouterr().err
