"""Where a method damps y' = lambda y, from its recorded stability function."""

from collections.abc import Sequence

import numpy as np

Rational = tuple[Sequence[float], Sequence[float]]
FARTHEST = 1e4  # along an axis; what is stable until there counts as stable everywhere


def amplification(function: Rational, z: np.ndarray) -> np.ndarray:
    """Return |R(z)| of a stability function, numerator and denominator by rising powers."""
    above, below = (np.polyval(np.asarray(part, "f8")[::-1], z) for part in function)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.abs(above / below)


def limit(function: Rational, direction: complex = -1.0) -> float:
    """Return how far the region |R(z)| <= 1 reaches from 0 along a direction; inf if for ever.

    `-1` is the negative real axis, `1j` the imaginary one.
    """
    x = np.concatenate([np.linspace(1e-3, 60, 60_000), np.geomspace(60, FARTHEST, 2_000)[1:]])
    grown = amplification(function, x * direction / abs(direction)) > 1 + 1e-7
    if not grown.any():
        return float("inf")
    first = int(np.argmax(grown))
    return float(x[first - 1]) if first else 0.0
