"""Training goes on as if nothing had happened: saved, copied, edited between steps."""

import copy
import io
import pickle

import pytest
import torch

from solver import optim

ALL = {
    "AdamW": {"lr": 1e-2},
    "Lion": {"lr": 1e-2},
    "MADGRAD": {},
    "AdaHessian": {"lr": 1e-2, "update_each": 3, "n_samples": 2},
    "AliG": {"max_lr": 0.1, "momentum": 0.9},
}
EVERY = pytest.mark.parametrize("name", ALL)
PLAIN = pytest.mark.parametrize("name", [n for n in ALL if n != "AdaHessian"])
pytestmark = pytest.mark.filterwarnings("ignore:Using backward:UserWarning")


def make(name, params, **more):
    return getattr(optim, name)(params, **(ALL[name] | more))


def run(opt, params, steps):
    for step in steps:
        opt.zero_grad()
        noise = torch.Generator().manual_seed(step)
        loss = params[0].new_zeros(())
        for i, p in enumerate(params):
            if (step + i) % 5 != 3:
                target = torch.randn(p.shape, generator=noise)
                loss = loss + ((p - target) ** 4).sum() / 10
        loss.backward(create_graph=getattr(opt, "needs_graph", False))
        opt.step(lambda loss=loss: loss.detach())


def through_a_file(state, **kwargs):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, **kwargs)


def fresh(ref, dtype=torch.float64):
    return ref.tensors(dtype, shapes=[(7,), (30, 50), (1,), (2, 3, 2, 2)])


@EVERY
@pytest.mark.parametrize("at", [1, 10])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_resumed_training_is_the_same_to_the_bit(ref, name, at, dtype):
    params = fresh(ref, dtype)
    run(make(name, params), params, range(20))

    first = fresh(ref, dtype)
    opt = make(name, first)
    run(opt, first, range(at))
    second = [p.detach().clone().requires_grad_() for p in first]
    resumed = make(name, second, **({} if name == "AliG" else {"lr": 5.0}))  # which is overwritten
    resumed.load_state_dict(through_a_file(opt.state_dict(), weights_only=True))
    run(resumed, second, range(at, 20))
    for p, q in zip(params, second, strict=True):
        assert p.isfinite().all()
        assert torch.equal(p, q)


@EVERY
@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_a_copied_optimizer_goes_on_like_the_original(ref, name, how):
    params = fresh(ref)
    opt = make(name, params)
    run(opt, params, range(7))
    pair = (opt, params)
    duplicate = pickle.loads(pickle.dumps(pair)) if how == "pickle" else copy.deepcopy(pair)
    run(opt, params, range(7, 12))
    run(*duplicate, range(7, 12))
    for p, q in zip(params, duplicate[1], strict=True):
        assert p is not q
        assert torch.equal(p, q)
    for p in duplicate[1]:
        assert type(opt.state[params[0]]) is type(duplicate[0].state[p])  # one that is watched


@EVERY
def test_a_loaded_state_is_a_copy(ref, name):
    params = fresh(ref)
    opt = make(name, params)
    run(opt, params, range(6))
    saved = opt.state_dict()
    before = copy.deepcopy(saved["state"])
    others = fresh(ref)
    other = make(name, others)
    other.load_state_dict(saved)
    run(other, others, range(6, 9))
    for key, entries in before.items():
        for name_, entry in entries.items() if isinstance(entries, dict) else ():
            now = saved["state"][key][name_]
            assert torch.equal(now, entry) if isinstance(entry, torch.Tensor) else now == entry


def test_checkpoints_go_to_and_come_from_adamw_of_torch(ref):
    def theirs(params):
        return torch.optim.AdamW(params, lr=1e-2, foreach=False)

    expected = fresh(ref)
    run(theirs(expected), expected, range(15))
    for before, after in (
        (theirs, lambda p: make("AdamW", p)),
        (lambda p: make("AdamW", p), theirs),
    ):
        params = fresh(ref)
        opt = before(params)
        run(opt, params, range(8))
        other = after(params)
        other.load_state_dict(through_a_file(opt.state_dict()))
        run(other, params, range(8, 15))
        for p, q in zip(params, expected, strict=True):
            torch.testing.assert_close(p, q, rtol=1e-13, atol=1e-13)


def test_a_checkpoint_with_amsgrad_is_refused(ref):
    params = fresh(ref)
    theirs = torch.optim.AdamW(params, amsgrad=True)
    with pytest.raises(ValueError, match="AdamW has no amsgrad"):
        make("AdamW", params).load_state_dict(theirs.state_dict())


@EVERY
def test_a_checkpoint_of_an_older_form_is_completed(ref, name):
    """Steps were numbers, and newer options are missing."""
    params = fresh(ref)
    opt = make(name, params)
    run(opt, params, range(5))
    old = copy.deepcopy(opt.state_dict())
    for entries in old["state"].values():
        for key in ("step", "hessian_step"):
            if isinstance(entries, dict) and key in entries:
                entries[key] = int(entries[key])
    for group in old["param_groups"]:
        for key in ("foreach", "maximize", "capturable", "spatial_average", "f_star"):
            group.pop(key, None)
    others = [p.detach().clone().requires_grad_() for p in params]
    other = make(name, others)
    other.load_state_dict(old)
    run(opt, params, range(5, 9))
    run(other, others, range(5, 9))
    for p, q in zip(params, others, strict=True):
        assert torch.equal(p, q)


