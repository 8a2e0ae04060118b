"""What a step must not do: change gradients, move half, wait for a device, hide a write."""

import pytest
import torch

from solver import optim
from solver.optim import adamw

ALL = {
    "AdamW": {"weight_decay": 0.1},
    "Lion": {"weight_decay": 0.1},
    "MADGRAD": {"weight_decay": 0.1},
    "AdaHessian": {"weight_decay": 0.1},
    "AliG": {"momentum": 0.5},
}
EVERY = pytest.mark.parametrize("name", ALL)
PLAIN = pytest.mark.parametrize("name", [n for n in ALL if n != "AdaHessian"])
pytestmark = pytest.mark.filterwarnings("ignore:Using backward:UserWarning")


def make(name, params, **more):
    return getattr(optim, name)(params, **(ALL[name] | more))


def with_graph(params):
    loss = sum((p**4).sum() for p in params)
    loss.backward(create_graph=True)
    return loss


@EVERY
@pytest.mark.parametrize("maximize", [False, True])
def test_gradients_are_left_as_they_were(ref, name, maximize):
    params = ref.tensors(shapes=[(3,), (40, 41)])
    loss = with_graph(params)
    before = [p.grad.detach().clone() for p in params]
    make(name, params, **({} if name == "AliG" else {"maximize": maximize})).step(lambda: loss)
    for p, g in zip(params, before, strict=True):
        assert torch.equal(p.grad, g)
        assert p.requires_grad
        assert p.grad_fn is None


@EVERY
def test_autograd_notices_that_a_parameter_was_written_to(ref, name):
    for params in (ref.tensors(shapes=[(3,), (40, 41)]), ref.tensors(shapes=[(2, 2)])):
        held = sum((p.exp() * p).sum() for p in params)  # keeps the parameters for backward
        loss = with_graph(params)
        make(name, params).step(lambda loss=loss: loss)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            held.backward()


@EVERY
def test_a_sparse_gradient_is_refused_before_anything_moves(name):
    first, table = torch.ones(3).requires_grad_(), torch.ones(4, 2).requires_grad_()
    opt = make(name, [{"params": [first]}, {"params": [table]}])
    with_graph([first])
    table.grad = torch.zeros(4, 2).to_sparse()
    with pytest.raises(ValueError, match=r"parameter 0 of group 1, shape \(4, 2\)"):
        opt.step(lambda: 1.0)
    assert torch.equal(first, torch.ones(3))
    assert not opt.state.get(first)


@EVERY
def test_the_closure_runs_with_gradients_and_its_loss_is_returned(name):
    x = torch.tensor([3.0]).requires_grad_()
    opt = make(name, [x])

    def closure():
        opt.zero_grad()
        loss = (x**4).sum()
        loss.backward(create_graph=True)
        return loss

    with torch.no_grad():
        assert opt.step(closure).item() == 81.0
    assert x.item() < 3.0


@EVERY
def test_hooks_of_torch_optimizers_run(name):
    x = torch.ones(2).requires_grad_()
    opt = make(name, [x])
    seen = []
    opt.register_step_pre_hook(lambda *_: seen.append(x.detach().clone()))
    opt.register_step_post_hook(lambda *_: seen.append(x.detach().clone()))
    loss = with_graph([x])
    opt.step(lambda: loss)
    assert not torch.equal(*seen)


@EVERY
def test_zero_grad_works_both_ways(name):
    x = torch.ones(2).requires_grad_()
    opt = make(name, [x])
    with_graph([x])
    opt.step(lambda: 1.0)
    opt.zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0.0, 0.0]
    opt.zero_grad()
    assert x.grad is None


@PLAIN
def test_a_step_never_reads_from_the_device(monkeypatch, name):
    """Meta tensors have no values: whatever asks for one raises."""
    params = [torch.ones(s, device="meta").requires_grad_() for s in [(3,), (4, 5), ()]]
    options = {"decouple_decay": True} if name == "MADGRAD" else {}
    opt = make(name, params, **options)
    for step in range(4):
        for i, p in enumerate(params):
            p.grad = None if i == step else torch.ones_like(p)
        loss = torch.ones((), device="meta")
        opt.step(lambda loss=loss: loss)
    if name == "AdamW":
        assert [opt.state[p]["step"].item() for p in params] == [3, 3, 3]


@PLAIN
def test_capturable_steps_are_the_same_and_count_in_tensors(ref, name):
    results = []
    for capturable in (False, True):
        params = ref.tensors()
        opt = make(name, params, capturable=capturable)
        for step in range(12):
            ref.give_gradients(params, step)
            opt.step(lambda: torch.tensor(3.0))
        results.append(params)
    for p, q in zip(*results, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "fused"), [("AdamW", True), ("AdamW", False), ("Lion", False), ("MADGRAD", False)]
)
def test_a_capturable_step_reads_no_number(ref, monkeypatch, name, fused):
    """With everything on the device, counts and learning rate too, nothing is read back."""
    if not fused:
        monkeypatch.setattr(adamw, "FUSED_ON", set())
    params = ref.tensors()
    lr = torch.tensor(0.01)
    opt = make(name, params, lr=lr, capturable=True)

    def gradients():
        for p in params:
            p.grad = torch.ones_like(p)

    gradients()
    opt.step()
    gradients()
    with monkeypatch.context() as patch:
        for reader in ("item", "tolist", "__float__", "__int__", "__bool__"):
            patch.setattr(torch.Tensor, reader, lambda *_, r=reader: pytest.fail(f"{r} was called"))
        opt.step()
    expected = ref.tensors()
    other = make(name, expected, lr=0.01)
    for _ in range(2):
        for p in expected:
            p.grad = torch.ones_like(p)
        other.step()
    for p, q in zip(params, expected, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-8, atol=1e-8)  # lr is a float32 tensor


