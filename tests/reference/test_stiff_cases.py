"""Stiff initial value problems from the literature, solved to what their files ask of a solver.

The measure is that of the files, in units of the tolerance, see `test_cases.py`. The tolerances of
a case go into one call, one a row.
"""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from solver import Banded, solve_ivp
from solver.catalogue import methods

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("stiff_equations", HERE / "stiff_equations.py")
assert _spec
assert _spec.loader
_equations = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_equations)
FIELDS = _equations.FIELDS

CASES = {
    path.stem: json.loads(path.read_text()) for path in sorted(HERE.glob("stiff_cases/*.json"))
}
LONG = ("oregonator", "vdp_mu1000", "robertson_long", "hires", "sdetest_b5")
METHODS = ["rodas5p", "kvaerno5", "radau5", "bdf", "auto"]


def values(given: Any) -> Tensor:
    """Numbers of a file as a tensor."""
    return torch.tensor(given, dtype=torch.float64)


def error_units(y: Tensor, true: Tensor, check: dict[str, Any], scale: str) -> float:
    """The measure of the files for one state `(D,)`; infinite where a value is missing."""
    size = true.abs() if scale == "component" else true.abs().max()
    error = (y - true).abs() / (check.get("err_atol", check["atol"]) + check["rtol"] * size)
    return error.nan_to_num(nan=torch.inf).max().item()


def solver_of(name: str, method: str) -> Any:
    """The method; what is known of a Jacobian with hundreds of components is declared."""
    if name == "medical_akzo" and method in ("radau5", "bdf"):
        return methods()[method](structure=Banded(2, 2))
    return method


def checks_for(case: dict[str, Any], method: str) -> list[tuple[dict[str, Any], float]]:
    """The checks that hold for a method, each with its bound.

    The tightest take thousands of steps of BDF, and
    minutes in the longest cases. Kvaerno's stages have order 2, so it is not held to the bound
    that is made from methods of stage order 3 and up.
    """
    long = case["dim"] > 50 or case["id"] in LONG
    tightest = 1e-6 if method == "bdf" or long else 1e-9
    high = method in ("rodas5p", "radau5", "auto")
    key = "max_err_tol_units_order5" if high else "max_err_tol_units"
    return [
        (check, check.get(key, check["max_err_tol_units"]))
        for check in case["checks"]
        if check["rtol"] >= tightest
    ]


@pytest.mark.parametrize(
    ("name", "method"),
    [(n, m) for n in CASES for m in METHODS if (n, m) != ("medical_akzo", "auto")],
)
def test_a_stiff_case_ends_where_the_literature_says(name, method):
    case = CASES[name]
    checks = checks_for(case, method)
    rows = len(checks)
    with torch.no_grad():
        sol = solve_ivp(
            lambda t, y: FIELDS[name](t, y, **case["params"]),
            values(case["y0"]).repeat(rows, 1),
            t0=case["t0"],
            t1=case["t1"],
            method=solver_of(name, method),
            rtol=values([[check["rtol"]] for check, _ in checks]),
            atol=values([[check["atol"]] for check, _ in checks]),
            jump_t=case.get("discontinuities_t"),
        )
    assert not sol.status.any(), sol.message(0)
    true, scale = values(case["reference"]["y1"]), case["reference"]["scale"]
    for row, (check, bound) in enumerate(checks):
        assert error_units(sol.y_reached[row], true, check, scale) <= bound, check["rtol"]
