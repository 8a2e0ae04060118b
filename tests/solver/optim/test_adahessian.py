"""AdaHessian: the estimate, its refreshes, and the error where there is no curvature to be had."""

import pytest
import torch

from solver.optim import AdaHessian, MissingGraph
from solver.optim.adahessian import averaged

pytestmark = pytest.mark.filterwarnings("ignore:Using backward:UserWarning")


def quartic(x, step):
    """Return a loss without mixed derivatives: the estimate of its diagonal is exact."""
    return ((x - step / 10) ** 4).sum() / 12 + x.square().sum() / 2


def written_out(x, steps, *, lr, betas, eps, weight_decay, power, update_each, sign=1):
    """One line a formula; the diagonal of `quartic` is known."""
    (b1, b2), m, big, t, r = betas, torch.zeros_like(x), torch.zeros_like(x), 0, 0
    for step in range(steps):
        g = sign * ((x - step / 10) ** 3 / 3 + x)
        if step % update_each == 0:
            d = ((x - step / 10) ** 2 + 1).abs()
            d = d.mean((-2, -1), keepdim=True).expand_as(d) if d.dim() == 4 else d
            big, r = b2 * big + (1 - b2) * d * d, r + 1
        t, m = t + 1, b1 * m + (1 - b1) * g
        x = x - lr * weight_decay * x
        denominator = (big / (1 - b2**r)) ** (power / 2) + eps
        x = x - lr * (m / (1 - b1**t)) / denominator
    return x


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 2, 2)])
@pytest.mark.parametrize("update_each", [1, 5])
@pytest.mark.parametrize("power", [1.0, 0.5, 0.0])
def test_200_steps_agree_with_the_written_out_formulas(shape, update_each, power):
    start = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    settings = {
        "lr": 0.05, "betas": (0.9, 0.99), "eps": 1e-4, "weight_decay": 0.1,
        "update_each": update_each,
    }  # fmt: skip
    expected = written_out(start, 200, power=power, **settings)
    x = start.clone().requires_grad_()
    opt = AdaHessian([x], hessian_power=power, **settings)
    for step in range(200):
        opt.zero_grad()
        quartic(x, step).backward(create_graph=opt.needs_graph)
        opt.step()
    assert (x - expected).abs().max() < 1e-12


def test_maximize_climbs_with_the_curvature_of_the_loss():
    start = torch.tensor([0.3, -0.2])
    settings = {"lr": 0.05, "betas": (0.9, 0.99), "eps": 1e-4, "weight_decay": 0.0}
    expected = written_out(start, 5, power=1.0, update_each=1, sign=-1, **settings)
    x = start.clone().requires_grad_()
    opt = AdaHessian([x], maximize=True, **settings)
    for step in range(5):
        opt.zero_grad()
        quartic(x, step).backward(create_graph=True)
        opt.step()
    assert (x - expected).abs().max() < 1e-14


def test_the_step_does_not_grow_between_refreshes():
    """On a quadratic the step is Newton's, in every step, however rare the refreshes."""
    x = torch.tensor([1.0]).requires_grad_()
    opt = AdaHessian([x], lr=0.1, betas=(0.0, 0.999), eps=0.0, update_each=10)
    for step in range(30):
        opt.zero_grad()
        (2 * x**2).sum().backward(create_graph=opt.needs_graph)
        opt.step()
        assert x.item() == pytest.approx(0.9 ** (step + 1), rel=1e-12)


def full_hessian(samples, seed=0):
    """Return |estimate of the diagonal| of a quadratic with mixed derivatives."""
    a = torch.tensor([[2.0, 0.5, -0.3], [0.5, 1.0, 0.4], [-0.3, 0.4, 3.0]])
    x = torch.ones(3).requires_grad_()
    opt = AdaHessian([x], betas=(0.0, 0.0), n_samples=samples, seed=seed)
    (x @ a @ x / 2).backward(create_graph=True)
    opt.step()
    return opt.state[x]["exp_hessian_diag_sq"].sqrt()


def test_many_samples_find_the_diagonal():
    """Averaged before the absolute value is taken, otherwise mixed derivatives would add up."""
    assert full_hessian(1).tolist() != [2.0, 1.0, 3.0]
    torch.testing.assert_close(
        full_hessian(3000), torch.tensor([2.0, 1.0, 3.0]), rtol=0.03, atol=0.03
    )


def test_the_signs_depend_on_the_seed_and_on_the_refresh():
    found = {tuple(full_hessian(1, seed).tolist()) for seed in range(20)}
    assert len(found) == 4  # of 2**3 sign vectors, v and -v are alike
    assert torch.equal(full_hessian(1, 5), full_hessian(1, 5))
    x = torch.ones(3).requires_grad_()
    opt = AdaHessian([x], betas=(0.0, 0.0), lr=0.0)
    seen = set()
    for _ in range(20):
        opt.zero_grad()
        (x.sum() ** 2 + x.square().sum()).backward(create_graph=True)
        opt.step()
        seen.add(tuple(opt.state[x]["exp_hessian_diag_sq"].tolist()))
    assert len(seen) > 1


