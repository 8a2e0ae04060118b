"""What every gradient mode must keep to, whatever else it does."""

import gc
import math
import weakref

import pytest
import torch

from solver import (
    ACA,
    Binomial,
    CheckpointSteps,
    Continuous,
    Hook,
    Interpolated,
    Joint,
    Symplectic,
    solve_ivp,
)
from solver.adjoints import step_parallel
from solver.errors import InvalidArgument, UnseenTensor

REPLAYS = [ACA(), Symplectic(), Symplectic(keep="graphs"), Symplectic(keep="values"),
           Symplectic(keep="auto"), Binomial(0.0)]  # fmt: skip
CONTINUOUS = [Continuous(), Continuous(seminorm=False), Joint(), Joint(seminorm=False),
              Interpolated()]  # fmt: skip
MODES = ["backprop", CheckpointSteps(), *REPLAYS, *CONTINUOUS]
TIGHT = {"rtol": 1e-6, "atol": 1e-6}
EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=str)
EVERY_REPLAY = pytest.mark.parametrize("mode", REPLAYS, ids=str)
WITHOUT_GRAPH = pytest.mark.parametrize("mode", [*REPLAYS, *CONTINUOUS], ids=str)


def leaf(values):
    return torch.tensor(values, requires_grad=True)


@EVERY_MODE
def test_tensors_that_the_field_merely_uses_get_their_gradient(mode):
    weight = leaf(0.5)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.b = torch.nn.Parameter(torch.zeros(()))
            self.unused = torch.nn.Parameter(torch.zeros(2))
            self.frozen = torch.nn.Parameter(torch.ones(()), requires_grad=False)

        def forward(self, t, y):
            return -weight * self.frozen * y + self.b

    net = Net()
    solve_ivp(net, torch.ones(1, 1), t0=0.0, t1=1.0, adjoint=mode, **TIGHT).ys.sum().backward()
    assert weight.grad.item() == pytest.approx(-math.exp(-0.5), abs=1e-4)
    assert net.b.grad.item() == pytest.approx((1 - math.exp(-0.5)) / 0.5, abs=1e-4)
    assert net.frozen.grad is None
    assert net.unused.grad is None or not net.unused.grad.any()


@EVERY_MODE
def test_gradients_by_times(mode):
    times = leaf([0.0, 1.0])
    sol = solve_ivp(
        lambda t, y: -y * (1 + t[:, None]), torch.ones(1, 1), times, adjoint=mode, **TIGHT
    )
    (gradient,) = torch.autograd.grad(sol.ys[0, -1].sum(), times)
    torch.testing.assert_close(gradient, torch.tensor([0.223130, -0.446260]), atol=1e-4, rtol=0)
    times = leaf([0.0, 0.5, 1.0])
    sol = solve_ivp(lambda t, y: -y, torch.ones(1, 1), times, adjoint=mode, **TIGHT)
    (gradient,) = torch.autograd.grad(sol.ys[0, 1].sum(), times)
    torch.testing.assert_close(gradient, torch.tensor([0.606531, -0.606531, 0]), atol=1e-4, rtol=0)


@EVERY_MODE
def test_a_loss_on_several_times_counts_each_of_them(mode):
    y0 = leaf([[1.0]])
    solve_ivp(lambda t, y: -y, y0, [0, 0.5, 1.0], adjoint=mode, **TIGHT).ys.sum().backward()
    assert y0.grad.item() == pytest.approx(1.974410, abs=1e-4)


@pytest.mark.parametrize("outer_no_grad", [False, True])
@EVERY_MODE
def test_the_field_may_call_autograd_itself(mode, outer_no_grad):
    def f(t, y):
        with torch.enable_grad():
            y = y if y.requires_grad else y.detach().requires_grad_()
            energy = (y * y / 2).sum()
            return -torch.autograd.grad(energy, y, create_graph=True)[0]

    y0 = leaf([[1.0]])
    with torch.set_grad_enabled(not outer_no_grad):
        sol = solve_ivp(f, y0, t0=0.0, t1=1.0, adjoint=mode, **TIGHT)
    assert sol.ys.item() == pytest.approx(math.exp(-1), abs=1e-4)
    assert sol.ys.requires_grad is not outer_no_grad
    if not outer_no_grad:
        sol.ys.sum().backward()
        assert y0.grad.item() == pytest.approx(math.exp(-1), abs=1e-4)


