"""Jacobians that are declared sparse, or never made: the same solutions, for fewer products."""

from typing import Any

import pytest
import torch

from sample_problems.brusselator_2d import Brusselator2D
from solver import solve_ivp
from solver.errors import InvalidArgument, InvalidType
from solver.implicit.krylov import Accuracy, gmres
from solver.implicit.linear import Dense
from solver.implicit.newton import Newton
from solver.implicit.structure import Banded, Pattern, diagonal
from solver.methods.bdf import BDF
from solver.methods.kvaerno5 import Kvaerno5
from solver.methods.radau5 import Radau5
from solver.methods.rodas5p import Rodas5P

F64 = torch.float64
CLASSES = [Rodas5P, Kvaerno5, Radau5, BDF]
ENDS = torch.tensor([0.05, 0.1, 0.2], dtype=F64)


def heat(t, y):
    """A line of D points whose ends are kept at 0, heated where it is warm."""
    wide = torch.nn.functional.pad(y, (1, 1))
    laplace = wide[:, :-2] - 2 * y + wide[:, 2:]
    return (y.shape[1] + 1) ** 2 * laplace + torch.sin(t)[:, None] * y


def bump(dim):
    x = torch.arange(1, dim + 1, dtype=F64) / (dim + 1)
    return torch.sin(torch.pi * x) * torch.tensor([[1.0], [2.0], [3.0]], dtype=F64)


@pytest.mark.parametrize("dtype", [F64, torch.complex128])
@pytest.mark.parametrize(
    ("dim", "lower", "upper"), [(1, 0, 0), (5, 0, 0), (7, 1, 1), (23, 2, 1), (6, 7, 2), (64, 8, 8)]
)
def test_a_banded_system_is_solved_as_a_dense_one(dim, lower, upper, dtype):
    inside = torch.ones(dim, dim, dtype=F64).tril(upper).triu(-lower)
    dense = torch.randn(3, dim, dim, dtype=F64) * inside
    banded = Banded(lower, upper).from_dense(dense)
    v, rhs = torch.randn(3, dim, dtype=F64), torch.randn(3, dim, dtype=dtype)
    h = 0.1 * torch.rand(3, dtype=F64).to(dtype) * (1 + 0.5j if dtype.is_complex else 1)
    torch.testing.assert_close(banded.times(v), Dense(dense).times(v))
    torch.testing.assert_close(banded.shifted(h).solve(rhs), Dense(dense).shifted(h).solve(rhs))


@pytest.mark.parametrize("cls", CLASSES)
def test_a_declared_structure_changes_neither_steps_nor_solution(cls):
    dim = 40
    mask = torch.ones(dim, dim).tril(1).triu(-1).bool()
    options: Any = {"t0": 0.0, "t1": ENDS, "rtol": 1e-6, "atol": 1e-9}
    with torch.no_grad():
        full = solve_ivp(heat, bump(dim), method=cls(), **options)
        for structure in (Banded(1, 1), Pattern(mask)):
            sol = solve_ivp(heat, bump(dim), method=cls(structure=structure), **options)
            torch.testing.assert_close(sol.ys, full.ys, rtol=1e-10, atol=1e-12)
            assert torch.equal(sol.stats.n_steps, full.stats.n_steps)


@pytest.mark.parametrize("cls", CLASSES)
def test_systems_are_solved_without_a_matrix(cls):
    options: Any = {"t0": 0.0, "t1": ENDS, "rtol": 1e-6, "atol": 1e-9}
    with torch.no_grad():
        full = solve_ivp(heat, bump(24), method=cls(), **options)
        sol = solve_ivp(heat, bump(24), method=cls(linear="gmres"), **options)
    assert sol.success.all()
    torch.testing.assert_close(sol.ys, full.ys, rtol=1e-5, atol=1e-6)
    assert (sol.stats.n_f_evals > full.stats.n_f_evals).all()  # products are counted


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("settings", [{"structure": Banded(1, 1)}, {"linear": "gmres"}], ids=str)
def test_complex_states_in_float32_and_backward(cls, settings):
    y0 = torch.tensor([[1 + 1j, 2, 0.5j, 1.0]], dtype=torch.complex64)

    def f(t, y):
        return 30j * (y.roll(1, 1) - 2 * y + y.roll(-1, 1)) * torch.tensor([0.0, 1, 1, 0]) - y

    options: Any = {"t0": 0.2, "t1": 0.0, "rtol": 1e-4, "atol": 1e-5}
    with torch.no_grad():
        wanted = solve_ivp(f, y0, method=cls(), **options).ys
        sol = solve_ivp(f, y0, method=cls(**settings), **options)
    assert sol.success.all()
    torch.testing.assert_close(sol.ys, wanted, rtol=3e-3, atol=3e-3)


