"""`foreach=False` moves one tensor at a time, to the same bits; nor do layouts or dtypes matter."""

import pytest
import torch

from solver import optim

ALL = {
    "AdamW": {"lr": 1e-2, "weight_decay": 0.1},
    "Lion": {"lr": 1e-2, "weight_decay": 0.1},
    "MADGRAD": {"weight_decay": 0.1, "momentum": 0.9},
    "MADGRAD without momentum": {"weight_decay": 0.1, "momentum": 0.0},
    "AdaHessian": {"lr": 1e-2, "weight_decay": 0.1, "update_each": 3},
    "AliG": {"max_lr": 0.1, "momentum": 0.9},
    "AliG without momentum": {"max_lr": 0.1},
}


def make(name, params, **more):
    return getattr(optim, name.split()[0])(params, **(ALL[name] | more))


def loss_of(params, step):
    """Every element has curvature; one parameter has no gradient in some steps."""
    noise = torch.Generator().manual_seed(step)
    total = params[0].new_zeros(())
    for i, p in enumerate(params):
        if p.numel() and (step + i) % 7 != 3:
            target = torch.randn(p.shape, generator=noise, dtype=p.dtype)
            total = total + ((p - target) ** 4).sum() + (p - target).square().sum()
    return total / 100


def run(opt, params, steps):
    for step in steps:
        opt.zero_grad()
        loss = loss_of(params, step)
        loss.backward(create_graph=getattr(opt, "needs_graph", False))
        opt.step(lambda loss=loss: loss.detach())
    return [p.detach().clone() for p in params]


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", ALL)
def test_list_form_and_loop_form_are_equal_bit_for_bit(ref, name, dtype):
    results = []
    for foreach in (True, False):
        params = ref.tensors(dtype)
        groups = [
            {"params": params[:3]},
            {"params": []},
            {"params": params[3:], "foreach": foreach},
        ]
        opt = make(name, groups, foreach=foreach)
        results.append(run(opt, params, range(20)))
    for in_list, alone in zip(*results, strict=True):
        assert torch.equal(in_list, alone)
    moved = zip(results[0], ref.tensors(dtype), strict=True)
    assert all(not torch.equal(x, y) for x, y in moved if x.numel())


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@pytest.mark.parametrize("name", ALL)
def test_groups_without_gradients_are_passed_over(ref, name):
    params = ref.tensors(shapes=[(4,), (3,), (5,)])
    opt = make(name, [{"params": params[:1]}, {"params": []}, {"params": params[1:]}])
    before = [p.detach().clone() for p in params]
    assert opt.step(lambda: torch.tensor(2.0)).item() == 2.0  # no gradient at all
    loss = params[2].pow(2).sum()
    loss.backward(create_graph=True)
    opt.step(lambda: loss)
    changed = [not torch.equal(p, b) for p, b in zip(params, before, strict=True)]
    assert changed == [False, False, True]


LAYOUTS = {
    "transposed": lambda g: g.t().contiguous().t(),
    "strided": lambda g: torch.stack([g, g], dim=-1).flatten(-2)[..., ::2],
    "gaps between rows": lambda g: torch.cat([g, g], dim=1)[:, : g.shape[1]],
    "negative view": lambda g: torch._neg_view(-g),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["AdamW", "Lion", "MADGRAD", "AliG", "AliG without momentum"])
def test_the_storage_of_a_gradient_does_not_matter(ref, name, layout):
    results = []
    for form in (lambda g: g, LAYOUTS[layout]):
        params = ref.tensors(shapes=[(5, 3), (40, 41)])
        opt = make(name, params)
        for step in range(3):
            ref.give_gradients(params, step + 10)
            for p in params:
                p.grad = p.grad if p.grad is None else form(p.grad)
            opt.step(lambda: 1.0)
        results.append(params)
    for x, y in zip(*results, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["AdamW", "Lion", "MADGRAD", "AliG"])
def test_an_expanded_gradient_counts_for_every_element(name):
    x, y = torch.ones(4, 3).requires_grad_(), torch.ones(4, 3).requires_grad_()
    x.grad, y.grad = torch.tensor([[2.0]]).expand(4, 3), torch.full((4, 3), 2.0)
    for p in (x, y):
        make(name, [p]).step(lambda: 1.0)
    assert torch.equal(x, y)