@PLAIN
def test_options_may_be_edited_between_steps(ref, name):
    key = "max_lr" if name == "AliG" else "lr"
    params, others = fresh(ref), fresh(ref)
    opt = make(name, params)
    opt.param_groups[0][key] = 0.03
    run(opt, params, range(4))
    run(make(name, others, **{key: 0.03}), others, range(4))
    for p, q in zip(params, others, strict=True):
        assert torch.equal(p, q)


def test_a_schedule_works_as_on_the_optimizer_of_torch(ref):
    results = []
    for cls in (optim.AdamW, lambda p, lr: torch.optim.AdamW(p, lr, foreach=False)):
        params = fresh(ref)
        opt = cls(params, lr=0.1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=12)
        for step in range(10):
            run(opt, params, range(step, step + 1))
            schedule.step()
        results.append(params)
    for p, q in zip(*results, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-13, atol=1e-13)


@EVERY
def test_a_group_added_later_starts_at_its_own_first_step(ref, name):
    params = fresh(ref)
    opt = make(name, params[:2])
    run(opt, params[:2], range(6))
    opt.add_param_group({"params": params[2:]})
    run(opt, params, range(6, 9))
    for key in ("step", "hessian_step"):
        if key in opt.state[params[0]]:
            assert opt.state[params[0]][key] > opt.state[params[3]][key] > 0
    fresh_ones = fresh(ref)
    assert not torch.equal(params[3], fresh_ones[3])


@EVERY
def test_replaced_parameter_data_is_what_moves(ref, name):
    params, others = fresh(ref), fresh(ref)
    opt, other = make(name, params), make(name, others)
    run(opt, params, range(3))
    run(other, others, range(3))
    for p, q in zip(params, others, strict=True):
        p.data = p.data.clone() + 1
        with torch.no_grad():
            q.add_(1)
    run(opt, params, range(3, 6))
    run(other, others, range(3, 6))
    for p, q in zip(params, others, strict=True):
        assert torch.equal(p, q)


def test_a_model_may_change_its_dtype(ref):
    params = fresh(ref, torch.float32)
    opt = make("AdamW", params)
    run(opt, params, range(3))
    for p in params:
        p.data, p.grad = p.data.double(), None
    run(opt, params, range(3, 5))
    assert all(opt.state[p]["exp_avg"].dtype == torch.float64 for p in params)


EDITS = {
    "in place": lambda opt, p, key: opt.state[p][key].zero_(),
    "entry": lambda opt, p, key: opt.state[p].__setitem__(key, torch.zeros_like(opt.state[p][key])),
    "update": lambda opt, p, key: opt.state[p].update({key: torch.zeros_like(opt.state[p][key])}),
    "removed": lambda opt, p, key: opt.state[p].pop(key),
    "deleted": lambda opt, p, key: opt.state[p].__delitem__(key),
    "whole dict": lambda opt, p, key: opt.state.__setitem__(
        p, dict(opt.state[p]) | {key: torch.zeros_like(opt.state[p][key])}
    ),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("key", ["exp_avg", "exp_avg_sq", "step"])
def test_an_edited_state_entry_is_used_from_the_next_step_on(ref, key, edit):
    """Set to zero in one parameter, and in one of torch's, which keeps no copies."""
    results = []
    for cls in (optim.AdamW, lambda p, lr: torch.optim.AdamW(p, lr, foreach=False)):
        params = fresh(ref)
        opt = cls(params, lr=0.1)
        run(opt, params, range(4))
        kind = "in place" if cls is not optim.AdamW else edit
        EDITS[kind](opt, params[1], key)
        run(opt, params, range(4, 7))
        results.append((params, opt.state[params[1]]["step"].item()))
    for p, q in zip(results[0][0], results[1][0], strict=True):
        torch.testing.assert_close(p, q, rtol=1e-13, atol=1e-13)
    assert results[0][1] == results[1][1]


@EVERY
def test_a_forgotten_state_starts_anew(ref, name):
    params = fresh(ref)
    opt = make(name, params)
    run(opt, params, range(4))
    opt.state.clear()
    others = [p.detach().clone().requires_grad_() for p in params]
    other = make(name, others)
    run(opt, params, range(5, 8))
    run(other, others, range(5, 8))
    for p, q in zip(params, others, strict=True):
        assert torch.equal(p, q)


def test_a_dict_taken_from_the_state_stays_the_one_in_use(ref):
    params = fresh(ref)
    opt = make("AdamW", params)
    run(opt, params, range(3))
    held = opt.state[params[0]]
    opt.add_param_group({"params": [torch.zeros(3, requires_grad=True)]})
    opt.param_groups[0]["foreach"] = False  # a new plan
    run(opt, params, range(3, 6))
    assert opt.state[params[0]] is held


def test_momentum_switched_on_late_finds_the_start_again():
    x = torch.tensor([2.0]).requires_grad_()
    opt = optim.MADGRAD([x], lr=0.1, momentum=0.0)
    for _ in range(3):
        x.grad = torch.ones(1)
        opt.step()
    opt.param_groups[0]["momentum"] = 0.9
    x.grad = torch.ones(1)
    opt.step()
    assert opt.state[x]["x0"].item() == pytest.approx(2.0, rel=1e-12)


@PLAIN
def test_step_counters_stay_on_the_host_and_are_numbers_one_can_read(ref, name):
    params = fresh(ref)
    opt = make(name, params)
    run(opt, params, range(5))
    if name == "AdamW":
        assert [opt.state[p]["step"].item() for p in params] == [4, 4, 4, 4]
        assert opt.state[params[0]]["exp_avg"].shape == params[0].shape
    if name == "MADGRAD":
        assert opt.state["k"].item() == 5
