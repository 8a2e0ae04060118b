"""What a run says of its settings."""

import pandas as pd

from app import run_facts

DESCRIBED = {
    "controllers": [
        {
            "name": "pid",
            "settings": [{"name": "kp", "default": 0.2}, {"name": "safety", "default": 0.9}],
            "steady": {"kind": "gains", "safety": "safety", "icoeff": 0.5},
        }
    ],
    "problems": [{"name": "lorenz", "title": "Lorenz", "components": ["x", "y", "z"]}],
}
START = {
    "method": "tsit5",
    "controller": "pid",
    "controller_settings": {"kp": 0.3, "safety": 0.9},
    "rtol": 1e-6,
    "atol": [1e-6, 1e-7],
    "error_order": 4,
}


def test_changed_settings_are_told_from_defaults():
    settings = run_facts.settings_of(START, {"dt0": None, "dt_max": 0.5, "problem": "lorenz"})
    changed, same = run_facts.changed_first(settings, DESCRIBED)
    assert changed == {"rtol": 1e-6, "dt_max": 0.5, "pid.kp": 0.3}
    assert same == {"method": "tsit5", "controller": "pid", "dt0": None, "pid.safety": 0.9}


def test_without_a_description_gains_count_as_changed():
    changed, _ = run_facts.changed_first(run_facts.settings_of(START, None), None)
    assert "pid.safety" in changed


def test_defaults_are_those_of_the_solver():
    import inspect

    from solver import solve_ivp

    signature = inspect.signature(solve_ivp).parameters
    for name in (
        "method",
        "rtol",
        "atol",
        "dt0",
        "dt_min",
        "dt_max",
        "max_steps",
        "stepping",
        "adjoint",
    ):
        assert signature[name].default == run_facts.SOLVER_DEFAULTS[name], name


def test_parameters_are_what_is_not_measured():
    table = pd.DataFrame(columns=["instance", "n_steps", "mu", "t_reached", "status_name", "eps"])
    assert run_facts.parameters_of(table) == ["mu", "eps"]


def test_component_names_are_used_only_where_they_fit():
    assert run_facts.component_names(DESCRIBED, "lorenz", 3) == ["x", "y", "z"]
    assert run_facts.component_names(DESCRIBED, "lorenz", 2) == ["y0", "y1"]
    assert run_facts.component_names(None, None, 1) == ["y0"]


def test_the_steady_ratio_follows_from_the_recorded_gains():
    assert run_facts.steady_ratio(START, DESCRIBED) == 0.9 ** (5 / 0.5)
    assert run_facts.steady_ratio(START | {"controller": "unknown"}, DESCRIBED) is None
    assert run_facts.steady_ratio(START | {"error_order": None}, DESCRIBED) is None


def test_a_run_is_called_by_its_problem_or_its_id():
    assert run_facts.title_of(DESCRIBED, "my-run", "lorenz") == "Lorenz"
    assert run_facts.title_of(DESCRIBED, "my-run", "") == "my-run"
