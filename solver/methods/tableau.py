"""A Runge-Kutta method as its numbers: exact, checked at import, made tensors once per solve."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

Number = int | str | Fraction  # "35/384" and "0.161" are exact, a float would not be
Row = tuple[Number, ...]
Exact = tuple[Fraction, ...]

DECIMAL_TOLERANCE = Fraction(1, 10**14)  # for sources that print rounded decimals


class ExactCoefficients(NamedTuple):
    """A tableau in full: rows padded, differences taken, an interpolant always there."""

    c: Exact  # (S,)
    a: tuple[Exact, ...]  # row i of an explicit method has i entries
    b: Exact  # (S,)
    b_error: Exact | None  # (S,) weights of the error estimate, None without one
    b_error_low: Exact | None  # (S,) weights of a second estimate of lower order
    extra_c: Exact  # (E,)
    extra_a: tuple[Exact, ...]  # row e has S + e entries
    interpolant: tuple[Exact, ...]  # (S + E, degree)


class Coefficients(NamedTuple):
    """The same as tensors of one dtype on one device; shapes as in `ExactCoefficients`."""

    c: Tensor
    a: list[Tensor]
    b: Tensor
    b_error: Tensor | None
    b_error_low: Tensor | None
    extra_c: Tensor
    extra_a: list[Tensor]
    interpolant: Tensor


@dataclass(frozen=True)
class ButcherTableau:
    """Coefficients of a Runge-Kutta method with their source.

    Numbers are whole numbers or strings such as `"35/384"` and `"0.161"`, read exactly. Whatever
    can be checked is checked here, so a typing error fails at import and names source and row.

    Args:
        source: where the numbers are printed.
        order: order of the step with weights `b`.
        error_order: the smaller order of the two formulas whose difference is the error estimate,
            which shrinks like `h ** (error_order + 1)`; None for a method without an estimate.
        c, a, b: nodes, stage weights (one row a stage, zeros at its end left out), weights.
        b_hat: weights of the embedded formula; the estimate is `b - b_hat`.
        b_error: weights of the error estimate, from a source that prints them; excludes `b_hat`.
        b_error_low: weights of a second estimate that a method combines with the first.
        extra_c, extra_a: further stages that only the interpolant needs, evaluated when an output
            falls into the step; a row spans all stages and the extra stages before it.
        interpolant: one row for each stage and extra stage, the coefficients of theta, theta ** 2,
            and so on in `y(t + theta h) = y + h sum_i p_i(theta) k_i`. None gives the cubic Hermite
            polynomial, with the slope at the end as an extra stage where no stage is that already.
        interpolant_order: order q of the interpolant, whose error in a step is `O(h ** (q + 1))`.

    Raises:
        ValueError: a row, the weights or the interpolant contradict each other.
    """

    source: str
    order: int
    error_order: int | None
    c: Row
    a: tuple[Row, ...]
    b: Row
    b_hat: Row | None = None
    b_error: Row | None = None
    b_error_low: Row | None = None
    extra_c: Row = ()
    extra_a: tuple[Row, ...] = ()
    interpolant: tuple[Row, ...] | None = None
    interpolant_order: int = 0

    def __post_init__(self) -> None:
        """Check every row, then settle the interpolant's order."""
        self._check_shapes()
        if self.interpolant is None:
            object.__setattr__(self, "interpolant_order", min(self.order, 3))
        self._check_sums()

    @property
    def stages(self) -> int:
        """Number of stages S of a step, without extra stages."""
        return len(self.b)

    @property
    def explicit(self) -> bool:
        """Whether each stage needs earlier stages only."""
        return all(Fraction(x) == 0 for i, row in enumerate(self.a) for x in row[i:])

    @cached_property
    def fsal(self) -> bool:
        """Whether the last stage is the first stage of the next step."""
        last, b = _padded(self.a[-1], self.stages), _padded(self.b, self.stages)
        return self.stages > 1 and Fraction(self.c[-1]) == 1 and last == b

    @property
    def degree(self) -> int:
        """Degree of the interpolating polynomial in theta."""
        return len(self.exact.interpolant[0])

    @cached_property
    def exact(self) -> ExactCoefficients:
        """All coefficients as fractions."""
        n = self.stages
        b = _padded(self.b, n)
        b_error = None if self.b_error is None else _padded(self.b_error, n)
        if self.b_hat is not None:
            b_hat = _padded(self.b_hat, n)
            b_error = tuple(high - low for high, low in zip(b, b_hat, strict=True))
        extra_c, extra_a = self.extra_c, self.extra_a
        if self.interpolant is not None:
            interpolant = tuple(_padded(row, len(row)) for row in self.interpolant)
        elif self.fsal:
            interpolant = _cubic_hermite(b, at_end=n - 1)
        else:
            extra_c, extra_a = (1,), (self.b,)
            interpolant = _cubic_hermite((*b, Fraction(0)), at_end=n)
        return ExactCoefficients(
            c=_padded(self.c, n),
            a=tuple(_padded(row, i if self.explicit else n) for i, row in enumerate(self.a)),
            b=b,
            b_error=b_error,
            b_error_low=None if self.b_error_low is None else _padded(self.b_error_low, n),
            extra_c=_padded(extra_c, len(extra_c)),
            extra_a=tuple(_padded(row, n + e) for e, row in enumerate(extra_a)),
            interpolant=interpolant,
        )

    def coefficients(self, dtype: torch.dtype, device: torch.device | str) -> Coefficients:
        """Make the tensors of a solve, each number rounded once to `dtype` on `device`."""

        def tensor(row: Exact) -> Tensor:
            return torch.tensor([float(x) for x in row], dtype=dtype, device=device)

        exact = self.exact
        return Coefficients(
            c=tensor(exact.c),
            a=[tensor(row) for row in exact.a],
            b=tensor(exact.b),
            b_error=None if exact.b_error is None else tensor(exact.b_error),
            b_error_low=None if exact.b_error_low is None else tensor(exact.b_error_low),
            extra_c=tensor(exact.extra_c),
            extra_a=[tensor(row) for row in exact.extra_a],
            interpolant=torch.tensor(
                [[float(x) for x in row] for row in exact.interpolant], dtype=dtype, device=device
            ),
        )

    def _check_shapes(self) -> None:
        n, total = len(self.b), len(self.b) + len(self.extra_c)
        if n == 0 or len(self.c) != n or len(self.a) != n:
            rows = f"{len(self.c)}, {len(self.a)} and {n}"
            self._fail(f"`c`, `a` and `b` have {rows} rows: must be one for each stage")
        if len(self.extra_a) != len(self.extra_c):
            self._fail(f"`extra_a` has {len(self.extra_a)} rows and `extra_c` {len(self.extra_c)}")
        for i, row in enumerate(self.a):
            if len(row) > n:
                self._fail(f"`a[{i}]` has {len(row)} entries: at most {n} allowed")
        for e, row in enumerate(self.extra_a):
            if len(row) > n + e:
                self._fail(f"`extra_a[{e}]` has {len(row)} entries: at most {n + e} allowed")
        for name in ("b_hat", "b_error", "b_error_low"):
            row = getattr(self, name)
            if row is not None and len(row) != n:
                self._fail(f"`{name}` has {len(row)} entries: must be {n}")
        if self.b_hat is not None and self.b_error is not None:
            self._fail("`b_hat` and `b_error` are both given: one of them is enough")
        if (self.error_order is None) != (self.b_hat is None and self.b_error is None):
            self._fail(f"`error_order` is {self.error_order}: must go with an error estimate")
        if self.interpolant is None:
            if self.extra_c:
                self._fail("`extra_c` has entries but there is no `interpolant` to use them")
            return
        if len(self.interpolant) != total:
            self._fail(f"`interpolant` has {len(self.interpolant)} rows: must be {total}")
        degree = len(self.interpolant[0])
        for i, row in enumerate(self.interpolant):
            if len(row) != degree:
                self._fail(f"`interpolant[{i}]` has {len(row)} entries: must be {degree}")
        if self.interpolant_order < 1:
            self._fail(f"`interpolant_order` is {self.interpolant_order}: must be at least 1")

    def _check_sums(self) -> None:
        exact = self.exact
        for i, (row, c) in enumerate(zip(exact.a, exact.c, strict=True)):
            self._check(sum(row), c, f"`a[{i}]` does not add up to `c[{i}]`", self.a[i], self.c)
        self._check(sum(exact.b), 1, "`b` does not add up to 1", self.b)
        if self.b_hat is not None:
            total = sum(_padded(self.b_hat, self.stages))
            self._check(total, 1, "`b_hat` does not add up to 1", self.b_hat)
        for name in ("b_error", "b_error_low"):
            row = getattr(exact, name)
            if row is not None:
                self._check(sum(row), 0, f"`{name}` does not add up to 0", self.b, row)
        if self.interpolant is None:
            return  # made here from what is checked already
        for e, (row, c) in enumerate(zip(exact.extra_a, exact.extra_c, strict=True)):
            what = f"`extra_a[{e}]` does not add up to `extra_c[{e}]`"
            self._check(sum(row), c, what, *self.extra_a, self.extra_c)
        ends = (*exact.b, *(Fraction(0) for _ in exact.extra_c))
        for i, (row, end) in enumerate(zip(exact.interpolant, ends, strict=True)):
            what = f"`interpolant[{i}]` does not end in the step's weight at theta = 1"
            self._check(sum(row), end, what, *self.interpolant, self.b)
        for j, column in enumerate(zip(*exact.interpolant, strict=True)):
            wanted = int(j == 0)
            what = f"`interpolant`: coefficients of theta ** {j + 1} do not add up to {wanted}"
            self._check(sum(column), wanted, what, *self.interpolant, self.b)

    def _check(self, value: Fraction | int, wanted: Fraction | int, what: str, *rows: Row) -> None:
        """Compare exactly where every number is a fraction, else as far as printed decimals go."""
        rounded = any(isinstance(x, str) and "/" not in x and "." in x for row in rows for x in row)
        size = max((abs(Fraction(x)) for row in rows for x in row), default=Fraction(1))
        tolerance = DECIMAL_TOLERANCE * max(size, Fraction(1)) if rounded else 0
        if abs(value - wanted) > tolerance:
            self._fail(f"{what} (off by {float(value - wanted):.3g})")

    def _fail(self, what: str) -> None:
        raise ValueError(f"{self.source}: {what}")


def _padded(row: Sequence[Number], length: int) -> Exact:
    """Return the row as fractions, zeros appended or cut so that it has `length` entries."""
    numbers = [Fraction(x) for x in row[:length]]
    return (*numbers, *(Fraction(0) for _ in range(length - len(numbers))))


def _cubic_hermite(b: Exact, at_end: int) -> tuple[Exact, ...]:
    """Return the rows of the cubic through both ends of the step and their slopes.

    Hairer, Norsett & Wanner I (2nd ed.), eq. II.6.7, in powers of theta.

    Args:
        b: weights of the step, one for each stage, zero for an extra stage.
        at_end: index of the stage that is the slope at the end of the step.
    """
    through_ends, slope_at_start, slope_at_end = (0, 3, -2), (1, -2, 1), (0, -1, 1)
    return tuple(
        tuple(
            weight * y + (i == 0) * start + (i == at_end) * end
            for y, start, end in zip(through_ends, slope_at_start, slope_at_end, strict=True)
        )
        for i, weight in enumerate(b)
    )
