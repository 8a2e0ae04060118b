"""200 steps against references that are written out tensor by tensor, and against torch's AdamW."""

import pytest
import torch

from solver import optim
from solver.optim import adamw

CASES = [
    ("AdamW", {"lr": 1e-2}),
    ("AdamW", {"lr": 1e-2, "weight_decay": 0.3, "maximize": True}),
    ("AdamW", {"lr": 1e-2, "betas": (0.0, 0.5), "eps": 1e-3, "weight_decay": 0.0}),
    ("Lion", {"lr": 1e-2}),
    ("Lion", {"lr": 1e-2, "weight_decay": 0.3, "maximize": True}),
    ("Lion", {"lr": 1e-2, "betas": (0.95, 0.98)}),
    ("MADGRAD", {}),
    ("MADGRAD", {"weight_decay": 0.1, "maximize": True}),
    ("MADGRAD", {"weight_decay": 0.1, "decouple_decay": True}),
    ("MADGRAD", {"momentum": 0.0}),
    ("MADGRAD", {"momentum": 0.0, "weight_decay": 0.1}),
    ("MADGRAD", {"momentum": 0.0, "weight_decay": 0.1, "decouple_decay": True, "maximize": True}),
    ("MADGRAD", {"lr": 0.0}),
]


def largest_difference(a, b) -> float:
    pairs = [(x.detach(), y.detach()) for x, y in zip(a, b, strict=True) if x.numel()]
    return max((x - y).abs().max().item() for x, y in pairs)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_200_steps_agree_with_the_written_out_formulas(ref, name, options):
    params = ref.tensors()
    expected = ref.train_plain(ref.plain[name](**options), params, range(200))
    ref.train(getattr(optim, name)(params, **options), params, range(200))
    assert largest_difference(params, expected) < 1e-12


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("maximize", [False, True])
def test_adamw_agrees_with_the_loop_of_torch(ref, monkeypatch, fused, maximize):
    if not fused:
        monkeypatch.setattr(adamw, "FUSED_ON", set())
    options = {"lr": 1e-2, "weight_decay": 0.1, "maximize": maximize}
    ours, theirs = ref.tensors(), ref.tensors()
    ref.train(optim.AdamW(ours, **options), ours, range(200))
    ref.train(torch.optim.AdamW(theirs, foreach=False, **options), theirs, range(200))
    assert largest_difference(ours, theirs) < 1e-12


def test_the_update_of_lion_uses_the_momentum_before_the_step():
    x = torch.zeros(1).requires_grad_()
    opt = optim.Lion([x], lr=1.0, betas=(0.9, 0.0))  # the momentum is the last gradient
    x.grad = torch.tensor([1.0])
    opt.step()
    x.grad = torch.tensor([-2.0])  # 0.9 * 1 - 0.1 * 2 > 0: still down
    opt.step()
    assert x.item() == -2.0


def test_lion_stays_where_the_gradient_is_zero():
    x = torch.ones(3).requires_grad_()
    x.grad = torch.tensor([0.0, -0.0, 1.0])
    optim.Lion([x], lr=0.5).step()
    assert x.tolist() == [1.0, 1.0, 0.5]


def test_madgrad_counts_steps_for_all_tensors_alike():
    """A parameter whose gradient comes late starts with the weight of the present step."""
    late, early = torch.zeros(1).requires_grad_(), torch.zeros(1).requires_grad_()
    opt = optim.MADGRAD([late, early], lr=1.0, momentum=0.0, eps=0.0)
    for _ in range(3):
        early.grad = torch.ones(1)
        opt.step()
    late.grad = torch.ones(1)
    opt.step()
    lam = 2.0  # sqrt(k + 1) with k = 3
    assert late.item() == pytest.approx(-lam / lam ** (1 / 3), rel=1e-14)


def test_madgrad_without_eps_and_momentum_leaves_untouched_elements_alone():
    x = torch.tensor([1.0, 2.0]).requires_grad_()
    opt = optim.MADGRAD([x], lr=0.1, momentum=0.0, eps=0.0)
    for _ in range(3):
        x.grad = torch.tensor([0.0, 1.0])
        opt.step()
    assert x[0].item() == 1.0
    assert x[1].item() < 2.0


def test_bias_corrections_are_not_rounded_to_float32():
    x = torch.zeros(1).requires_grad_()
    x.grad = torch.full((1,), 3.0)
    optim.AdamW([x], lr=1.0, weight_decay=0.0, eps=0.0).step()
    assert x.item() == pytest.approx(-1.0, rel=1e-14)
