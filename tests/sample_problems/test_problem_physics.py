"""Known answers: what each problem keeps constant, its exact solution, its published values."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_problems.arenstorf import Arenstorf
from sample_problems.blow_up import BlowUp
from sample_problems.brusselator_1d import Brusselator1D
from sample_problems.brusselator_2d import Brusselator2D
from sample_problems.cahn_hilliard import CahnHilliard
from sample_problems.catalogue import problem_by_name
from sample_problems.discontinuous import Discontinuous
from sample_problems.flame import Flame
from sample_problems.heat_1d import Heat1D
from sample_problems.henon_heiles import HenonHeiles
from sample_problems.kdv_soliton import GRID, LENGTH, KdVSoliton
from sample_problems.kepler import Kepler
from sample_problems.lotka_volterra import LotkaVolterra
from sample_problems.medical_akzo import MedicalAkzo
from sample_problems.neural_ode import NeuralODE
from sample_problems.pleiades import Pleiades
from sample_problems.pollution import Pollution
from sample_problems.ring_modulator import RingModulator
from sample_problems.robertson import Robertson
from sample_problems.train_neural_ode import spiral, store, train
from sample_problems.van_der_pol_phases import VanDerPolPhases
from solver import solve_ivp


def solve(built, t1=None, n=5, **changes):
    """Solve a built problem accurately, with outputs at `n` times."""
    t_eval = torch.linspace(built.t0, built.t1 if t1 is None else t1, n, dtype=torch.float64)
    given_settings = {"method": "dopri8", "rtol": 1e-10, "atol": 1e-12, **changes}
    sol = solve_ivp(built.f, built.y0, t_eval, args=built.args, **given_settings)
    sol.raise_if_failed()
    return t_eval, sol.ys


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.floats(0.0, 0.95), st.floats(0.0, 40.0))
def test_keplers_exact_orbit_obeys_the_field_and_keeps_energy_and_momentum(e, time):
    problem = Kepler(eccentricity=e)
    built = problem.build(batch=1, spread=None)
    t = torch.tensor([time], dtype=torch.float64)
    x, y, vx, vy = problem.exact(t, built.y0, built.args)[0]
    assert (vx**2 + vy**2) / 2 - 1 / torch.hypot(x, y) == pytest.approx(-0.5, abs=1e-9)
    assert x * vy - y * vx == pytest.approx(math.sqrt(1 - e * e), abs=1e-9)
    t.requires_grad_()
    at = problem.exact(t, built.y0, built.args)[0]
    slope = torch.stack([torch.autograd.grad(q, t, retain_graph=True)[0][0] for q in at])
    expected = built.f(t, at.detach()[None], built.args)[0]
    torch.testing.assert_close(slope, expected, rtol=1e-6, atol=1e-6)


def test_kepler_starts_on_its_exact_orbit():
    built = Kepler().build()
    t = torch.zeros(len(built.y0), dtype=torch.float64)
    torch.testing.assert_close(built.problem.exact(t, built.y0, built.args), built.y0)


def test_lotka_volterra_keeps_its_first_integral():
    built = LotkaVolterra().build(batch=4)
    _, ys = solve(built)
    x, y = ys.unbind(-1)
    p = {name: value[:, None] for name, value in built.args.items()}
    v = p["d"] * x - p["c"] * x.log() + p["b"] * y - p["a"] * y.log()
    torch.testing.assert_close(v, v[:, :1].expand_as(v), rtol=1e-8, atol=1e-8)


def test_henon_heiles_keeps_the_energy_it_was_given():
    built = HenonHeiles().build(batch=4, seed=2)
    _, ys = solve(built)
    x, y, px, py = ys.unbind(-1)
    energy = (px**2 + py**2 + x**2 + y**2) / 2 + x * x * y - y**3 / 3
    expected = built.parameters["energy"][:, None].expand_as(energy)
    torch.testing.assert_close(energy, expected, rtol=1e-8, atol=1e-9)


def test_kdv_soliton_moves_at_its_speed_and_keeps_mass_and_energy():
    built = KdVSoliton().build(
        batch=2, spread={"parameter": "speed", "low": 0.8, "high": 1.2, "scale": "linear"}
    )
    t, ys = solve(built, t1=2.0, n=2, rtol=1e-9)
    dx = LENGTH / GRID
    first = torch.fft.fft(ys)[..., 1]  # its phase tells where the crest is
    moved = -(first[:, -1] / first[:, 0]).angle() * LENGTH / (2 * math.pi)
    expected = built.parameters["speed"] * (t[-1] - t[0])
    torch.testing.assert_close(moved, expected, rtol=0.08, atol=0.0)  # the grid slows it a little
    torch.testing.assert_close(ys[:, 0].sum(-1), ys[:, -1].sum(-1), rtol=1e-10, atol=0.0)
    slope = (ys.roll(-1, -1) - ys) / dx
    energy = (slope**2 / 2 - ys**3).sum(-1)
    torch.testing.assert_close(energy[:, 0], energy[:, -1], rtol=1e-7, atol=0.0)


def test_robertson_keeps_its_mass():
    built = Robertson().build(batch=2)
    slope = built.f(torch.zeros(2).double(), torch.rand(2, 3).double(), built.args)
    assert slope.sum(-1).abs().max() < 1e-9
    _, ys = solve(built, t1=0.3, rtol=1e-8)
    torch.testing.assert_close(ys.sum(-1), torch.ones(2, 5).double(), rtol=1e-10, atol=0.0)


def test_arenstorfs_orbit_closes_after_its_period():
    built = Arenstorf().build(batch=1, spread=None)
    _, ys = solve(built, n=2, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(ys[:, -1], built.y0, rtol=1e-5, atol=1e-5)


def test_pleiades_ends_where_the_test_set_says():
    built = Pleiades().build(batch=1, spread=None)
    _, ys = solve(built, n=2, rtol=1e-11)
    published = torch.tensor([0.3706139143970502, 3.237284092057233, -3.222559032418324])
    torch.testing.assert_close(ys[0, -1, :3], published.double(), rtol=1e-6, atol=1e-6)


def test_pleiades_keeps_its_momentum():
    built = Pleiades().build(batch=3)
    slope = built.f(torch.zeros(3).double(), built.y0, built.args).unflatten(-1, (4, 7))
    mass = torch.arange(1, 8).double()
    assert (slope[:, 2:] @ mass).abs().max() < 1e-12


def test_heat_waves_decay_as_the_grid_says():
    built = Heat1D().build(batch=3)
    t, ys = solve(built, t1=0.1, rtol=1e-9)
    for j, time in enumerate(t):
        exact = built.problem.exact(time.expand(3), built.y0, built.args)
        torch.testing.assert_close(ys[:, j], exact, rtol=0.0, atol=1e-8)


def test_blow_up_is_exact_and_not_a_number_behind_its_end():
    problem = BlowUp()
    built = problem.build(batch=3)
    t = torch.full((3,), 0.9, dtype=torch.float64)
    exact = problem.exact(t, built.y0, built.args)
    assert exact.isnan().flatten().tolist() == [False, False, True]
    _, ys = solve(BlowUp(start_value=1.0).build(batch=1, spread=None), t1=0.9, n=2)
    assert ys[0, -1, 0] == pytest.approx(10.0, rel=1e-8)


def test_a_flame_catches_at_about_one_over_delta():
    built = Flame(delta=0.01).build(batch=1, spread=None)
    t, ys = solve(built, t1=200.0, n=201)
    half = t[(ys[0, :, 0] > 0.5).nonzero()[0]].item()
    assert 90 < half < 115
    assert ys[0, -1, 0] == pytest.approx(1.0, abs=1e-8)
    inverse = 1 / ys[0, 50, 0]  # 1/y + log(1/y - 1) falls by t
    start = 1 / 0.01
    assert inverse + (inverse - 1).log() == pytest.approx(
        start + math.log(start - 1) - 50, rel=1e-8
    )


def test_brusselator_rests_at_its_fixed_point():
    built = Brusselator1D().build(batch=2)
    rest = torch.cat([torch.ones(2, 24), 3 * torch.ones(2, 24)], dim=1).double()
    assert built.f(torch.zeros(2).double(), rest, built.args).abs().max() < 1e-12


def test_the_switched_circuit_meets_its_exact_solution_and_announcing_jumps_saves_steps():
    blind = Discontinuous().build(batch=3)
    told = Discontinuous(announce_jumps=True).build(batch=3)
    assert blind.jump_t is None
    assert told.jump_t is not None
    t = torch.tensor([0.0, 0.7, 1.9, 4.0], dtype=torch.float64)
    spent = []
    for built in (blind, told):
        sol = solve_ivp(
            built.f, built.y0, t, args=built.args, jump_t=built.jump_t, rtol=1e-7, atol=1e-9
        )
        sol.raise_if_failed()
        for j, time in enumerate(t):
            exact = built.problem.exact(time.expand(3), built.y0, built.args)
            atol = 1e-4 if built is blind else 1e-6
            torch.testing.assert_close(sol.ys[:, j], exact, rtol=0.0, atol=atol)
        spent.append(sol.stats.n_steps)
    assert (1.5 * spent[1] < spent[0]).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_circuit_jumps_at_the_very_times_it_announces(dtype):
    built = Discontinuous(announce_jumps=True).build(batch=40, dtype=dtype)
    assert built.jump_t is not None
    zero = torch.zeros_like(built.y0)
    for at in built.jump_t.T:
        there = ~at.isnan()
        at = at.nan_to_num(1.0)
        before = built.f(at.nextafter(torch.zeros_like(at)), zero, built.args)
        after = built.f(at, zero, built.args)
        assert (before[there] == -after[there]).all()


def test_the_learnt_spiral_is_a_spiral():
    built = NeuralODE().build(batch=8)
    t, ys = solve(built, t1=10.0, rtol=1e-6, method="tsit5")
    truth = solve_ivp(spiral, built.y0, t, rtol=1e-6, atol=1e-8).ys
    assert (ys - truth).norm(dim=-1).max() < 0.15


def test_training_the_spiral_gets_somewhere_and_is_stored(tmp_path):
    network, distance = train(iterations=6)
    assert distance < 0.6
    path = tmp_path / "weights.json"
    store(network, distance, path)
    assert '"w1"' in path.read_text()


def test_lorenz_starts_close_together():
    y0 = problem_by_name("lorenz").build().y0
    assert (y0 - 1).abs().max() <= 1e-3


def test_phases_of_the_van_der_pol_oscillator_lie_on_one_cycle():
    built = VanDerPolPhases(mu=8.0).build(batch=9)
    assert built.y0[0].tolist() == [2.0, 0.0]
    assert torch.allclose(built.y0[-1], built.y0[0], atol=0.3)
    assert built.y0[4, 0] < -1.5  # half a cycle later it is on the other side


def test_pollution_reaches_its_published_state():
    """Test Set for IVP Solvers (Mazzia & Magherini, 2008), problem POLLU."""
    built = Pollution().build(batch=1, spread=None)
    _, ys = solve(built, method="radau5", rtol=1e-8, atol=1e-14)
    published = [
        0.05646255480022769,
        0.1342484130422339,
        4.139734331099427e-9,
        0.005523140207484359,
    ]
    assert ys[0, -1, :4].tolist() == pytest.approx(published, rel=1e-6)
    assert ys[0, -1, 7].item() == pytest.approx(0.3245075353396018, rel=1e-7)


def test_medical_akzo_neither_makes_nor_loses_places():
    """What binds of the antibodies at a place is what of the places is taken."""
    built = MedicalAkzo().build(batch=2, spread=None)
    y0 = built.y0.clone()
    slope = built.f(torch.tensor([1.0, 6.0], dtype=torch.float64), y0 + 0.5, built.args)
    torch.testing.assert_close(slope[:, 1::2], torch.full_like(slope[:, 1::2], -100 * 0.5 * 1.5))
    assert slope[0, 0] > slope[1, 0]  # supplied before t = 5 only
    assert built.jump_t.tolist() == [[5.0], [5.0]]


def test_the_square_brusselator_diffuses_nothing_away():
    built = Brusselator2D().build(batch=1, spread=None)
    t = torch.zeros(1, dtype=torch.float64)
    full, still = (
        built.f(t, built.y0, {"alpha": torch.tensor([a], dtype=torch.float64)}) for a in (0.1, 0.0)
    )
    torch.testing.assert_close(full.sum(), still.sum())
    lit = built.f(t + 1.2, built.y0, built.args) - built.f(t, built.y0, built.args)
    assert set(lit.unique().tolist()) == {0.0, 5.0}


def test_cahn_hilliard_keeps_the_mean():
    built = CahnHilliard().build(batch=3)
    _, ys = solve(built, method="rodas5p", rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(
        ys.mean(dim=2), ys[:, :1].mean(dim=2).expand(3, 5), atol=1e-9, rtol=0
    )


def test_the_ring_modulator_ends_where_the_test_set_says():
    """Voltages and currents at 1 ms, stray capacitances of 2 pF; tens of thousands of steps."""
    built = RingModulator().build(batch=1, spread=None)
    _, ys = solve(built, t1=1e-3, n=2, method="rodas5p", rtol=1e-6, atol=1e-9, engine="compiled")
    published = [
        *(-0.0233905735848674, -0.00736748548554082, 0.258295670929117, -0.406446572128345),
        *(-0.403945566514979, 0.260796676542294, 0.110676186126997, 2.93990434243560e-7),
        *(-2.84002993364233e-8, 7.26719826726455e-4, 7.92948719696084e-4, -7.25528349569896e-4),
        *(-7.94140196852652e-4, 7.08849541697611e-5, 2.39005907523657e-5),
    ]
    torch.testing.assert_close(
        ys[0, -1], torch.tensor(published, dtype=torch.float64), rtol=1e-4, atol=0
    )
