"""The same tableau, gains and tolerances take the same steps as in scipy, torchode and diffrax.

The counts of the peers were recorded once, with the versions named in `peer_steps/`; on the machine
that recorded them nearly all counts agree to the step, refused attempts included. Rounding may move
a few steps elsewhere, so 2 % of the steps, and never less than one, are allowed in a row.
"""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from scipy.integrate import solve_ivp as scipy_solve_ivp
from torch import Tensor

from solver import PID, Dopri5, Dopri8, solve_ivp
from solver.catalogue import controller_by_name

HERE = Path(__file__).parent


def load(name: str) -> ModuleType:
    """A module that lies beside this file."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


spreads = load("spreads")
FIELDS = spreads.equations.FIELDS
CASES = {path.stem: json.loads(path.read_text()) for path in sorted(HERE.glob("cases/*.json"))}
GAINS = {
    "i": {"kp": 0.0, "ki": 1.0, "kd": 0.0},
    "pi": {"kp": 0.3, "ki": 0.4, "kd": 0.0},
    "pid": {"kp": 0.2, "ki": 0.1, "kd": 0.0},
    "integral": {"kp": 0.0, "ki": 1.0, "kd": 0.0},  # of the batches
    "pid of the batches": {"kp": 0.2, "ki": 0.5, "kd": 0.0},
}


def peer_settings(peer: str, gains: str) -> dict[str, Any]:
    """Controller and first step that a peer has with these gains."""
    diffrax = peer == "diffrax"
    controller = PID(**GAINS[gains], never_shrink_on_accept=diffrax)
    return {"controller": controller} | ({"dt0": 0.01} if diffrax else {})


def assert_like(counts: Tensor, peers: list[int], share: float = 0.02) -> None:
    """Compare counts of rows with those of a peer."""
    theirs = torch.tensor(peers, dtype=torch.float64)
    allowed = (share * theirs).clamp_min(1.0)
    assert ((counts - theirs).abs() <= allowed).all(), (counts.tolist(), peers)


def solve_single(case: dict[str, Any], rtols: list[float], **settings: Any):
    """Solve a case once for each `rtol`, one a row, with atol = 1e-3 rtol or the case's own."""
    atols = {check["rtol"]: check["atol"] for check in case["checks"]}
    y0 = case["y0"]
    start = (
        torch.complex(torch.tensor(y0["re"]), torch.tensor(y0["im"]))
        if isinstance(y0, dict)
        else torch.tensor(y0)
    )
    with torch.no_grad():
        return solve_ivp(
            lambda t, y: FIELDS[case["id"]](t, y, **case["params"]),
            start.repeat(len(rtols), 1),
            t0=case["t0"],
            t1=case["t1"],
            rtol=torch.tensor(rtols)[:, None],
            atol=torch.tensor([atols.get(rtol, 1e-3 * rtol) for rtol in rtols])[:, None],
            **settings,
        )


with_scipy_methods = pytest.mark.parametrize(
    ("code", "method"),
    [("RK45", Dopri5(estimate="original")), ("DOP853", Dopri8())],
    ids=["RK45", "DOP853"],
)
# Recorded as a real system of twice the size, and with the other side taken at the jumps.
OTHERWISE_RECORDED = ["rabi", "detest_f2"]


@with_scipy_methods
@pytest.mark.parametrize(
    "name",
    [n for n, case in CASES.items() if case["kind"] != "batch" and n not in OTHERWISE_RECORDED],
)
def test_scipy_took_as_many_steps(name, code, method):
    case = CASES[name]
    recorded = {r["rtol"]: r for r in case["measured_steps"] if r["code"] == f"scipy 1.17 {code}"}
    sol = solve_single(case, list(recorded), method=method, controller=controller_by_name("scipy"))
    assert_like(sol.stats.n_accepted, [r["steps"] for r in recorded.values()])
    assert_like(sol.stats.n_f_evals, [r["nfev"] for r in recorded.values()], 0.04)


