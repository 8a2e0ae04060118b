"""Initial value problems from the literature, solved to what their files ask of a correct solver.

All tolerances of a case go into one call, one a row; the measure is that of the files, in units of
the tolerance: `max_i |y_i - y1_i| / (atol + rtol |y1_i|)`, or with the largest component's size.
"""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from solver import solve_ivp
from solver.status import Status

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("equations", HERE / "equations.py")
assert _spec
assert _spec.loader
_equations = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_equations)
FIELDS = _equations.FIELDS

CASES = {path.stem: json.loads(path.read_text()) for path in sorted(HERE.glob("cases/*.json"))}
SINGLE = [name for name, case in CASES.items() if case["kind"] != "batch"]
SMOOTH = [
    name
    for name in SINGLE
    if not CASES[name]["stiff"]
    and not CASES[name].get("discontinuities_t")
    and CASES[name]["reference"].get("t_mid")
    and any(check["rtol"] > 1e-9 for check in CASES[name]["checks"])
]
BATCHES = [name for name, case in CASES.items() if case["kind"] == "batch"]
ORDER_5_AND_UP = ["tsit5", "dopri5", "vern7", "dopri8"]


def values(given: Any) -> Tensor:
    """Numbers of a file as a tensor, complex where they have a real and an imaginary part."""
    if isinstance(given, dict):
        real, imag = (torch.tensor(given[part], dtype=torch.float64) for part in ("re", "im"))
        return torch.complex(real, imag)
    return torch.tensor(given, dtype=torch.float64)


def error_units(y: Tensor, true: Tensor, check: dict[str, Any], scale: str) -> float:
    """The measure of the files for one state `(D,)`; infinite where a value is missing."""
    size = true.abs() if scale == "component" else true.abs().max()
    error = (y - true).abs() / (check.get("err_atol", check["atol"]) + check["rtol"] * size)
    return error.nan_to_num(nan=torch.inf).max().item()


def checks_for(case: dict[str, Any], method: str) -> list[tuple[dict[str, Any], float]]:
    """The checks that hold for a method, each with its bound; loose ones alone for order 3."""
    found = []
    for check in case["checks"]:
        if method == "bosh3":
            bound = check["max_err_tol_units"] if check["rtol"] >= 1e-3 else None
        else:
            bound = check.get("max_err_tol_units_order5", check["max_err_tol_units"])
        if bound is not None:
            found.append((check, bound))
    return found


def solve_case(case: dict[str, Any], checks: list[dict[str, Any]], method: str, **options: Any):
    """Solve a single case once for each check, in one batch `(len(checks), D)`."""
    params, rows = case["params"], len(checks)
    times = [t for t in case["reference"].get("t_mid", []) if t != case["t1"]]
    return solve_ivp(
        lambda t, y: FIELDS[case["id"]](t, y, **params),
        values(case["y0"]).repeat(rows, 1),
        torch.tensor([*times, case["t1"]], dtype=torch.float64),
        t0=case["t0"],
        t1=case["t1"],
        method=method,
        rtol=torch.tensor([[check["rtol"]] for check in checks], dtype=torch.float64),
        atol=torch.tensor([[check["atol"]] for check in checks], dtype=torch.float64),
        **options,
    )


@pytest.mark.parametrize(
    ("name", "method"),
    [
        (name, method)
        for name in SINGLE
        for method in [*ORDER_5_AND_UP, "bosh3"]
        if checks_for(CASES[name], method)
    ],
)
def test_a_case_ends_where_the_literature_says(name, method):
    case = CASES[name]
    checks = checks_for(case, method)
    with torch.no_grad():
        sol = solve_case(case, [check for check, _ in checks], method)
    assert sol.status.tolist() == [Status.SUCCESS] * len(checks), sol.message(0)
    true, scale = values(case["reference"]["y1"]), case["reference"]["scale"]
    for row, (check, bound) in enumerate(checks):
        assert error_units(sol.ys[row, -1], true, check, scale) <= bound, check["rtol"]
        torch.testing.assert_close(sol.ys[row, -1], sol.y_reached[row], rtol=0, atol=0)


@pytest.mark.parametrize("method", ORDER_5_AND_UP)
@pytest.mark.parametrize("name", SMOOTH)
def test_values_inside_the_interval_are_of_the_size_of_the_error_at_its_end(name, method):
    """The error estimate looks at the ends of steps only, so ten times their bound is allowed."""
    case = CASES[name]
    reference = case["reference"]
    checks = [(check, bound) for check, bound in checks_for(case, method) if check["rtol"] > 1e-9]
    with torch.no_grad():
        sol = solve_case(case, [check for check, _ in checks], method)
    for row, (check, bound) in enumerate(checks):
        for got, true in zip(sol.ys[row], values_of_rows(reference["y_mid"]), strict=False):
            assert error_units(got, true, check, "max-norm") <= 10 * bound, check["rtol"]


