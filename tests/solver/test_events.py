"""Events: found where they are, in every row alone, and what becomes of the rows."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from solver import Event, Hook, Status, SteadyState, catalogue, solve_ivp
from solver.errors import InvalidArgument, InvalidType
from solver.statistics.limiter import EVENT

F64 = torch.float64
PI = math.pi


def oscillator(t: Tensor, y: Tensor) -> Tensor:
    """x'' = -x."""
    return torch.stack([y[:, 1], -y[:, 0]], dim=1)


def decay(t: Tensor, y: Tensor) -> Tensor:
    return -y


def zeros_of(event, y0=(0.0, 1.0), t1=10.0, **options):
    """Solve sin t with an event; return the solution."""
    options = {"rtol": 1e-10, "atol": 1e-12} | options
    start = torch.tensor([y0], dtype=F64)
    return solve_ivp(oscillator, start, t0=0.0, t1=t1, events=event, **options)


def x(t: Tensor, y: Tensor) -> Tensor:
    return y[:, 0]


@pytest.mark.parametrize(
    ("direction", "multiples"),
    [("both", (1, 2, 3)), ("falling", (1, 3)), ("rising", (2,)), (-1, (1, 3)), (1, (2,))],
)
def test_a_row_that_starts_on_zero_has_its_crossings_and_not_its_start(direction, multiples):
    sol = zeros_of(Event(x, direction))
    expected = torch.tensor([[k * PI for k in multiples]], dtype=F64)
    torch.testing.assert_close(sol.event_times, expected, rtol=1e-9, atol=0)
    assert sol.status.tolist() == [Status.SUCCESS]
    assert sol.event_states[0, :, 0].abs().max() < 1e-14


@pytest.mark.parametrize(
    "method",
    ["tsit5", "dopri5", "vern7", "dopri8", "bosh3", "rk4", "heun", "fehlberg45", "midpoint"],
)
def test_every_method_locates_its_own_zero_to_the_resolution_of_time(method):
    """The event lies where the method's own dense output is zero, wherever the true one is."""
    fixed = catalogue.method_by_name(method).error_order is None
    options = {"dt0": 0.05} if fixed else {}
    sol = zeros_of(
        Event(x, "falling"), t1=4.0, rtol=1e-4, atol=1e-6, method=method, dense=True, **options
    )
    t = sol.event_times[0, 0]
    assert abs(t - PI) < 1e-2
    around = torch.stack([t - 1e-15 * 8, t + 1e-15 * 8])
    before, after = sol(around)[0, :, 0].tolist()
    assert before >= -1e-15 and after <= 1e-15  # noqa: PT018


def test_a_terminal_event_ends_its_row_alone_and_says_so():
    y0 = torch.tensor([[1.0], [2.0], [0.01], [4.0]], dtype=F64)
    falls = Event(lambda t, y: y[:, 0] - 0.5, terminal=True, name="half")
    grid = torch.linspace(0, 2, 9, dtype=F64)
    with_event = solve_ivp(decay, y0, grid, events=[falls], rtol=1e-9, atol=1e-12)
    without = solve_ivp(decay, y0, grid, rtol=1e-9, atol=1e-12)
    times = torch.log(2 * y0[:, 0])
    assert with_event.status.tolist() == [7, 7, 0, 0]
    assert with_event.status[0] == Status.EVENT
    assert with_event.success.all()
    with_event.raise_if_failed()
    torch.testing.assert_close(with_event.event_times[:2, 0], times[:2], rtol=1e-9, atol=0)
    assert with_event.event_times[2:].isnan().all()
    torch.testing.assert_close(with_event.t_reached[:2], with_event.event_times[:2, 0])
    torch.testing.assert_close(with_event.y_reached[:2, 0], torch.tensor([0.5, 0.5], dtype=F64))
    for row in range(4):
        reached = grid <= with_event.t_reached[row]
        torch.testing.assert_close(with_event.ys[row][reached], without.ys[row][reached])
        assert with_event.ys[row][~reached].isnan().all()
    assert with_event.events.ended_by.tolist() == [0, 0, -1, -1]
    assert "event 0 (half)" in with_event.message(0)
    assert "0.693147" in with_event.message(0)
    assert "reached t = 2" in with_event.message(3)