class Hidden:
    """Holds a tensor where nothing can see it."""

    def __init__(self, tensor):
        box = weakref.ref(tensor)
        self.kept = lambda: box()

    def __call__(self, t, y):
        return -self.kept() * y


@EVERY_MODE
def test_a_hidden_tensor_gets_its_gradient_from_the_first_evaluation(mode):
    weight = leaf(0.5)
    hidden = Hidden(weight)
    sol = solve_ivp(hidden, torch.ones(1, 1), t0=0.0, t1=1.0, adjoint=mode, **TIGHT)
    sol.ys.sum().backward()
    assert weight.grad.item() == pytest.approx(-math.exp(-0.5), abs=1e-4)


@WITHOUT_GRAPH
def test_a_hidden_tensor_used_only_later_is_an_error_or_listed(mode):
    weight = leaf(0.5)
    hidden = Hidden(weight)
    y0 = torch.ones(1, 1, requires_grad=True)

    def f(t, y):
        return -y if t[0] < 0.5 else hidden(t, y)

    if isinstance(mode, Joint):
        pytest.skip("takes no jumps")
    options = {"t0": 0.0, "t1": 1.0, "jump_t": 0.5, "adjoint": mode, **TIGHT}
    sol = solve_ivp(f, y0, **options)
    with pytest.raises(UnseenTensor, match="params"):
        sol.ys.sum().backward()
    solve_ivp(f, y0, params=[weight], **options).ys.sum().backward()
    assert weight.grad.item() == pytest.approx(-0.5 * math.exp(-0.75), abs=1e-5)


@EVERY_MODE
def test_tied_parameters_and_tensors_made_from_others_count_once(mode, apart):
    """Weights made by another network, of which a part is used directly as well."""
    base = torch.randn(2, 2, requires_grad=True)
    y0 = torch.rand(3, 2, requires_grad=True)

    def gradient(adjoint):
        made = torch.tanh(base) * 2
        torch.manual_seed(0)
        net = torch.nn.Linear(2, 2)
        torch.nn.init.eye_(net.weight)
        net.again = net.weight

        def f(t, y):
            return torch.sin(net(y) @ made) - y @ base + torch.nn.functional.linear(y, net.again)

        sol = solve_ivp(f, y0, [0.0, 0.5, 1.0], adjoint=adjoint)
        loss = (sol.ys**2).sum() + made.sum()
        return torch.autograd.grad(loss, [base, y0, net.weight, net.bias, made])

    bound = 1e-2 if mode in CONTINUOUS else 1e-12
    assert apart(gradient(mode), gradient("backprop")) < bound


@EVERY_MODE
def test_failed_rows_get_a_zero_gradient_and_spoil_no_other(mode):
    weight = leaf(-1.0)
    y0 = leaf([[1.0], [1.0], [-1.0], [float("nan")], [2.0]])

    def f(t, y):
        """Row 1 blows up, row 2 is outside the domain, row 3 starts at NaN."""
        blow = torch.where((torch.arange(5) == 1)[:, None], y * y * 3, weight * y)
        return torch.where((torch.arange(5) == 2)[:, None], torch.sqrt(y) * weight, blow)

    sol = solve_ivp(f, y0, [0.0, 0.1, 1.0], adjoint=mode, rtol=1e-4, max_steps=300)
    assert sol.success.tolist() == [True, False, False, False, True]
    loss = sol.ys[:, -1].nan_to_num().sum() + sol.ys[0, 1].sum()
    loss.backward()
    assert y0.grad[:, 0].tolist() == pytest.approx(
        [math.exp(-1) + math.exp(-0.1), 0, 0, 0, math.exp(-1)], abs=1e-3
    )
    assert weight.grad.item() == pytest.approx(3 * math.exp(-1) + 0.1 * math.exp(-0.1), abs=1e-3)


