"""How large the field's Jacobian is in a step: what an explicit method has to resolve."""

from typing import ClassVar, final

import torch
from torch import Tensor

from solver.statistics.base import Attempts, Statistic

SIMPLE = 0.05  # relative residual below which one eigenvalue explains the sequence of powers
DOUBLE = 0.1  # below which two do
NARROW = 16  # components


@final
class Stiffness(Statistic):
    """The step size times the spectral radius of the Jacobian, estimated from the step's slopes."""

    name, title, unit = "stiffness", "Stiffness |h lambda|", "1"
    help = (
        "Step size times the spectral radius of df/dy, from the slopes of the step: an explicit "
        "method cannot go beyond about 2 to 6, an implicit one can."
    )
    log = True
    needs: ClassVar[frozenset[str]] = frozenset({"probe"})

    def measure(self, attempts: Attempts) -> Tensor:
        """Return the estimate, `(n, B)`; NaN where the method gives none or the state rests.

        Only some steps are looked at, as it costs; until the next the Jacobian counts as the same.
        """
        probe = attempts.probe
        if probe is None:
            return attempts.error_ratio * torch.nan
        found = radius(probe.vectors)
        rate = probe.spread(found / probe.dt.to(found.dtype))
        return rate * attempts.dt.to(rate.dtype)


def radius(vectors: Tensor) -> Tensor:
    """Return the spectral radius that vectors tell, `(n, R, B, D) -> (n, B)`."""
    axis = 3
    if vectors.shape[3] <= NARROW and type(vectors) is Tensor:  # sums over few numbers are slow
        vectors, axis = vectors.transpose(2, 3).contiguous(), 2
    square = (vectors * vectors).sum(dim=axis)  # (n, R, B)
    by_pair = (square[:, 1] / square[:, 0]).sqrt()
    if vectors.shape[1] <= 2:
        return by_pair
    x = vectors[:, 2:]
    beside = (x[:, 1:] * x[:, :-1]).sum(dim=axis)
    across = (x[:, 2:] * x[:, :-2]).sum(dim=axis)
    return by_powers(square[:, 2:], beside, across, by_pair)


def by_powers(square: Tensor, beside: Tensor, across: Tensor, otherwise: Tensor) -> Tensor:
    """Return the largest root of the recurrence that a sequence of powers follows, `(n, B)`.

    For a linear field `x[m] = (h J) ** m x[0]` soon consists of one or two eigenvectors, and then
    `x[m + 1] = a x[m] + b x[m - 1]` for all m; a and b by least squares over all equations, each
    scaled to its left side. Where that does not hold, the field is not linear enough.

    Args:
        square, beside, across: products of x[m] with x[m], x[m + 1] and x[m + 2], `(n, .., B)`.
        otherwise: the estimate where no recurrence holds.
    """
    count = across.shape[1]
    weight = 1 / square[:, 2:]
    g11, r1 = (square[:, 1:-1] * weight).sum(dim=1), (beside[:, 1:] * weight).sum(dim=1)
    single = r1 / g11
    left = r1 * single  # of the squares, what one eigenvalue explains
    g10, g00 = (beside[:, :-1] * weight).sum(dim=1), (square[:, :-2] * weight).sum(dim=1)
    r0 = (across * weight).sum(dim=1)
    determinant = g11 * g00 - g10 * g10
    a = (r1 * g00 - r0 * g10) / determinant
    b = (g11 * r0 - g10 * r1) / determinant
    half = a * 0.5
    inside = half * half + b
    # For a pair of complex roots the square of their size is -b.
    real = half.abs() + inside.clamp(min=0.0).sqrt()
    double = torch.where(inside < 0, (-b).clamp(min=0.0).sqrt(), real)
    holds = a * r1 + b * r0 > count * (1 - DOUBLE**2)
    found = torch.where(holds, double, otherwise)
    return torch.where(left > count * (1 - SIMPLE**2), single.abs(), found)
