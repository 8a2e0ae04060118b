"""A compiled solve takes the steps of the plain loop, and records the same numbers."""

import itertools

import pytest
import torch

from solver import Hook, Status, catalogue, solve_ivp

METHODS = sorted(
    name
    for name, cls in catalogue.methods().items()
    if cls.__mro__[1].__name__ in ("ExplicitRungeKutta", "Rosenbrock")
)
CONTROLLERS = ("integral", "pid", "h211b", "pi42", "h312pid", "hairer_dopri5", "scipy")
MU = torch.linspace(1.0, 10.0, 21, dtype=torch.float64)
Y0 = torch.stack([torch.linspace(-2, 2, 21), torch.linspace(1, -1, 21)], dim=1).double()


def van_der_pol(t, y):
    x, v = y.unbind(-1)
    return torch.stack((v, MU.to(y.dtype) * (1 - x * x) * v - x), dim=-1)


def wave(t, y):
    return torch.stack((y[:, 1], -MU * y[:, 0].sin() + t.cos()), dim=1)


class Grab(Hook):
    """Keeps every block."""

    wants_states = True

    def __init__(self):
        self.statistics = list(catalogue.statistics())
        self.blocks = []

    def on_steps(self, steps):
        columns = {name: steps.columns[name] for name in steps.columns}
        kept = {"t": steps.t, "dt": steps.dt, "ratio": steps.error_ratio, "y": steps.y}
        kept |= {"accepted": steps.accepted, "running": steps.running, **columns}
        self.engine, self.first = steps.solve.engine, [*getattr(self, "first", []), steps.first]
        self.blocks.append(kept)

    def all(self):
        return {name: torch.cat([b[name] for b in self.blocks]) for name in self.blocks[0]}


def options(name):
    method = catalogue.methods()[name]()
    return {"method": name} | ({"dt0": 0.03} if method.error_order is None else {})


def both(y0=Y0, f=van_der_pol, **kwargs):
    return [solve_ivp(f, y0, engine=engine, **kwargs) for engine in ("plain", "compiled")]


def assert_same(plain, compiled, tolerance=1e-9):
    assert torch.equal(plain.status, compiled.status)
    counts = ("n_steps", "n_accepted", "n_rejected", "n_f_evals", "n_jac_evals")
    for name in (*counts, "n_newton_iterations"):
        assert torch.equal(plain.stats[name], compiled.stats[name]), name
    close = {"rtol": tolerance, "atol": tolerance, "equal_nan": True}
    torch.testing.assert_close(plain.ys, compiled.ys, **close)
    torch.testing.assert_close(plain.t_reached, compiled.t_reached, rtol=1e-7, atol=1e-7)
    assert torch.equal(plain.component, compiled.component)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("times", ["end", "outputs", "backward"])
def test_every_method_takes_the_same_steps(name, times):
    given = {
        "end": {"t0": 0.0, "t1": 3.0},
        "outputs": {"t_eval": torch.linspace(0, 3, 17)},
        "backward": {"t_eval": torch.linspace(3, 1, 9), "f": wave},
    }[times]
    assert_same(*both(**given, **options(name), rtol=1e-6, atol=1e-6), tolerance=1e-8)


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_controller_takes_the_same_steps(controller):
    assert_same(*both(t0=0.0, t1=3.0, controller=controller, rtol=1e-5, atol=1e-7))