def test_rows_do_not_depend_on_each_other():
    y0 = torch.tensor([[0.3, 1.0], [1.0, -2.0], [0.0, 5.0]], dtype=F64)
    turn = Event(lambda t, y: y[:, 0] - 0.9, apply=lambda t, y: torch.stack([y[:, 0], -y[:, 1]], 1))
    stop = Event(lambda t, y: y[:, 1] + 0.5 * t, "falling", terminal=2)
    both = solve_ivp(oscillator, y0, t0=0.0, t1=9.0, events=[turn, stop], rtol=1e-8, atol=1e-9)
    for row in range(3):
        alone = solve_ivp(
            oscillator, y0[row : row + 1], t0=0.0, t1=9.0, events=[turn, stop], rtol=1e-8, atol=1e-9
        )
        width = alone.event_times.shape[1]
        torch.testing.assert_close(both.event_times[row, :width], alone.event_times[0],
                                   rtol=1e-13, atol=1e-13, equal_nan=True)  # fmt: skip
        assert both.event_times[row, width:].isnan().all()
        assert both.status[row] == alone.status[0]
        assert both.stats.n_steps[row] == alone.stats.n_steps[0]
        assert both.stats.n_f_evals[row] == alone.stats.n_f_evals[0]


def test_a_row_that_fails_or_has_no_span_leaves_the_others_their_events():
    y0 = torch.tensor([[1.0], [math.nan], [1.0], [1.0]], dtype=F64)
    event = Event(lambda t, y: y[:, 0] - 0.5, terminal=True)
    sol = solve_ivp(decay, y0, t0=0.0, t1=torch.tensor([2.0, 2.0, 0.0, 0.3], dtype=F64),
                    events=event, rtol=1e-9, atol=1e-12)  # fmt: skip
    assert sol.status.tolist() == [7, 1, 0, 0]
    assert abs(sol.event_times[0, 0] - math.log(2)) < 1e-8
    assert sol.event_times[1:].isnan().all()
    empty = solve_ivp(decay, y0[:0], t0=0.0, t1=1.0, events=event)
    assert empty.event_times.shape == (0, 0)
    assert empty.event_states.shape == (0, 0, 1)
    still = solve_ivp(decay, y0[:1], t0=0.0, t1=0.0, events=event)
    assert still.event_times.shape == (1, 0)


@pytest.mark.parametrize("terminal", [1, 2, 3])
def test_a_row_ends_at_the_event_it_was_to_end_at(terminal):
    sol = zeros_of(Event(x, terminal=terminal), t1=20.0)
    torch.testing.assert_close(
        sol.event_times, torch.tensor([[k * PI for k in range(1, terminal + 1)]], dtype=F64),
        rtol=1e-9, atol=0,
    )  # fmt: skip
    assert sol.events.count.tolist() == [[terminal]]
    assert abs(sol.t_reached.item() - terminal * PI) < 1e-8


def test_several_events_of_a_step_come_in_order_of_time():
    """One step over everything: four levels are passed upward, then downward in reverse order."""

    def parabola(t, y):
        return torch.stack([y[:, 1], torch.full_like(y[:, 1], -2.0)], dim=1)

    levels = [0.2, 0.8, 0.5]
    events = [Event(lambda t, y, c=c: y[:, 0] - c) for c in levels]
    y0 = torch.tensor([[0.0, 2.0]], dtype=F64)  # x = 2 t - t^2, top 1 at t = 1
    sol = solve_ivp(parabola, y0, t0=0.0, t1=2.5, dt0=2.5, controller="fixed", method="dopri5",
                    events=events)  # fmt: skip
    assert sol.stats.n_steps.item() == 1
    up = [1 - math.sqrt(1 - c) for c in levels]
    assert sol.events.index.tolist() == [[0, 2, 1, 1, 2, 0]]
    expected = sorted(up + [2 - t for t in up])
    torch.testing.assert_close(sol.event_times, torch.tensor([expected], dtype=F64))
    assert sol.events.count.tolist() == [[2, 2, 2]]


def test_a_narrow_double_crossing_within_a_step_is_seen_and_a_miss_is_not():
    def parabola(t, y):
        return torch.stack([y[:, 1], torch.full_like(y[:, 1], -2.0)], dim=1)

    y0 = torch.tensor([[0.0, 2.0]], dtype=F64).expand(2, 2)
    level = torch.tensor([1 - 1e-4, 1 + 1e-4], dtype=F64)
    sol = solve_ivp(parabola, y0, t0=0.0, t1=2.51, dt0=2.51, controller="fixed",
                    events=Event(lambda t, y: y[:, 0] - level))  # fmt: skip
    torch.testing.assert_close(sol.event_times[0], torch.tensor([0.99, 1.01], dtype=F64))
    assert sol.event_times[1].isnan().all()


