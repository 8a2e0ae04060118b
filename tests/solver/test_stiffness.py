"""The stiffness statistic against the exact spectrum of the Jacobian."""

from collections.abc import Callable

import pytest
import torch

from solver import Hook, StepBlock, solve_ivp
from solver.catalogue import methods
from solver.errors import InvalidArgument
from solver.spectrum import spectrum
from solver.stability import stability_function


class Keep(Hook):
    """Keeps t, dt, states and the statistics of accepted attempts of the first row."""

    wants_states = True
    block_size = 12
    statistics = ("stiffness", "stiffness_real")

    def __init__(self) -> None:
        self.blocks: list[tuple[torch.Tensor, ...]] = []

    def on_steps(self, steps: StepBlock) -> None:
        """Keep a block."""
        assert steps.y is not None
        columns = (steps.columns["stiffness"], steps.columns["stiffness_real"])
        rows = (steps.t, steps.dt, *columns, steps.accepted)
        self.blocks.append((*(part[:, 0] for part in rows), steps.y[:, 0]))

    def all(self) -> list[torch.Tensor]:
        """Return `t, dt, stiffness, real` and the states after, of accepted attempts."""
        *parts, accepted, y = (torch.cat(part) for part in zip(*self.blocks, strict=True))
        return [part[accepted] for part in (*parts, y)]


Field = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def van_der_pol(mu: float) -> Field:
    """Return the oscillator's field."""

    def f(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, v = y.unbind(1)
        return torch.stack([v, mu * (1 - x * x) * v - x], 1)

    return f


def linear(rows: list[list[float]]) -> Field:
    """Return y' = A y."""
    a = torch.tensor(rows)
    return lambda t, y: y @ a.T


def share_within(f: Field, y0: list[float], t1: float, method: str, engine: str) -> float:
    """Return the share of accepted steps whose stiffness is within 20 % of the true one.

    The Jacobian changes within a step; the one at its start and at its end both count as true.
    """
    keep = Keep()
    solve_ivp(
        f, torch.tensor([y0]), t0=0.0, t1=t1, method=method, hooks=[keep], engine=engine,
        rtol=1e-5, atol=1e-7,
    )  # fmt: skip
    t, dt, stiffness, _, y = keep.all()
    radius = spectrum(f, t + dt, y).abs()[:, 0]
    before = torch.cat([spectrum(f, t[:1], torch.tensor([y0])).abs()[:, 0], radius[:-1]])
    true = torch.stack([before, radius]) * dt
    return ((stiffness / true - 1).abs() < 0.2).any(dim=0).double().mean().item()


@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.parametrize("method", ["tsit5", "dopri5", "vern7", "dopri8", "bosh3"])
@pytest.mark.parametrize("mu", [50.0, 500.0])
def test_a_stiff_oscillator(mu: float, method: str, engine: str):
    assert share_within(van_der_pol(mu), [2.0, 0.0], 400.0 / mu, method, engine) > 0.9


@pytest.mark.parametrize("method", ["tsit5", "dopri5", "vern7", "dopri8"])
@pytest.mark.parametrize(
    ("rows", "start"),
    [
        ([[-50.0]], [1.0]),
        ([[-1.0, 0.0], [0.0, -50.0]], [1.0, 1.0]),
        ([[0.0, 1.0], [-100.0, 0.0]], [1.0, 0.0]),
        ([[-1.0, 2.0, 0.0], [0.0, -30.0, 1.0], [0.5, 0.0, -200.0]], [1.0, 1.0, 1.0]),
    ],
    ids=["one", "two", "oscillator", "three"],
)
def test_linear_fields(rows: list[list[float]], start: list[float], method: str):
    assert share_within(linear(rows), start, 3.0, method, "plain") > 0.85


@pytest.mark.parametrize("method", ["radau5", "kvaerno5", "rodas5p", "trbdf2", "bdf"])
def test_implicit_methods_know_their_jacobian(method: str):
    f = linear([[-1.0, 2.0, 0.0], [0.0, -30.0, 1.0], [0.5, 0.0, -2000.0]])
    assert share_within(f, [1.0, 1.0, 1.0], 3.0, method, "plain") > 0.9


def test_the_real_part_tells_damped_from_turning():
    for rows, sign in (([[-40.0, 1.0], [0.0, -1.0]], -1), ([[0.0, 20.0], [-20.0, 0.0]], 0)):
        keep = Keep()
        solve_ivp(linear(rows), torch.ones(1, 2), t0=0.0, t1=3.0, hooks=[keep], engine="plain")
        _, _, size, real, _ = keep.all()
        assert (real / size).median().item() == pytest.approx(sign, abs=0.05)


def test_a_statistic_is_unknown_rather_than_wrong_where_nothing_moves():
    keep = Keep()
    solve_ivp(lambda t, y: y * 0, torch.ones(1, 2), t0=0.0, t1=1.0, hooks=[keep], engine="plain")
    assert keep.all()[2].isnan().all()


def test_gradients_do_not_notice_the_statistic():
    y0 = torch.tensor([[2.0, 0.0]], requires_grad=True)
    found = []
    for hooks in ([], [Keep()]):
        sol = solve_ivp(van_der_pol(5.0), y0, t0=0.0, t1=1.0, hooks=hooks)
        found.append(torch.autograd.grad(sol.ys.sum(), y0)[0])
    assert torch.equal(*found)


@pytest.mark.parametrize("name", sorted(methods()))
def test_stability_functions_follow_the_exponential_and_the_method(name: str):
    method = methods()[name]()
    function = stability_function(method)
    if function is None:
        assert not hasattr(method, "tableau")
        return
    above, below = (torch.tensor(part) for part in function)

    def r(z: float) -> float:
        powers = torch.tensor(z) ** torch.arange(16)
        return (above @ powers[: len(above)] / (below @ powers[: len(below)])).item()

    for z in (-0.1, -2.0):
        sol = solve_ivp(
            lambda t, y, z=z: z * y, torch.ones(1, 1), t0=0.0, t1=1.0, method=method,
            controller="fixed", dt0=1.0, engine="plain",
        )  # fmt: skip
        assert sol.y_reached.item() == pytest.approx(r(z), rel=1e-6, abs=1e-8)
    order = method.order
    assert abs(r(0.01) - torch.tensor(0.01).exp().item()) < 10 * 0.01 ** (order + 1) + 1e-15


def test_spectrum_is_that_of_the_matrix():
    a = [[0.0, 1.0], [-4.0, 0.0]]
    found = spectrum(linear(a), torch.zeros(3), torch.ones(3, 2))
    assert found.shape == (3, 2)
    torch.testing.assert_close(found.imag.abs(), torch.full((3, 2), 2.0))
    with pytest.raises(InvalidArgument, match=r"y has shape \(2,\)"):
        spectrum(linear(a), torch.zeros(2), torch.ones(2))