@pytest.mark.parametrize("cls", [Rodas5P, Kvaerno5])
@pytest.mark.parametrize("adjoint", ["backprop", "symplectic"])
@pytest.mark.parametrize("settings", [{"structure": Banded(1, 1)}, {"linear": "gmres"}], ids=str)
def test_gradients_do_not_depend_on_how_systems_are_solved(cls, adjoint, settings):
    y0 = bump(12)
    rate = torch.tensor([[1.0], [3.0], [0.5]], dtype=F64)

    def gradients(method):
        leaves = [y0.clone().requires_grad_(), rate.clone().requires_grad_()]
        sol = solve_ivp(
            lambda t, y: 0.05 * heat(t, y) - leaves[1] * y**3, leaves[0], t0=0.0, t1=0.2,
            method=method, controller="fixed", dt0=0.04, adjoint=adjoint,
        )  # fmt: skip
        return torch.autograd.grad((sol.ys**2).sum(), leaves)

    for got, wanted in zip(gradients(cls(**settings)), gradients(cls()), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-11)


def test_products_and_colours_are_as_few_as_declared():
    calls, dim = 0, 30

    def f(t, y):  # autograd cannot follow: each product is a call
        nonlocal calls
        calls += 1
        return heat(t, y.detach())

    counts = []
    for structure in (None, Banded(1, 1), diagonal()):
        calls = 0
        method = Kvaerno5(structure=structure)
        solve_ivp(f, bump(dim), t0=0.0, t1=1e-4, method=method, dt0=1e-4, max_steps=1, rtol=1e-2)
        counts.append(calls)
    assert counts[0] - counts[1] == dim - 3
    assert counts[1] > counts[2]


