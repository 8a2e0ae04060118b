"""Gradients of event times and states: exact in every mode, or refused."""

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from solver import Event, SteadyState, catalogue, solve_ivp
from solver.errors import InvalidArgument

F64 = torch.float64
MODES = list(catalogue.adjoints())
EXACT = [mode for mode in MODES if mode not in ("continuous", "joint", "interpolated")]


def leaf(*values) -> Tensor:
    return torch.tensor(values, dtype=F64, requires_grad=True)


def oscillator(t: Tensor, y: Tensor, w: Tensor) -> Tensor:
    return torch.stack([y[:, 1], -(w**2) * y[:, 0]], dim=1)


def watched(mode: str, y0: Tensor, w: Tensor, level: Tensor, t0: Tensor):
    """Two events of two rows: one passes, the other ends its row."""
    ends = Event(lambda t, y, w: y[:, 0] - level, "falling", terminal=True)
    passes = Event(lambda t, y, w: y[:, 1] + 0.1 * t + 0.5)
    return solve_ivp(
        oscillator, y0, torch.tensor([0.3, 0.9, 5.0], dtype=F64), t0=t0, args=w, params=[level],
        events=[ends, passes], rtol=1e-6, atol=1e-8, adjoint=mode, method="vern7",
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_times_and_states_have_their_derivatives_by_states_parameters_levels_and_start(mode):
    y0 = torch.tensor([[1.0, 0.3], [0.5, 1.0]], dtype=F64, requires_grad=True)
    given = (y0, leaf(1.0, 2.0), leaf(0.2)[0].detach().requires_grad_(), leaf(0.0, 0.1))

    def results(*given):
        sol = watched(mode, *given)
        assert sol.events.index.tolist() == [[1, 0], [1, 0]]
        return sol.event_times, sol.event_states, sol.ys[:, :2].nan_to_num()

    loose = 1e-6 if mode in EXACT else 5e-6
    assert torch.autograd.gradcheck(results, given, atol=loose, rtol=1e-5)


@pytest.mark.parametrize("mode", ["backprop", "checkpoint_steps"])
def test_gradients_pass_through_changes_of_the_state(mode):
    y0 = torch.tensor([[2.0, 0.0], [1.0, 0.5]], dtype=F64, requires_grad=True)
    g, e = leaf(9.81), leaf(0.8)

    def results(y0, g, e):
        sol = solve_ivp(
            lambda t, y: torch.stack([y[:, 1], -g.expand_as(t)], dim=1), y0,
            torch.tensor([0.2, 1.0, 2.0], dtype=F64), t0=0.0, adjoint=mode, rtol=1e-9, atol=1e-11,
            events=Event(lambda t, y: y[:, 0], "falling",
                         apply=lambda t, y: torch.stack([0 * y[:, 0], -e * y[:, 1]], dim=1)),
        )  # fmt: skip
        assert sol.events.count.tolist() == [[2], [3]]
        return sol.event_times.nan_to_num(), sol.event_states.nan_to_num(), sol.ys

    assert torch.autograd.gradcheck(results, (y0, g, e))
    first = results(y0, g, e)[0][0, 0]
    (by_g,) = torch.autograd.grad(first, g)
    exact = -0.5 * math.sqrt(2 * 2.0 / 9.81) / 9.81
    torch.testing.assert_close(by_g, torch.tensor([exact], dtype=F64), rtol=1e-10, atol=0)


@pytest.mark.parametrize("mode", [m for m in MODES if m not in ("backprop", "checkpoint_steps")])
def test_other_modes_refuse_changes_of_the_state_and_name_those_that_do_not(mode):
    y0 = leaf(1.0)[None]
    events = Event(lambda t, y: y[:, 0] - 0.5, apply=lambda t, y: 2 * y)
    with pytest.raises(InvalidArgument, match='"backprop" or "checkpoint_steps"'):
        solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0, events=events, adjoint=mode)
    with torch.no_grad():
        sol = solve_ivp(lambda t, y: -y, y0, t0=0.0, t1=1.0, events=events, adjoint=mode)
    assert sol.events.count.tolist() == [[1]]


@pytest.mark.parametrize("mode", MODES)
def test_rows_without_events_and_failed_rows_leave_the_gradients_of_the_others_alone(mode):
    y0 = torch.tensor([[1.0], [0.1], [math.nan]], dtype=F64, requires_grad=True)
    rate = leaf(1.0)
    sol = solve_ivp(lambda t, y: -rate * y, y0, t0=0.0, t1=2.0, adjoint=mode, rtol=1e-9, atol=1e-12,
                    events=Event(lambda t, y: y[:, 0] - 0.25, terminal=True))  # fmt: skip
    (sol.event_times[0, 0] + sol.event_states[0, 0, 0]).backward()
    torch.testing.assert_close(y0.grad[:, 0], torch.tensor([1.0, 0.0, 0.0], dtype=F64))
    torch.testing.assert_close(rate.grad, torch.tensor([-math.log(4.0)], dtype=F64))