@with_scipy_methods
@pytest.mark.parametrize("name", OTHERWISE_RECORDED)
def test_scipy_takes_as_many_steps_of_a_complex_and_of_a_jumping_problem(name, code, method):
    case, rtols = CASES[name], [1e-3, 1e-6]
    sol = solve_single(case, rtols, method=method, controller=controller_by_name("scipy"))

    def field(t, y):
        now = torch.tensor([t], dtype=torch.float64)
        return FIELDS[name](now, torch.from_numpy(y)[None], **case["params"])[0].numpy()

    start = case["y0"]
    y0 = (
        [complex(*parts) for parts in zip(start["re"], start["im"], strict=True)]
        if isinstance(start, dict)
        else start
    )
    peers = [
        scipy_solve_ivp(
            field, (case["t0"], case["t1"]), y0, method=code, rtol=rtol, atol=1e-3 * rtol
        )
        for rtol in rtols
    ]
    # How many steps hunt for a jump hangs on the last bit of where the steps before it ended.
    near, near_evals = (0.1, 0.1) if case.get("discontinuities_t") else (0.02, 0.04)
    assert_like(sol.stats.n_accepted, [len(peer.t) - 1 for peer in peers], near)
    assert_like(sol.stats.n_f_evals, [peer.nfev for peer in peers], near_evals)


ORBITS = json.loads((HERE / "peer_steps" / "single_orbits.json").read_text())["runs"]


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(
            run,
            id="-".join(run[key] for key in ("peer", "case", "method", "gains")),
            marks=[pytest.mark.slow] if run["method"] == "tsit5" else [],
        )
        for run in ORBITS
    ],
)
def test_orbits_take_as_many_steps_as_in_torchode_and_diffrax(run):
    sol = solve_single(
        CASES[run["case"]],
        [1e-6, 1e-9],
        method=run["method"],
        **peer_settings(run["peer"], run["gains"]),
    )
    assert_like(sol.stats.n_accepted, [accepted for accepted, _ in run["counts"]])
    assert_like(sol.stats.n_steps, [sum(counts) for counts in run["counts"]])


BATCHES = [
    (peer, run)
    for peer in ("torchode", "diffrax")
    for run in json.loads((HERE / "peer_steps" / f"{peer}.json").read_text())["runs"]
]


@pytest.mark.parametrize(
    ("peer", "run"),
    [
        pytest.param(
            peer,
            run,
            id=f"{peer}-{run['problem']}-{run['method']}-{run['controller']}-{run['rtol']:.0e}",
            marks=[pytest.mark.slow] if run["rtol"] < 1e-6 and run["method"] == "tsit5" else [],
        )
        for peer, run in BATCHES
    ],
)
def test_every_row_of_a_batch_takes_as_many_steps_as_in_torchode_and_diffrax(peer, run):
    problem = spreads.SPREADS[run["problem"]]()
    gains = "integral" if run["controller"] == "integral" else "pid of the batches"
    with torch.no_grad():
        sol = solve_ivp(
            problem.field,
            problem.y0,
            t0=0.0,
            t1=problem.t1,
            method=run["method"],
            rtol=run["rtol"],
            atol=1e-3 * run["rtol"],
            **peer_settings(peer, gains),
        )
    assert not sol.status.any()
    assert_like(sol.stats.n_accepted, run["accepted"])
    assert_like(sol.stats.n_steps, run["attempts"], 0.05)
    assert sol.stats.n_accepted.sum().item() == pytest.approx(sum(run["accepted"]), rel=0.01)


def test_the_two_estimates_of_dopri5_take_steps_in_the_ratio_of_their_fifth_root():
    """Two thirds of the error allow (3/2)^(1/5) = 1.084 times the step."""
    sols = [
        solve_single(CASES["detest_d3"], [1e-9], method=Dopri5(estimate=name), controller="i")
        for name in ("shampine", "original")
    ]
    shampine, original = (sol.stats.n_accepted.item() for sol in sols)
    assert shampine / original == pytest.approx((2 / 3) ** 0.2, abs=0.01)
