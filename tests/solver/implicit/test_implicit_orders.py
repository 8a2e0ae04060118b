"""Order conditions of diagonally implicit methods in exact arithmetic, over rooted trees."""

import importlib.util
from pathlib import Path

import pytest

from solver.catalogue import methods
from solver.implicit.methods import DiagonallyImplicit

_file = Path(__file__).parents[1] / "methods" / "test_order_conditions.py"
_spec = importlib.util.spec_from_file_location("order_conditions", _file)
assert _spec
assert _spec.loader
conditions = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(conditions)

DIAGONAL = [cls() for cls in methods().values() if issubclass(cls, DiagonallyImplicit)]


def worst(tableau, weights, order):
    """The largest miss of any condition up to `order`."""
    stages = conditions.Stages(tableau)
    misses = [
        abs(sum(w * p for w, p in zip(weights, stages.phi(tree), strict=False))
            - conditions.Fraction(1, conditions.gamma(tree)))
        for vertices in range(1, order + 1)
        for tree in conditions.trees(vertices)
    ]  # fmt: skip
    return float(max(misses))


@pytest.mark.parametrize("method", DIAGONAL, ids=lambda method: method.name)
def test_weights_have_their_order_and_no_more(method):
    tableau = method.tableau
    assert worst(tableau, tableau.exact.b, tableau.order) < 1e-12
    assert worst(tableau, tableau.exact.b, tableau.order + 1) > 1e-6


@pytest.mark.parametrize(
    "method", [m for m in DIAGONAL if m.error_order is not None], ids=lambda method: method.name
)
def test_embedded_weights_have_the_order_of_the_error(method):
    exact = method.tableau.exact
    embedded = [b - e for b, e in zip(exact.b, exact.b_error, strict=True)]
    assert worst(method.tableau, embedded, method.error_order) < 1e-12