def test_several_groups_and_a_parameter_without_a_gradient():
    x, y, z = (torch.tensor([float(i)]).requires_grad_() for i in (1, 2, 3))
    opt = AdaHessian([{"params": [x]}, {"params": [y, z], "lr": 0.01}], betas=(0.0, 0.0))
    (x**3 / 6 + z**3 / 6).sum().backward(create_graph=True)
    opt.step()
    assert opt.state[x]["exp_hessian_diag_sq"].item() == pytest.approx(1.0)
    assert opt.state[z]["exp_hessian_diag_sq"].item() == pytest.approx(9.0)
    assert y.item() == 2.0


def test_a_gradient_without_a_graph_is_an_error_and_moves_nothing():
    x, y = torch.ones(2).requires_grad_(), torch.ones(3).requires_grad_()
    opt = AdaHessian([x, y])
    (x.pow(2).sum() + y.pow(2).sum()).backward()
    with pytest.raises(MissingGraph, match=r"parameter 0 of group 0.*create_graph=opt.needs_graph"):
        opt.step()
    assert torch.equal(x, torch.ones(2))
    assert opt.needs_graph


class Once(torch.autograd.Function):
    """x^2 whose backward hides its graph, as adjoints do that integrate backwards."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad.detach() * 2 * x.detach()


def test_a_function_that_can_be_differentiated_only_once_is_noticed():
    x, y = torch.ones(2).requires_grad_(), torch.ones(2).requires_grad_()
    opt = AdaHessian([x, y])
    (x**2 * y**2 + Once.apply(x)).sum().backward(create_graph=True)
    opt.step()  # there is a graph, through the other term
    opt = AdaHessian([x])
    x.grad = None
    Once.apply(x).sum().backward(create_graph=True)
    with pytest.raises(RuntimeError, match="adjoint='backprop'"):
        opt.step()


def test_a_gradient_that_does_not_lead_back_to_its_parameter_is_noticed():
    x, y = torch.ones(2).requires_grad_(), torch.ones(2).requires_grad_()
    x.grad = y**2  # has a graph, but not one of x
    with pytest.raises(MissingGraph, match="cannot be reached"):
        AdaHessian([x]).step()


def test_the_graph_is_needed_in_each_refresh_and_freed_after_it():
    x = torch.ones(2).requires_grad_()
    opt = AdaHessian([x], update_each=3)
    needed = []
    for step in range(7):
        needed.append(opt.needs_graph)
        opt.zero_grad()
        quartic(x, step).backward(create_graph=opt.needs_graph)
        opt.step()
        assert not x.grad.requires_grad
    assert needed == [True, False, False, True, False, False, True]


def test_a_parameter_that_comes_between_two_refreshes_waits_for_the_next():
    x, y = torch.ones(1).requires_grad_(), torch.ones(1).requires_grad_()
    opt = AdaHessian([x, y], update_each=2)
    values = []
    for step in range(3):
        opt.zero_grad()
        loss = x.pow(2).sum() + (y.pow(2).sum() if step else 0)
        loss.backward(create_graph=opt.needs_graph)
        opt.step()
        values.append(y.item())
    assert values[:2] == [1.0, 1.0]
    assert values[2] < 1.0
    assert opt.state[y]["step"].item() == 1


def test_what_is_common_to_all_groups_cannot_differ():
    with pytest.raises(ValueError, match=r"AdaHessian\(update_each=2\) in a group: .* group, 1"):
        AdaHessian([
            {"params": [torch.ones(1).requires_grad_()]},
            {"params": [torch.ones(1).requires_grad_()], "update_each": 2},
        ])  # fmt: skip


def test_spatial_averages():
    kernel = torch.arange(24.0).reshape(2, 3, 2, 2)
    assert averaged(kernel, True)[1, 2].tolist() == [[21.5, 21.5], [21.5, 21.5]]
    assert averaged(kernel, False) is kernel
    matrix = torch.tensor([[1.0, 3.0, 5.0, 7.0, 20.0], [0.0, 0.0, 1.0, 1.0, 2.0]])
    assert averaged(matrix, True) is matrix
    assert averaged(matrix, 2).tolist() == [[2, 2, 6, 6, 20], [0, 0, 1, 1, 2]]
    assert averaged(torch.ones(5), 2).tolist() == [1.0] * 5


def test_the_spatial_average_enters_the_step():
    kernel = torch.linspace(1, 2, 8).reshape(1, 2, 2, 2)
    found = []
    for how in (True, False):
        x = kernel.clone().requires_grad_()
        opt = AdaHessian([x], betas=(0.0, 0.0), spatial_average=how)
        (x**3 / 6).sum().backward(create_graph=True)
        opt.step()
        found.append(opt.state[x]["exp_hessian_diag_sq"].sqrt())
    torch.testing.assert_close(found[1], kernel)
    torch.testing.assert_close(found[0], kernel.mean((-2, -1), keepdim=True).expand_as(kernel))


def test_it_trains_through_a_solve_with_backprop():
    from solver import solve_ivp

    rate = torch.tensor([2.0]).requires_grad_()
    opt = AdaHessian([rate], lr=0.3)
    y0, t = torch.ones(1, 1), torch.tensor([0.0, 1.0])
    losses = []
    for _ in range(12):
        opt.zero_grad()
        end = solve_ivp(lambda t, y: -rate * y, y0, t, method="rk4", dt0=0.1).ys[:, -1]
        loss = (end - 0.5).square().sum()
        loss.backward(create_graph=opt.needs_graph)
        opt.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
