"""The laws themselves: against written-out formulas, and the design conditions of the filters."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.controllers.digital_filter import DigitalFilter, coefficients
from solver.controllers.integral import Integral
from solver.controllers.pi import PI
from solver.controllers.pid import PID
from solver.errors import InvalidArgument, InvalidType, UnknownController

ratio_lists = st.lists(st.floats(1e-7, 1e3), min_size=1, max_size=12)
gains = st.tuples(st.floats(0.0, 1.0), st.floats(0.05, 1.0), st.floats(0.0, 0.5))


def factors(controller, order: int, ratios: list[float]) -> list[float]:
    """Return the factors for a run of attempts of one row."""
    history = controller.init(torch.ones(1, dtype=torch.float64))
    given_factors = []
    for ratio in ratios:
        proposal = controller.propose(torch.tensor([ratio], dtype=torch.float64), order, history)
        history = proposal.history
        given_factors.append(proposal.factor.item())
    return given_factors


def torchode_pid(p, i, d, order, ratios):
    """PID as torchode defines it, but for a refused step that it might let grow."""
    k = order + 1
    b1, b2, b3 = (p + i + d) / k, -(p + 2 * d) / k, d / k
    e1 = e2 = 1.0
    out = []
    for e in ratios:
        factor = min(max(0.9 * e**-b1 * e1**-b2 * e2**-b3, 0.2), 10.0)
        if e <= 1:
            e1, e2 = e, e1
        else:
            factor = min(factor, 0.9)
        out.append(factor)
    return out


def diffrax_pid(p, i, d, order, ratios):
    """PID as diffrax defines it: accepted steps never shrink, refused ones do, to 0.9 or less."""
    k = order + 1
    inverse_1 = inverse_2 = 1.0
    out = []
    for e in ratios:
        keep = e <= 1
        inverse = 1 / e
        factor = 0.9
        factor *= inverse ** ((p + i + d) / k)
        factor *= inverse_1 ** (-(p + 2 * d) / k)
        factor *= inverse_2 ** (d / k)
        low, high = (1.0, 10.0) if keep else (0.2, 0.9)
        out.append(min(max(factor, low), high))
        if keep:
            inverse_1, inverse_2 = inverse, inverse_1
    return out


@settings(deadline=None, derandomize=True, max_examples=60)
@given(gains, st.sampled_from([2, 4, 7]), ratio_lists)
def test_pid_gives_torchodes_factors(pid, order, ratios):
    p, i, d = pid
    mine = factors(PID(kp=p, ki=i, kd=d), order, ratios)
    assert mine == pytest.approx(torchode_pid(p, i, d, order, ratios), rel=1e-9)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(gains, st.sampled_from([2, 4, 7]), ratio_lists)
def test_pid_gives_diffraxs_factors(pid, order, ratios):
    p, i, d = pid
    mine = factors(PID(kp=p, ki=i, kd=d, never_shrink_on_accept=True), order, ratios)
    assert mine == pytest.approx(diffrax_pid(p, i, d, order, ratios), rel=1e-9)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.sampled_from([2, 4, 7]), ratio_lists)
def test_i_and_pi_are_pid_without_the_missing_gains(order, ratios):
    integral = factors(Integral(), order, ratios)
    assert integral == factors(PID(kp=0.0, ki=1.0), order, ratios)
    assert integral == pytest.approx(torchode_pid(0, 1, 0, order, ratios), rel=1e-9)
    assert factors(PI(kp=0.3, ki=0.4), order, ratios) == factors(PID(kp=0.3, ki=0.4), order, ratios)


def test_scipy_preset_is_scipys_rule():
    ratios = [1e-3, 0.5, 7.0, 1e-3, 1e-3, 3.0, 2.0, 0.2, 0.9]
    expected, refused = [], False
    for e in ratios:
        factor = 0.9 * e ** (-1 / 5)
        if e <= 1:
            factor = min(10.0, factor)
            expected.append(min(1.0, factor) if refused else factor)
            refused = False
        else:
            expected.append(max(0.2, factor))
            refused = True
    assert factors(Integral.preset("scipy"), 4, ratios) == pytest.approx(expected, rel=1e-12)


def test_hairers_dopri5_exponents():
    law = PI.preset("hairer_dopri5").law
    assert law.beta[0] / 5 == pytest.approx(0.2 - 0.04 * 0.75)
    assert law.beta[1] / 5 == pytest.approx(-0.04)


@pytest.mark.parametrize("name", list(DigitalFilter.presets))
def test_filter_factor_written_out(name):
    digital, k, ratios = DigitalFilter.preset(name), 5, [0.4, 0.9, 0.05, 0.3]
    (b1, b2, b3), (a2, a3), _, _ = coefficients(name, digital.b)
    theta = digital.safety**k
    e1 = e2 = rho1 = rho2 = 1.0
    expected = []
    for e in ratios:
        x = (theta / e) ** (b1 / k) * (theta / e1) ** (b2 / k) * (theta / e2) ** (b3 / k)
        x *= rho1**-a2 * rho2**-a3
        kappa = (digital.grow - 1) * 2 / math.pi
        x = max(1 + kappa * math.atan((x - 1) / kappa), digital.shrink)
        expected.append(x)
        e1, e2, rho1, rho2 = e, e1, x, rho1
    assert factors(digital, 4, ratios) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("b", [4.0, 6.5, 8.0])
@pytest.mark.parametrize("name", list(DigitalFilter.presets))
def test_filter_meets_its_design_orders(name, b):
    """Closed loop (q-1) Q(q) + P(q): stable; (q-1)^A divides (q-1) Q, (q+1)^F divides P."""
    beta, alpha, (dynamics, adaptivity, low_pass), source = coefficients(name, b)
    p = np.array(beta)
    open_loop = np.polymul([1, -1], [1, *alpha])
    for _ in range(adaptivity):
        open_loop, rest = np.polydiv(open_loop, [1, -1])
        assert rest == pytest.approx(0, abs=1e-12)
    assert abs(np.polyval(open_loop, 1)) > 1e-9  # no higher order than said
    for _ in range(low_pass):
        p, rest = np.polydiv(p, [1, 1])
        assert rest == pytest.approx(0, abs=1e-12)
    assert abs(np.polyval(p, -1)) > 1e-9
    poles = np.roots(np.polyadd(np.polymul([1, -1], [1, *alpha]), beta))
    assert (abs(poles) < 1).all()
    if name in ("h110", "h0211", "h0312", "h0321"):
        assert abs(poles) == pytest.approx(0, abs=1e-4)  # deadbeat
    used = [i for i, value in enumerate((*beta[1:], *alpha)) if value]
    assert dynamics == 1 + max(((i % 2) + 1 for i in used), default=0)
    assert "Soederlind" in source or "Gustafsson" in source


@pytest.mark.parametrize("b", [4.0, 8.0])
def test_b_is_4_for_deadbeat_h312b_and_slower_above(b):
    beta, alpha, *_ = coefficients("h312b", b)
    poles = np.roots(np.polyadd(np.polymul([1, -1], [1, *alpha]), beta))
    assert max(abs(poles)) == pytest.approx(1 - 4 / b, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "filtered"),
    [
        ("pi42", "pi.4.2"),
        ("pi33", "pi.3.3"),
        ("pi34", "pi.3.4"),
        ("h211pi", "h211"),
        ("h312pid", "h312"),
    ],
)
def test_pid_presets_are_the_filters_of_that_name(name, filtered):
    law, other = PID.preset(name).law, DigitalFilter.preset(filtered).law
    assert law.beta == pytest.approx(other.beta)
    assert law.gain == pytest.approx(other.gain)


@pytest.mark.parametrize(
    ("make", "settings_given", "message"),
    [
        (PID, {"ki": 3}, r"PID\(ki=3\): must be between 0.01 and 2.0"),
        (PID, {"kp": math.nan}, r"PID\(kp=nan\)"),
        (PI, {"kp": -0.9, "ki": 0.3}, "add up to -0.6"),
        (Integral, {"safety": 1.0}, r"safety=1.0"),
        (Integral, {"safety": 0.3, "shrink": 0.5}, r"shrink=0.5\): must be at most safety \(0.3\)"),
        (PID, {"limiter": "hard"}, "one of 'clamp', 'smooth'"),
        (DigitalFilter, {"filter": "h999"}, "'h211b'"),
        (DigitalFilter, {"b": 1.0}, "b=1.0"),
    ],
)
def test_settings_out_of_bounds_are_named(make, settings_given, message):
    with pytest.raises(InvalidArgument, match=message):
        make(**settings_given)


def test_a_gain_that_is_no_number_is_a_type_error():
    with pytest.raises(InvalidType, match="ki='much'"):
        PID(ki="much")  # pyright: ignore[reportArgumentType]


def test_presets_take_changes_and_unknown_ones_are_named():
    assert PID.preset("PI.4.2", shrink=0.5).shrink == 0.5
    assert DigitalFilter.preset("H211b").filter == "h211b"
    with pytest.raises(UnknownController, match="did you mean 'pi42'"):
        PID.preset("pi43")
    with pytest.raises(InvalidArgument, match="no setting 'kpp'"):
        PID.preset("pi42", kpp=1)


def test_settings_rebuild_the_controller():
    controller = PID.preset("h312pid", grow=3.0)
    told = controller.settings()
    assert told.pop("name") == "pid"
    assert PID.with_settings(told) == controller
