"""Replay: controllers side by side do what each does alone, and estimates meet real solves."""

import pytest
import torch

from app.replay import Lanes, Recorded, Stability
from app.replay_model import attempts_of_solve, model_of
from app.studied import Studied
from solver.catalogue import controllers, methods
from solver.controllers._power_law import PowerLawController
from solver.controllers.pid import PID

MU25 = {"problem": "van_der_pol", "parameters": {"mu": 25.0}, "spread": None, "batch": 1}


def every_law():
    found = [PID(limiter="smooth"), PID(no_growth_after_reject=True, kd=0.05)]
    found += [PID(never_shrink_on_accept=True, kp=-0.2)]
    for cls in controllers().values():
        if issubclass(cls, PowerLawController):
            found += [cls(), *(cls.preset(name) for name in cls.presets)]
    return found


def test_lanes_judge_as_each_controller_does_alone():
    chosen, k = every_law(), 5
    lanes = Lanes.of([c.law for c in chosen])
    generator = torch.Generator().manual_seed(3)
    past = lanes.init((4, len(chosen)))
    alone = [c.init(torch.zeros(4, dtype=torch.float64)) for c in chosen]
    running = torch.zeros(4, len(chosen), dtype=torch.bool)
    for _ in range(60):
        ratio = 10 ** (2 * torch.rand(4, generator=generator, dtype=torch.float64) - 1.5)
        together = ratio[:, None].expand(4, len(chosen))
        accept, factor, past = lanes.propose(together, k, past, running)
        for i, controller in enumerate(chosen):
            said = controller.propose(ratio, k - 1, alone[i])
            alone[i] = said.history
            assert torch.equal(accept[:, i], said.accept)
            torch.testing.assert_close(factor[:, i], said.factor, rtol=1e-9, atol=0)


def test_a_lane_that_is_done_keeps_its_past():
    lanes = Lanes.of([PID(kd=0.1).law])
    past = lanes.init((1, 1))
    ratio = torch.full((1, 1), 0.3, dtype=torch.float64)
    _, _, moved = lanes.propose(ratio, 5, past, torch.zeros(1, 1, dtype=torch.bool))
    _, _, kept = lanes.propose(ratio, 5, past, torch.ones(1, 1, dtype=torch.bool))
    assert float(moved.last) < 0
    assert float(kept.last) == 0


@pytest.mark.parametrize(("method", "limit"), [("bosh3", 2.5127), ("dopri5", 3.3066)])
def test_the_stable_range_is_that_of_the_method(method, limit):
    found = Stability.of(methods()[method]().tableau)
    assert found.limit == pytest.approx(limit, abs=0.02)
    z = torch.tensor([-0.1 + 0j], dtype=torch.complex128)
    assert float(found.grown(z)) == pytest.approx(0.9048374, rel=1e-4)


def test_an_error_that_grows_as_a_power_is_replayed_exactly():
    n, k = 40, 5
    dt = torch.full((n, 1), 0.025, dtype=torch.float64)
    t = torch.arange(n, dtype=torch.float64)[:, None] * 0.025
    ratio = torch.full((n, 1), 0.9**k, dtype=torch.float64)  # steady for safety 0.9
    running = torch.ones(n, 1, dtype=torch.bool)
    span = torch.tensor([1.0], dtype=torch.float64)
    recorded = Recorded.of(t, dt, ratio, running, span=span, k=k)
    same = PID(kp=0.0, ki=1.0, safety=0.9).law
    half = PID(kp=0.0, ki=1.0, safety=0.45).law
    found = recorded.replay([same, half])
    assert found.attempts.tolist() == pytest.approx([40, 80], abs=1)
    assert found.refused.tolist() == [0, 0]
    looser = recorded.replay([same], scale=2.0**k)
    assert float(looser.attempts) == pytest.approx(20, abs=2)


@pytest.mark.parametrize("recorded", [PID(), PID(kp=0.3, ki=0.4, safety=0.95)])
def test_replay_is_within_a_tenth_of_real_attempts_where_stability_limits(recorded):
    studied = Studied.of(MU25)
    rtol, atol = 1e-4, 1e-6
    settings = {"name": "pid", "kp": recorded.kp, "ki": recorded.ki, "safety": recorded.safety}
    attempts = attempts_of_solve(studied, "tsit5", rtol, atol, settings, ())
    model = model_of(studied, attempts, "tsit5", rtol, atol, recorded)
    assert model.about["limited"] > 0.5
    near = [
        PID(kp=recorded.kp * p, ki=recorded.ki * i, safety=recorded.safety)
        for p in (0.5, 1.0, 2.0)
        for i in (0.5, 1.0, 2.0)
    ]
    estimates, refused, _, ended = model.estimate([c.law for c in near])
    assert all(ended)
    for controller, estimate, refusals in zip(near, estimates, refused, strict=True):
        given = {"name": "pid", "kp": controller.kp, "ki": controller.ki}
        given["safety"] = controller.safety
        stats = studied.solve("tsit5", rtol, atol=atol, controller=given).stats
        real = int(stats.n_steps.sum())
        assert estimate == pytest.approx(real, rel=0.1), given
        assert refusals == pytest.approx(int(stats.n_rejected.sum()), abs=0.05 * real)


def test_without_the_stable_range_the_same_estimates_are_far_off():
    studied = Studied.of(MU25)
    attempts = attempts_of_solve(studied, "tsit5", 1e-4, 1e-6, {"name": "pid"}, ())
    span = torch.tensor([studied.span], dtype=torch.float64)
    plain = Recorded.of(*attempts, span=span, k=5)
    law = PID(ki=0.25).law
    settings = {"name": "pid", "ki": 0.25}
    real = int(studied.solve("tsit5", 1e-4, atol=1e-6, controller=settings).stats.n_steps.sum())
    assert float(plain.replay([law]).attempts) > 1.1 * real


def test_an_implicit_method_that_loses_order_is_replayed_by_the_order_it_has():
    studied = Studied.of(MU25)
    settings = {"name": "pid"}
    attempts = attempts_of_solve(studied, "kvaerno5", 1e-5, 1e-7, settings, ())
    model = model_of(studied, attempts, "kvaerno5", 1e-5, 1e-7, PID())
    assert "measured" in model.about["model"]
    assert float(model.recorded.slope.min()) < model.k - 0.2
    near = [PID(ki=0.25), PID(ki=0.4), PID(kp=0.4)]
    estimates = model.estimate([c.law for c in near])[0]
    for controller, estimate in zip(near, estimates, strict=True):
        given = {"name": "pid", "kp": controller.kp, "ki": controller.ki}
        stats = studied.solve("kvaerno5", 1e-5, atol=1e-7, controller=given).stats
        assert estimate == pytest.approx(int(stats.n_steps.sum()), rel=0.15)