def test_the_first_of_two_terminal_events_in_a_step_is_the_one_that_ends_the_row():
    late = Event(lambda t, y: t - 0.7, terminal=True, name="late")
    early = Event(lambda t, y: t - 0.4, terminal=True, name="early")
    seen = Event(lambda t, y: t - 0.2)
    unseen = Event(lambda t, y: t - 0.5)
    y0 = torch.ones(1, 1, dtype=F64)
    sol = solve_ivp(decay, y0, t0=0.0, t1=1.0, events=[late, early, seen, unseen], dt0=1.0,
                    controller="fixed")  # fmt: skip
    assert sol.events.index.tolist() == [[2, 1]]
    torch.testing.assert_close(sol.event_times, torch.tensor([[0.2, 0.4]], dtype=F64))
    assert sol.events.ended_by.tolist() == [1]
    assert sol.events.count.tolist() == [[0, 1, 1, 0]]


def test_events_at_the_same_time_all_happen():
    y0 = torch.ones(1, 1, dtype=F64)
    double = Event(lambda t, y: t - 0.4, apply=lambda t, y: 2 * y)
    add = Event(lambda t, y: t * 2 - 0.8, apply=lambda t, y: y + 1)
    sol = solve_ivp(decay, y0, t0=0.0, t1=0.4 + math.log(2), events=[double, add],
                    rtol=1e-10, atol=1e-12)  # fmt: skip
    assert sol.events.index.tolist() == [[0, 1]]
    torch.testing.assert_close(sol.ys[0, 0], torch.tensor([math.exp(-0.4) + 0.5], dtype=F64))


def test_time_may_run_backward_and_rows_either_way():
    y0 = torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=F64)
    t1 = torch.tensor([-7.0, 7.0], dtype=F64)
    sol = solve_ivp(
        oscillator, y0, t0=0.0, t1=t1, events=Event(x, "rising"), rtol=1e-10, atol=1e-12
    )
    # sin t backward from 0 goes down, so it rises at -pi; forward at 2 pi.
    torch.testing.assert_close(sol.event_times, torch.tensor([[-PI], [2 * PI]], dtype=F64))
    ends = solve_ivp(oscillator, y0, t0=0.0, t1=t1, events=Event(x, terminal=True),
                     rtol=1e-10, atol=1e-12)  # fmt: skip
    torch.testing.assert_close(ends.t_reached, torch.tensor([-PI, PI], dtype=F64))


