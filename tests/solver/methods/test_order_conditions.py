"""Order conditions of every method in exact arithmetic, over rooted trees made by code.

Hairer, Norsett & Wanner I (2nd ed.), section II.2: weights have order p if `sum_i b_i phi_i(t)` is
`1 / gamma(t)` for every rooted tree t with at most p vertices, where phi of a tree is the product
over its branches of `sum_j a_ij phi_j(branch)`, and gamma its number of vertices times the gammas
of its branches. For a dense output the right-hand side is `theta ** r / gamma(t)`, r vertices.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from solver.bounds import describe_settings
from solver.catalogue import methods
from solver.methods.explicit_rk import ExplicitRungeKutta
from solver.methods.tableau import ButcherTableau

Tree = tuple[Any, ...]  # of its branches, sorted; a single vertex is ()
PRINTED = Fraction(1, 10**13)  # how far the digits of a source hold; the largest weights are 1e3


@cache
def trees(order: int) -> tuple[Tree, ...]:
    """Rooted trees with `order` vertices."""
    return tuple(sorted(_forests(order - 1, order - 1), key=repr))


@cache
def _forests(vertices: int, largest: int) -> tuple[Tree, ...]:
    """Multisets of trees with `vertices` vertices in all, none larger than `largest`."""
    if vertices == 0:
        return ((),)
    found: list[Tree] = []
    for size in range(min(largest, vertices), 0, -1):
        for count in range(1, vertices // size + 1):
            for chosen in combinations_with_replacement(trees(size), count):
                rest = _forests(vertices - size * count, size - 1)
                found += [tuple(sorted((*chosen, *others), key=repr)) for others in rest]
    return tuple(found)


def vertices(tree: Tree) -> int:
    return 1 + sum(map(vertices, tree))


def gamma(tree: Tree) -> int:
    result = vertices(tree)
    for branch in tree:
        result *= gamma(branch)
    return result


class Stages:
    """The phi of every tree at every stage, extra stages included."""

    def __init__(self, tableau: ButcherTableau):
        exact = tableau.exact
        self.rows = [*exact.a, *exact.extra_a]
        self.known: dict[Tree, list[Fraction]] = {}

    def phi(self, tree: Tree) -> list[Fraction]:
        if tree not in self.known:
            value = [Fraction(1)] * len(self.rows)
            for branch in tree:
                inner = self.phi(branch)
                for i, row in enumerate(self.rows):
                    value[i] *= _dot(row, inner)
            self.known[tree] = value
        return self.known[tree]


def _dot(weights: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    return sum((w * v for w, v in zip(weights, values, strict=False) if w), start=Fraction(0))


def defect(stages: Stages, weights: Sequence[Fraction], order: int, wanted: int = 1) -> Fraction:
    """Largest deviation of `weights` from the conditions of just that order."""
    return max(
        abs(_dot(weights, stages.phi(tree)) - Fraction(wanted, gamma(tree)))
        for tree in trees(order)
    )


def dense_defect(stages: Stages, tableau: ButcherTableau, order: int) -> Fraction:
    """Largest deviation of any coefficient in theta, of the conditions of just that order."""
    columns = list(zip(*tableau.exact.interpolant, strict=True))
    return max(
        abs(_dot(column, stages.phi(tree)) - (Fraction(1, gamma(tree)) if j == order else 0))
        for tree in trees(order)
        for j, column in enumerate(columns, start=1)
    )


def variants() -> Iterator[ExplicitRungeKutta]:
    """Every explicit method with every combination of its choices."""
    for cls in methods().values():
        if issubclass(cls, ExplicitRungeKutta):
            choices = [s for s in describe_settings(cls) if s["type"] == "choice"]
            for values in product(*(s["choices"] for s in choices)):
                names = (s["name"] for s in choices)
                yield cls(**dict(zip(names, values, strict=True)))


each_method = pytest.mark.parametrize("method", list(variants()), ids=repr)


def test_there_are_as_many_trees_as_the_literature_counts():
    assert [len(trees(order)) for order in range(1, 10)] == [1, 1, 2, 4, 9, 20, 48, 115, 286]
    assert all(len(set(trees(order))) == len(trees(order)) for order in range(1, 9))
    assert gamma(((), ((),))) == 8  # Hairer, Norsett & Wanner I, table II.2.1, t42


@each_method
def test_step_has_its_order_and_no_more(method):
    stages = Stages(method.tableau)
    b = method.tableau.exact.b
    for order in range(1, method.order + 1):
        assert defect(stages, b, order) <= PRINTED, order
    assert defect(stages, b, method.order + 1) > 1e-9


@pytest.mark.parametrize(
    "method", [method for method in variants() if method.tableau.b_hat is not None], ids=repr
)
def test_error_estimate_has_its_order_and_no_more(method):
    tableau, stages = method.tableau, Stages(method.tableau)
    b_hat = [Fraction(x) for x in tableau.b_hat]
    embedded = 0
    while defect(stages, b_hat, embedded + 1) <= PRINTED:
        embedded += 1
    assert min(embedded, method.order) == method.error_order
    estimate = [abs(_dot(tableau.exact.b_error, stages.phi(t))) for t in trees(min(embedded, 4))]
    assert max(estimate) <= PRINTED


def test_the_two_estimates_of_dopri8_have_orders_5_and_3():
    tableau = methods()["dopri8"]().tableau
    stages = Stages(tableau)
    for weights, order in ((tableau.exact.b_error, 5), (tableau.exact.b_error_low, 3)):
        assert max(defect(stages, weights, p, wanted=0) for p in range(1, order + 1)) <= PRINTED
        assert defect(stages, weights, order + 1, wanted=0) > 1e-6
    # e5^2 / e3 is of size h^(2 * 6 - 4): like an estimate of order 7
    assert tableau.error_order == 2 * (5 + 1) - (3 + 1) - 1


@each_method
def test_dense_output_has_its_order_and_no_more(method):
    tableau, stages = method.tableau, Stages(method.tableau)
    for order in range(1, method.dense_order + 1):
        # A source may print 16 digits of coefficients as large as 1e3.
        assert dense_defect(stages, tableau, order) <= 10 * PRINTED, order
    assert dense_defect(stages, tableau, method.dense_order + 1) > 1e-6


@each_method
def test_dense_output_meets_both_ends_with_the_right_slopes(method):
    """The pieces of neighbouring steps join with one slope: y' is continuous."""
    exact = method.tableau.exact
    at_start = [row[0] for row in exact.interpolant]
    at_end = [sum(j * x for j, x in enumerate(row, start=1)) for row in exact.interpolant]
    rows = [(*row, *[Fraction(0)] * (len(at_end) - len(row))) for row in (*exact.a, *exact.extra_a)]
    (last,) = [
        i
        for i, row in enumerate(rows)
        if row[: len(exact.b)] == exact.b and not any(row[len(exact.b) :])
    ]
    for i, (start, end) in enumerate(zip(at_start, at_end, strict=True)):
        assert abs(start - (i == 0)) <= PRINTED, i
        assert abs(end - (i == last)) <= 10 * PRINTED, i


@pytest.mark.parametrize("name", ["bosh3", "dopri5", "dopri8"])
def test_a_wrong_stage_weight_is_seen(name):
    """Negative control: two entries of one row changed so that its sum stays right."""
    tableau = methods()[name]().tableau
    i = tableau.stages - 2
    row = [Fraction(x) for x in tableau.a[i]]
    row[0] += Fraction(1, 10**6)
    row[-1] -= Fraction(1, 10**6)
    wrong = dataclasses.replace(
        tableau,
        a=(*tableau.a[:i], tuple(row), *tableau.a[i + 1 :]),
        extra_c=(),
        extra_a=(),
        interpolant=None,
    )
    stages = Stages(wrong)
    defects = [defect(stages, wrong.exact.b, p) for p in range(1, wrong.order + 1)]
    assert defects[0] <= PRINTED
    assert max(defects) > 1e-9