@EVERY_MODE
def test_a_second_derivative_is_right_or_an_error(mode):
    y0 = leaf([[0.7]])
    sol = solve_ivp(lambda t, y: -y * y, y0, t0=0.0, t1=1.0, rtol=1e-9, atol=1e-12, adjoint=mode)
    (first,) = torch.autograd.grad(sol.ys.sum(), y0, create_graph=True)
    assert first.item() == pytest.approx(1 / 1.7**2, rel=1e-6)
    if mode == "backprop" or isinstance(mode, CheckpointSteps):
        (second,) = torch.autograd.grad(first.sum(), y0)
        assert second.item() == pytest.approx(-2 / 1.7**3, rel=1e-5)
    else:
        with pytest.raises(RuntimeError, match="twice"):
            torch.autograd.grad(first.sum(), y0)


@EVERY_MODE
def test_backward_twice_needs_retain_graph_as_in_torch(mode):
    y0, weight = leaf([[0.7]]), leaf(0.3)
    sol = solve_ivp(lambda t, y: torch.sin(weight * y), y0, t0=0.0, t1=1.0, adjoint=mode)
    first = torch.autograd.grad(sol.ys.sum(), [y0, weight], retain_graph=True)
    again = torch.autograd.grad(sol.ys.sum(), [y0, weight])
    assert [a.item() for a in first] == [b.item() for b in again]
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(sol.ys.sum(), [y0, weight])


@WITHOUT_GRAPH
def test_parameters_changed_in_place_before_backward_are_noticed(mode):
    weight = leaf(0.3)
    sol = solve_ivp(lambda t, y: weight * y, torch.ones(1, 1), t0=0.0, t1=1.0, adjoint=mode)
    with torch.no_grad():
        weight.add_(1.0)
    with pytest.raises(RuntimeError, match="inplace"):
        sol.ys.sum().backward()


class WithConstants(torch.nn.Module):
    """A frozen parameter, a buffer, and a counter that the field itself moves on."""

    def __init__(self):
        super().__init__()
        self.learnt = torch.nn.Parameter(torch.tensor(0.5))
        self.frozen = torch.nn.Parameter(torch.tensor(0.7), requires_grad=False)
        self.register_buffer("scale", torch.tensor(0.9))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, t, y, args):
        self.calls += 1
        return self.learnt * torch.tanh(y * self.scale + self.frozen) * args["rate"]


@pytest.mark.parametrize("what", ["frozen", "scale", "rate"])
@pytest.mark.parametrize("mode", [CheckpointSteps(), *REPLAYS, *CONTINUOUS], ids=str)
def test_constants_changed_in_place_before_backward_are_noticed(mode, what):
    field, args = WithConstants(), {"rate": torch.ones(2, 1)}
    sol = solve_ivp(field, torch.ones(2, 1), t0=0.0, t1=1.0, args=args, adjoint=mode)
    constant = args["rate"] if what == "rate" else getattr(field, what)
    with torch.no_grad():
        constant.mul_(3.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        sol.ys.sum().backward()


@EVERY_MODE
def test_what_the_field_itself_changes_is_its_own_business(mode):
    field, args = WithConstants(), {"rate": torch.ones(2, 1)}
    one, other = (
        solve_ivp(field, torch.ones(2, 1), t0=0.0, t1=1.0, args=args, adjoint=mode)
        for _ in range(2)
    )
    (one.ys.sum() + other.ys.sum()).backward()
    assert field.learnt.grad is not None


@EVERY_REPLAY
def test_random_numbers_in_the_field_are_refused(mode):
    net = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    with pytest.raises(InvalidArgument, match="random"):
        solve_ivp(lambda t, y: net(y), torch.ones(1, 1), t0=0.0, t1=1.0, adjoint=mode)
    net.eval()
    solve_ivp(lambda t, y: net(y), torch.ones(1, 1), t0=0.0, t1=1.0, adjoint=mode)


@WITHOUT_GRAPH
def test_dense_output_is_refused_where_it_would_have_no_gradient(mode):
    y0 = leaf([[1.0]])
    with pytest.raises(InvalidArgument, match="dense"):
        solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0, dense=True, adjoint=mode)
    sol = solve_ivp(lambda t, y: -y, y0.detach(), t0=0.0, t1=1.0, dense=True, adjoint=mode)
    assert sol(0.5).item() == pytest.approx(math.exp(-0.5), abs=1e-3)