@pytest.mark.parametrize("name", ["AdamW", "Lion", "MADGRAD", "AdaHessian"])
def test_a_learning_rate_may_be_a_tensor(name):
    results = []
    for lr in (0.25, torch.tensor(0.25)):
        x = torch.tensor([1.0, -2.0]).requires_grad_()
        opt = make(name, [x], lr=lr)
        for _ in range(3):
            opt.zero_grad()
            with_graph([x])
            opt.step()
        results.append(x)
    assert torch.equal(*results)


WRONG = [
    ("AdamW", {"lr": -1.0}, r"AdamW\(lr=-1.0\): must be at least 0"),
    ("AdamW", {"lr": float("nan")}, r"AdamW\(lr=nan\)"),
    ("AdamW", {"lr": torch.ones(2)}, r"AdamW\(lr\): a tensor must have one element"),
    ("AdamW", {"betas": (0.9, 1.0)}, r"AdamW\(betas=1.0\): .* less than 1"),
    ("AdamW", {"betas": 0.9}, r"AdamW\(betas=0.9\): must be two numbers"),
    ("AdamW", {"eps": -1e-8}, r"AdamW\(eps="),
    ("Lion", {"weight_decay": -0.1}, r"Lion\(weight_decay=-0.1\)"),
    ("Lion", {"betas": (-0.1, 0.5)}, r"Lion\(betas=-0.1\)"),
    ("MADGRAD", {"momentum": 1.0}, r"MADGRAD\(momentum=1.0\): .* less than 1"),
    ("AdaHessian", {"hessian_power": 1.5}, r"AdaHessian\(hessian_power=1.5\): .* at most 1"),
    ("AdaHessian", {"update_each": 0}, r"AdaHessian\(update_each=0\): must be a whole number"),
    ("AdaHessian", {"n_samples": 1.5}, r"AdaHessian\(n_samples=1.5\)"),
    ("AdaHessian", {"spatial_average": 0}, r"AdaHessian\(spatial_average=0\)"),
    ("AliG", {"max_lr": -0.1}, r"AliG\(max_lr=-0.1\)"),
]


@pytest.mark.parametrize(("name", "options", "message"), WRONG)
def test_a_wrong_option_is_named(name, options, message):
    x = torch.ones(1).requires_grad_()
    with pytest.raises(ValueError, match=message):
        getattr(optim, name)([x], **options)
    opt = getattr(optim, name)([torch.ones(1).requires_grad_()])
    with pytest.raises(ValueError, match=message):
        opt.add_param_group({"params": [x], **options})
    assert len(opt.param_groups) == 1


def test_an_option_of_another_kind_is_named():
    with pytest.raises(TypeError, match=r"Lion\(lr='fast'\): must be a number"):
        optim.Lion([torch.ones(1).requires_grad_()], lr="fast")  # pyright: ignore


def test_madgrad_takes_real_parameters_only():
    with pytest.raises(ValueError, match="MADGRAD takes real parameters only"):
        optim.MADGRAD([torch.ones(1, dtype=torch.complex64).requires_grad_()])


def test_a_parameter_is_called_by_its_name_where_it_has_one():
    table = torch.nn.Embedding(3, 2, sparse=True)
    opt = optim.AdamW(table.named_parameters())
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(ValueError, match="'weight' of group 0"):
        opt.step()


def test_a_gradient_of_another_dtype_is_converted():
    x = torch.ones(3, dtype=torch.float32).requires_grad_()
    y = torch.ones(3, dtype=torch.float32).requires_grad_()
    x.grad_dtype = torch.float64
    x.grad, y.grad = torch.full((3,), 2.0, dtype=torch.float64), torch.full((3,), 2.0).float()
    for p in (x, y):
        optim.AdamW([p]).step()
    assert torch.equal(x, y)


@pytest.mark.parametrize("name", ["AdamW", "Lion", "MADGRAD", "AliG"])
def test_a_small_problem_is_solved(name):
    target = torch.linspace(-1, 1, 5)
    x = torch.zeros(5).requires_grad_()
    options = {"AliG": {"max_lr": 0.5}}.get(name, {"lr": 0.02, "weight_decay": 0.0})
    opt = getattr(optim, name)([x], **options)
    for _ in range(400):
        opt.zero_grad()
        loss = (x - target).square().sum()
        loss.backward()
        opt.step(lambda loss=loss: loss)
    assert (x - target).abs().max() < 0.05
