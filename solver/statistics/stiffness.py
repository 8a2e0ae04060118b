"""How large the field's Jacobian is in a step: what an explicit method has to resolve."""

from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from solver.statistics.base import Attempts, Statistic

SIMPLE = 0.05  # relative residual below which one eigenvalue explains the sequence of powers
DOUBLE = 0.1  # below which two do
NARROW = 16  # components


class _Eigenvalue(Statistic):
    needs: ClassVar[frozenset[str]] = frozenset({"probe"})
    unit = "1"
    real: ClassVar[bool] = False

    def measure(self, attempts: Attempts) -> Tensor:
        """Return the estimate, `(n, B)`; NaN where the method gives none or the state rests.

        Only some steps are looked at, as it costs; until the next the Jacobian counts as the same.
        """
        probe = attempts.probe
        if probe is None:
            return attempts.error_ratio * torch.nan
        found = largest_eigenvalue(probe.vectors)[self.real]
        rate = probe.spread(found / probe.dt.to(found.dtype))
        size = rate * attempts.dt.to(rate.dtype)
        if type(size) is Tensor:  # of which there is no copy elsewhere
            return size.masked_fill_(~attempts.running, 0.0)
        return torch.where(attempts.running, size, 0.0)


@final
class Stiffness(_Eigenvalue):
    """The step size times the spectral radius of the Jacobian, estimated from the step's slopes."""

    name, title = "stiffness", "Stiffness |h lambda|"
    help = (
        "Step size times the spectral radius of df/dy, from the slopes of the step: an explicit "
        "method cannot go beyond about 2 to 6, an implicit one can."
    )
    log = True


@final
class StiffnessReal(_Eigenvalue):
    """The real part of the same eigenvalue, times the step size."""

    name, title = "stiffness_real", "Real part of h lambda"
    help = (
        "Real part of the step size times the largest eigenvalue of df/dy; negative where the "
        "solution is damped."
    )
    signed, real = True, True


def largest_eigenvalue(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return size and real part of the eigenvalue that vectors tell, `(n, R, B, D) -> (n, B)`."""
    if type(vectors) is not Tensor or vectors.device.type != "cpu":
        return by_products(torch, *products(vectors, 3))
    array, axis = vectors.numpy(), 3
    if array.shape[3] <= NARROW:  # sums over few numbers are slow
        array, axis = np.ascontiguousarray(array.transpose(0, 1, 3, 2)), 2
    with np.errstate(all="ignore"):  # small arrays are numpy's strength
        size, real = by_products(np, *products(array, axis))
    return torch.from_numpy(size), torch.from_numpy(real)


def products(x: Any, axis: int) -> tuple[Any, Any, Any]:
    """Return products of vectors with themselves, the next and the one after, summed over `axis`.

    The last without the pair that comes first; None where there is nothing else.
    """
    square, beside = _total(x * x, axis), _total(x[:, 1:] * x[:, :-1], axis)
    return square, beside, _total(x[:, 4:] * x[:, 2:-2], axis) if x.shape[1] > 2 else None


def _total(x: Any, axis: int) -> Any:
    """Return the sum over an axis; numpy's method would first ask what else might be wanted."""
    return np.add.reduce(x, axis) if type(x) is np.ndarray else x.sum(axis)


def by_products(xp: Any, square: Any, beside: Any, across: Any = None) -> tuple[Any, Any]:
    """Return size and real part of the largest eigenvalue, `(n, B)` each.

    For a linear field `x[m] = (h J) ** m x[0]` soon consists of one or two eigenvectors, and then
    `x[m + 1] = a x[m] + b x[m - 1]` for all m; a and b by least squares over all equations, each
    scaled to its left side. Where that does not hold, the field is not linear enough, and the pair
    of vectors that comes first tells.

    Args:
        xp: torch or numpy, whose arrays the others are.
        square, beside, across: products of vectors with themselves, the next and the one after,
            `(n, .., B)`; `across` without the pair, None where there are no others.
    """
    size, real = xp.sqrt(square[:, 1] / square[:, 0]), beside[:, 0] / square[:, 0]
    if across is None:
        return size, real
    square, beside = square[:, 2:], beside[:, 2:]
    # Where the pair all but coincides its quotient may be anything; powers are never far too small.
    capped = xp.minimum(size, xp.sqrt(square[:, -1] / square[:, -2]))
    size, real = capped, real * (capped / size)
    count = across.shape[1]
    weight = 1 / square[:, 2:]
    g11, r1 = _total(square[:, 1:-1] * weight, 1), _total(beside[:, 1:] * weight, 1)
    g10, g00 = _total(beside[:, :-1] * weight, 1), _total(square[:, :-2] * weight, 1)
    r0 = _total(across * weight, 1)
    single = r1 / g11
    determinant = g11 * g00 - g10 * g10
    a, b = (r1 * g00 - r0 * g10) / determinant, (g11 * r0 - g10 * r1) / determinant
    half = a * 0.5
    inside = half * half + b
    pair = inside < 0  # of complex roots, the square of whose size is -b
    root = xp.sqrt(abs(inside))
    larger = xp.where(half < 0, half - root, half + root)
    holds = a * r1 + b * r0 > count * (1 - DOUBLE**2)
    size = xp.where(holds, xp.where(pair, xp.sqrt(abs(b)), abs(larger)), size)
    real = xp.where(holds, xp.where(pair, half, larger), real)
    simple = r1 * single > count * (1 - SIMPLE**2)
    return xp.where(simple, abs(single), size), xp.where(simple, single, real)
