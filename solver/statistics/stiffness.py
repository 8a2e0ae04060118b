"""How large the field's Jacobian is in a step: what an explicit method has to resolve."""

from typing import ClassVar, final

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
        return rate * attempts.dt.to(rate.dtype)


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
    axis = 3
    if vectors.shape[3] <= NARROW and type(vectors) is Tensor:  # sums over few numbers are slow
        vectors, axis = vectors.transpose(2, 3).contiguous(), 2
    square = (vectors * vectors).sum(dim=axis)  # (n, R, B)
    beside = (vectors[:, 1:] * vectors[:, :-1]).sum(dim=axis)
    size = (square[:, 1] / square[:, 0]).sqrt()
    real = beside[:, 0] / square[:, 0]
    if vectors.shape[1] <= 2:
        return size, real
    across = (vectors[:, 4:] * vectors[:, 2:-2]).sum(dim=axis)
    return by_powers(square[:, 2:], beside[:, 2:], across, size, real)


def by_powers(
    square: Tensor, beside: Tensor, across: Tensor, size: Tensor, real: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the largest root of the recurrence that a sequence of powers follows, `(n, B)`.

    For a linear field `x[m] = (h J) ** m x[0]` soon consists of one or two eigenvectors, and then
    `x[m + 1] = a x[m] + b x[m - 1]` for all m; a and b by least squares over all equations, each
    scaled to its left side. Where that does not hold, the field is not linear enough.

    Args:
        square, beside, across: products of x[m] with x[m], x[m + 1] and x[m + 2], `(n, .., B)`.
        size, real: the estimate where no recurrence holds.

    Returns:
        Size and real part.
    """
    # Where the pair all but coincides its quotient may be anything; powers are never far too small.
    capped = torch.minimum(size, (square[:, -1] / square[:, -2]).sqrt())
    size, real = capped, real * (capped / size)
    count = across.shape[1]
    weight = 1 / square[:, 2:]
    g11, r1 = (square[:, 1:-1] * weight).sum(dim=1), (beside[:, 1:] * weight).sum(dim=1)
    single = r1 / g11
    explained = r1 * single  # of the squares, by one eigenvalue
    g10, g00 = (beside[:, :-1] * weight).sum(dim=1), (square[:, :-2] * weight).sum(dim=1)
    r0 = (across * weight).sum(dim=1)
    determinant = g11 * g00 - g10 * g10
    a = (r1 * g00 - r0 * g10) / determinant
    b = (g11 * r0 - g10 * r1) / determinant
    half = a * 0.5
    inside = half * half + b
    root = inside.clamp(min=0.0).sqrt()
    larger = torch.where(half < 0, half - root, half + root)
    pair = inside < 0  # of complex roots, the square of whose size is -b
    holds = a * r1 + b * r0 > count * (1 - DOUBLE**2)
    size = torch.where(holds, torch.where(pair, (-b).clamp(min=0.0).sqrt(), larger.abs()), size)
    real = torch.where(holds, torch.where(pair, half, larger), real)
    simple = explained > count * (1 - SIMPLE**2)
    return torch.where(simple, single.abs(), size), torch.where(simple, single, real)
