"""Sums of a step's slopes that tell how stiff the field is there, at no further evaluation.

The slopes of a Runge-Kutta step are values of the field near the solution, so differences of them
over differences of their states are products with its Jacobian J. Two kinds are used:

* a pair of stages at the same time, Hairer & Wanner II (2nd ed.), section IV.2: the difference of
  the slopes is h J times that of the states, whatever the field;
* sums that for a linear field are h J, (h J)^2, .. of the slope at the start, the sequence of
  power iteration, which also sees what lies far below the solution itself.
"""

from functools import lru_cache

import numpy as np

from solver.methods.tableau import ButcherTableau

POWERS = 5  # vectors of the sequence of powers
FEWEST = 4  # with fewer there are not enough equations to check that the field is linear
SEEN = 16  # components looked at, of many
EXACT = 1e-7  # residual of weights that do what they should


@lru_cache(maxsize=64)
def probe_weights(tableau: ButcherTableau) -> tuple[tuple[float, ...], ...]:
    """Return weights of the slopes, one row a probe: a pair (x, h J x), then powers x, h J x, ...

    States are divided by h, so that no row needs the step size; none for one or two stages.
    """
    exact = tableau.exact
    n = tableau.stages
    if n < 3 or not tableau.explicit:  # two stages only see the direction of the solution
        return ()
    a = np.zeros((n, n))
    for i, row in enumerate(exact.a):
        a[i, : len(row)] = [float(x) for x in row[:n]]
    pair = _pair(a, np.array([float(c) for c in exact.c]))
    rows = [pair @ a, pair]
    powers = _powers(a)
    if len(powers) + 1 >= FEWEST:
        powers = powers[1 - POWERS :]
        rows += [powers[0] @ a, *powers]
    return tuple(tuple(float(x) for x in row) for row in rows)


def _pair(a: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return weights of two stages at one time, the last that are; else the best there is.

    That is a difference without the lowest powers of the nodes, so that the field's change in time
    and its curvature play no part in the leading term.
    """
    n = len(c)
    for i in range(n - 1, 1, -1):
        for j in range(i - 1, 0, -1):
            if c[i] == c[j] > 0.5:
                weights = np.zeros(n)
                weights[i], weights[j] = 1.0, -1.0
                return weights
    for most in range(n - 2, 0, -1):
        rows = np.stack([*(c**q for q in range(most)), a @ c])
        wanted = np.zeros(len(rows))
        wanted[-1] = 1.0
        weights = np.linalg.lstsq(rows, wanted, rcond=None)[0]
        if np.abs(rows @ weights - wanted).max() < EXACT:
            return weights
    weights = np.zeros(n)
    weights[0], weights[-1] = -1.0, 1.0
    return weights


def _powers(a: np.ndarray) -> list[np.ndarray]:
    """Return weights of stages that make z, z^2, .. of y' = lambda y, the longest run there is."""
    n = len(a)
    stages = np.zeros((n, n))  # row i: the stage's polynomial in z = h lambda
    for i in range(n):
        stages[i, 0] = 1.0
        for j in range(i):
            stages[i, 1:] += a[i, j] * stages[j, :-1]
    found: list[np.ndarray] = []
    for power in range(1, n):
        wanted = np.eye(n)[power]
        weights = np.linalg.lstsq(stages.T, wanted, rcond=1e-12)[0]
        if np.abs(stages.T @ weights - wanted).max() < EXACT:
            found.append(weights)
        else:
            break
    return found
