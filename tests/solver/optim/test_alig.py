"""Ali-G: the step from the loss, momentum in both forms, projection, and the losses it refuses."""

import copy
import math
import pickle

import pytest
import torch

from solver.optim import AliG, L2Ball


def written_out(xs, steps, *, max_lr, momentum, adjusted, eps, f_star):
    """One line a formula, on several tensors; `loss_of` and its gradients by hand."""
    xs, vs = [x.clone() for x in xs], [torch.zeros_like(x) for x in xs]
    for step in range(steps):
        gs = [2 * (x - math.sin(step)) for x in xs]
        loss = sum(((x - math.sin(step)) ** 2).sum() for x in xs)
        eta = max(loss.item() - f_star, 0.0) / (sum((g * g).sum() for g in gs).item() + eps)
        eta = eta if max_lr is None else min(eta, max_lr)
        for i, g in enumerate(gs):
            if not momentum:
                xs[i] = xs[i] - eta * g
            elif adjusted:
                vs[i] = momentum * vs[i] - g
                xs[i] = xs[i] - eta * g + eta * momentum * vs[i]
            else:
                vs[i] = momentum * vs[i] - eta * g
                xs[i] = xs[i] - eta * g + momentum * vs[i]
    return xs


def loss_of(params, step):
    return sum((p - math.sin(step)).square().sum() for p in params)


@pytest.mark.parametrize("max_lr", [None, 0.1])
@pytest.mark.parametrize(
    ("momentum", "adjusted"), [(0.0, False), (0.9, False), (0.9, True), (0.5, True)]
)
def test_200_steps_agree_with_the_written_out_formulas(ref, max_lr, momentum, adjusted):
    start = [p.detach() for p in ref.tensors(shapes=[(5,), (33, 7), (), (40, 30)])]
    settings = {"max_lr": max_lr, "momentum": momentum, "eps": 1e-5, "f_star": 0.01}
    expected = written_out(start, 200, adjusted=adjusted, **settings)
    params = [x.clone().requires_grad_() for x in start]
    groups = [{"params": params[:2]}, {"params": params[2:]}]
    opt = AliG(groups, adjusted_momentum=adjusted, **settings)
    for step in range(200):
        opt.zero_grad()
        loss = loss_of(params, step)
        loss.backward()
        opt.step(loss=loss)
    for p, x in zip(params, expected, strict=True):
        assert (p - x).abs().max() < 1e-12


def test_the_norm_is_that_of_all_groups():
    x, y = torch.zeros(1).requires_grad_(), torch.zeros(1).requires_grad_()
    x.grad, y.grad = torch.tensor([3.0]), torch.tensor([4.0])
    opt = AliG([{"params": [x]}, {"params": [y], "max_lr": 0.01}], eps=0.0)
    opt.step(loss=50.0)
    assert x.item() == pytest.approx(-2.0 * 3)
    assert y.item() == pytest.approx(-0.01 * 4)


def test_a_negative_loss_does_not_lead_uphill():
    x = torch.ones(1).requires_grad_()
    x.grad = torch.ones(1)
    AliG([x]).step(loss=-5.0)
    assert x.item() == 1.0


def test_a_lower_bound_is_subtracted():
    x = torch.ones(1).requires_grad_()
    x.grad = torch.ones(1)
    AliG([x], f_star=-6.0, eps=0.0).step(loss=-5.0)
    assert x.item() == 0.0


def test_a_gradient_of_zero_moves_nothing():
    x = torch.ones(1).requires_grad_()
    x.grad = torch.zeros(1)
    AliG([x], eps=0.0).step(loss=1.0)
    assert x.item() == 1.0


def test_momentum_goes_on_where_the_loss_is_zero():
    x = torch.zeros(1).requires_grad_()
    opt = AliG([x], momentum=0.5, eps=0.0)
    x.grad = torch.ones(1)
    opt.step(loss=1.0)  # v = -1, x = -1 - 0.5
    opt.step(loss=0.0)  # v = -0.5, x = -1.5 - 0.25
    assert x.item() == pytest.approx(-1.75)


@pytest.mark.parametrize("loss", [float("nan"), torch.tensor(float("nan"))])
def test_a_loss_that_is_nan_is_refused(loss):
    x = torch.ones(1).requires_grad_()
    x.grad = torch.ones(1)
    with pytest.raises(ValueError, match="loss is NaN: nothing was moved"):
        AliG([x]).step(loss=loss)
    assert x.item() == 1.0


def test_a_missing_loss_is_refused():
    x = torch.ones(1).requires_grad_()
    opt = AliG([x])
    with pytest.raises(ValueError, match="needs the loss: pass a closure"):
        opt.step()
    with pytest.raises(ValueError, match="loss has 2 elements"):
        opt.step(loss=torch.ones(2))


def test_projection_runs_once_at_the_start_and_once_a_step():
    x, y = torch.ones(1).requires_grad_(), torch.ones(1).requires_grad_()
    calls = []
    opt = AliG([{"params": [x]}, {"params": [y]}], projection_fn=lambda: calls.append(x.item()))
    assert calls == [1.0]
    x.grad = torch.ones(1)
    opt.step(loss=1.0)
    assert len(calls) == 2
    assert calls[1] == pytest.approx(0.0, abs=1e-4)  # after the step


def test_the_ball_holds_all_parameters_together():
    x, y = torch.tensor([30.0]).requires_grad_(), torch.tensor([[40.0]]).requires_grad_()
    opt = AliG([x, y], max_lr=1.0, projection_fn=L2Ball([x, y], 5.0))
    assert x.item() == pytest.approx(3.0)
    assert y.item() == pytest.approx(4.0)
    x.grad, y.grad = torch.ones(1), torch.zeros(1, 1)
    opt.step(loss=1.0)
    assert x.item() == pytest.approx(2.0, abs=1e-4)  # inside: left alone
    assert y.item() == pytest.approx(4.0)
    with pytest.raises(ValueError, match=r"L2Ball\(radius=0\)"):
        L2Ball([x], 0)


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_a_copy_keeps_its_options_and_projects_its_own_parameters(how):
    x = torch.tensor([3.0]).requires_grad_()
    opt = AliG([x], max_lr=0.5, momentum=0.9, projection_fn=L2Ball([x], 1.0))
    other = pickle.loads(pickle.dumps(opt)) if how == "pickle" else copy.deepcopy(opt)
    y = other.param_groups[0]["params"][0]
    with torch.no_grad():
        x.fill_(7.0)
        y.fill_(9.0)
    y.grad = torch.zeros(1)
    other.step(loss=0.0)
    assert (x.item(), y.item()) == (7.0, 1.0)
    assert other.param_groups[0]["max_lr"] == 0.5


def test_the_state_dict_holds_no_functions():
    x = torch.tensor([3.0]).requires_grad_()
    opt = AliG([x], projection_fn=lambda: None)
    values = [v for group in opt.state_dict()["param_groups"] for v in group.values()]
    assert not any(map(callable, values))