@pytest.mark.parametrize("name", ["AdamW", "Lion", "MADGRAD", "AliG"])
def test_parameters_may_lie_in_storage_in_any_order(ref, name):
    """Channels last, transposed, with gaps: moved like contiguous ones."""

    def channels_last(t):
        return t.contiguous(memory_format=torch.channels_last)

    def with_gaps(t):
        return torch.stack([t, t], dim=-1).flatten(-2)[..., ::2]

    results = []
    for first, second in ((lambda t: t, lambda t: t), (channels_last, with_gaps)):
        values = ref.tensors(shapes=[(2, 3, 4, 5), (6, 7)])
        params = [
            form(p.detach()).requires_grad_()
            for form, p in zip((first, second), values, strict=True)
        ]
        opt = make(name, params)
        for step in range(5):
            ref.give_gradients(params, step + 10)
            opt.step(lambda: 1.0)
        results.append(params)
    for x, y in zip(*results, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-13, atol=1e-13)


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
@pytest.mark.parametrize("name", [n for n in ALL if "MADGRAD" not in n])
def test_a_complex_parameter_moves_like_its_real_and_imaginary_part(ref, name):
    pair = ref.tensors(shapes=[(6, 2)])[0].detach()
    z = torch.view_as_complex(pair.clone()).requires_grad_()
    r = pair.clone().requires_grad_()
    for p in (z, r):
        opt = make(name, [p])
        for step in range(8):
            opt.zero_grad()
            x = torch.view_as_real(p) if p.is_complex() else p
            loss = ((x - step) ** 4).sum() / 50 + (x[:, 0] * x[:, 1]).sum()
            loss.backward(create_graph=getattr(opt, "needs_graph", False))
            opt.step(lambda loss=loss: loss.detach())
    # Hutchinson's signs for x and y are those for the parts of z.
    torch.testing.assert_close(torch.view_as_real(z.detach()), r.detach(), rtol=1e-12, atol=1e-12)


def test_a_conjugated_gradient_is_read_right():
    z, w = (torch.tensor([1 + 2j, 3 - 1j]).requires_grad_() for _ in range(2))
    z.grad, w.grad = torch.tensor([1 - 1j, 2j]).conj(), torch.tensor([1 + 1j, -2j])
    for p in (z, w):
        optim.AdamW([p], lr=0.1).step()
    assert torch.equal(z, w)


@pytest.mark.parametrize("name", ["AdamW", "Lion", "MADGRAD", "AliG"])
def test_dtypes_may_be_mixed_in_one_group(ref, name):
    """Each tensor moves as it does alone; half precision has float32 state."""
    dtypes = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float64]
    together = [torch.linspace(-1, 1, 9, dtype=d).requires_grad_() for d in dtypes]
    alone = [p.detach().clone().requires_grad_() for p in together]
    opt = make(name, together)
    others = [make(name, [p]) for p in alone]
    for step in range(10):
        ref.give_gradients(together, step + 10)
        for p, q in zip(together, alone, strict=True):
            q.grad = None if p.grad is None else p.grad.clone()
        opt.step(lambda: 1e9)  # Ali-G: clipped, so that the norm of all is not felt
        for other in others:
            other.step(lambda: 1e9)
    for p, q in zip(together, alone, strict=True):
        assert torch.equal(p, q)
    for p in together:
        for key, entry in opt.state[p].items():
            wide = torch.float32 if p.dtype.itemsize == 2 or key == "step" else p.dtype
            assert entry.dtype == wide


def test_half_precision_averages_do_not_stall():
    """0.001 g^2 added to v of about g^2 is lost in bfloat16, not in float32."""
    x = torch.zeros(1, dtype=torch.bfloat16).requires_grad_()
    opt = optim.AdamW([x], lr=1e-3)
    for step in range(400):
        x.grad = torch.full_like(x, 1.0 if step < 200 else 2.0)
        opt.step()
    t = 400
    expected = 4 * (1 - 0.999**200) + (1 - 0.999**200) * 0.999**200
    assert opt.state[x]["exp_avg_sq"].item() == pytest.approx(expected, rel=1e-4)
    assert opt.state[x]["step"].item() == t
