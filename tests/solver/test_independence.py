"""A row does not depend on who shares its batch."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from solver import PID, Hook, Integral, solve_ivp

STIFF = ["rodas5p", "kvaerno5", "radau5", "bdf"]
TIGHT = {"rtol": 1e-6, "atol": 1e-8}


def van_der_pol(mu):
    def f(t, y):
        x, v = y[:, 0], y[:, 1]
        return torch.stack([v, mu * (1 - x * x) * v - x], dim=1)

    return f


class Ratios(Hook):
    """Keeps each row's accepted step sizes."""

    def __init__(self, batch):
        self.rows = [[] for _ in range(batch)]

    def on_steps(self, steps):
        for dt, accepted in zip(steps.dt, steps.accepted, strict=True):
            for row in accepted.nonzero()[:, 0].tolist():
                self.rows[row].append(dt[row].item())


def solve(mu, method="tsit5", **kwargs):
    mu = torch.tensor(mu, dtype=torch.float64)
    y0 = torch.stack([torch.full_like(mu, 2.0), mu / 10], dim=1)
    seen = Ratios(len(mu))
    span = {"t0": 0.0, "t1": 3.0} | TIGHT | kwargs
    return solve_ivp(van_der_pol(mu), y0, method=method, hooks=[seen], **span), seen.rows


@settings(max_examples=15)
@given(
    rates=st.lists(st.floats(0.1, 30.0), min_size=2, max_size=6),
    method=st.sampled_from(["bosh3", "fehlberg45", "dopri5", "tsit5", "vern7", "dopri8", *STIFF]),
)
def test_a_row_steps_the_same_alone_and_in_any_batch(rates, method):
    together, rows = solve(rates, method)
    for i, rate in enumerate(rates):
        alone, (steps,) = solve([rate], method)
        assert rows[i] == pytest.approx(steps, rel=1e-9)
        torch.testing.assert_close(together.ys[i], alone.ys[0], rtol=1e-12, atol=1e-12)
        for name in ("n_steps", "n_accepted", "n_f_evals"):
            assert together.stats[name][i] == alone.stats[name][0]


@pytest.mark.parametrize("method", ["tsit5", "vern7", "dopri8", *STIFF])
def test_loose_tolerances_do_not_amplify_what_rounding_does_beside_others(method):
    """Rounding that depended on the place in a tensor would grow to 1e-6 here."""
    mu, loose = torch.linspace(1.0, 8.0, 19).tolist(), {"t1": 12.0, "rtol": 1e-3, "atol": 1e-4}
    together, _ = solve(mu, method, **loose)
    for rows in ([0], [18, 3, 7], list(range(8)), list(range(3, 11))):
        few, _ = solve([mu[i] for i in rows], method, **loose)
        torch.testing.assert_close(few.ys, together.ys[rows], rtol=1e-12, atol=1e-13)


@settings(max_examples=10)
@given(
    rates=st.lists(st.floats(0.1, 30.0), min_size=3, max_size=6, unique=True),
    order=st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_matter(rates, order):
    shuffled = list(range(len(rates)))
    order.shuffle(shuffled)
    straight, _ = solve(rates)
    mixed, _ = solve([rates[i] for i in shuffled])
    torch.testing.assert_close(mixed.ys, straight.ys[shuffled], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", ["bosh3", "tsit5", "dopri5", "vern7", "dopri8", *STIFF])
@pytest.mark.parametrize("controller", [Integral(), PID(kp=0.3, ki=0.4, kd=0.05)])
def test_hard_failing_and_short_neighbours_do_not_move_a_row(method, controller):
    """Beside a NaN row, a row that ends at once, and one that needs 100 times the steps."""
    rate = torch.tensor([1.0, 1.0, 1.0, 2000.0], dtype=torch.float64)

    def f(t, y):
        spoiled = torch.tensor([0.0, math.nan, 0.0, 0.0])[: len(y), None]
        return -rate[: len(y), None] * (y - torch.cos(t)[:, None]) + spoiled

    y0 = torch.zeros(4, 2, dtype=torch.float64)
    t1 = torch.tensor([3.0, 3.0, 0.0, 3.0])
    times = torch.tensor([0.5, 2.5]).expand(4, 2).clone()
    times[2] = 0.0
    kwargs = {"t0": 0.0, "method": method, "controller": controller, "rtol": 1e-3, "atol": 1e-5}
    together = solve_ivp(f, y0, times, t1=t1, **kwargs)
    alone = solve_ivp(f, y0[:1], times[:1], t1=3.0, **kwargs)
    stiff_suffers = bool(together.stats.n_steps[3] > 100 * together.stats.n_steps[0])
    assert stiff_suffers is not (method in STIFF) or method == "bosh3"
    torch.testing.assert_close(together.ys[:1], alone.ys, rtol=1e-12, atol=1e-14)
    for name in ("n_steps", "n_accepted", "n_f_evals"):
        assert together.stats[name][0] == alone.stats[name][0]


def test_rows_at_rest_do_not_loosen_the_tolerance():
    def f(t, y):
        return torch.stack([y[:, 1], -100 * y[:, 0]], dim=1)

    alone = solve_ivp(f, torch.tensor([[1.0, 0.0]]), t0=0.0, t1=5.0, rtol=1e-6, atol=1e-6)
    y0 = torch.zeros(1000, 2)
    y0[0, 0] = 1
    crowd = solve_ivp(f, y0, t0=0.0, t1=5.0, rtol=1e-6, atol=1e-6)
    assert crowd.ys[0, 0, 0].item() == pytest.approx(alone.ys[0, 0, 0].item(), abs=1e-12)
    assert crowd.stats.n_steps[0] == alone.stats.n_steps[0]
    assert alone.ys[0, 0, 0].item() == pytest.approx(math.cos(50), abs=1e-4)


def test_joint_stepping_shows_what_independence_saves():
    mu = [0.5, 5.0, 25.0]
    own, _ = solve(mu)
    joint, rows = solve(mu, stepping="joint")
    assert joint.success.all()
    assert rows[0] == rows[1] == rows[2]
    assert joint.stats.n_steps.unique().numel() == 1
    assert joint.stats.n_steps[0] > 2 * own.stats.n_steps[0]
    torch.testing.assert_close(joint.ys, own.ys, rtol=1e-3, atol=1e-3)
