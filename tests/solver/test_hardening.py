"""Hard input: fields and callers that write where they should not, odd times, captured tensors."""

import copy
import gc
import math
import pickle
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from solver import Hook, catalogue, solve_ivp
from solver.errors import InvalidArgument, InvalidType
from solver.statistics.base import Statistic


def decay(t, y):
    return -y


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


# What belongs to whom


def test_a_field_that_writes_into_the_time_does_no_harm():
    start = torch.zeros(2)

    def f(t, y):
        t += 5
        return -y

    sol = solve_ivp(f, torch.ones(2, 1), t0=start, t1=1.0)
    assert start.tolist() == [0.0, 0.0]
    assert sol.ys[0].item() == pytest.approx(math.exp(-1), rel=1e-4)


@pytest.mark.parametrize("name", ["t", "y"])
def test_a_field_that_begins_to_write_into_an_argument_later_is_refused(name):
    def f(t, y):
        if float(t.max()) > 0.5:
            {"t": t, "y": y}[name].zero_()
        return -y

    with pytest.raises(InvalidArgument, match="in place"):
        solve_ivp(f, torch.ones(1, 1), t0=0.0, t1=1.0)


def test_a_field_that_reuses_its_output_gives_the_right_gradient():
    weight, kept = leaf(1.0), {"slope": torch.zeros(2, 1)}

    def f(t, y):
        kept["slope"].detach_().copy_(-weight * y)
        return kept["slope"]

    sol = solve_ivp(f, torch.ones(2, 1), t0=0.0, t1=1.0, rtol=1e-8)
    (gradient,) = torch.autograd.grad(sol.ys.sum(), weight)
    assert sol.ys[0].item() == pytest.approx(math.exp(-1), rel=1e-6)
    assert gradient.item() == pytest.approx(-2 * math.exp(-1), rel=1e-6)


def test_a_field_that_alternates_between_outputs_is_refused_when_gradients_are_wanted():
    kept = [torch.zeros(1, 1), torch.zeros(1, 1)]

    def f(t, y):
        kept.reverse()
        kept[0].detach_().copy_(-y)
        return kept[0]

    with pytest.raises(InvalidArgument, match="had returned before"):
        solve_ivp(f, torch.ones(1, 1, requires_grad=True), t0=0.0, t1=1.0)


def test_what_the_caller_changes_after_the_solve_does_not_reach_the_solution():
    y0, t0, t1 = torch.ones(2, 1), torch.zeros(2), torch.tensor([1.0, 0.0])
    sol = solve_ivp(decay, y0, t0=t0, t1=t1, dense=True)
    before = sol(0.0)
    for tensor in (y0, t0, t1):
        tensor.fill_(7.0)
    assert torch.equal(sol(0.0), before)
    assert sol.ts.tolist() == [[1.0], [0.0]]


def test_what_the_caller_changes_in_the_solution_does_not_reach_the_input():
    y0, t_eval = torch.ones(2, 1), torch.zeros(2)
    sol = solve_ivp(decay, y0, t_eval)
    for tensor in (sol.ys, sol.ts[0], sol.y_reached, sol.stats.n_steps, sol.stats.n_jac_evals):
        tensor.fill_(7)
    assert y0.tolist() == [[1.0], [1.0]]
    assert t_eval.tolist() == [0.0, 0.0]
    assert sol.status.tolist() == [0, 0]
    assert sol.stats.n_accepted.tolist() == [0, 0]


def test_a_hook_that_writes_into_its_records_changes_nothing():
    class Vandal(Hook):
        def on_solve_start(self, info):
            for tensor in (info.y0, info.t0, info.t1, info.rtol, info.atol):
                tensor.fill_(3.0)

        def on_steps(self, steps):
            for tensor in (steps.t, steps.dt, steps.error_ratio, *steps.columns.values()):
                tensor.zero_()
            steps.accepted.logical_not_()
            steps.running.logical_not_()

    given = {"t_eval": torch.linspace(0, 1, 4), "rtol": torch.tensor([[1e-3], [1e-5]])}
    alone = solve_ivp(decay, torch.ones(2, 1), dense=True, **given)
    statistics = list(catalogue.statistics())
    seen = solve_ivp(
        decay, torch.ones(2, 1), dense=True, hooks=[Vandal()], statistics=statistics, **given
    )
    assert torch.equal(alone.ys, seen.ys)
    assert torch.equal(alone(0.3), seen(0.3))


