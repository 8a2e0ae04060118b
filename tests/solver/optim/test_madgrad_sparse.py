"""MADGRAD with sparse gradients: the rows they name, with the result of the dense step."""

import pytest
import torch

from solver.optim import MADGRAD


def rows_and_values(step, *, twice=False):
    generator = torch.Generator().manual_seed(step)
    rows = torch.randperm(10, generator=generator)[:3]
    rows = torch.cat([rows, rows[:1]]) if twice else rows
    return rows, torch.randn(len(rows), 4, generator=generator)


@pytest.mark.parametrize("eps", [1e-6, 0.0])
@pytest.mark.parametrize("maximize", [False, True])
def test_200_sparse_steps_agree_with_dense_ones(eps, maximize):
    start = torch.linspace(-1, 1, 40).reshape(10, 4)
    sparse, dense, other = (start.clone().requires_grad_() for _ in range(3))
    options = {"momentum": 0.0, "eps": eps, "maximize": maximize}
    first, second = MADGRAD([sparse, other], **options), MADGRAD([dense], **options)
    for step in range(200):
        rows, values = rows_and_values(step, twice=step % 2 == 0)  # a row may be named twice
        grad = torch.sparse_coo_tensor(rows[None], values, (10, 4), check_invariants=True)
        sparse.grad, dense.grad = grad, grad.to_dense()
        other.grad = grad.to_dense() if step % 3 else None
        first.step()
        second.step()
    torch.testing.assert_close(sparse, dense, rtol=1e-12, atol=1e-12)


def test_rows_without_a_gradient_are_not_written_to():
    x = torch.ones(5, 2).requires_grad_()
    x.grad = torch.sparse_coo_tensor([[3]], torch.ones(1, 2), (5, 2), check_invariants=True)
    opt = MADGRAD([x], momentum=0.0)
    opt.step()
    assert (x != 1).any(dim=1).tolist() == [False, False, False, True, False]
    assert (opt.state[x]["grad_sum_sq"] != 0).any(dim=1).tolist() == [False] * 3 + [True, False]


def test_a_gradient_may_be_sparse_in_one_step_and_dense_in_the_next():
    x, y = (torch.ones(5, 2).requires_grad_() for _ in range(2))
    first, second = MADGRAD([x], momentum=0.0), MADGRAD([y], momentum=0.0)
    for step in range(6):
        dense = torch.zeros(5, 2)
        dense[step % 5] = step + 1.0
        x.grad, y.grad = dense.to_sparse(1) if step % 2 else dense, dense.clone()
        first.step()
        second.step()
    torch.testing.assert_close(x, y, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("option", ["momentum", "weight_decay"])
def test_options_that_touch_every_row_are_refused(option):
    x = torch.ones(5, 2).requires_grad_()
    x.grad = torch.zeros(5, 2).to_sparse()
    opt = MADGRAD([x], **({"momentum": 0.0} | {option: 0.5}))
    with pytest.raises(ValueError, match=f"MADGRAD needs {option}=0 for it, .* {option}=0.5"):
        opt.step()
    assert torch.equal(x, torch.ones(5, 2))