def test_what_only_the_event_or_the_change_uses_has_its_gradient():
    level, kick = leaf(0.5), leaf(0.25)
    event = Event(lambda t, y: y[:, 0] - level, apply=lambda t, y: y + kick)
    sol = solve_ivp(lambda t, y: -y, torch.ones(1, 1, dtype=F64), t0=0.0, t1=1.0, events=event,
                    rtol=1e-10, atol=1e-12)  # fmt: skip
    by_level, by_kick = torch.autograd.grad(sol.ys.sum(), (level, kick))
    # t* = -log l, y(1) = (l + k) exp(t* - 1) = (1 + k / l) / e; once more below 0.5? 0.75 -> 0.55
    torch.testing.assert_close(by_level, torch.tensor([-0.25 / 0.25 / math.e], dtype=F64))
    torch.testing.assert_close(by_kick, torch.tensor([2 / math.e], dtype=F64))


def test_a_steady_state_has_its_derivative():
    rate = leaf(2.0)
    sol = solve_ivp(lambda t, y: -rate * y, torch.ones(1, 1, dtype=F64), t0=0.0, t1=50.0,
                    events=SteadyState(0.0, 1e-2), rtol=1e-9, atol=1e-12)  # fmt: skip
    (by_rate,) = torch.autograd.grad(sol.event_times.sum(), rate)
    # t* = log(100 r) / r
    exact = (1 - math.log(200.0)) / 4
    torch.testing.assert_close(by_rate, torch.tensor([exact], dtype=F64), rtol=1e-6, atol=0)


def test_time_may_run_backward():
    y1 = leaf(1.0)[None]
    sol = solve_ivp(lambda t, y: -y, y1, t0=1.0, t1=-2.0, rtol=1e-10, atol=1e-12,
                    events=Event(lambda t, y: y[:, 0] - 2.0, terminal=True))  # fmt: skip
    torch.testing.assert_close(sol.event_times, torch.full((1, 1), 1 - math.log(2), dtype=F64))
    (by_y,) = torch.autograd.grad(sol.event_times.sum(), y1)
    torch.testing.assert_close(by_y, torch.ones(1, 1, dtype=F64))  # t* = 1 - log(2 / y1)


def test_complex_states_have_their_derivatives():
    y0 = torch.tensor([[1.0 + 0.2j]], dtype=torch.complex128, requires_grad=True)

    def time(y0):
        sol = solve_ivp(lambda t, y: (1j - 0.1) * y, y0, t0=0.0, t1=9.0, rtol=1e-10, atol=1e-12,
                        events=Event(lambda t, y: y[:, 0].real, terminal=True))  # fmt: skip
        return sol.event_times, torch.view_as_real(sol.event_states)

    assert torch.autograd.gradcheck(time, (y0,), atol=1e-6)


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_tangents_travel_through_events():
    def time(y0):
        sol = solve_ivp(lambda t, y: -y, y0[None], t0=0.0, t1=3.0, rtol=1e-10, atol=1e-12,
                        events=Event(lambda t, y: y[:, 0] - 0.5, terminal=True))  # fmt: skip
        return sol.event_times.sum()

    y0 = torch.tensor([2.0], dtype=F64)
    with forward_ad.dual_level():
        found = time(forward_ad.make_dual(y0, torch.ones_like(y0)))
        value, tangent = forward_ad.unpack_dual(found)
    torch.testing.assert_close(value, torch.tensor(math.log(4.0), dtype=F64))
    torch.testing.assert_close(tangent, torch.tensor(0.5, dtype=F64))


@pytest.mark.parametrize("wanted", ["times", "states"])
def test_second_derivatives_are_refused_and_never_wrong(wanted):
    y0 = leaf(2.0)
    sol = solve_ivp(lambda t, y: -y * y, y0[None], t0=0.0, t1=3.0,
                    events=Event(lambda t, y: y[:, 0] + t - 1.7, terminal=True))  # fmt: skip
    (first,) = torch.autograd.grad(getattr(sol.events, wanted).sum(), y0, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiated twice"):
        torch.autograd.grad(first.sum(), y0)


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_transforms_of_functions_are_refused_by_name():
    def time(y0):
        return solve_ivp(lambda t, y: -y, y0[None], t0=0.0, t1=3.0,
                         events=Event(lambda t, y: y[:, 0] - 0.5)).event_times.sum()  # fmt: skip

    with pytest.raises(InvalidArgument, match=r"torch\.autograd"):
        torch.func.grad(time)(torch.tensor([2.0]))