def test_a_jacobian_of_ones_own_may_be_given_in_bands():
    dim = 50
    scale = (dim + 1) ** 2

    def bands(t, y):
        off = torch.full((len(y), dim), float(scale), dtype=F64)
        left, right = off.clone(), off.clone()
        left[:, 0], right[:, -1] = 0, 0
        return torch.stack([left, -2 * off + torch.sin(t)[:, None], right], dim=1)

    options: Any = {"t0": 0.0, "t1": ENDS, "rtol": 1e-6, "atol": 1e-9}
    with torch.no_grad():
        own = solve_ivp(
            heat, bump(dim), method=Rodas5P(jacobian=bands, structure=Banded(1, 1)), **options
        )
        auto = solve_ivp(heat, bump(dim), method="rodas5p", **options)
    torch.testing.assert_close(own.ys, auto.ys, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize(
    "method",
    [Kvaerno5(structure=Banded(1, 1)), Rodas5P(structure=Banded(1, 1)), Rodas5P()],
    ids=str,
)
def test_two_thousand_components_need_no_dense_jacobian(method, monkeypatch):
    """The heat equation on 2048 points; a dense Jacobian would have 32 MiB a row.

    That its entries lie in a band is found where it is not declared.
    """
    monkeypatch.setattr(Dense, "__init__", None)
    dim, t1 = 2048, 0.1
    y0 = bump(dim)[:1]
    third = torch.sin(3 * torch.pi * torch.arange(1, dim + 1, dtype=F64) / (dim + 1))[None]
    with torch.no_grad():
        sol = solve_ivp(
            lambda t, y: heat(t * 0, y), y0 + third, t0=0.0, t1=t1, method=method, rtol=1e-4,
            atol=1e-7,
        )  # fmt: skip
    assert sol.success.all()
    waves = torch.tensor([1.0, 3.0], dtype=F64)
    rates = 4 * (dim + 1) ** 2 * torch.sin(waves * torch.pi / (2 * dim + 2)) ** 2
    exact = y0 * torch.exp(-rates[0] * t1) + third * torch.exp(-rates[1] * t1)
    torch.testing.assert_close(sol.ys[:, 0], exact, rtol=1e-3, atol=1e-4)
    assert sol.stats.n_f_evals[0] < 1000


def test_a_square_of_two_thousand_components_is_solved_by_products(monkeypatch):
    """Brusselator in two dimensions, periodic: its entries lie in no band."""
    monkeypatch.setattr(Dense, "__init__", None)
    y0, args = Brusselator2D.ridges(32), {"alpha": torch.tensor([0.1], dtype=F64)}
    options: Any = {"t0": 0.0, "t1": 0.05, "args": args}
    with torch.no_grad():
        sol = solve_ivp(Brusselator2D().field, y0, method="kvaerno5", rtol=1e-3, **options)
        wanted = solve_ivp(Brusselator2D().field, y0, method="rkc2", rtol=1e-6, **options)
    assert sol.success.all()
    torch.testing.assert_close(sol.ys, wanted.ys, rtol=1e-2, atol=1e-2)


def test_entries_that_appear_outside_the_band_are_noticed():
    """At t = 0.1 the halves of the line are joined."""

    def f(t, y):
        joined = 30 * (t[:, None] > 0.1) * (y.roll(y.shape[1] // 2, 1) - y)
        return 1e-3 * heat(t * 0, y) + joined

    y0 = torch.linspace(0, 1, 520, dtype=F64)[None]
    options: Any = {"t0": 0.0, "t1": 0.2, "jump_t": 0.1, "rtol": 1e-3, "atol": 1e-4}
    with torch.no_grad():
        sol = solve_ivp(f, y0, method="rodas5p", **options)
        wanted = solve_ivp(f, y0, method="tsit5", engine="plain", **options)
    assert sol.success.all()
    torch.testing.assert_close(sol.ys, wanted.ys, rtol=1e-2, atol=1e-2)


def test_the_solution_of_each_row_is_as_good_as_asked_for():
    matrix = torch.eye(30, dtype=F64) + 0.2 * torch.randn(4, 30, 30, dtype=F64)
    rhs = torch.randn(4, 30, dtype=F64)
    rhs[2] = 0
    counted = torch.zeros(4, dtype=torch.int64)

    def spent(rows):
        counted.add_(rows)

    x = gmres(lambda v: (matrix @ v[..., None])[..., 0], rhs, Accuracy(0.0, 1e-12), spent, None)
    torch.testing.assert_close(x, torch.linalg.solve(matrix, rhs))
    assert counted[2] == 0
    assert counted[0] > 10


def test_slow_convergence_is_not_taken_for_rounding():
    """With half of the matrix the iteration halves its error each time, however small it is."""
    like = torch.zeros(1, 2, dtype=F64)
    newton = Newton(like, 1e-5, tight=True)
    wanted = torch.tensor([[1.0, 2.0]], dtype=F64)
    factor = [0.4]

    def renew(z, rows):
        factor[0] = 1.0

    solved = newton.solve(
        lambda z: z - wanted, lambda r: factor[0] * r, wanted + 1e-9, like + 1e-5, like + 1,
        torch.ones(1, dtype=torch.bool), renew,
    )  # fmt: skip
    assert solved.ok.all()
    assert (solved.z - wanted).abs().max() < 1e-12


def test_bad_structures_are_refused_by_name():
    with pytest.raises(InvalidArgument, match="lower=-1"):
        Banded(-1, 1)
    with pytest.raises(InvalidType, match="bool tensor"):
        Pattern(torch.ones(2, 2))
    with pytest.raises(InvalidArgument, match="square"):
        Pattern(torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(InvalidType, match="structure is a str"):
        Rodas5P(structure="banded")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgument, match="linear is 'qr'"):
        Rodas5P(linear="qr")  # pyright: ignore[reportArgumentType]
    method = Kvaerno5(structure=Pattern(torch.eye(2, dtype=torch.bool)))
    with pytest.raises(InvalidArgument, match="Pattern of 2 components"):
        solve_ivp(lambda t, y: -y, torch.ones(1, 3), t0=0.0, t1=1.0, method=method)