@EVERY_MODE
def test_dropping_the_result_frees_the_field(mode):
    class Net(torch.nn.Linear):
        def forward(self, t, y):
            return super().forward(y)

    for backward in (False, True):
        net = Net(2, 2)
        alive = weakref.ref(net)
        sol = solve_ivp(net, torch.ones(3, 2), t0=0.0, t1=1.0, adjoint=mode)
        if backward:
            sol.ys.sum().backward()
        del sol, net
        assert alive() is None


@EVERY_MODE
def test_repeated_solves_leave_no_tensor_behind(mode):
    class Owner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.last = torch.nn.Linear(2, 2), None

        def forward(self, t, y):
            return self.net(y)

    owner = Owner()

    def tensors():
        gc.collect()
        return sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())

    for backward in (True, False):
        counts = []
        for round_ in range(20):
            sol = solve_ivp(owner, torch.ones(3, 2), [0.0, 0.5, 1.0], adjoint=mode)
            owner.last = sol
            if backward:
                sol.ys.sum().backward()
                owner.zero_grad()
            if round_ in (5, 19):
                counts.append(tensors())
        assert counts[0] == counts[1]


@EVERY_REPLAY
def test_refused_attempts_cost_no_evaluation_in_backward(mode):
    """Rows with their own meshes: as many steps back as the row with most accepted ones took."""
    calls, refused = [0], []
    speed = torch.tensor([[1.0], [9.0], [30.0]])

    def f(t, y):
        calls[0] += 1
        return -speed * torch.sin(y * 3 + t[:, None])

    for dt0 in (0.01, 3.0):
        y0 = torch.ones(3, 1, requires_grad=True)
        sol = solve_ivp(f, y0, t0=0.0, t1=3.0, dt0=dt0, method="dopri5", adjoint=mode)
        calls[0] = 0
        sol.ys.sum().backward()
        steps = int(sol.stats.n_accepted.max())
        refused.append(int(sol.stats.n_rejected.sum()))
        if isinstance(mode, Binomial):
            assert 6 * steps <= calls[0] <= 6 * 7 * steps
            continue
        once = isinstance(mode, ACA) or mode.keep in ("graphs", "values")
        expected = {True: 6 * steps, False: 11 * steps}[once]
        if not once and mode.keep == "auto":  # one to learn, then all steps at once
            expected = 1 + 6
        assert calls[0] == expected
    assert refused[1] > refused[0]


class Watch(Hook):
    """Keeps what it is told of backward passes."""

    def __init__(self):
        self.seen = []

    def on_backward(self, info):
        """Keep one."""
        self.seen.append(info)


def memory(mode, steps, hidden, dim=8, batch=4):
    """Return the record of a backward pass over fixed steps."""
    watch = Watch()
    net = torch.nn.Sequential(torch.nn.Linear(dim, hidden), torch.nn.Tanh(),
                              torch.nn.Linear(hidden, dim))  # fmt: skip
    speed = torch.linspace(0.5, 1, batch)[:, None]
    sol = solve_ivp(
        lambda t, y: net(y) * speed, torch.ones(batch, dim), t0=0.0, t1=speed[:, 0] * steps * 0.01,
        method="dopri5", controller="fixed", dt0=speed[:, 0] * 0.01, adjoint=mode, hooks=[watch],
    )  # fmt: skip
    sol.ys.sum().backward()
    (info,) = watch.seen
    return info