@pytest.mark.parametrize(
    ("name", "controller"),
    [
        ("dopri5", "pid"),
        ("bosh3", "h211b"),
        ("vern7", "pi42"),
        ("rk4", None),
        ("rodas4", "pid"),
        ("ros3p", "integral"),
    ],
)
def test_records_and_statistics_are_the_same(name, controller):
    records = []
    for engine in ("plain", "compiled"):
        grab = Grab()
        solve_ivp(
            van_der_pol, Y0, t0=0.0, t1=torch.linspace(0.5, 3, 21), hooks=[grab], engine=engine,
            controller=controller, dt_max=0.4, rtol=1e-5, atol=1e-5, **options(name),
        )  # fmt: skip
        assert grab.engine == engine
        lengths = [len(block["t"]) for block in grab.blocks]
        assert grab.first == [0, *itertools.accumulate(lengths)][:-1]
        records.append(grab.all())
    plain, compiled = records
    assert plain.keys() == compiled.keys()
    running = plain["running"]
    assert torch.equal(running, compiled["running"])
    assert torch.equal(plain["accepted"] & running, compiled["accepted"])
    for column, expected in plain.items():
        seen = compiled[column]
        assert seen.dtype == expected.dtype, column
        scale = 1e-3 if column not in ("t", "dt", "y") else 1e-6
        if column == "stiffness_real":  # of a pair of opposite ones rounding picks the larger
            seen, expected = seen.abs(), expected.abs()
        torch.testing.assert_close(seen[running], expected[running], rtol=scale, atol=scale)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("batch", [1, 16, 53, 160])
def test_a_record_is_whole_however_early_rows_end(batch, dtype):
    mu = torch.linspace(0.5, 8.0, batch, dtype=dtype)
    y0 = torch.stack([mu * 0 + 2.0, mu * 0], dim=1)
    spans = torch.linspace(0.0, 12.0, batch, dtype=dtype)[torch.randperm(
        batch, generator=torch.Generator().manual_seed(batch)
    )]  # fmt: skip
    if batch == 160:
        spans[:80] *= 0.01  # whole groups end at once
    records = []
    for engine in ("plain", "compiled"):
        grab = Grab()
        sol = solve_ivp(
            lambda t, y: torch.stack((y[:, 1], mu * (1 - y[:, 0] ** 2) * y[:, 1] - y[:, 0]), 1),
            y0, t0=0.0, t1=spans + (1.0 if batch == 1 else 0.0), rtol=1e-4, atol=1e-4,
            time_dtype=dtype, engine=engine, hooks=[grab],
        )  # fmt: skip
        records.append(grab.all())
    plain, compiled = records
    ran = compiled["running"]
    assert torch.equal(ran.sum(dim=0), sol.stats.n_steps)
    ended = {name: column[~ran] for name, column in compiled.items()}
    assert not ended["dt"].any()
    assert not ended["ratio"].any()
    assert not ended["accepted"].any()
    reached = (sol.t_reached if sol.t_reached.ndim else sol.t_reached[None]).to(dtype)
    assert torch.equal(compiled["t"][~ran], reached.expand_as(ran)[~ran])
    assert torch.equal(compiled["y"][~ran], sol.y_reached.expand(len(ran), batch, 2)[~ran])
    if dtype == torch.float32:  # whose rounding leads to other steps
        return
    assert torch.equal(plain["running"], ran)
    for name, column in plain.items():
        torch.testing.assert_close(compiled[name][ran], column[ran], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["tsit5", "vern7", "rk4"])
def test_dense_output_is_the_same(name):
    plain, compiled = both(t0=0.0, t1=2.0, dense=True, **options(name))
    at = torch.linspace(0, 2, 23)
    torch.testing.assert_close(plain(at), compiled(at), rtol=1e-8, atol=1e-8)
    assert_same(plain, compiled)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("time_dtype", [torch.float32, torch.float64])
def test_every_pair_of_dtypes_works(dtype, time_dtype):
    plain, compiled = both(
        Y0.to(dtype), t_eval=torch.linspace(0, 2, 5), rtol=1e-4, atol=1e-4, time_dtype=time_dtype
    )
    assert compiled.ys.dtype == dtype
    assert compiled.ts.dtype == time_dtype
    assert (plain.stats.n_steps - compiled.stats.n_steps).abs().max() <= 2
    torch.testing.assert_close(plain.ys, compiled.ys, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "tolerance",
    [
        {"rtol": 0.0, "atol": 1e-6},
        {"rtol": torch.tensor([1e-3, 1e-6]), "atol": 1e-8},
        {"rtol": torch.logspace(-3, -7, 21)[:, None], "atol": torch.logspace(-3, -7, 21)},
        {"rtol": 1e-4, "atol": torch.full((21, 2), 1e-5)},
        {"rtol": 1e-4, "atol": 0.0},
    ],
)
def test_every_shape_of_tolerance_works(tolerance):
    assert_same(*both(t0=0.0, t1=2.0, **tolerance))