def values_of_rows(given: Any) -> list[Tensor]:
    """States at several times, complex or real."""
    if isinstance(given, dict):
        return list(values(given))
    return [values(state) for state in given]


@pytest.mark.parametrize("method", [*ORDER_5_AND_UP, "bosh3"])
@pytest.mark.parametrize("name", BATCHES)
def test_every_instance_of_a_batch_ends_where_it_should(name, method):
    case = CASES[name]
    instances = case["instances"]
    params = {
        key: values([instance["params"][key] for instance in instances])
        for key in instances[0]["params"]
    }
    for check, bound in checks_for(case, method):
        if check["rtol"] < 1e-6 and name == "batch_vdp_64" and method != "vern7":
            continue  # thousands of steps say nothing that 1e-6 does not
        with torch.no_grad():
            sol = solve_ivp(
                lambda t, y: FIELDS[name](t, y, **params),
                values([instance["y0"] for instance in instances]),
                t0=values([instance["t0"] for instance in instances]),
                t1=values([instance["t1"] for instance in instances]),
                method=method,
                rtol=check["rtol"],
                atol=check["atol"],
            )
        assert not sol.status.any()
        errors = {
            i: error_units(y1, values(instance["y1"]), check, "max-norm")
            for i, (y1, instance) in enumerate(zip(sol.y_reached, instances, strict=True))
        }
        wrong = {i for i, error in errors.items() if error > bound}
        assert wrong <= set(check.get("skip_instances", ())), check["rtol"]


@pytest.mark.parametrize("method", [*ORDER_5_AND_UP, "bosh3"])
def test_a_solution_that_ends_in_finite_time_is_a_failure_beside_healthy_rows(method):
    """y' = y^2 from 1 ends at t = 1, from 0.25 at t = 4, and y' = y^3 from 1 at t = 0.5."""
    power = torch.tensor([2.0, 2.0, 3.0])[:, None]
    y0 = torch.tensor([[1.0], [0.25], [1.0]])
    with torch.no_grad():
        sol = solve_ivp(
            lambda t, y: y**power,
            y0,
            t0=0.0,
            t1=2.0,
            t_eval=torch.tensor([0.25, 2.0]),
            method=method,
            rtol=1e-6,
            atol=1e-9,
            max_steps=5000,
        )
    assert sol.status[1] == Status.SUCCESS
    assert sol.status[0] != Status.SUCCESS
    assert sol.status[2] != Status.SUCCESS
    torch.testing.assert_close(sol.ys[1], torch.tensor([[4 / 15], [0.5]]), rtol=1e-5, atol=0)
    for row, end in ((0, 1.0), (2, 0.5)):
        assert 0.99 * end < sol.t_reached[row] < end * (1 + 1e-4)
        assert sol.ys[row, 0].isfinite().all()
        assert sol.ys[row, 1].isnan().all()
        assert sol.stats.n_steps[row] < 2000
        assert sol.message(row)


@pytest.mark.parametrize("name", ["detest_f2", "detest_f4"])
@pytest.mark.parametrize("method", ORDER_5_AND_UP)
def test_jumps_that_are_announced_cost_fewer_steps_and_no_accuracy(name, method):
    case = CASES[name]
    check = case["checks"][1]
    with torch.no_grad():
        blind = solve_case(case, [check], method)
        told = solve_case(case, [check], method, jump_t=torch.tensor(case["discontinuities_t"]))
    assert not told.status.any()
    true, scale = values(case["reference"]["y1"]), case["reference"]["scale"]
    assert error_units(told.ys[0, -1], true, check, scale) <= check["max_err_tol_units_order5"]
    assert told.stats.n_steps.item() < blind.stats.n_steps.item()


@pytest.mark.parametrize("method", ORDER_5_AND_UP)
@pytest.mark.parametrize("name", ["lorenz_short", "rabi", "lotka_volterra_backward"])
def test_single_precision_meets_the_loose_tolerance(name, method):
    case = CASES[name]
    check = case["checks"][0]
    y0 = values(case["y0"])
    with torch.no_grad():
        sol = solve_ivp(
            lambda t, y: FIELDS[name](t.to(y.real.dtype), y, **case["params"]),
            y0.to(torch.complex64 if y0.is_complex() else torch.float32)[None],
            t0=case["t0"],
            t1=case["t1"],
            method=method,
            rtol=check["rtol"],
            atol=check["atol"],
        )
    true = values(case["reference"]["y1"])
    wide = sol.y_reached[0].to(true.dtype)
    assert error_units(wide, true, check, "max-norm") <= check["max_err_tol_units"]
