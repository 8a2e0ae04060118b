"""The schedule Lion needs."""

import pickle

import pytest
import torch

from solver.optim import Lion, lion_schedule


def rates(steps, **options):
    x = torch.ones(1).requires_grad_()
    opt = Lion([x], lr=2.0)
    schedule = lion_schedule(opt, **options)
    found = []
    for _ in range(steps):
        found.append(opt.param_groups[0]["lr"])
        x.grad = torch.ones(1)
        opt.step()
        schedule.step()
    return found


def test_the_rate_rises_and_then_falls_to_nothing():
    assert rates(9, total_steps=7, warmup_steps=3, shape="linear") == pytest.approx(
        [0.5, 1.0, 1.5, 2.0, 1.5, 1.0, 0.5, 0.0, 0.0]
    )


def test_a_cosine_is_flat_at_both_ends_and_stops_at_the_floor():
    found = rates(6, total_steps=4, floor=0.1)
    assert found == pytest.approx([2.0, 1.736396, 1.1, 0.463604, 0.2, 0.2], rel=1e-5)


def test_a_saved_schedule_goes_on():
    x = torch.ones(1).requires_grad_()
    opt = Lion([x], lr=2.0)
    schedule = lion_schedule(opt, 10)
    x.grad = torch.ones(1)
    opt.step()
    schedule.step()
    saved = pickle.loads(pickle.dumps(schedule.state_dict()))
    other = lion_schedule(Lion([x], lr=2.0), 10)
    other.load_state_dict(saved)
    assert other.last_epoch == 1
    assert other.get_last_lr() == schedule.get_last_lr()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"total_steps": 5, "warmup_steps": 5}, "warmup_steps=5: .* less than total_steps=5"),
        ({"total_steps": 5, "shape": "step"}, "shape='step': must be 'cosine' or 'linear'"),
        ({"total_steps": 5, "floor": 1.5}, "floor=1.5: must be between 0 and 1"),
    ],
)
def test_a_wrong_schedule_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        rates(1, **options)