def test_rows_fail_alone_with_their_own_status():
    def f(t, y):
        return torch.where(t[:, None] > 1.5, torch.nan, y * y)

    y0 = torch.tensor([[2.0], [0.1], [-1.0], [torch.nan], [0.5]], dtype=torch.float64)
    t1 = torch.tensor([1.0, 1.0, 2.0, 1.0, 0.0], dtype=torch.float64)
    plain, compiled = both(y0, f, t0=0.0, t1=t1)
    assert torch.equal(plain.status, compiled.status)
    assert torch.equal(plain.component, compiled.component)
    assert (plain.stats.n_steps - compiled.stats.n_steps).abs().max() <= 5  # a pole magnifies all
    ends = [sol.y_reached[[1, 3, 4]] for sol in (plain, compiled)]
    torch.testing.assert_close(*ends, equal_nan=True)
    expected = (Status.TIME_RESOLUTION, Status.NON_FINITE)
    assert compiled.status[0] in expected
    assert compiled.status[1:].tolist() == [
        Status.SUCCESS, Status.NON_FINITE, Status.NON_FINITE_START, Status.SUCCESS,
    ]  # fmt: skip


@pytest.mark.parametrize("limits", [{"max_steps": 7}, {"dt_min": 0.05}, {"dt_max": 0.02}])
def test_limits_end_or_hold_rows_alike(limits):
    limit = limits.get("max_steps")
    if limit:
        limits = {"max_steps": torch.arange(1, 22)}
    assert_same(*both(t0=0.0, t1=2.0, rtol=1e-6, atol=1e-8, **limits))


@pytest.mark.parametrize("batch", [1, 2, 7, 8, 16, 17, 33, 400])
def test_a_row_is_the_same_in_every_batch(batch):
    y0 = Y0[3].expand(batch, 2)
    mu = torch.tensor(2.0, dtype=torch.float64)

    def f(t, y):
        x, v = y.unbind(-1)
        return torch.stack((v, mu * (1 - x * x) * v - x), dim=-1)

    sol = solve_ivp(f, y0, t0=0.0, t1=5.0, engine="compiled")
    alone = solve_ivp(f, y0[:1], t0=0.0, t1=5.0, engine="compiled")
    assert torch.equal(sol.ys, alone.ys.expand_as(sol.ys))
    assert torch.equal(sol.stats.n_steps, alone.stats.n_steps.expand(batch))


def test_an_empty_batch_and_a_span_of_length_zero_are_solved():
    for y0, t1 in ((Y0[:0], 1.0), (Y0, 0.0)):
        sol = solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=t1, engine="compiled")
        assert sol.success.all()
        assert torch.equal(sol.ys[:, 0], y0)


def test_rows_that_are_done_cost_nothing():
    rates = torch.ones(256)
    rates[::64] = 100.0

    def f(t, y):
        return rates[:, None] * torch.stack((y[:, 1], -y[:, 0]), dim=-1)

    y0 = torch.rand(256, 2)
    left_out, kept = (
        solve_ivp(f, y0, t0=0.0, t1=10.0, engine="compiled", regroup=regroup)
        for regroup in (True, False)
    )
    assert torch.equal(left_out.ys, kept.ys)
    assert left_out.stats.n_rows_evaluated < 1.2 * left_out.stats.n_f_evals.sum()
    assert kept.stats.n_rows_evaluated > 10 * kept.stats.n_f_evals.sum()
