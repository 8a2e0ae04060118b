"""Tableaux refuse contradictions by name, and derive what can be derived."""

import dataclasses
from fractions import Fraction
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from solver.catalogue import methods
from solver.methods.tableau import ButcherTableau

TABLEAUX = {name: cls().tableau for name, cls in methods().items() if hasattr(cls, "tableau")}
each_tableau = pytest.mark.parametrize("tableau", TABLEAUX.values(), ids=TABLEAUX.keys())

BOSH3: dict[str, Any] = {
    "source": "Bogacki & Shampine (1989)",
    "order": 3,
    "error_order": 2,
    "c": (0, "1/2", "3/4", 1),
    "a": ((), ("1/2",), (0, "3/4"), ("2/9", "1/3", "4/9")),
    "b": ("2/9", "1/3", "4/9", 0),
    "b_hat": ("7/24", "1/4", "1/3", "1/8"),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"c": (0, "1/2", "2/3", 1)}, r"`a\[2\]` does not add up to `c\[2\]` \(off by 0.0833\)"),
        ({"b": ("2/9", "1/3", "5/9", 0)}, "`b` does not add up to 1"),
        ({"b_hat": ("7/24", "1/4", "1/3", "1/9")}, "`b_hat` does not add up to 1"),
        ({"b_hat": ("7/24", "1/4", "1/3")}, "`b_hat` has 3 entries: must be 4"),
        ({"b_hat": None}, "`error_order` is 2: must go with an error estimate"),
        ({"error_order": None}, "`error_order` is None"),
        ({"b_error": (0, 0, 0, 0)}, "`b_hat` and `b_error` are both given"),
        ({"b_hat": None, "b_error": ("1/9", 0, 0, 0)}, "`b_error` does not add up to 0"),
        ({"b_error_low": (1, 0, 0, 0)}, "`b_error_low` does not add up to 0"),
        ({"c": (0, 1)}, "rows: must be one for each stage"),
        ({"a": ((), ("1/2",), (0, "3/4"), (0, 0, 0, 0, 1))}, r"`a\[3\]` has 5 entries"),
        ({"extra_c": (1,)}, "`extra_a` has 0 rows and `extra_c` 1"),
        ({"extra_c": (1,), "extra_a": ((1,),)}, "no `interpolant` to use them"),
        (
            {"interpolant": ((1, "-7/9"), (0, "1/3"), (0, "4/9"))},
            "`interpolant` has 3 rows: must be 4",
        ),
        (
            {"interpolant": ((1, "-7/9"), (0, "1/3"), (0,), (0, 0)), "interpolant_order": 2},
            r"`interpolant\[2\]` has 1 entries: must be 2",
        ),
        (
            {"interpolant": ((1, "-7/9"), (0, "1/3"), (0, "4/9"), (0, 0))},
            "`interpolant_order` is 0",
        ),
        (
            {"interpolant": ((1, 0), (0, "1/3"), (0, "4/9"), (0, 0)), "interpolant_order": 2},
            r"`interpolant\[0\]` does not end in the step's weight at theta = 1",
        ),
        (
            {
                "interpolant": (("8/9", "-2/3"), (0, "1/3"), (0, "4/9"), (0, 0)),
                "interpolant_order": 2,
            },
            r"`interpolant`: coefficients of theta \*\* 1 do not add up to 1",
        ),
    ],
)
def test_a_contradiction_is_refused_with_source_and_row(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        ButcherTableau(**BOSH3 | change)
    assert str(caught.value).startswith("Bogacki & Shampine (1989): ")


def test_an_exact_source_gets_no_tolerance_and_a_printed_one_gets_its_digits():
    row = ("0.3333333333333333", "0.6666666666666667")  # adds up to 1 exactly
    short = ("0.3333333333333333", "0.66666666666666665")
    wrong = ("0.3333333333333333", "0.6666666666667")
    base: dict[str, Any] = {
        "source": "s",
        "order": 2,
        "error_order": None,
        "c": (0, "1/2"),
        "a": ((), ("1/2",)),
    }
    assert sum(ButcherTableau(b=row, **base).exact.b) == 1
    assert ButcherTableau(b=short, **base).stages == 2
    with pytest.raises(ValueError, match="`b` does not add up to 1"):
        ButcherTableau(b=wrong, **base)
    with pytest.raises(ValueError, match="`b` does not add up to 1"):
        ButcherTableau(b=("1/3", "66666666666666/100000000000000"), **base)


def test_first_same_as_last_is_derived():
    fsal = {name for name, tableau in TABLEAUX.items() if tableau.fsal}
    assert {"bosh3", "tsit5", "dopri5", "dopri8"} <= fsal
    assert fsal.isdisjoint({"euler", "midpoint", "heun", "ralston", "rk4", "heun_euler"})
    assert fsal.isdisjoint({"fehlberg45", "vern7"})


def test_an_implicit_tableau_is_told_from_an_explicit_one():
    implicit = ButcherTableau(
        source="trapezoidal rule",
        order=2,
        error_order=None,
        c=(0, 1),
        a=((), ("1/2", "1/2")),
        b=("1/2", "1/2"),
    )
    assert not implicit.explicit
    assert [len(row) for row in implicit.exact.a] == [2, 2]
    assert ButcherTableau(**BOSH3).explicit


def test_without_an_interpolant_there_is_the_cubic_through_both_ends_and_slopes():
    tableau = ButcherTableau(**BOSH3)
    y0, y1 = Fraction(2), Fraction(2) + 4 * Fraction(5)  # k = (5, 5, 5, 5), h = 4
    values = [
        y0 + 4 * sum(row_at(row, theta) * 5 for row in tableau.exact.interpolant)
        for theta in (Fraction(0), Fraction(1, 3), Fraction(1))
    ]
    assert values == [y0, y0 + (y1 - y0) / 3, y1]
    assert (tableau.degree, tableau.interpolant_order) == (3, 3)
    # k1 and k4 are the slopes at the ends
    assert tableau.exact.interpolant[3] == (0, -1, 1)


def row_at(row, theta):
    return sum(x * theta**j for j, x in enumerate(row, start=1))


@each_tableau
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_coefficients_are_the_nearest_numbers_of_the_dtype(tableau, dtype):
    made = tableau.coefficients(dtype, "cpu")
    exact = tableau.exact
    pairs = [
        (made.c, exact.c),
        (made.b, exact.b),
        (made.extra_c, exact.extra_c),
        *zip(made.a, exact.a, strict=True),
        *zip(made.extra_a, exact.extra_a, strict=True),
        *zip(made.interpolant, exact.interpolant, strict=True),
    ]
    pairs += [
        (x, e)
        for x, e in ((made.b_error, exact.b_error), (made.b_error_low, exact.b_error_low))
        if x is not None
    ]
    for tensor, row in pairs:
        assert tensor.dtype == dtype
        assert tensor.shape == (len(row),)
        for got, wanted in zip(tensor.double().tolist(), row, strict=True):
            eps = 0.5 * torch.finfo(dtype).eps
            tiny = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
            assert abs(got - wanted) <= 1.01 * eps * abs(wanted) + tiny
    assert made.interpolant.shape == (tableau.stages + len(exact.extra_c), tableau.degree)


class DtypesMade(TorchDispatchMode):
    """Notes the dtype of every tensor an operation returns."""

    def __init__(self):
        super().__init__()
        self.seen: set[torch.dtype] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.seen.add(out.dtype)
        return out


@each_tableau
def test_no_float64_tensor_is_made_for_float32(tableau):
    with DtypesMade() as made:
        tableau.coefficients(torch.float32, "cpu")
    assert made.seen <= {torch.float32}


def test_dopri5_has_two_estimates_of_which_one_is_two_thirds_of_the_other():
    cls = methods()["dopri5"]
    shampine, original = cls(), cls(estimate="original")
    pairs = zip(shampine.tableau.exact.b_error, original.tableau.exact.b_error, strict=True)
    assert all(mine == Fraction(2, 3) * theirs for mine, theirs in pairs)
    assert original.tableau.exact.b_error[-1] == Fraction(-1, 40)
    assert dataclasses.replace(original) == original != shampine
    assert dataclasses.replace(original).tableau is original.tableau
    with pytest.raises(ValueError, match=r"estimate='other'.*'shampine', 'original'"):
        cls(estimate="other")
