"""Weighted sums whose weights are numbers in the code."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from solver.compiled.symbolic import no_trace


def weighted_sum(slopes: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Return `sum_i weights[i] slopes[i]` of the weights that are not 0."""
    total: Tensor | None = None
    for slope, weight in zip(slopes, weights, strict=False):
        if weight:
            term = slope if weight == 1 else slope * weight
            total = term if total is None else total + term
    return slopes[0] * 0.0 if total is None else total


def numbers_of(weights: Tensor) -> Any:
    """Return a tensor's numbers, which no trace sees."""
    with no_trace():
        return weights.tolist()
