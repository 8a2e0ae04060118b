"""What every sample problem must give, checked over the whole catalogue."""

import dataclasses
import json
import re

import pytest
import torch

from sample_problems.base import SampleProblem
from sample_problems.catalogue import UnknownProblem, load, problem_by_name, problems
from solver import Status, solve_ivp
from solver.catalogue import controller_by_name, methods
from solver.errors import InvalidArgument, InvalidType

EXPECTED = {
    "arenstorf", "blow_up", "bouncing_ball", "brusselator_1d", "cahn_hilliard_hnn", "discontinuous",
    "duffing", "fitzhugh_nagumo", "flame", "flow_gaussians", "flow_two_moons", "heat_1d",
    "henon_heiles",
    "kdv_hnn", "kdv_soliton", "kepler", "lorenz", "lotka_volterra", "neural_ode", "neural_spiral",
    "pleiades", "robertson", "thermostat", "van_der_pol",
}  # fmt: skip

every = pytest.mark.parametrize("cls", problems().values(), ids=list(problems()))


def times(problem: SampleProblem, batch: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Return a time within the span for each row."""
    return torch.linspace(problem.t0, problem.t1, batch + 2, dtype=dtype)[1:-1]


def test_the_catalogue_holds_what_is_promised():
    assert set(problems()) >= EXPECTED


@every
def test_it_tells_what_it_is(cls):
    told = json.loads(json.dumps(cls.describe()))
    assert told["name"] == cls.name == cls.name.lower()
    for text in ("title", "question", "latex", "source"):
        assert len(told[text]) > 10, text
    assert told["question"].endswith("?")
    assert re.search(r"\d{4}", told["source"]) or "Hairer" in told["source"]
    assert told["latex"].count("{") == told["latex"].count("}")
    assert told["dim"] == len(told["components"]) == len(set(told["components"]))
    if told["phase"] is not None:
        assert all(0 <= index < told["dim"] for index in told["phase"])
    else:
        assert told["dim"] == 1
    assert told["method"] in methods()
    assert told["t1"] > told["t0"]
    assert told["spread"]["parameter"] in told["spread_choices"]


@every
def test_every_parameter_has_bounds_and_help(cls):
    for setting in cls.describe()["parameters"]:
        assert len(setting["help"]) > 2
        if setting["type"] == "float":
            assert setting["low"] <= setting["default"] <= setting["high"]
            with pytest.raises(InvalidArgument, match=setting["name"]):
                cls(**{setting["name"]: setting["high"] * 1.01 + 1})


@every
def test_presets_differ_and_can_be_run(cls):
    presets = cls.describe()["presets"]
    assert len({json.dumps(preset["spec"]) for preset in presets}) == len(presets) >= 3
    assert len({preset["name"] for preset in presets}) == len(presets)
    for preset in presets:
        spec = dict(preset["spec"])
        assert preset["title"]
        chosen = dict(spec.pop("controller", {"name": "pid"}))
        assert controller_by_name(chosen.pop("name"), chosen)
        assert spec.pop("method", "tsit5") in methods()
        assert spec.pop("stepping", "joint") in ("independent", "joint")
        cls(**spec.pop("parameters", {}))
        assert set(spec) <= {"rtol", "atol"}


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_dtypes_and_finite_values(cls, dtype):
    built = cls().build(batch=3, dtype=dtype)
    dim = len(cls.components)
    assert built.y0.shape == (3, dim)
    assert built.y0.dtype == dtype
    assert built.y0.isfinite().all()
    assert list(built.parameters) == cls.spread_choices()
    assert all(p.shape == (3,) and p.dtype == dtype for p in built.parameters.values())
    for t in (times(built.problem, 3, dtype), times(built.problem, 3)):  # time may be wider
        slope = built.f(t, built.y0, built.args)
        assert slope.shape == (3, dim)
        assert slope.dtype == dtype
        assert slope.isfinite().all()


@every
def test_rows_do_not_see_each_other(cls):
    built = cls().build(batch=5, seed=3)
    t = times(built.problem, 5)
    together = built.f(t, built.y0, built.args)
    for row in range(5):
        alone = built.f(
            t[row : row + 1],
            built.y0[row : row + 1],
            {name: value[row : row + 1] for name, value in built.args.items()},
        )
        # a product of matrices rounds otherwise for one row
        size = max(1.0, together.abs().max().item())
        torch.testing.assert_close(alone[0], together[row], rtol=1e-12, atol=2e-12 * size)


@every
def test_one_bad_row_spoils_no_other(cls):
    built = cls().build(batch=3)
    t = times(built.problem, 3)
    good = built.f(t, built.y0, built.args)
    y = built.y0.clone()
    y[1] = torch.nan
    spoilt = built.f(t, y, built.args)
    assert torch.equal(spoilt[[0, 2]], good[[0, 2]])


@every
def test_a_seed_fixes_the_start_in_every_dtype(cls):
    one, again, other = (cls().build(seed=seed) for seed in (4, 4, 5))
    assert torch.equal(one.y0, again.y0)
    assert one.y0.dtype == torch.float64
    narrow = cls().build(seed=4, dtype=torch.float32)
    assert torch.equal(narrow.y0, one.y0.float())
    if cls.name in ("lorenz", "duffing", "henon_heiles", "heat_1d", "neural_ode"):
        assert not torch.equal(one.y0, other.y0)


@every
def test_spread_values_run_from_low_to_high(cls):
    spread = cls.spread
    built = cls().build(batch=9)
    values = built.parameters[spread["parameter"]]
    assert values[0] == pytest.approx(spread["low"], rel=1e-12, abs=1e-15)
    assert values[-1] == pytest.approx(spread["high"])
    assert (values.diff() > 0).all()
    steps = values.log().diff() if spread["scale"] == "log" else values.diff()
    torch.testing.assert_close(steps, steps[:1].expand(8), rtol=1e-9, atol=1e-12)
    for name in set(built.parameters) - {spread["parameter"]}:
        assert (built.parameters[name] == getattr(built.problem, name)).all()
    same = cls().build(batch=4, spread=None).parameters[spread["parameter"]]
    assert (same == getattr(cls(), spread["parameter"])).all()
    one = cls().build(batch=1).parameters[spread["parameter"]]
    assert spread["low"] < one.item() < spread["high"]


@every
def test_gradients_flow_to_state_and_parameters(cls):
    built = cls().build(batch=2, seed=1)
    t = times(built.problem, 2)
    y = built.y0.clone().requires_grad_()
    p = {name: value.clone().requires_grad_() for name, value in built.parameters.items()}
    start = built.problem.start(p, torch.Generator().manual_seed(1))
    (built.f(t, y, p).square().sum() + start.square().sum()).backward()
    assert y.grad is not None
    assert y.grad.isfinite().all()
    for name, value in p.items():
        if name in ("period", "e", "band"):  # moves jumps or is used at events only
            continue
        assert value.grad is not None, name
        assert value.grad.isfinite().all(), name


@every
def test_it_solves_with_its_own_settings(cls):
    problem = cls()
    built = problem.build(batch=min(cls.batch, 8))
    sol = solve_ivp(
        built.f, built.y0, t0=built.t0, t1=built.t1, args=built.args, jump_t=built.jump_t,
        method=cls.method, rtol=cls.rtol, atol=cls.atol, max_steps=5000,
    )  # fmt: skip
    if cls.name == "blow_up":
        fails = built.y0[:, 0] * built.t1 >= 1
        assert fails.any()
        assert not fails.all()
        assert ((sol.status != Status.SUCCESS) == fails).all()
        torch.testing.assert_close(
            sol.t_reached[fails], 1 / built.y0[fails, 0], rtol=1e-2, atol=0.0
        )
    else:
        assert (sol.status == Status.SUCCESS).all(), sol.message(0)
        assert sol.ys.isfinite().all()


@every
def test_its_exact_solution_if_it_has_one_is_met(cls):
    problem = cls(announce_jumps=True) if cls.name == "discontinuous" else cls()
    built = problem.build(batch=4)
    end = torch.full((4,), 0.45 * built.t1, dtype=torch.float64)
    exact = problem.exact(end, built.y0, built.args)
    if exact is None:
        return
    sol = solve_ivp(
        built.f, built.y0, t0=built.t0, t1=end, args=built.args, jump_t=built.jump_t,
        method="dopri8", rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    sol.raise_if_failed()
    torch.testing.assert_close(sol.ys[:, -1], exact, rtol=1e-6, atol=1e-7)


@every
def test_settings_rebuild_the_problem(cls):
    problem = cls()
    assert problem_by_name(cls.name, problem.settings()) == problem
    assert dataclasses.is_dataclass(problem)


@pytest.mark.parametrize(
    ("spread", "message"),
    [
        ({"parameter": "nu", "low": 1, "high": 2}, "spread parameter 'nu': van_der_pol has mu"),
        ({"parameter": "mu", "low": 3, "high": 2}, "spread of mu from 3 to 2"),
        ({"parameter": "mu", "low": -3, "high": 2}, "must rise and lie in 0.0 to 1000.0"),
        ({"parameter": "mu", "low": 0, "high": 2, "scale": "log"}, "above 0 with scale 'log'"),
        ({"parameter": "mu", "low": 1, "high": 2, "scale": "cubic"}, "'linear' or 'log'"),
        ({"parameter": "mu", "low": 1, "high": float("nan")}, "from 1 to nan"),
    ],
)
def test_a_spread_that_makes_no_sense_is_refused(spread, message):
    with pytest.raises(InvalidArgument, match=message):
        problem_by_name("van_der_pol").build(spread=spread)


def test_other_bad_input_is_named():
    problem = problem_by_name("van_der_pol")
    with pytest.raises(InvalidArgument, match="batch=0"):
        problem.build(batch=0)
    with pytest.raises(InvalidType, match="must be a whole number"):
        problem.build(batch=2.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidType, match="must be a floating"):
        problem.build(dtype=torch.int64)
    with pytest.raises(UnknownProblem, match="did you mean 'van_der_pol'"):
        problem_by_name("vanderpol")
    with pytest.raises(InvalidArgument, match="no parameter 'nu': it has mu"):
        problem_by_name("van_der_pol", {"nu": 1.0})


OWN = '''
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch

from sample_problems.base import SampleProblem
from solver.bounds import Bounds, Help


@dataclass(frozen=True, kw_only=True)
class Decay(SampleProblem):
    """My own."""

    name: ClassVar = "decay"
    title: ClassVar = "Decay"
    question: ClassVar = "How fast?"
    latex: ClassVar = "y' = -k y"
    source: ClassVar = "mine, 2026"
    components: ClassVar = ("y",)
    t1: ClassVar = 1.0
    spread: ClassVar = {"parameter": "rate", "low": 0.1, "high": 2.0, "scale": "log"}

    rate: Annotated[float, Bounds(0.0, 10.0), Help("rate")] = 1.0

    def field(self, t, y, p):
        return -p["rate"][:, None] * y

    def start(self, p, generator):
        return torch.ones_like(p["rate"])[:, None]
'''


def test_a_problem_of_ones_own_is_loaded_from_its_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    for where in (f"{path}:Decay", str(path)):
        cls = load(where)
        assert cls.describe()["name"] == "decay"
    problem = problem_by_name(f"{path}:Decay", {"rate": 2.0})
    built = problem.build(batch=3, spread=None)
    sol = solve_ivp(built.f, built.y0, t0=0.0, t1=1.0, args=built.args, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(sol.ys[:, 0], torch.full((3, 1), -2.0).double().exp())
    assert "decay" not in problems()


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        (None, "{path}:Decay", "there is no file"),
        (OWN, "{path}:Growth", "no complete SampleProblem 'Growth', it has Decay"),
        ("x = 1", "{path}", "name one of its classes"),
        (
            OWN.replace('    latex: ClassVar = "y\' = -k y"\n', ""),
            "{path}:Decay",
            "'latex' is missing",
        ),
        (OWN.replace("def start", "def begin"), "{path}:Decay", "it has none"),
    ],
)
def test_a_file_that_is_no_problem_is_named(tmp_path, text, where, message):
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidArgument, match=message):
        load(where.format(path=path))
