"""All that the catalogues find works with all the rest, before it has a test of its own."""

import math
import re

import pytest
import torch

from solver import Hook, Status, StepBlock, catalogue, solve_ivp
from solver.errors import InvalidArgument

METHODS = catalogue.methods()
CONTROLLERS = catalogue.controllers()
STATISTICS = catalogue.statistics()
ADAPTIVE = [name for name in METHODS if METHODS[name]().error_order is not None]
FIXED = [name for name in METHODS if name not in ADAPTIVE]
STEPPING = [name for name, controller in CONTROLLERS.items() if controller.adaptive]
PRESETS = [preset for controller in CONTROLLERS.values() for preset in controller.presets]


class Blocks(Hook):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[StepBlock] = []
        self.statistics = tuple(STATISTICS)

    def on_steps(self, steps: StepBlock) -> None:
        """Keep a block."""
        self.seen.append(steps)


def oscillator(t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.stack((y[:, 1], -y[:, 0]), dim=1)


def solve(method: str, controller: str, **options):
    y0 = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    return solve_ivp(
        oscillator, y0, t0=0.0, t1=3.0, method=method, controller=controller, **options
    )


def exact() -> torch.Tensor:
    c, s = math.cos(3.0), math.sin(3.0)
    return torch.tensor([[c, -s], [2 * s, 2 * c]])


@pytest.mark.parametrize("controller", STEPPING)
@pytest.mark.parametrize("method", ADAPTIVE)
def test_every_adaptive_method_meets_its_tolerance_under_every_controller(method, controller):
    sol = solve(method, controller, rtol=1e-5, atol=1e-7)
    assert sol.status.tolist() == [Status.SUCCESS, Status.SUCCESS]
    assert (sol.y_reached - exact()).abs().max() < 300 * 1e-5
    assert (sol.stats.n_steps == sol.stats.n_accepted + sol.stats.n_rejected).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_solves_by_its_name(preset):
    sol = solve("tsit5", preset, rtol=1e-5, atol=1e-7)
    sol.raise_if_failed()
    assert (sol.y_reached - exact()).abs().max() < 300 * 1e-5
    assert 0 < catalogue.controller_by_name(preset).steady_error_ratio(4) <= 1


@pytest.mark.parametrize("controller", STEPPING)
@pytest.mark.parametrize("method", FIXED)
def test_a_method_without_error_estimate_refuses_a_controller_that_needs_one(method, controller):
    with pytest.raises(InvalidArgument, match=re.escape(method)):
        solve(method, controller, dt0=0.1)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_fixed_steps(method):
    sol = solve(method, "fixed", dt0=0.01)
    assert sol.stats.n_steps.tolist() == [300, 300]
    assert (sol.y_reached - exact()).abs().max() < 0.05


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_statistic_is_one_number_an_attempt_and_row_under_every_controller(controller):
    hook = Blocks()
    options = {} if CONTROLLERS[controller].adaptive else {"dt0": 0.1}
    solve("dopri5", controller, hooks=[hook], **options)
    for block in hook.seen:
        assert set(block.columns) == set(STATISTICS)
        for name, values in block.columns.items():
            assert values.shape == block.t.shape
            assert values.isfinite().all(), name
            labels = STATISTICS[name].labels
            if labels:
                assert set(values.flatten().tolist()) <= set(labels), name


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_statistic_says_what_it_is(statistic):
    cls = STATISTICS[statistic]
    assert cls.name == statistic
    assert cls.title
    assert cls.unit
    assert len(cls.help) > 20