def test_a_strided_state_gives_the_numbers_of_a_contiguous_one():
    base = torch.randn(6, 4)
    for y0 in (base[::2, ::2], base.t()[:3], base[0].expand(3, 4)):
        times = torch.linspace(0, 1, 3)
        dense = y0.clone(memory_format=torch.contiguous_format)
        assert torch.equal(solve_ivp(decay, y0, times).ys, solve_ivp(decay, dense, times).ys)


# Tensors that the field is seen to use, though its first value does not depend on them


class _Callable:
    def __init__(self, weight):
        self.held = {"weight": [weight]}

    def __call__(self, t, y):
        return -self.held["weight"][0] * y if t[0] > 0.5 else -y


class _Slotted:
    __slots__ = ("weight",)

    def __init__(self, weight):
        self.weight = weight

    def field(self, t, y):
        return -self.weight * y if t[0] > 0.5 else -y


class _Holding(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self._weight = weight  # no parameter

    def forward(self, t, y):
        return -self._weight * y if t[0] > 0.5 else -y


def with_default(weight):
    def f(t, y, weight=weight):
        return -weight * y if t[0] > 0.5 else -y

    return f


@pytest.mark.parametrize(
    "make",
    [_Callable, lambda w: _Slotted(w).field, _Holding, with_default],
    ids=["callable", "bound", "module", "default"],
)
def test_a_tensor_used_only_later_is_found_wherever_it_is_held(make):
    weight = leaf(0.5)
    sol = solve_ivp(make(weight), torch.ones(1, 1), t0=0.0, t1=1.0, jump_t=0.5, rtol=1e-6)
    (gradient,) = torch.autograd.grad(sol.ys.sum(), weight)
    assert gradient.item() == pytest.approx(-0.5 * math.exp(-0.75), abs=1e-4)


def test_a_tensor_used_only_later_is_found_in_an_object_given_as_args():
    args = SimpleNamespace(weight=leaf(0.5))

    def f(t, y, args):
        return -args.weight * y if t[0] > 0.5 else -y

    sol = solve_ivp(f, torch.ones(1, 1), t0=0.0, t1=1.0, args=args)
    assert sol.ys.requires_grad


def test_looking_for_tensors_does_not_read_a_whole_data_set():
    data = list(range(3_000_000))
    looked_at = []

    class Lazy(list):
        def __iter__(self):
            for item in super().__iter__():
                looked_at.append(item)
                yield item

    lazy = Lazy(data)

    def f(t, y):
        return -y if lazy else y

    solve_ivp(f, torch.ones(1, 1), t0=0.0, t1=1.0)
    assert len(looked_at) <= 2000


# Arguments


@pytest.mark.parametrize(
    "kwargs",
    [
        {"rtol": np.float32(1e-3)},
        {"rtol": np.array([1e-3, 1e-4])},
        {"max_steps": np.int64(50)},
        {"dt0": np.float32(0.1)},
        {"statistics": "limiter"},
        {"statistics": catalogue.statistic_by_name("factor")},
    ],
    ids=" ".join,  # the names; an object's text has its address, which differs between processes
)
def test_numbers_and_names_may_come_as_they_are_found(kwargs):
    assert solve_ivp(decay, torch.ones(2, 2), t0=0.0, t1=1.0, **kwargs).success.all()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"hooks": None}, "hooks is None: must be a sequence"),
        ({"statistics": None}, "statistics is None: must be names"),
        ({"rtol": "1e-3"}, "rtol is a str"),
        ({"method": catalogue.Mapping}, "method is a"),
        ({"t_eval": [[0.0, 1.0], [0.0]]}, "t_eval is a list: must be numbers"),
        ({"t_eval": [0.0, 1.0], "t_eval_mask": "yes"}, "t_eval_mask is a str"),
    ],
    ids=str,
)
def test_things_of_the_wrong_kind_are_refused_by_name(kwargs, message):
    with pytest.raises(InvalidType, match=message):
        solve_ivp(decay, torch.ones(2, 1), **{"t0": 0.0, "t1": 1.0, **kwargs})


