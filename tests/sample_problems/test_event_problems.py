"""Problems with events: what is known of them in closed form, and that a run records them."""

import math

import torch

from app.worker import record
from inspector import open_run
from sample_problems.bouncing_ball import BouncingBall
from sample_problems.thermostat import Thermostat
from solver import solve_ivp
from solver.statistics.limiter import EVENT


def solve(built, **options):
    return solve_ivp(
        built.f, built.y0, t0=built.t0, t1=built.t1, args=built.args, events=built.events,
        rtol=1e-8, atol=1e-10, **options,
    )  # fmt: skip


def test_every_ball_bounces_at_its_own_times():
    built = BouncingBall(height=5.0, g=10.0).build(batch=8)
    sol = solve(built)
    assert not sol.status.any()
    e = built.args["e"]
    torch.testing.assert_close(sol.event_times[:, 0], torch.ones(8, dtype=torch.float64))
    third = 1 + 2 * e + 2 * e**2
    torch.testing.assert_close(sol.event_times[:, 2], third, rtol=1e-9, atol=0)
    energy = 10.0 * sol.y_reached[:, 0] + sol.y_reached[:, 1] ** 2 / 2
    left = 50.0 * e ** (2 * sol.events.count[:, 0])
    at_rest = e < 0.78
    torch.testing.assert_close(energy, torch.where(at_rest, 0.0, left), rtol=1e-9, atol=0)
    assert (sol.y_reached[at_rest] == 0).all()


def test_a_room_stays_in_its_band_and_switches_with_its_period():
    built = Thermostat(outside=5.0, loss=0.3, power=25.0, centre=20.0, band=0.5).build(
        batch=1, spread=None
    )
    grid = torch.linspace(0, 20, 401, dtype=torch.float64)
    sol = solve(built, t_eval=grid)
    assert ((sol.ys[0, :, 0] - 20).abs() <= 0.5 + 1e-9).all()
    cooling = math.log((20.5 - 5) / (19.5 - 5)) / 0.3
    hot = 5 + 25 / 0.3
    warming = math.log((hot - 19.5) / (hot - 20.5)) / 0.3
    times, index = sol.event_times[0], sol.events.index[0]
    assert index.tolist() == [0, 1] * (len(index) // 2) + [0] * (len(index) % 2)
    torch.testing.assert_close(times[1::2] - times[::2][: len(times[1::2])],
                               torch.full_like(times[1::2], warming))  # fmt: skip
    torch.testing.assert_close(times[2::2] - times[1::2][: len(times[2::2])],
                               torch.full_like(times[2::2], cooling))  # fmt: skip


def test_a_recorded_run_shows_the_steps_that_events_cut_short(tmp_path):
    spec = {"problem": "bouncing_ball", "batch": 3, "seed": 0, "statistics": ["limiter"]}
    record(spec, tmp_path / "run")
    run = open_run(tmp_path / "run")
    steps = run.steps()
    assert (steps["limiter"] == EVENT).sum() > 3
    assert set(run.solves()["status_name"]) == {"SUCCESS"}