@EVERY_REPLAY
def test_memory_grows_by_one_state_and_its_times_for_each_accepted_step(mode):
    few, many = memory(mode, 64, 16), memory(mode, 192, 16)
    state, times = 4 * 8 * 8, 2 * 4 * 8
    grown = (many.checkpoint_bytes - few.checkpoint_bytes) / 128
    slopes = 7 * state if mode == Symplectic(keep="values") else 0
    if isinstance(mode, Binomial):  # times alone
        slopes = -state
    assert state <= grown - slopes <= 1.05 * (state + times)
    if getattr(mode, "keep", "") == "auto":  # as many steps at once as fit
        assert many.graph_bytes <= mode.budget * 2**20
    else:
        assert many.graph_bytes == few.graph_bytes
    assert many.n_steps == 192


@EVERY_REPLAY
def test_memory_for_a_step_does_not_grow_with_the_network(mode):
    growth = [
        memory(mode, 96, hidden).checkpoint_bytes - memory(mode, 64, hidden).checkpoint_bytes
        for hidden in (16, 64)
    ]
    assert growth[0] == growth[1]


def test_graphs_of_one_evaluation_or_of_all_stages():
    one = memory(Symplectic(), 8, 32).graph_bytes
    for mode in (ACA(), Symplectic(keep="graphs")):
        assert memory(mode, 8, 32).graph_bytes == pytest.approx(6 * one, rel=0.1)
    for mode in (Symplectic(), ACA(), Symplectic(keep="graphs")):
        info = memory(mode, 64, 32)
        total = info.checkpoint_bytes + info.graph_bytes + info.gradient_bytes
        assert total == pytest.approx(info.predicted_bytes, rel=0.1)


@pytest.mark.parametrize("slots", [4, 8, 16, 64])
def test_binomial_checkpoints_stay_within_their_budget_and_their_work_within_the_law(slots):
    steps, state = 200, 4 * 8 * 8
    info = memory(Binomial(slots * state / 2**20), steps, 16)
    times = steps * 4 * 2 * 8
    assert info.checkpoint_bytes - times <= slots // 2 * state + 4096  # ends are kept besides
    few, many = (memory(Binomial(slots * state / 2**20), n, 16) for n in (100, steps))
    repeated = {4: 6.0, 8: 3.5, 16: 2.5, 64: 2.0}[slots]
    assert 6 * steps <= many.n_f_calls <= (1 + repeated) * 6 * steps
    assert few.n_f_calls < many.n_f_calls
    total = many.checkpoint_bytes + many.graph_bytes + many.gradient_bytes
    assert total == pytest.approx(many.predicted_bytes, rel=0.1)


def test_binomial_checkpoints_serve_a_second_backward_pass():
    y0 = leaf([[0.5], [2.0]])
    sol = solve_ivp(
        lambda t, y: -y * t[:, None], y0, t0=0.0, t1=torch.tensor([1.0, 6.0]), rtol=1e-8,
        adjoint=Binomial(0.0),
    )  # fmt: skip
    once = torch.autograd.grad(sol.ys.sum(), y0, retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(sol.ys.sum(), y0)[0], once)


def test_auto_keeps_all_graphs_only_within_its_budget(monkeypatch):
    monkeypatch.setattr(step_parallel, "SMALL", 0)  # no field is cheap enough for windows
    roomy, tight = Symplectic(keep="auto", budget=10.0), Symplectic(keep="auto", budget=0.001)
    assert memory(roomy, 8, 32).n_f_calls == 1 + 11 + 6 * 7
    assert memory(tight, 8, 32).n_f_calls == 1 + 11 * 8


def test_auto_takes_many_steps_at_once_where_that_is_cheap():
    told = memory(Symplectic(keep="auto", budget=10.0), 8, 32)
    assert told.n_f_calls == 1 + 6
    assert told.graph_bytes is not None
    assert told.graph_bytes > 8 * memory(Symplectic(), 8, 32).graph_bytes


@EVERY_MODE
def test_nothing_is_kept_when_no_gradient_is_wanted(mode):
    net = torch.nn.Linear(2, 2)
    with torch.no_grad():
        sol = solve_ivp(lambda t, y: net(y), torch.ones(2, 2), t0=0.0, t1=1.0, adjoint=mode)
    assert sol.ys.grad_fn is None