def test_a_sparse_state_is_refused_by_name():
    with pytest.raises(InvalidType, match="y0 has layout"):
        solve_ivp(decay, torch.ones(2, 1).to_sparse(), t0=0.0, t1=1.0)


def test_settings_survive_copying_and_pickling():
    families = (
        catalogue.methods(),
        catalogue.controllers(),
        catalogue.statistics(),
        catalogue.adjoints(),
    )
    for cls in (cls for family in families for cls in family.values()):
        settings = cls()
        for twin in (copy.deepcopy(settings), pickle.loads(pickle.dumps(settings)), cls()):
            assert twin == settings
            assert hash(twin) == hash(settings)


# Hooks


def test_a_kept_block_does_not_keep_autograds_graph():
    class Keeper(Hook):
        statistics = ("factor",)

        def __init__(self):
            self.blocks = []

        def on_steps(self, steps):
            self.blocks.append(steps)

    weight, slopes, keeper = leaf(1.0), [], Keeper()

    def f(t, y):
        slope = -weight * y
        slopes.append(weakref.ref(slope))
        return slope

    solve_ivp(f, torch.ones(1, 1), t0=0.0, t1=1.0, hooks=[keeper])
    gc.collect()
    assert keeper.blocks
    assert not any(slope() is not None for slope in slopes)


def test_states_of_a_row_that_fails_are_its_own_with_and_without_a_graph():
    class Keeper(Hook):
        wants_states = True

        def __init__(self):
            self.states = []

        def on_steps(self, steps):
            self.states.append(steps.y)

    seen = []
    for wanted in (False, True):
        y0, keeper = torch.tensor([[1.0], [0.1]], requires_grad=wanted), Keeper()
        limit = torch.tensor([5, 1000])
        solve_ivp(lambda t, y: y * y, y0, t0=0.0, t1=2.0, max_steps=limit, hooks=[keeper])
        seen.append(torch.cat(keeper.states)[:5, 0, 0])
    assert seen[0].tolist() == pytest.approx(seen[1].tolist(), rel=1e-6)


@pytest.mark.parametrize("answer", ["raises", "shape"])
def test_a_statistic_that_fails_is_told_once_and_nan(answer):
    class Odd(Statistic):
        name = title = unit = help = "odd"

        def measure(self, attempts):
            if answer == "raises":
                raise KeyError("no")
            return attempts.factor[0]

    columns = []

    class Keeper(Hook):
        def on_steps(self, steps):
            columns.append(steps.columns["odd"])

    y0 = torch.ones(2, 1)
    with pytest.warns(RuntimeWarning, match="statistic 'odd' raised") as warned:
        solve_ivp(decay, y0, t0=0.0, t1=5.0, hooks=[Keeper()], statistics=[Odd()])
    assert len(warned) == 1
    assert len(columns) > 2
    assert torch.cat(columns).isnan().all()


def test_an_interrupt_at_the_start_reaches_only_hooks_that_began():
    told = []

    class Quiet(Hook):
        def on_solve_start(self, info):
            told.append("start")

        def on_solve_end(self, end):
            told.append(end.error)

    class Loud(Hook):
        def on_solve_start(self, info):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve_ivp(decay, torch.ones(1, 1), t0=0.0, t1=1.0, hooks=[Quiet(), Loud(), Quiet()])
    assert told == ["start", "KeyboardInterrupt: "]
