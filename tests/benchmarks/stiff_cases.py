"""Do implicit methods meet what the reference cases ask of a solver? All cases, all tolerances.

Every case of `tests/reference`, stiff or not, single, batch or with events, is solved at each of
its tolerances that suits the order of the method. A line for each: error over bound, steps.

    python tests/benchmarks/stiff_cases.py --methods rodas5p kvaerno5 radau5 bdf auto
    python tests/benchmarks/stiff_cases.py --only hires vdp_mu1000 --failing
"""

import argparse
import dataclasses
import importlib.util
import json
import time
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from common import describe_machine, print_table
from torch import Tensor

from solver import Banded, Event, Solution, solve_ivp
from solver.catalogue import method_by_name
from solver.status import Status

REFERENCE = Path(__file__).parents[1] / "reference"
METHODS = ("rodas5p", "kvaerno5", "radau5", "bdf", "auto")
STAGES_OF_ORDER_3 = ("rodas5p", "radau5", "auto")  # held to the bound made from high-order codes
PARTS = "cases", "stiff_cases", "events"


class Line(NamedTuple):
    """How one case ended at one tolerance."""

    case: str
    method: str
    rtol: float
    share: float  # of the bound; infinite where the solve failed
    steps: int
    seconds: float
    word: str  # what went wrong, empty if nothing


