"""Kernels of methods with a Jacobian: derivatives of every operation, pivots, what is refused."""

import pytest
import torch

from solver import Status, solve_ivp
from solver.methods.rodas4 import Rodas4

Y0 = torch.tensor([[0.3, 0.7], [0.5, -0.2], [0.9, 0.4], [-0.6, 0.1], [0.2, -0.8]]).double()


def both(f, y0=Y0, method="rodas4", **kwargs):
    given = {"t0": 0.0, "t1": 1.0, "rtol": 1e-6, "atol": 1e-8} | kwargs
    return [solve_ivp(f, y0, method=method, engine=e, **given) for e in ("plain", "compiled")]


def assert_same(plain, compiled, tolerance=1e-10):
    assert compiled.stats.engine == "compiled"
    assert torch.equal(plain.status, compiled.status)
    for name in ("n_steps", "n_accepted", "n_f_evals", "n_jac_evals", "n_newton_iterations"):
        assert torch.equal(plain.stats[name], compiled.stats[name]), name
    close = {"rtol": tolerance, "atol": tolerance, "equal_nan": True}
    torch.testing.assert_close(plain.ys, compiled.ys, **close)


FUNCTIONS = {
    "exp": lambda x: (-x).exp(),
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log": lambda x: (x + 3).log(),
    "log2": lambda x: (x + 3).log2(),
    "log10": lambda x: (x + 3).log10(),
    "log1p": lambda x: (x + 1.5).log1p(),
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": lambda x: (0.5 * x).tan(),
    "asin": lambda x: (0.4 * x).asin(),
    "acos": lambda x: (0.4 * x).acos(),
    "atan": torch.atan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": lambda x: (3 * x).tanh(),
    "asinh": torch.asinh,
    "acosh": lambda x: (x + 4).acosh(),
    "atanh": lambda x: (0.3 * x).atanh(),
    "erf": torch.erf,
    "erfc": torch.erfc,
    "sqrt": lambda x: (x + 3).sqrt(),
    "rsqrt": lambda x: (x + 3).rsqrt(),
    "abs": lambda x: (x + 0.05).abs(),
    "sigmoid": torch.sigmoid,
    "silu": torch.nn.functional.silu,
    "softplus": torch.nn.functional.softplus,
    "gelu": torch.nn.functional.gelu,
    "power": lambda x: (x + 3) ** 1.7,
    "cube": lambda x: x**3,
    "exponent": lambda x: 1.3**x,
    "both": lambda x: (x * x + 1) ** (0.3 * x),
    "quotient": lambda x: x / (2 + x * x),
    "angle": lambda x: torch.atan2(x + 2, 1 + x * x),
    "where": lambda x: torch.where(x > 0.1, x * x, 0.01 - x),
    "clamp": lambda x: x.clamp(-0.45, 0.35),
    "maximum": lambda x: torch.maximum(x, 0.2 - x),
    "minimum": lambda x: torch.minimum(x * x, x + 0.3),
    "softmax": lambda x: x.softmax(dim=1),
    "norm": lambda x: x / (0.1 + x.norm(dim=1, keepdim=True)),
    "floor": lambda x: x + (5 * x).floor() * 0.0,
    "narrow": lambda x: x.float().sin().double(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_autograd(name):
    g = FUNCTIONS[name]
    tolerance = 1e-5 if name == "narrow" else 1e-10

    def field(t, y):
        return g(y).flip(1) * torch.cos(t)[:, None] - 40 * y

    if name == "narrow":  # float32 inside: steps differ by rounding
        plain, compiled = both(field, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(plain.ys, compiled.ys, rtol=tolerance, atol=tolerance)
    else:
        assert_same(*both(field), tolerance)


def test_a_network_is_differentiated_as_products():
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(4, 24), torch.nn.Tanh(), torch.nn.Linear(24, 4))
    net.requires_grad_(False)
    y0 = torch.randn(21, 4)
    assert_same(*both(lambda t, y: net(y) - 30 * y * torch.sin(t)[:, None], y0))


def test_rows_are_exchanged_where_a_pivot_is_zero():
    # The first step makes the leading entries of 1 - h gamma J vanish one after the other.
    size = 1 / (0.125 * (1 - 1 / 2**0.5))
    matrix = torch.tensor([
        [size, 1.0, 0.5],
        [2.0, size, -1.0],
        [-1.0, 3.0, size],
    ])  # fmt: skip
    plain, compiled = both(
        lambda t, y: y @ matrix.t(),
        torch.ones(3, 3),
        "ros2",
        t1=0.25,
        dt0=0.125,
        rtol=1.0,
        atol=1e6,
    )
    assert plain.stats.n_rejected.max() == 0  # so the first one was solved, and accepted
    assert_same(plain, compiled, 1e-9)


def test_a_singular_matrix_fails_its_row_alone():
    # h gamma lambda = 1 exactly in one row: its step is refused, the others do not notice.
    gamma = 1 - 1 / 2**0.5
    rate = torch.tensor([1.0, 1 / (0.5 * gamma), -1.0])
    plain, compiled = both(
        lambda t, y: rate[:, None] * y, torch.ones(3, 1), "ros2", dt0=0.5, rtol=1e-3, atol=1e-3
    )
    assert torch.equal(plain.status, compiled.status)
    assert torch.equal(plain.stats.n_steps, compiled.stats.n_steps)


def test_outputs_and_dense_output_are_the_same():
    times = torch.linspace(0.0, 1.0, 13)

    def field(t, y):
        return -50 * (y - torch.cos(3 * t)[:, None]) + y.flip(1)

    plain, compiled = both(field, t0=None, t1=None, t_eval=times, dense=True)
    assert_same(plain, compiled)
    at = torch.linspace(0.03, 0.97, 29)
    torch.testing.assert_close(plain.dense(at), compiled.dense(at), rtol=1e-9, atol=1e-9)


def robertson(t, y, rates):
    a, b, c = y.unbind(1)
    first, second, third = rates[:, 0] * a, 3e7 * b * b, 1e4 * b * c
    return torch.stack([third - first, first - second - third, second], 1)


@pytest.mark.parametrize(
    ("method", "dtype", "times"),
    [
        ("trbdf2", torch.float64, {"t0": 0.0, "t1": 40.0}),
        ("kvaerno4", torch.float64, {"t_eval": torch.logspace(-3, 3, 11).double()}),
        ("kencarp3", torch.float64, {"t_eval": torch.linspace(0, 4e3, 9).double(), "dense": True}),
        ("kvaerno5", torch.float32, {"t0": 0.0, "t1": 40.0}),
    ],
)
def test_newtons_iteration_goes_as_in_the_plain_loop(method, dtype, times):
    # From a Jacobian kept for many steps to one for each, by rates over six decades.
    rates = (0.04 * torch.logspace(-3, 3, 13)).to(dtype)[:, None]
    y0 = torch.tensor([[1.0, 0.0, 0.0]], dtype=dtype).repeat(13, 1)
    tolerance = {"rtol": 1e-4, "atol": 1e-8} if dtype == torch.float64 else {}
    plain, compiled = (
        solve_ivp(robertson, y0, args=rates, method=method, engine=engine, **tolerance, **times)
        for engine in ("plain", "compiled")
    )
    assert (plain.status == 0).all()
    if dtype == torch.float64:
        assert_same(plain, compiled, 1e-9)
        assert (plain.stats.n_jac_evals < plain.stats.n_accepted).any()
        assert plain.stats.n_rejected.any()
    else:  # rounding decides otherwise now and then
        assert compiled.stats.engine == "compiled"
        torch.testing.assert_close(plain.ys, compiled.ys, rtol=1e-3, atol=1e-4)
        more = compiled.stats.n_steps.sum() / plain.stats.n_steps.sum()
        assert 0.9 < more < 1.1
    if plain.dense is not None:
        at = torch.linspace(10.0, 3900.0, 23)
        torch.testing.assert_close(plain.dense(at), compiled.dense(at), rtol=1e-9, atol=1e-9)


def test_a_row_whose_equations_cannot_be_solved_fails_alone():
    def field(t, y, args):  # which jumps over zero where it should vanish
        return -y + torch.where(args[:, :1] > 0, -1e6 * torch.sign(y - 0.5), 0.0)

    hard = torch.tensor([[0.0], [1.0], [0.0]])
    plain, compiled = (
        solve_ivp(
            field, torch.ones(3, 1), t0=0.0, t1=1.0, args=hard, method="kvaerno3", engine=engine,
            dt0=0.1, dt_min=1e-4,
        )
        for engine in ("plain", "compiled")
    )  # fmt: skip
    assert plain.status.tolist() == compiled.status.tolist()
    assert plain.status.tolist() == [0, int(Status.NOT_CONVERGED), 0]
    assert_same(plain, compiled)


@pytest.mark.parametrize(
    ("method", "dim", "why"),
    [
        (Rodas4(jacobian=lambda t, y: -torch.eye(2).expand(len(y), 2, 2)), 2, "jacobian"),
        (Rodas4(linear="gmres"), 2, "gmres"),
        ("rodas4", 25, "at most 24"),
        ("kvaerno5", 9, "at most 8"),
        ("bdf", 2, "'bdf' has no compiled form"),
    ],
)
def test_what_has_no_compiled_form_is_solved_plainly(method, dim, why):
    y0 = torch.ones(3, dim)
    with pytest.warns(RuntimeWarning, match=why):
        sol = solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0, method=method, engine="compiled")
    assert sol.stats.engine == "plain"
    torch.testing.assert_close(sol.ys[:, -1], y0 * torch.e**-1, rtol=1e-3, atol=1e-3)