def test_states_may_be_complex_pytrees_or_of_low_precision():
    spin = torch.ones(1, 1, dtype=torch.complex128)
    turns = Event(lambda t, y: y[:, 0].real, "falling", terminal=True)
    sol = solve_ivp(lambda t, y: 1j * y, spin, t0=0.0, t1=9.0, events=turns, rtol=1e-9, atol=1e-9)
    assert abs(sol.event_times.item() - PI / 2) < 1e-8
    assert abs(sol.event_states.item() - 1j) < 1e-8

    tree = {"x": torch.zeros(2, dtype=F64), "v": torch.ones(2, 1, dtype=F64)}
    sol = solve_ivp(
        lambda t, y: {"x": y["v"][:, 0], "v": -y["x"][:, None]}, tree, t0=0.0, t1=4.0,
        events=Event(lambda t, y: y["x"], terminal=True), rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    assert sol.event_states["v"].shape == (2, 1, 1)
    torch.testing.assert_close(sol.event_times, torch.full((2, 1), PI, dtype=F64))

    for dtype in (torch.float32, torch.float16):
        y0 = torch.tensor([[0.0, 1.0]], dtype=dtype)
        sol = solve_ivp(oscillator, y0, t0=0.0, t1=4.0, events=Event(x, terminal=True))
        assert sol.event_states.dtype == dtype
        assert abs(sol.event_times.item() - PI) < 1e-2
    sol = solve_ivp(oscillator, y0.float(), t0=0.0, t1=4.0, events=Event(x, terminal=True),
                    time_dtype=torch.float32, rtol=1e-6)  # fmt: skip
    assert sol.event_times.dtype == torch.float32
    assert abs(sol.event_times.item() - PI) < 1e-5


def test_events_get_what_the_field_gets():
    rate = torch.tensor([1.0, 2.0], dtype=F64)

    def g(t, y, args):
        assert t.shape == (2,)
        return y[:, 0, 0] - args["level"]

    sol = solve_ivp(
        lambda t, y, args: -y * args["rate"][:, None, None], torch.ones(2, 1, 1, dtype=F64),
        t0=0.0, t1=3.0, args={"rate": rate, "level": 0.25}, events=Event(g, terminal=True),
        rtol=1e-9, atol=1e-12,
    )  # fmt: skip
    torch.testing.assert_close(sol.event_times[:, 0], math.log(4) / rate)


def test_a_plain_callable_is_an_event_with_its_own_attributes():
    sol = zeros_of(x)
    assert sol.event_times.shape == (1, 3)

    def down(t, y):
        return y[:, 0]

    down.terminal, down.direction = True, -1
    sol = zeros_of((down,), y0=(1.0, 1.0))
    assert sol.status.tolist() == [Status.EVENT]
    torch.testing.assert_close(sol.t_reached, torch.tensor([0.75 * PI], dtype=F64))


def test_a_condition_is_located_where_it_becomes_true():
    sol = zeros_of(Event(lambda t, y: y[:, 0] > 0.5, "rising", terminal=True))
    assert abs(sol.t_reached.item() - math.asin(0.5)) < 1e-9


def test_a_steady_state_ends_a_row_and_one_that_starts_at_rest_ends_at_once():
    y0 = torch.tensor([[1.0], [0.0], [1e3]], dtype=F64)
    calls = []

    def f(t, y):
        calls.append(None)
        return -y

    sol = solve_ivp(f, y0, t0=0.0, t1=100.0, events=SteadyState(rtol=0.0, atol=1e-3),
                    rtol=1e-9, atol=1e-12)  # fmt: skip
    assert sol.status.tolist() == [7, 7, 7]
    expected = torch.tensor([math.log(1e3), 0.0, math.log(1e6)], dtype=F64)
    torch.testing.assert_close(sol.event_times[:, 0], expected, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(sol.event_states[0, 0], torch.tensor([1e-3], dtype=F64))
    assert sol.stats.n_f_calls == len(calls)
    assert sol.stats.n_f_evals.max() <= len(calls)
    assert "steady state" in sol.message(1)


def test_a_row_at_rest_does_not_end_where_the_state_is_not():
    sol = solve_ivp(lambda t, y: torch.cos(t)[:, None], torch.zeros(1, 1, dtype=F64), t0=0.0,
                    t1=1.0, events=SteadyState())  # fmt: skip
    assert sol.status.tolist() == [Status.SUCCESS]


def test_dense_output_ends_at_the_event_and_outputs_before_it_are_given():
    grid = torch.linspace(0, 10, 201, dtype=F64)
    sol = solve_ivp(oscillator, torch.tensor([[0.0, 1.0]], dtype=F64), grid, dense=True,
                    events=Event(x, terminal=True), rtol=1e-10, atol=1e-12)  # fmt: skip
    inside = grid <= PI
    torch.testing.assert_close(sol.ys[0, inside, 0], grid[inside].sin(), rtol=0, atol=1e-8)
    assert sol.ys[0, ~inside].isnan().all()
    torch.testing.assert_close(sol(grid), sol.ys, equal_nan=True)
    assert sol(sol.event_times)[0, 0, 0].abs() < 1e-14


def test_an_event_at_the_very_end_ends_the_row_there():
    sol = solve_ivp(decay, torch.ones(1, 1, dtype=F64), torch.tensor([0.5, 1.0]), t0=0.0, t1=1.0,
                    events=Event(lambda t, y: t - 1.0, terminal=True))  # fmt: skip
    assert sol.status.tolist() == [Status.EVENT]
    assert sol.event_times.tolist() == [[1.0]]
    torch.testing.assert_close(sol.ys[0, 1], sol.y_reached[0])


def test_a_state_that_is_reset_goes_on_from_there():
    """y' = 1, back to 0 at 1: a saw tooth; then a counter in the state that only events change."""
    reset = Event(lambda t, y: y[:, 0] - 1, apply=lambda t, y: y * torch.tensor([0.0, 1.0]) +
                  torch.tensor([0.0, 1.0]))  # fmt: skip

    def f(t, y):
        return torch.stack([torch.ones_like(t), torch.zeros_like(t)], dim=1)

    start = torch.tensor([[0.0, 0.0], [0.5, 0.0]], dtype=F64)
    sol = solve_ivp(f, start, torch.tensor([0.75, 1.25, 3.4], dtype=F64), t0=0.0, events=reset)
    expected = [[[0.75, 0], [0.25, 1], [0.4, 3]], [[0.25, 1], [0.75, 1], [0.9, 3]]]
    torch.testing.assert_close(sol.ys, torch.tensor(expected, dtype=F64))
    assert sol.events.count.tolist() == [[3], [3]]
    torch.testing.assert_close(sol.event_times[:, 0], torch.tensor([1.0, 0.5], dtype=F64))


def test_a_ball_bounces_through_shorter_and_shorter_flights_in_both_steppings():
    def fall(t, y):
        return torch.stack([y[:, 1], torch.full_like(y[:, 1], -9.81)], dim=1)

    bounce = Event(x, "falling", apply=lambda t, y: torch.stack([y[:, 0], -0.5 * y[:, 1]], dim=1))
    y0 = torch.tensor([[1.0, 0.0], [3.0, 0.0]], dtype=F64)
    for stepping in ("independent", "joint"):
        sol = solve_ivp(fall, y0, t0=0.0, t1=2.0, events=bounce, stepping=stepping, rtol=1e-8,
                        atol=1e-10, max_steps=2000)  # fmt: skip
        first = torch.sqrt(2 * y0[:, 0] / 9.81)
        for k in range(4):
            after = first * (1 + 2 * sum(0.5**i for i in range(1, k + 1)))
            known = after < 2.0
            torch.testing.assert_close(sol.event_times[known, k], after[known], rtol=1e-7, atol=0)


def test_a_terminal_count_applies_until_the_last():
    double = Event(lambda t, y: y[:, 0] - 1.0, "falling", terminal=3, apply=lambda t, y: 2 * y)
    sol = solve_ivp(decay, torch.full((1, 1), 2.0, dtype=F64), t0=0.0, t1=9.0, events=double,
                    rtol=1e-9, atol=1e-12)  # fmt: skip
    torch.testing.assert_close(sol.t_reached, torch.tensor([3 * math.log(2)], dtype=F64))
    torch.testing.assert_close(sol.y_reached, torch.ones(1, 1, dtype=F64))


def test_hooks_see_the_step_an_event_cut_short_and_the_next_one_begin_there():
    class Keep(Hook):
        statistics = ("limiter",)
        blocks: list = []  # noqa: RUF012

        def on_steps(self, steps):
            self.blocks.append((steps, dict(steps.columns)))

    keep = Keep()
    event = Event(x, "falling", apply=lambda t, y: torch.stack([y[:, 0], -y[:, 1]], dim=1))
    sol = zeros_of(event, t1=8.0, hooks=[keep], rtol=1e-6, atol=1e-8)
    t = torch.cat([block.t[:, 0] for block, _ in keep.blocks])
    dt = torch.cat([block.dt[:, 0] for block, _ in keep.blocks])
    accepted = torch.cat([block.accepted[:, 0] for block, _ in keep.blocks])
    limiter = torch.cat([columns["limiter"][:, 0] for _, columns in keep.blocks])
    ends = (t + dt)[accepted]
    torch.testing.assert_close(ends[:-1], t[accepted][1:])
    assert ((limiter == EVENT).sum()) == sol.events.count.sum() == 2
    torch.testing.assert_close((t + dt)[limiter == EVENT], sol.event_times[0])
    torch.testing.assert_close(sol.event_times, torch.tensor([[PI, 2 * PI]], dtype=F64))


def test_counts_are_those_of_the_calls():
    calls = []

    def f(t, y):
        calls.append(None)
        return oscillator(t, y)

    apply = Event(x, apply=lambda t, y: torch.stack([y[:, 0], -0.9 * y[:, 1]], dim=1))
    for method in ("tsit5", "dopri8", "heun_euler", "vern7"):
        calls.clear()
        sol = solve_ivp(f, torch.tensor([[0.0, 1.0]], dtype=F64), t0=0.0, t1=9.0, method=method,
                        events=[apply], rtol=1e-5, atol=1e-6)  # fmt: skip
        assert sol.stats.n_f_calls == len(calls)
        assert sol.stats.n_f_evals.tolist() == [len(calls)], method


def test_events_beside_known_jumps():
    def f(t, y):
        return torch.where(t < 0.5, 1.0, -1.0)[:, None]

    event = Event(lambda t, y: y[:, 0] - 0.25, terminal=2)
    sol = solve_ivp(f, torch.zeros(1, 1, dtype=F64), t0=0.0, t1=2.0, jump_t=0.5, events=event)
    torch.testing.assert_close(sol.event_times, torch.tensor([[0.25, 0.75]], dtype=F64))


@pytest.mark.parametrize(
    ("event", "error", "text"),
    [
        (lambda: Event(x, "up"), InvalidArgument, "direction='up'"),
        (lambda: Event(x, terminal=-1), InvalidArgument, "terminal=-1"),
        (lambda: Event("x"), InvalidType, "g='x'"),
        (lambda: Event(x, apply=3), InvalidType, "apply=3"),
        (lambda: SteadyState(rtol=-1.0), InvalidArgument, "rtol=-1.0"),
        (lambda: SteadyState(0.0, 0.0), InvalidArgument, "one of them must be positive"),
        (lambda: 3, InvalidType, "events is a int"),
        (lambda: [x, 3], InvalidType, "events holds 3"),
        (lambda: Event(lambda t, y: y), InvalidArgument, r"event 0 returned shape \(1, 2\)"),
        (lambda: Event(lambda t, y: 1.0), InvalidType, "returned a float"),
        (lambda: Event(lambda t, y: y[:, 0] * 1j), InvalidType, "complex128"),
        (
            lambda: Event(x, apply=lambda t, y: y[:, 0]),
            InvalidArgument,
            "apply of event 0 returned",
        ),
    ],
)
def test_bad_events_are_named(event, error, text):
    with pytest.raises(error, match=text):
        zeros_of(event())


def test_a_solve_that_watched_for_nothing_says_so():
    sol = zeros_of(())
    assert sol.events is None
    with pytest.raises(InvalidArgument, match="give events to solve_ivp"):
        _ = sol.event_times


@pytest.mark.parametrize(
    "method",
    [
        *("tsit5", "dopri5", "vern7", "dopri8", "bosh3", "rodas5p", "rodas4", "ros3p"),
        *("kvaerno5", "kvaerno3", "kencarp4", "trbdf2", "radau5", "bdf", "auto", "rkc2"),
    ],
)
def test_the_bouncing_ball_of_the_literature_bounces_when_it_should(method):
    path = Path(__file__).parents[1] / "reference" / "events" / "bouncing_ball.json"
    case = json.loads(path.read_text())
    gravity, restitution = case["params"]["g"], case["params"]["e"]

    def fall(t, y):
        return torch.stack([y[:, 1], torch.full_like(y[:, 1], -gravity)], dim=1)

    def bounce(t, y):
        return torch.stack([torch.zeros_like(y[:, 0]), -restitution * y[:, 1]], dim=1)

    reference, checks = case["reference"], case["checks"]
    sol = solve_ivp(
        fall, torch.tensor([case["y0"]] * len(checks), dtype=F64),
        torch.tensor([*reference["t_mid"], case["t1"]], dtype=F64), t0=case["t0"], method=method,
        rtol=torch.tensor([[check["rtol"]] for check in checks], dtype=F64),
        atol=torch.tensor([[check["atol"]] for check in checks], dtype=F64),
        events=Event(x, "falling", apply=bounce),
    )  # fmt: skip
    times = torch.tensor(case["events"]["times"], dtype=F64)
    true = torch.tensor([*reference["y_mid"], reference["y1"]], dtype=F64)
    assert sol.event_times.shape == (len(checks), case["events"]["count"])
    for row, check in enumerate(checks):
        assert (sol.event_times[row] - times).abs().max() <= check["max_event_time_err"]
        errors = (sol.ys[row] - true).abs().amax(dim=1) / true.abs().amax(dim=1)
        assert errors.max() <= check["max_rel_err_max_norm"]
        speed = restitution * sol.event_states[row, :, 1].abs()
        torch.testing.assert_close(speed, torch.tensor(case["events"]["speed_after"], dtype=F64))


FAMILIES = ["dopri8", "rodas5p", "kvaerno5", "kencarp4", "radau5", "bdf", "auto"]


@pytest.mark.parametrize("method", FAMILIES)
def test_every_family_of_methods_finds_directions_rows_jumps_and_resets(method):
    start = torch.tensor([[0.0, 1.0]] * 3, dtype=F64)
    options = {"method": method, "rtol": 1e-8, "atol": 1e-10}
    for direction, multiples in (("both", [1, 2, 3]), ("rising", [2]), ("falling", [1, 3])):
        event = Event(x, direction, terminal=False)
        sol = solve_ivp(oscillator, start, t0=0.0, t1=10.0, events=event, **options)
        wanted = math.pi * torch.tensor(multiples, dtype=F64)
        torch.testing.assert_close(sol.event_times, wanted.expand(3, -1), rtol=0, atol=1e-5)
    level = torch.tensor([0.5, 0.7, 0.9], dtype=F64)
    sol = solve_ivp(oscillator, start, t0=0.0, t1=10.0, **options,
                    events=Event(lambda t, y: y[:, 0] - level, terminal=True))  # fmt: skip
    torch.testing.assert_close(sol.t_reached, level.asin(), rtol=0, atol=1e-6)
    sol = solve_ivp(
        lambda t, y: torch.where(t[:, None] < 0.5, 1.0, -1.0) + 0 * y, torch.zeros(1, 1, dtype=F64),
        t0=0.0, t1=1.0, jump_t=0.5, events=Event(lambda t, y: y[:, 0] - 0.25, terminal=False),
        **options,
    )  # fmt: skip
    torch.testing.assert_close(sol.event_times[0], torch.tensor([0.25, 0.75], dtype=F64))
    sol = solve_ivp(
        lambda t, y: torch.stack([torch.ones_like(t), -1e3 * (y[:, 1] - y[:, 0].cos())], dim=1),
        torch.tensor([[0.0, 1.0]], dtype=F64), t0=0.0, t1=4.5, **options,
        events=Event(
            lambda t, y: y[:, 0] - 1, apply=lambda t, y: y - y.new_tensor([1.0, 0.0])
        ),
    )  # fmt: skip
    torch.testing.assert_close(sol.event_times[0], torch.arange(1.0, 5.0, dtype=F64))
    sol = solve_ivp(lambda t, y: 50 - 50 * y, torch.zeros(2, 1, dtype=F64), t0=0.0, t1=100.0,
                    events=SteadyState(1e-6, 1e-6), **options)  # fmt: skip
    assert sol.status.tolist() == [Status.EVENT, Status.EVENT]


@pytest.mark.parametrize("method", FAMILIES)
def test_every_family_of_methods_has_the_gradient_of_an_event(method):
    """It happens at pi / k, with a speed of -1 whatever k is."""
    k = torch.tensor(1.3, dtype=F64, requires_grad=True)
    sol = solve_ivp(
        lambda t, y: torch.stack([y[:, 1], -k * k * y[:, 0]], dim=1),
        torch.tensor([[0.0, 1.0]], dtype=F64), t0=0.0, t1=10.0, method=method, params=[k],
        events=Event(x, "falling", terminal=True), rtol=1e-8, atol=1e-10,
    )  # fmt: skip
    (by_time,) = torch.autograd.grad(sol.event_times.sum(), k, retain_graph=True)
    (by_speed,) = torch.autograd.grad(sol.event_states[0, 0, 1], k)
    assert by_time.item() == pytest.approx(-math.pi / 1.3**2, rel=1e-5)
    assert by_speed.item() == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("method", ["radau5", "rodas5p", "kvaerno5", "trbdf2", "gauss4"])
def test_implicit_methods_have_events_and_their_gradients(method):
    rate = torch.tensor(500.0, dtype=F64, requires_grad=True)

    def f(t, y):
        return torch.stack([-rate * (y[:, 0] - t.cos()), -y[:, 1] * y[:, 0]], dim=1)

    options = {"dt0": 0.01} if catalogue.method_by_name(method).error_order is None else {}
    sol = solve_ivp(f, torch.tensor([[0.0, 1.0]], dtype=F64), t0=0.0, t1=2.0, method=method,
                    events=Event(lambda t, y: y[:, 1] - 0.5, terminal=True), params=[rate],
                    rtol=1e-7, atol=1e-9, **options)  # fmt: skip
    # log y1 = -sin t + O(1 / rate) once y0 follows cos t
    assert abs(sol.event_times.item() - math.asin(math.log(2))) < 5e-3
    (by_rate,) = torch.autograd.grad(sol.event_times.sum(), rate)
    late = 1 / 500.0**2 / math.cos(math.asin(math.log(2)))
    assert by_rate.item() == pytest.approx(-late, rel=0.3)