def fields() -> dict[str, Any]:
    """Return the right-hand side of every case."""
    found: dict[str, Any] = {}
    for name in ("equations", "stiff_equations"):
        spec = importlib.util.spec_from_file_location(name, REFERENCE / f"{name}.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found |= module.FIELDS
    return found


def values(given: Any) -> Tensor:
    """Return numbers of a file, complex ones where they have two parts."""
    if isinstance(given, list) and given and isinstance(given[0], dict):
        return torch.stack([values(each) for each in given])
    if isinstance(given, dict):
        return torch.complex(values(given["re"]), values(given["im"]))
    return torch.tensor(given, dtype=torch.float64)


def units(y: Tensor, true: Tensor, check: dict[str, Any], scale: str) -> float:
    """Return the measure of the files; infinite where a value is missing."""
    size = true.abs() if scale == "component" else true.abs().max()
    error = (y - true).abs() / (check.get("err_atol", check["atol"]) + check["rtol"] * size)
    return error.nan_to_num(nan=torch.inf).max().item()


def bound_of(check: dict[str, Any], method: str) -> float:
    """Return the bound that holds for a method."""
    own, high = (check.get(f"max_err_tol_units{order}") for order in ("", "_order5"))
    first, second = (high, own) if method in STAGES_OF_ORDER_3 else (own, high)
    return float(first if first is not None else second)


def suits(check: dict[str, Any], method: str) -> bool:
    """Whether a tolerance suits the order: BDF's is at most 5, and rarely that."""
    return check["rtol"] >= (1e-6 if method_by_name(method).order < 4 or method == "bdf" else 0)


def single(
    case: dict[str, Any], method: Any, check: dict[str, Any], f: Any
) -> tuple[Solution, float]:
    """Return the solution of a single case, and its error."""
    times = [t for t in case["reference"].get("t_mid", []) if t != case["t1"]]
    with torch.no_grad():
        sol = solve_ivp(
            lambda t, y: f(t, y, **case["params"]), values(case["y0"])[None],
            values([*times, case["t1"]]), t0=case["t0"], t1=case["t1"], method=method,
            rtol=check["rtol"], atol=check["atol"], jump_t=case.get("discontinuities_t"),
            engine="plain",
        )  # fmt: skip
    reference = case["reference"]
    error = units(sol.ys[0, -1], values(reference["y1"]), check, reference["scale"])
    easy = not case.get("discontinuities_t") and case["kind"] != "stiff-ignition"
    if times and easy:  # estimates look at ends of steps, so ten times as much is allowed inside
        middle = reference["y_mid"]
        middle = values(middle) if isinstance(middle, dict) else map(values, middle)
        inside = max(units(y, m, check, "max-norm") for y, m in zip(sol.ys[0], middle))  # noqa: B905
        error = max(error, inside / 10)
    return sol, error


def batch(
    case: dict[str, Any], method: str, check: dict[str, Any], f: Any
) -> tuple[Solution, float]:
    """Return the solution of a batch, and the error of its worst instance."""
    rows = case["instances"]
    params = {key: values([row["params"][key] for row in rows]) for key in rows[0]["params"]}
    with torch.no_grad():
        sol = solve_ivp(
            lambda t, y: f(t, y, **params), values([row["y0"] for row in rows]),
            t0=values([row["t0"] for row in rows]), t1=values([row["t1"] for row in rows]),
            method=method, rtol=check["rtol"], atol=check["atol"], engine="plain",
        )  # fmt: skip
    skipped = set(check.get("skip_instances", ()))
    errors = [
        units(y, values(row["y1"]), check, "max-norm")
        for i, (y, row) in enumerate(zip(sol.y_reached, rows, strict=True))
        if i not in skipped
    ]
    return sol, max(errors)


def bouncing(case: dict[str, Any], method: str, check: dict[str, Any]) -> tuple[Solution, float]:
    """Return the solution of a ball that bounces, and its error over what is allowed."""
    gravity, restitution = case["params"]["g"], case["params"]["e"]

    def fall(t: Tensor, y: Tensor) -> Tensor:
        return torch.stack([y[:, 1], torch.full_like(y[:, 1], -gravity)], dim=1)

    def bounce(t: Tensor, y: Tensor) -> Tensor:
        return torch.stack([torch.zeros_like(y[:, 0]), -restitution * y[:, 1]], dim=1)

    with torch.no_grad():
        sol = solve_ivp(
            fall, values(case["y0"])[None], t0=case["t0"], t1=case["t1"], method=method,
            rtol=check["rtol"], atol=check["atol"],
            events=Event(lambda t, y: y[:, 0], "falling", apply=bounce),
        )  # fmt: skip
    times, true = values(case["events"]["times"]), values(case["reference"]["y1"])
    found = sol.event_times[0]
    if found.shape != times.shape:
        return sol, torch.inf
    late = ((found - times).abs().max() / check["max_event_time_err"]).item()
    off = (sol.ys[0, -1] - true).abs().max() / true.abs().max() / check["max_rel_err_max_norm"]
    return sol, max(late, off.item())


def run(case: dict[str, Any], method: str, check: dict[str, Any], f: Any) -> Line:
    """Solve one case at one tolerance."""
    name, began = case["id"], time.perf_counter()
    chosen: Any = method
    if name == "medical_akzo" and method in ("radau5", "bdf"):
        chosen = dataclasses.replace(cast(Any, method_by_name(method)), structure=Banded(2, 2))
    bound = 1.0
    try:
        if case["kind"] == "events":
            sol, error = bouncing(case, method, check)
        else:
            bound = bound_of(check, method)
            solve = batch if case["kind"] == "batch" else single
            sol, error = solve(case, chosen, check, f)
    except Exception as problem:
        return Line(name, method, check["rtol"], torch.inf, 0, 0.0, repr(problem)[:80])
    seconds, steps = time.perf_counter() - began, int(sol.stats.n_accepted.max())
    if bool(sol.status.any()):
        row = int(sol.status.ne(int(Status.SUCCESS)).int().argmax())
        return Line(name, method, check["rtol"], torch.inf, steps, seconds, sol.message(row)[:80])
    share = error / bound
    return Line(name, method, check["rtol"], share, steps, seconds, "too far off" * (share > 1))


def main() -> None:
    """Print the table, and how many lines are as they should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--only", nargs="+", help="cases")
    parser.add_argument("--stiff", action="store_true", help="stiff, event and batch cases only")
    parser.add_argument("--coarsest", type=float, default=1.0, help="largest rtol")
    parser.add_argument("--finest", type=float, default=0.0, help="smallest rtol")
    parser.add_argument("--failing", action="store_true", help="print what is not met only")
    options = parser.parse_args()
    print(describe_machine(["torch"]))
    known = fields()
    paths = [path for part in PARTS for path in sorted((REFERENCE / part).glob("*.json"))]
    lines: list[Line] = []
    for path in paths:
        case = json.loads(path.read_text())
        if (options.only and path.stem not in options.only) or case["kind"] == "blow-up":
            continue
        if options.stiff and not (case["stiff"] or case["kind"] in ("batch", "events")):
            continue
        for method in options.methods:
            for check in case["checks"]:
                if suits(check, method) and options.finest <= check["rtol"] <= options.coarsest:
                    lines.append(run(case, method, check, known.get(path.stem)))
                    print(".", end="", flush=True)
    shown = [line for line in lines if line.word or not options.failing]
    print()
    print_table(
        ("case", "method", "rtol", "ratio to bound", "steps", "s", ""),
        [
            (line.case, line.method, f"{line.rtol:g}", f"{line.share:.3f}", str(line.steps),
             f"{line.seconds:.1f}", line.word)
            for line in shown
        ],
    )  # fmt: skip
    good = sum(not line.word for line in lines)
    print(f"{good} of {len(lines)} met")


if __name__ == "__main__":
    main()
