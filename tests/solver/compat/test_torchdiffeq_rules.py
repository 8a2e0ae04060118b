"""The drop-in for torchdiffeq: options, callbacks, warnings and errors."""

import gc
import math

import pytest
import torch
from torch import Tensor, nn

import solver.compat.torchdiffeq as drop_in
from solver.compat._tableaus import ADAPTIVE
from solver.compat.torchdiffeq import odeint, odeint_adjoint, odeint_dense

F64 = torch.float64
T = torch.tensor([0.0, 1.0])


def decay(t: Tensor, y: Tensor) -> Tensor:
    return -y


class Jump:
    """A field with a jump at 0.5 that counts its evaluations and keeps their times."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, t: Tensor, y: Tensor) -> Tensor:
        self.times.append(t.item())
        return -0.5 * y if t < 0.5 else y**2


@pytest.mark.parametrize("method", [m for m in ADAPTIVE if m != "dopri8"])
@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("backward", [False, True])
def test_known_jumps_are_stepped_on_and_cost_less(method, dtype, backward):
    t = T.flip(0) if backward else T
    y0, blind, told = torch.tensor([1.0, 2.0], dtype=dtype), Jump(), Jump()
    y0 = y0 / 4 if backward else y0
    odeint(blind, y0, t, method=method, rtol=1e-6, atol=1e-6)
    options = {"jump_t": torch.tensor([0.5])}
    odeint(told, y0, t, method=method, options=options, rtol=1e-6, atol=1e-6)
    assert len(told.times) < len(blind.times)
    assert 0.5 not in told.times
    near = min(abs(time - 0.5) for time in told.times)
    assert 0 < near < 1e-6


def test_grid_points_are_stepped_on():
    class Watch(nn.Module):
        def __init__(self):
            super().__init__()
            self.starts: list[float] = []

        def callback_accept_step(self, t0, y0, dt):
            self.starts.append(t0.item())

        def forward(self, t, y):
            return -y

    watch = Watch()
    odeint(watch, torch.ones(1, dtype=F64), T, options={"step_t": torch.tensor([0.3, 0.6])})
    assert {0.3, 0.6} <= {round(t, 6) for t in watch.starts}
    with pytest.raises(ValueError, match="repeated"):
        odeint(decay, torch.ones(1), T, options={"step_t": T[1:], "jump_t": T[1:]})


@pytest.mark.parametrize("method", ["euler", "rk4", "implicit_adams", "trapezoid"])
@pytest.mark.parametrize("perturb", [False, True])
def test_ends_of_steps_are_stepped_beside_if_asked(method, perturb):
    times = []

    def f(t, y):
        times.append(t.item())
        return -y

    odeint(f, torch.ones(1, dtype=F64), T, method=method,
           options={"step_size": 0.5, "perturb": perturb})  # fmt: skip
    assert (0.0 in times) is not perturb
    assert (0.5 in times) is not perturb


def test_a_grid_may_be_constructed_and_adjoints_construct_their_own():
    asked = []

    def constructor(func, y0, t):
        asked.append(t.tolist())
        return torch.linspace(float(t[0]), float(t[1]), 11)

    y0 = torch.tensor(1.0, requires_grad=True)
    y = odeint_adjoint(lambda t, y: y, y0, T, method="euler", adjoint_params=(),
                       options={"grid_constructor": constructor})  # fmt: skip
    assert y[1].item() == pytest.approx(1.1**10, rel=1e-5)
    y[1].backward()
    assert y0.grad.item() == pytest.approx(1.1**10, rel=1e-5)
    assert asked == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("method", ["dopri5", "rk4", "explicit_adams"])
def test_callbacks_see_every_step_forward_and_backward(method):
    counts: dict[str, int] = {}

    class Watched(nn.Module):
        def forward(self, t, y):
            return (-y[0], y[0] * y[1])

    def count(name):
        def callback(t0, y0, dt):
            assert isinstance(y0, tuple)
            assert t0.ndim == 0
            assert dt > 0
            counts[name] = counts.get(name, 0) + 1

        return callback

    field = Watched()
    kinds = ["step", "accept_step", "reject_step"] if method in ADAPTIVE else ["step"]
    for kind in kinds:
        for end in ("", "_adjoint"):
            setattr(field, f"callback_{kind}{end}", count(kind + end))
    options = {} if method in ADAPTIVE else {"options": {"step_size": 0.1}}
    y0 = (torch.ones(2, requires_grad=True), torch.ones(2))
    y = odeint_adjoint(field, y0, T, method=method, **options)
    y[1].sum().backward()
    for end in ("", "_adjoint"):
        if method in ADAPTIVE:
            parts = counts["accept_step" + end] + counts.get("reject_step" + end, 0)
            assert counts["step" + end] == parts > 0
        else:
            assert counts["step" + end] == 10


@pytest.mark.parametrize(
    ("method", "name"),
    [("rk4", "callback_accept_step"), ("scipy_solver", "callback_step")],
)
def test_callbacks_that_are_never_called_are_named(method, name):
    pytest.importorskip("scipy")
    field = nn.Linear(1, 1)
    field.forward = lambda t, y: -y  # type: ignore[method-assign]
    setattr(field, name, lambda t0, y0, dt: None)
    with pytest.warns(UserWarning, match=name):
        odeint(field, torch.ones(1), T, method=method)


@pytest.mark.parametrize("method", ["dopri5", "euler", "implicit_adams", "gl4"])
def test_options_that_are_none_are_named(method):
    with pytest.warns(UserWarning, match="Unexpected arguments.*colour"):
        odeint(decay, torch.ones(1), T, method=method, options={"colour": 3})


def test_step_bounds_are_kept():
    field = Jump()
    odeint(field, torch.tensor([1.0]), T, options={"min_step": 0.5})
    assert len(field.times) < 20
    steps = []

    class Watch(nn.Module):
        def callback_step(self, t0, y0, dt):
            steps.append(dt.item())

        def forward(self, t, y):
            return -y

    odeint(Watch(), torch.ones(1), T, options={"max_step": 0.1, "first_step": 0.02})
    assert steps[0] == pytest.approx(0.02)
    assert max(steps) <= 0.1


def test_the_adjoint_norm_can_be_read_and_replaced_on_the_result():
    y0 = torch.ones(2, 2, requires_grad=True)
    param = torch.rand(7, requires_grad=True)
    y = odeint_adjoint(decay, y0, T, adjoint_params=(param,))
    norm, seen = y.grad_fn.adjoint_options["norm"], []

    def spy(parts):
        seen.append(tuple(part.shape for part in parts))
        expected = max(part.square().mean().sqrt() for part in parts)
        found = norm(parts)
        torch.testing.assert_close(found, expected)
        return found

    y.grad_fn.adjoint_options["norm"] = spy
    y.sum().backward()
    assert set(seen) == {((), (2, 2), (2, 2), (7,))}


def test_a_seminorm_leaves_the_parameters_out():
    def steps(norm):
        field = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 2)).to(F64)
        calls = []

        class Counted(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.net = field

            def forward(self, t, y):
                calls.append(None)
                return self.net(y) * (20 * t).sin()

        y = odeint_adjoint(Counted(), torch.tensor([1.0, 2.0], dtype=F64), T.to(F64),
                           adjoint_options={"norm": norm} if norm else {})  # fmt: skip
        before = len(calls)
        y[-1].sum().backward()
        return len(calls) - before

    torch.manual_seed(1)
    assert steps("seminorm") < steps(None)


def test_tensors_that_join_later_get_their_gradient():
    """A field whose parameter comes in only after a while: the first slopes tell nothing of it."""
    weight = torch.tensor(0.5, dtype=F64, requires_grad=True)

    def f(t, y):
        return -y if t < 0.5 else -weight * y

    y = odeint(f, torch.ones(1, dtype=F64), T.to(F64), options={"jump_t": torch.tensor([0.5])})
    y[-1].sum().backward()
    assert weight.grad.item() == pytest.approx(-0.5 * math.exp(-0.75), rel=1e-5)


def test_second_derivatives_go_through_the_graph():
    rate = torch.tensor(0.7, dtype=F64, requires_grad=True)
    y = odeint(lambda t, y: -rate * y, torch.ones(1, dtype=F64), T.to(F64), rtol=1e-9, atol=1e-10)
    (first,) = torch.autograd.grad(y[-1].sum(), rate, create_graph=True)
    (second,) = torch.autograd.grad(first, rate)
    assert second.item() == pytest.approx(math.exp(-0.7), rel=1e-6)


def test_one_time_is_the_start_itself():
    y0 = torch.rand(2, 3)
    for method in drop_in.SOLVERS:
        assert torch.equal(odeint(decay, y0, T[:1], method=method), y0[None])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: odeint(decay, torch.ones(1), T, method="dopri6"), ValueError, "Must be one of"),
        (lambda: odeint(decay, [1.0], T), AssertionError, "list"),
        (lambda: odeint(decay, torch.ones(1), [0.0, 1.0]), AssertionError, "torch.Tensor"),
        (lambda: odeint(decay, torch.ones(1), T.int()), TypeError, "floating point"),
        (lambda: odeint(decay, torch.ones(1).int(), T), TypeError, "floating point"),
        (lambda: odeint(decay, torch.ones(1), T[None]), AssertionError, "one dimensional"),
        (lambda: odeint(decay, torch.ones(1), torch.zeros(2)), AssertionError, "strictly"),
        (
            lambda: odeint(decay, torch.ones(1), T, rtol=torch.tensor(1e-3, requires_grad=True)),
            AssertionError, "rtol cannot require",
        ),
        (lambda: odeint(decay, (T, T), T, rtol=(1e-3,)), AssertionError, "rtol has 1 parts"),
        (
            lambda: odeint(decay, torch.ones(1), torch.rand(3).cumsum(0), event_fn=decay),
            ValueError, r"len\(t\) == 2",
        ),
        (lambda: odeint_adjoint(decay, torch.ones(1), T), ValueError, "adjoint_params"),
        (
            lambda: odeint_adjoint(decay, torch.ones(1), T, adjoint_params=(), options={},
                                   adjoint_method="rk4"),
            ValueError, "adjoint_options",
        ),
        (
            lambda: odeint(decay, torch.ones(1), T, method="rk4",
                           options={"step_size": 0.1, "grid_constructor": lambda *a: T}),
            ValueError, "mutually exclusive",
        ),
        (
            lambda: odeint(decay, torch.ones(1), T, method="rk4", event_fn=lambda t, y: y - 0.5),
            AssertionError, "step_size",
        ),
        (lambda: odeint_dense(decay, (T,), 0.0, 1.0), AssertionError, "must be a Tensor"),
        (lambda: odeint_dense(decay, T, 0.0, 1.0, method="rk4"), AssertionError, "dopri5"),
        (
            lambda: odeint(lambda t, y: y * math.nan, torch.ones(1), T), AssertionError,
            "underflow in dt",
        ),
        (
            lambda: odeint(decay, torch.tensor([math.nan]), T), AssertionError,
            "non-finite values in state `y`",
        ),
        (
            lambda: odeint(lambda t, y: 50 * t.cos() - 50 * y, torch.ones(1), T,
                           options={"max_num_steps": 3}),
            AssertionError, "max_num_steps exceeded",
        ),
    ],
)  # fmt: skip
def test_mistakes_raise_what_torchdiffeq_raises(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_field_that_keeps_its_result_keeps_no_more_memory():
    """A result holds its graph, the graph the field, and the field the result: nothing is freed."""

    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.rate = nn.Parameter(torch.ones(()))
            self.result: Tensor | None = None

        def forward(self, t, y):
            return -self.rate * y

    def alive() -> int:
        gc.collect()
        return sum(issubclass(type(each), Tensor) for each in gc.get_objects())

    counts = []
    for i in range(12):
        field = Keeps()
        field.result = odeint_adjoint(field, torch.ones(3), T)
        field.result.sum().backward()
        del field
        if i in (3, 11):
            counts.append(alive())
    assert counts[0] == counts[1]


def test_a_second_backward_pass_needs_the_graph_kept():
    y0 = torch.ones(2, requires_grad=True)
    y = odeint_adjoint(decay, y0, T, adjoint_params=())
    y[-1].sum().backward(retain_graph=True)
    first = y0.grad.clone()
    y[-1].sum().backward()
    torch.testing.assert_close(y0.grad, 2 * first)
    with pytest.raises(RuntimeError):
        y[-1].sum().backward()
