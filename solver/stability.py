"""The stability function of a method: what a step multiplies the solution of y' = lambda y by."""

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from solver.methods.base import Method

Rational = tuple[tuple[float, ...], tuple[float, ...]]


def stability_function(method: Method) -> Rational | None:
    """Return R(z), z = h lambda, as the coefficients of its numerator and denominator.

    Both by rising powers; Hairer & Wanner II (2nd ed.), section IV.3. None for methods of several
    steps, and for those that do not say what they are made of.
    """
    return _of(type(method))


@lru_cache(maxsize=64)
def _of(kind: type[Method]) -> Rational | None:
    tableau = getattr(kind, "tableau", None)
    numbers = getattr(kind, "numbers", None)
    if tableau is not None and hasattr(tableau, "exact"):
        n = tableau.stages
        a = np.zeros((n, n))
        for i, row in enumerate(tableau.exact.a):
            a[i, : len(row)] = [float(x) for x in row[:n]]
        return _runge_kutta(a, np.array([float(x) for x in tableau.exact.b]))
    if numbers is None or not hasattr(numbers, "c"):
        return None
    if hasattr(numbers, "m") and hasattr(numbers, "g"):
        return _rosenbrock(numbers)
    c = np.array([float(x) for x in numbers.c])
    powers = np.arange(1, len(c) + 1)
    vandermonde = np.vander(c, increasing=True)
    a = (c[:, None] ** powers / powers) @ np.linalg.inv(vandermonde)
    return _runge_kutta(a, (1 / powers) @ np.linalg.inv(vandermonde))


def _runge_kutta(a: np.ndarray, b: np.ndarray) -> Rational:
    """Return det(I - z A + z 1 b^T) / det(I - z A)."""
    above = _characteristic(a - np.outer(np.ones(len(b)), b))
    return _trimmed(above), _trimmed(_characteristic(a))


def _characteristic(a: np.ndarray) -> np.ndarray:
    """Return the coefficients of det(I - z A) by rising powers of z."""
    # Leverrier's method, exact for the nilpotent matrices of explicit methods.
    n = len(a)
    coefficients, power = [1.0], np.eye(n)
    for k in range(1, n + 1):
        product = a @ power
        last = -np.trace(product) / k
        coefficients.append(float(last))
        power = product + last * np.eye(n)
    return np.array(coefficients)


def _rosenbrock(numbers: Any) -> Rational:
    """Return the stability function from values on a circle, whose transform is exact."""
    gamma, n = float(Fraction(numbers.gamma)), len(numbers.m)
    m, below = [float(Fraction(x)) for x in numbers.m], [[], *numbers.a]
    g = [[], *numbers.g]
    z = 0.5 / gamma * np.exp(2j * np.pi * np.arange(4 * n) / (4 * n))
    w, stages = gamma * z, []
    for i in range(n):
        here = 1 + sum(float(Fraction(x)) * u for x, u in zip(below[i], stages, strict=True))
        mixed = sum(float(Fraction(x)) * u for x, u in zip(g[i], stages, strict=True))
        stages.append((w * here + gamma * mixed) / (1 - w))
    values = (1 + sum(x * u for x, u in zip(m, stages, strict=True))) * (1 - w) ** n
    above = np.fft.fft(values).real / len(z) / (0.5 / gamma) ** np.arange(len(z))
    under = np.array([1.0])
    for _ in range(n):
        under = np.convolve(under, [1.0, -gamma])
    return _trimmed(above[: n + 1]), _trimmed(under)


def _trimmed(coefficients: np.ndarray) -> tuple[float, ...]:
    """Return the coefficients without what rounding has left behind the last one."""
    small = 1e-12 * np.abs(coefficients).max()
    last = int(np.flatnonzero(np.abs(coefficients) > small).max())
    return tuple(float(x) for x in coefficients[: last + 1])
