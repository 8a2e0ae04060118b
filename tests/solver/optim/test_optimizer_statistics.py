"""`statistics()`: 0-d tensors that say what the last step was like."""

import pytest
import torch

from solver import optim

pytestmark = pytest.mark.filterwarnings("ignore:Using backward:UserWarning")


@pytest.mark.parametrize("name", ["AdamW", "Lion", "MADGRAD", "AdaHessian", "AliG"])
def test_there_are_none_before_the_first_step_and_0d_tensors_after(name):
    params = [torch.randn(4, 3).requires_grad_(), torch.randn(2).requires_grad_()]
    params.append(torch.ones(1).requires_grad_())  # never has a gradient
    opt = getattr(optim, name)([{"params": params[:1]}, {"params": params[1:]}])
    assert opt.statistics() == {}
    loss = sum((p**4).sum() for p in params[:2])
    loss.backward(create_graph=True)
    opt.step(lambda: loss)
    before = [p.detach().clone() for p in params]
    found = opt.statistics()
    assert found
    for name_, value in found.items():
        assert value.shape == (), name_
        assert value.isfinite(), name_
    for p, b in zip(params, before, strict=True):
        assert torch.equal(p, b)
    copied = getattr(optim, name)([{"params": params[:1]}, {"params": params[1:]}])
    copied.load_state_dict(opt.state_dict())
    assert copied.statistics() == {}


def test_adamw_tells_its_effective_steps():
    x = torch.zeros(4).requires_grad_()
    x.grad = torch.tensor([1.0, 2.0, 4.0, 0.0])
    opt = optim.AdamW([x], lr=0.5, eps=0.25)
    opt.step()
    found = opt.statistics()
    steps = torch.tensor([0.5 / 1.25, 0.5 / 2.25, 0.5 / 4.25, 0.5 / 0.25])
    assert found["effective_step_median"].item() == pytest.approx(steps.quantile(0.5).item())
    assert found["effective_step_q95"].item() == pytest.approx(steps.quantile(0.95).item())
    assert found["share_eps"].item() == 0.25


def test_adamw_tells_them_for_complex_parameters_too():
    z = torch.zeros(2, dtype=torch.complex128).requires_grad_()
    z.grad = torch.tensor([3 + 4j, 3 + 4j])
    opt = optim.AdamW([z], lr=1.0, eps=0.0)
    opt.step()
    assert opt.statistics()["effective_step_median"].item() == pytest.approx(
        (1 / 3 + 1 / 4) / 2, rel=1e-5
    )


def test_lion_tells_how_often_signs_agree():
    x = torch.zeros(4).requires_grad_()
    opt = optim.Lion([x], lr=0.1, betas=(0.9, 0.5))
    x.grad = torch.tensor([1.0, 1.0, 1.0, 1.0])
    opt.step()  # momentum 0.5
    x.grad = torch.tensor([1.0, -1.0, -100.0, 2.0])
    opt.step()  # blends 0.55, 0.35, -9.55, 0.65
    found = opt.statistics()
    assert found["sign_agreement"].item() == 0.75
    assert found["sign_momentum"].item() == 0.5
    assert found["effective_step"].item() == pytest.approx(0.1)
    opt.zero_grad()
    assert set(opt.statistics()) == {"effective_step"}


def test_lion_that_maximizes_compares_with_the_way_up():
    x = torch.zeros(2).requires_grad_()
    opt = optim.Lion([x], maximize=True)
    x.grad = torch.tensor([1.0, -1.0])
    opt.step()
    assert opt.statistics()["sign_agreement"].item() == 1.0


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_madgrad_tells_its_effective_step_and_how_far_it_came(momentum):
    x = torch.zeros(2).requires_grad_()
    opt = optim.MADGRAD([x], lr=1.0, momentum=momentum, eps=0.0)
    x.grad = torch.tensor([1.0, 8.0])
    opt.step()  # lam 1: nu = 1, 64; steps 1, 1/4; z = -1, -2
    found = opt.statistics()
    assert found["effective_step_median"].item() == pytest.approx((1 + 0.25) / 2)
    c = 1 - momentum
    assert found["distance_from_start"].item() == pytest.approx(c * 5**0.5)


def test_adahessian_tells_the_diagonal_and_its_age():
    x = torch.tensor([1.0, 2.0, 0.0]).requires_grad_()
    opt = optim.AdaHessian([x], lr=0.1, eps=1e-4, update_each=3)
    ages = []
    for step in range(4):
        opt.zero_grad()
        (x**3 / 6).sum().backward(create_graph=opt.needs_graph)
        opt.step()
        ages.append(opt.statistics()["probe_age"].item())
        if step == 0:
            found = opt.statistics()
            assert found["hessian_median"].item() == pytest.approx(1.0)
            assert found["effective_step_median"].item() == pytest.approx(0.1 / 1.0001, rel=1e-5)
            assert found["share_flat"].item() == pytest.approx(1 / 3)
    assert ages == [0, 1, 2, 0]


def test_alig_tells_its_step_and_whether_it_was_clipped():
    x = torch.zeros(1).requires_grad_()
    x.grad = torch.full((1,), 2.0)
    opt = optim.AliG([x], max_lr=0.5, eps=0.0)
    opt.step(loss=4.0)
    found = {k: v.item() for k, v in opt.statistics().items()}
    assert found == {"step": 0.5, "step_unclipped": 1.0, "clipped": 1.0}
    opt.step(loss=1.0)
    found = {k: v.item() for k, v in opt.statistics().items()}
    assert found == {"step": 0.25, "step_unclipped": 0.25, "clipped": 0.0}


def test_a_large_tensor_is_thinned_evenly(monkeypatch):
    from solver.optim import summaries

    monkeypatch.setattr(summaries, "SAMPLE", 10)
    x = torch.zeros(1000).requires_grad_()
    x.grad = torch.arange(1000.0)
    opt = optim.AdamW([x], lr=1.0, eps=1.0)
    opt.step()
    assert opt.statistics()["effective_step_median"].item() == pytest.approx(
        (1 / 401 + 1 / 501) / 2, rel=1e-4
    )
