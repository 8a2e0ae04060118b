"""Zeros within a step: seen on the grid, and enclosed with few evaluations."""

import math

import pytest
import torch

from solver.compat._roots import beside, first_zero
from solver.event_roots import NODES, crossings, fine_values

F64 = torch.float64


def find(f, rows=1, width=1e-15):
    """Cross zeros of `f(theta)` in one step, for each row the same."""
    nodes = torch.linspace(0, 1, NODES + 1, dtype=F64)[:, None].expand(-1, rows)
    values = f(nodes)
    grid, fine = fine_values(values)
    calls = []

    def g(theta):
        calls.append(None)
        return f(theta)

    every = torch.ones(rows, dtype=torch.bool)
    none = torch.zeros(rows, dtype=torch.bool)
    found, side = crossings(
        g, grid, fine, values[0].sign(), torch.zeros(rows, dtype=F64),
        torch.full((rows,), width, dtype=F64), every, lambda crossing: (crossing.there, none),
    )  # fmt: skip
    return found, side, len(calls)


@pytest.mark.parametrize("zeros", [(0.3,), (0.3, 0.30001), (0.01, 0.5, 0.99), (0.1, 0.2, 0.8, 0.9)])
def test_every_zero_of_a_quartic_is_found_in_order(zeros):
    def f(x):
        return math.prod(((x - zero) for zero in zeros), start=torch.ones_like(x))

    found, side, _ = find(f)
    assert [crossing.theta.item() for crossing in found] == pytest.approx(zeros, abs=1e-9)
    assert side.item() == 1.0
    rising = [crossing.rising.item() for crossing in found]
    assert rising == [(len(zeros) - i) % 2 == 1 for i in range(len(zeros))]


def test_a_miss_by_little_is_no_zero():
    assert find(lambda x: (x - 0.41) ** 2 + 1e-9)[0] == []


@pytest.mark.parametrize(
    ("f", "zero"),
    [
        (lambda x: (20 * x - 7).tanh(), 0.35),
        (lambda x: torch.where(x < 0.6180339, -1.0, 1.0).to(x.dtype), 0.6180339),
        (lambda x: (x - 0.2) ** 9 * 1e6, 0.2),
        (lambda x: x.exp() - 1.5, math.log(1.5)),
    ],
)
def test_smooth_and_broken_functions_are_enclosed_with_few_evaluations(f, zero):
    found, _, calls = find(f)
    assert len(found) == 1
    assert found[0].theta.item() == pytest.approx(zero, abs=1e-14)
    assert calls <= math.log2(1 / NODES / 1e-15) + 20  # looks at places that are none, too
    assert find(lambda x: x.exp() - 1.5)[2] <= 14


def test_one_number_is_enclosed_as_well():
    calls = []

    def f(x):
        calls.append(x)
        return x**3 - 0.1

    assert first_zero(f, 0.0, 1.0, -0.1, 0.9, 1e-15) == pytest.approx(0.1 ** (1 / 3), abs=2e-15)
    assert len(calls) <= 16
    assert first_zero(f, 0.0, 1.0, -1.0, 0.0, 1e-15) == 1.0


def test_numbers_beside_a_number_are_those_of_its_dtype():
    for dtype in (torch.float32, F64):
        for value in (0.0, 1.0, -2.5, 1e-30, 1e10):
            for sign in (1.0, -1.0):
                here = torch.tensor(value, dtype=dtype)
                expected = torch.nextafter(here, torch.tensor(sign * math.inf, dtype=dtype))
                assert beside(here.item(), sign, dtype) == expected.item()
