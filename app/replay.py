"""What other gains would have done: recorded error ratios replayed through a model of the error.

The error of an attempt of size `dt` at time `t` grows as `C(t) dt^k`, `k = error_order + 1` (less
where an implicit method loses order), and each recorded attempt tells `C` at its place. Where an
explicit method is held back by stability, that law does not hold: there the fast part of the
solution, whose amplitude a step multiplies by `|R(lambda dt)|`, adds `|R - R_hat|` times that
amplitude to the error (Hairer & Wanner II, section IV.2). Both are simulated together, for all
controllers at once; the result is an estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self

import torch
from torch import Tensor

from solver.controllers._power_law import RATIO_FLOOR, PowerLaw
from solver.methods.tableau import ButcherTableau

MOST_ATTEMPTS = 20_000
SLOWEST = 4  # times the recorded attempts; a controller that needs more is given up
LARGEST = 1e6  # of an amplification, so that one absurd attempt stays a number


class Estimate(NamedTuple):
    """What a replay counts, `(G,)` each: sums over the rows replayed."""

    attempts: Tensor
    refused: Tensor
    roughness: Tensor  # mean of |ln factor| over accepted attempts: 0 for steps that never change
    ended: Tensor  # bool, every row got to the end


class Stability(NamedTuple):
    """How a method answers `y' = lambda y`: polynomials in `z = lambda dt`, lowest power first."""

    step: Tensor  # of R(z), complex
    error: Tensor  # of R(z) - R_hat(z)
    limit: float  # largest stable |z| on the negative real axis

    @classmethod
    def of(cls, tableau: ButcherTableau) -> Self:
        """Work them out from the tableau of an explicit method with an error estimate."""
        numbers = tableau.coefficients(torch.float64, "cpu")
        stages = tableau.stages
        a = torch.zeros(stages, stages, dtype=torch.float64)
        for i, row in enumerate(tableau.a):
            for j, value in enumerate(row):
                a[i, j] = float(Fraction(value))
        weights = numbers.b_error
        assert weights is not None  # of a method with an error estimate
        power, step, error = torch.ones(stages, dtype=torch.float64), [1.0], [0.0]
        for _ in range(stages):
            step.append(float(numbers.b @ power))
            error.append(float(weights @ power))
            power = a @ power
        found = cls(torch.tensor(step), torch.tensor(error), 0.0)
        z = torch.linspace(0.01, 60.0, 6_000, dtype=torch.float64)
        beyond = found.grown(-z + 0j) > 1 + 1e-9
        limit = float(z[int(beyond.int().argmax())]) if bool(beyond.any()) else float("inf")
        return found._replace(limit=limit)

    def grown(self, z: Tensor) -> Tensor:
        """Return `|R(z)|` for complex `z`."""
        return _polynomial(self.step, z).abs().clamp(max=LARGEST)

    def seen(self, z: Tensor) -> Tensor:
        """Return `|R(z) - R_hat(z)|`."""
        return _polynomial(self.error, z).abs().clamp(max=LARGEST)


def _polynomial(coefficients: Tensor, z: Tensor) -> Tensor:
    value = torch.zeros_like(z)
    for coefficient in coefficients.tolist()[::-1]:
        value = value * z + coefficient
    return value


@dataclass(frozen=True, eq=False)
class Recorded:
    """What a solve tells of its problem, row by row.

    Args:
        t: times `(B, M)` at which the others are known, ascending; infinite behind the last.
        log_ratio, log_dt: ln of the error ratio and of the step it belongs to, `(B, M)`.
        slope: by which power the error grows with the step there, `(B, M)`.
        fast_t, fast: times `(B, N)` and eigenvalues `(B, N)` of the fast part, complex; None
            where stability is no matter.
        first: first step of each row, `(B,)`.
        span: length of time, `(B,)`.
        k: order of the error of a step.
        most: attempts after which a replay is given up.
        stability: of the method, None where it is no matter.
    """

    t: Tensor
    log_ratio: Tensor
    log_dt: Tensor
    slope: Tensor
    first: Tensor
    span: Tensor
    k: int
    most: int = MOST_ATTEMPTS
    fast_t: Tensor | None = None
    fast: Tensor | None = None
    stability: Stability | None = None

    @classmethod
    def of(
        cls,
        t: Tensor,
        dt: Tensor,
        ratio: Tensor,
        running: Tensor,
        *,
        span: Tensor,
        k: int,
        slope: Tensor | None = None,
        fast_t: Tensor | None = None,
        fast: Tensor | None = None,
        stability: Stability | None = None,
    ) -> Self:
        """Read the attempts of a solve.

        Args:
            t, dt, ratio, running: `(n, B)` as hooks see them; `t` counted from the start, forward.
            span, k, fast_t, fast, stability: as the class has them.
            slope: `(n, B)`; `k` everywhere if None.
        """
        good = running & (ratio > 0) & ratio.isfinite() & (dt > 0)
        steep = torch.full_like(t, float(k)) if slope is None else slope
        known = (ratio.clamp(min=RATIO_FLOOR).log(), dt.clamp(min=1e-300).log(), steep)
        middle = t + dt / 2
        rows = range(t.shape[1])
        width = max(int(good.sum(dim=0).max()), 1)
        at = torch.full((len(rows), width), torch.inf, dtype=torch.float64)
        tables = [torch.zeros((len(rows), width), dtype=torch.float64) for _ in known]
        for row in rows:
            mask = good[:, row]
            when = middle[mask, row].double()
            if not len(when):  # nothing is known: an error that never limits
                at[row, 0], tables[0][row], tables[2][row] = 0.0, -20.0, float(k)
                continue
            order = when.argsort(stable=True)
            at[row, : len(order)] = when[order]
            for table, values in zip(tables, known, strict=True):
                own = values[mask, row].double()[order]
                table[row, : len(order)], table[row, len(order) :] = own, own[-1]
        first = torch.where(running[0], dt[0], span).double()
        most = min(MOST_ATTEMPTS, SLOWEST * len(t) + 200)
        log_ratio, log_dt, powers = tables
        return cls(
            at, log_ratio, log_dt, powers, first, span.double(), k, most, fast_t, fast, stability
        )

    def smooth(self, t: Tensor, dt: Tensor) -> Tensor:
        """Return ln of the error ratio of steps `dt` around times `t`, `(B, G)` each."""
        place = _place(self.t, t)
        log_ratio, log_dt, slope = (
            _there(values, place) for values in (self.log_ratio, self.log_dt, self.slope)
        )
        return log_ratio + slope * (dt.clamp(min=1e-300).log() - log_dt)

    def replay(self, laws: Sequence[PowerLaw], scale: float = 1.0) -> Estimate:
        """Step with each controller and count.

        Args:
            laws: the controllers, G of them.
            scale: of both tolerances, over the recorded ones.
        """
        lanes = Lanes.of(laws)
        rows, many = len(self.first), len(laws)
        shape = (rows, many)
        t = torch.zeros(shape, dtype=torch.float64)
        dt = self.first[:, None].expand(shape).clone()
        end = self.span[:, None].expand(shape)
        done = t >= end
        history = lanes.init(shape)
        fast = torch.full(shape, 1e-3, dtype=torch.float64)  # amplitude over tolerance
        attempts, refused = torch.zeros(shape), torch.zeros(shape)
        rough = torch.zeros(shape, dtype=torch.float64)
        log_scale = torch.tensor(scale, dtype=torch.float64).log()
        for _ in range(self.most):
            last = t + dt * (1 + 1e-9) >= end
            tried = torch.where(last, end - t, dt)
            smooth = (self.smooth(t + tried / 2, tried) - log_scale).exp()
            ratio, grown = smooth, None
            if self.stability is not None and self.fast is not None and self.fast_t is not None:
                z = _there(self.fast, _place(self.fast_t, t)) * tried
                grown = self.stability.grown(z)
                ratio = smooth + self.stability.seen(z) * fast
            accept, factor, history = lanes.propose(ratio, self.k, history, done)
            moved = accept & ~done
            if grown is not None:
                fast = torch.where(moved, (grown * fast + smooth).clamp(1e-12, 1e12), fast)
            attempts += ~done
            refused += ~accept & ~done
            rough += torch.where(moved & ~last, factor.log().abs(), 0.0)
            t = torch.where(moved, torch.where(last, end, t + tried), t)
            dt = torch.where(done, dt, tried * factor)
            done = done | (t >= end)
            if bool(done.all()):
                break
        return Estimate(
            attempts.sum(dim=0),
            refused.sum(dim=0),
            rough.sum(dim=0) / (attempts - refused).sum(dim=0).clamp(min=1),
            done.all(dim=0),
        )


class Place(NamedTuple):
    """Between which entries of a table times lie, `(B, G)` each."""

    left: Tensor
    right: Tensor
    share: Tensor  # of the way from left to right


def _place(at: Tensor, t: Tensor) -> Place:
    """Find `t (B, G)` among ascending `at (B, M)`, whose places behind the last are infinite."""
    at, t = at.contiguous(), t.contiguous()
    right = torch.searchsorted(at, t.to(at.dtype), right=True)
    last = (at.isfinite().sum(dim=1, keepdim=True) - 1).clamp(min=0)
    left = torch.minimum((right - 1).clamp(min=0), last)
    right = torch.minimum(right, last)
    low, high = at.gather(1, left), at.gather(1, right)
    share = ((t - low) / (high - low).clamp(min=1e-300)).clamp(0.0, 1.0)
    return Place(left, right, torch.where(high > low, share, 0.0))


def _there(values: Tensor, place: Place) -> Tensor:
    """Interpolate `values (B, M)`, constant outside."""
    left, right = values.gather(1, place.left), values.gather(1, place.right)
    return torch.lerp(left, right, place.share.to(values.dtype))


class Past(NamedTuple):
    """What controllers remember, `(B, G)` each, as `PowerLawHistory` has it; logarithms."""

    last: Tensor
    before: Tensor
    factor: Tensor
    factor_before: Tensor
    refused: Tensor  # bool


class Lanes(NamedTuple):
    """Many power-law controllers side by side, `(G,)` each; they do what `PowerLaw` does."""

    beta: tuple[Tensor, Tensor, Tensor]
    alpha: tuple[Tensor, Tensor]
    gain: Tensor
    safety: Tensor
    shrink: Tensor
    grow: Tensor
    smooth: Tensor
    never_shrink: Tensor
    no_growth: Tensor
    elementary: Tensor

    @classmethod
    def of(cls, laws: Sequence[PowerLaw]) -> Self:
        """Put controllers side by side."""

        def numbers(values: list[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float64)

        def words(values: list[bool]) -> Tensor:
            return torch.tensor(values, dtype=torch.bool)

        first, second, third = (numbers([law.beta[i] for law in laws]) for i in range(3))
        one, two = (numbers([law.alpha[i] for law in laws]) for i in range(2))
        return cls(
            beta=(first, second, third),
            alpha=(one, two),
            gain=numbers([law.gain for law in laws]),
            safety=numbers([law.safety for law in laws]),
            shrink=numbers([law.shrink for law in laws]),
            grow=numbers([law.grow for law in laws]),
            smooth=words([law.smooth for law in laws]),
            never_shrink=words([law.never_shrink_on_accept for law in laws]),
            no_growth=words([law.no_growth_after_reject for law in laws]),
            elementary=words([law.elementary_refusal for law in laws]),
        )

    def init(self, shape: tuple[int, int]) -> Past:
        """Return the past before the first attempt: every error and factor 1."""
        zero = torch.zeros(shape, dtype=torch.float64)
        return Past(zero, zero, zero, zero, torch.zeros(shape, dtype=torch.bool))

    def propose(
        self, ratio: Tensor, k: int, past: Past, done: Tensor
    ) -> tuple[Tensor, Tensor, Past]:
        """Judge an attempt of every lane; returns acceptance, factor and the past after it.

        Args:
            ratio: error ratios, `(B, G)`.
            k: order of the error of a step.
            past: what is remembered.
            done: bool `(B, G)`, lanes whose past stays.
        """
        accept = ratio <= 1
        log = ratio.clamp(1e-300, 1e300).log()
        exponent = -(self.beta[0] * log + self.beta[1] * past.last + self.beta[2] * past.before) / k
        exponent = exponent - self.alpha[0] * past.factor - self.alpha[1] * past.factor_before
        factor = exponent.exp() * self.gain
        kappa = 2 * (self.grow - 1) / torch.pi
        bent = ((factor - 1) / kappa).atan() * kappa + 1
        factor = torch.where(self.smooth, bent, factor)
        factor = torch.minimum(torch.maximum(factor, self.shrink), self.grow)
        factor = torch.where(self.never_shrink & accept, factor.clamp(min=1), factor)
        factor = torch.where(self.no_growth & past.refused, factor.clamp(max=1), factor)
        alone = torch.maximum((log / -k).exp() * self.safety, self.shrink)
        refused = torch.minimum(torch.where(self.elementary, alone, factor), self.safety)
        factor = torch.where(accept, factor, refused)
        moved = accept & ~done
        log_factor = factor.log()
        floor = torch.tensor(RATIO_FLOOR, dtype=torch.float64).log()
        return (
            accept,
            factor,
            Past(
                torch.where(moved, torch.maximum(log, floor), past.last),
                torch.where(moved, past.last, past.before),
                torch.where(moved, log_factor, past.factor),
                torch.where(moved, past.factor, past.factor_before),
                torch.where(done, past.refused, ~accept),
            ),
        )
