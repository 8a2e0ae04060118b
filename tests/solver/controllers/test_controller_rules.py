"""Rules every controller keeps, checked over the whole catalogue and every preset."""

import math

import pytest
import torch

from solver.catalogue import controllers
from solver.controllers.base import Controller
from solver.controllers.integral import Integral
from solver.controllers.pi import PI
from solver.controllers.pid import PID

ORDERS = (1, 2, 4, 6, 7)


def every_adaptive() -> list[Controller]:
    """Return each adaptive controller as it comes, with each preset, and in its odd corners."""
    found: list[Controller] = []
    for cls in controllers().values():
        if cls.adaptive:
            found += [cls(), *(cls.preset(name) for name in cls.presets)]
    return [
        *found,
        PID(kp=0.3, ki=0.4, kd=0.2, limiter="smooth", grow=4.0),
        PID(kp=-0.3, ki=0.9, kd=-0.3, safety=0.99, shrink=0.5),
        Integral(never_shrink_on_accept=True, no_growth_after_reject=True),
    ]


adaptive = pytest.mark.parametrize("controller", every_adaptive(), ids=repr)


def rows(*ratios: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Return the ratios as a tensor."""
    return torch.tensor(ratios, dtype=dtype)


def after(controller: Controller, order: int, like: torch.Tensor, *ratios: float):
    """Return the history after attempts with these ratios in every row."""
    history = controller.init(like)
    for ratio in ratios:
        history = controller.propose(torch.full_like(like, ratio), order, history).history
    return history


def same(a, b) -> bool:
    """Whether two histories hold equal values."""
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def memory(history):
    """Return what is remembered of accepted steps: all but the flag of a refusal."""
    return [entry for entry in history if entry.dtype.is_floating_point]


@adaptive
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("past", [(), (1e-6,), (0.9, 1e-7, 1.0), (1e-8, 0.5, 3.0)])
def test_a_refused_step_always_gets_smaller(controller, order, past):
    ratio = rows(math.nextafter(1, 2), 1.1, 7.0, 1e6, 1e300)
    history = after(controller, order, ratio, *past)
    proposal = controller.propose(ratio, order, history)
    assert not proposal.accept.any()
    assert (proposal.factor < 1).all()
    assert (proposal.factor <= controller.safety + 1e-12).all()
    assert (proposal.factor >= controller.shrink).all()


@adaptive
@pytest.mark.parametrize("order", ORDERS)
def test_no_error_at_all_grows_by_the_largest_factor_and_leaves_a_finite_memory(controller, order):
    ratio = rows(0.0, 0.5)
    history = controller.init(ratio)
    for _ in range(4):
        accept, factor, history = controller.propose(ratio, order, history)
        assert accept.all()
        assert factor[0] == pytest.approx(controller.grow, rel=1e-12)
        assert all((entry > 0).all() and entry.isfinite().all() for entry in memory(history))
    factor = controller.propose(rows(0.5, 0.5), order, history).factor
    assert factor.isfinite().all()
    assert ((factor >= controller.shrink) & (factor <= controller.grow)).all()


@adaptive
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("past", [(), (0.3, 1e-3), (0.4, 2.0)])
def test_a_non_finite_error_is_refused_with_the_smallest_factor_and_forgotten(
    controller, bad, past
):
    ratio = rows(bad, 0.5)
    history = after(controller, 4, ratio, *past)
    accept, factor, new = controller.propose(ratio, 4, history)
    assert accept.tolist() == [False, True]
    assert factor[0] == controller.shrink
    for before, now in zip(memory(history), memory(new), strict=True):
        assert now[0] == before[0]
    beside = controller.propose(rows(0.7, 0.5), 4, history)
    assert factor[1] == beside.factor[1]  # the neighbour does not notice


@adaptive
def test_memory_moves_on_acceptance_only(controller):
    like = rows(1.0, 1.0)
    history = after(controller, 4, like, 0.2, 0.6)
    refused = controller.propose(rows(1.5, 80.0), 4, history)
    assert same(memory(refused.history), memory(history))
    mixed = controller.propose(rows(0.5, 80.0), 4, history)
    alone = controller.propose(rows(0.5, 0.5), 4, history)
    for entry, was, moved in zip(
        memory(mixed.history), memory(history), memory(alone.history), strict=True
    ):
        assert entry[0] == moved[0]
        assert entry[1] == was[1]


@adaptive
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_blocks_and_dtypes_do_not_mix(controller, dtype):
    generator = torch.Generator().manual_seed(3)
    block = 10 ** (8 * torch.rand(3, 5, generator=generator, dtype=dtype) - 6)
    history = after(controller, 4, block, 0.3, 0.8)
    together = controller.propose(block, 4, history)
    assert together.factor.dtype == dtype
    assert together.factor.shape == together.accept.shape == (3, 5)
    assert all(entry.dtype in (dtype, torch.bool) for entry in together.history)
    for i in range(3):
        one = after(controller, 4, block[i, 2:3], 0.3, 0.8)
        alone = controller.propose(block[i, 2:3], 4, one)
        assert alone.factor[0] == pytest.approx(together.factor[i, 2].item(), rel=1e-6)
        assert alone.accept[0] == together.accept[i, 2]
    limits = (together.factor >= controller.shrink - 1e-6) & (
        together.factor <= controller.grow * (1 + 1e-6)
    )
    assert limits.all()


@adaptive
def test_float32_makes_no_float64(controller):
    made = set()

    class Spy(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                made.add(out.dtype)
            return out

    ratio = rows(0.0, 0.5, 3.0, math.nan, dtype=torch.float32)
    with Spy():
        history = after(controller, 4, ratio, 0.2)
        controller.propose(ratio, 4, history)
        controller.unlimited_factor(ratio, 4, history)
        controller.shares(ratio, 4, history)
    assert made == {torch.float32, torch.bool}


@adaptive
@pytest.mark.parametrize("order", ORDERS)
def test_shares_and_safety_add_up_to_the_unlimited_factor(controller, order):
    ratio = rows(1e-4, 0.3, 0.99, 1.2, 50.0)
    history = after(controller, order, ratio, 0.7, 0.05, 0.4)
    parts = controller.shares(ratio, order, history)
    assert {"p", "i", "d"} <= set(parts)
    total = torch.stack(list(parts.values())).sum(dim=0) + math.log10(controller.safety)
    expected = controller.unlimited_factor(ratio, order, history).log10()
    torch.testing.assert_close(total, expected, rtol=1e-9, atol=1e-12)


@adaptive
def test_shares_of_no_error_are_finite(controller):
    ratio = rows(0.0, 0.0)
    for part in controller.shares(ratio, 4, controller.init(ratio)).values():
        assert part.isfinite().all()


@adaptive
@pytest.mark.parametrize("order", [2, 7])
def test_a_model_problem_settles_at_the_steady_error_ratio(controller, order):
    k, steady = order + 1, controller.steady_error_ratio(order)
    assert 0 < steady <= 1
    step = rows(1e-3, 1.0, 30.0)
    constant = rows(1.0, 1e-4, 50.0)  # error ratio = constant * step ** k
    history = controller.init(step)
    for _ in range(400):
        proposal = controller.propose(constant * step**k, order, history)
        step, history = step * proposal.factor, proposal.history
    ratio = constant * step**k
    allowed = 1.0 if getattr(controller, "never_shrink_on_accept", False) else steady
    if allowed == steady:
        torch.testing.assert_close(ratio, torch.full_like(ratio, steady), rtol=1e-3, atol=0.0)
    else:
        assert ((ratio >= steady * 0.999) & (ratio <= 1)).all()


@adaptive
def test_the_described_rule_gives_the_steady_error_ratio(controller):
    rule = controller.steady
    gain = rule["icoeff"]
    gain = getattr(controller, gain) if isinstance(gain, str) else gain
    expected = getattr(controller, rule["safety"]) ** (5 / gain)
    assert controller.steady_error_ratio(4) == pytest.approx(expected, rel=1e-9)


def test_fixed_takes_every_finite_step_and_keeps_its_size():
    fixed = controllers()["fixed"]()
    ratio = rows(0.0, 1e9, math.nan, math.inf)
    accept, factor, history = fixed.propose(ratio, 4, fixed.init(ratio))
    assert accept.tolist() == [True, True, False, False]
    assert factor.tolist() == [1.0] * 4
    assert history == ()
    assert not fixed.adaptive
    assert fixed.steady_error_ratio(4) == 1
    assert fixed.unlimited_factor(ratio, 4, ()).tolist() == [1.0] * 4
    assert [part.tolist() for part in fixed.shares(ratio, 4, ()).values()] == [[0.0] * 4] * 3


@pytest.mark.parametrize("make", [Integral, PI, PID])
def test_growth_can_be_held_back_right_after_a_refusal(make):
    controller = make(no_growth_after_reject=True)
    ratio = rows(1e-5, 1e-5)
    fresh = controller.propose(ratio, 4, controller.init(ratio))
    assert (fresh.factor > 1).all()
    history = controller.propose(rows(9.0, 0.9), 4, controller.init(ratio)).history
    first = controller.propose(ratio, 4, history)
    assert first.factor[0] == 1  # refused just before
    assert first.factor[1] > 1
    second = controller.propose(ratio, 4, first.history)
    assert (second.factor > 1).all()


@pytest.mark.parametrize("make", [Integral, PI, PID])
def test_an_accepted_step_can_be_kept_from_shrinking(make):
    ratio = rows(0.999, 1.5)
    plain, kept = make(), make(never_shrink_on_accept=True)
    assert plain.propose(ratio, 4, plain.init(ratio)).factor[0] < 1
    assert kept.propose(ratio, 4, kept.init(ratio)).factor[0] == 1
    assert kept.propose(ratio, 4, kept.init(ratio)).factor[1] < 1


def test_the_smooth_limiter_bends_and_the_clamp_cuts():
    cut, bent = PID(), PID(limiter="smooth", grow=2.570796)  # kappa 1
    ratio = rows(0.348, 1e-2, 1e-9)
    unlimited = cut.unlimited_factor(ratio, 4, cut.init(ratio))
    factor = bent.propose(ratio, 4, bent.init(ratio)).factor
    torch.testing.assert_close(factor, 1 + (unlimited - 1).atan(), rtol=1e-6, atol=0.0)
    assert factor[0] == pytest.approx(unlimited[0].item(), rel=1e-3)


@adaptive
def test_gradients_may_pass(controller):
    ratio = rows(0.5, 2.0).requires_grad_()
    history = after(controller, 4, ratio.detach(), 0.3)
    controller.propose(ratio, 4, history).factor.sum().backward()
    assert ratio.grad is not None
    assert ratio.grad.isfinite().all()
