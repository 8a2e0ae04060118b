"""Newton's iteration with a matrix that is kept, for all rows at once, each on its own account."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from solver.norms import power

LIMIT, TIGHT_LIMIT = 8, 30  # iterations
FASTEST = 0.02  # what a rate is remembered as at least: smaller ones are made of rounding errors
LASTS = 8  # solves for which a rate is trusted that is not measured again
POOR = 0.4  # rate in tight mode, where no smaller step helps, above which a row gets a new matrix
RENEW = (8, 14, 20, 25)  # iterations of it after which all slow rows get one


class Solved(NamedTuple):
    """How Newton's iteration ended, rows on their own."""

    z: Tensor  # (B, N), or (S, B, N)
    ok: Tensor  # (B,) bool, converged, or had nothing to do
    finite: Tensor  # (B,) bool, nothing was NaN or infinite
    iterations: Tensor  # (B,) int64
    rate: Tensor  # (B,) last rate of convergence, 0 where one iteration was enough

    def replaced(self, rows: Tensor, other: "Solved") -> "Solved":
        """Return this with `rows (B,)` taken from `other`."""
        z = torch.where(rows[:, None], other.z, self.z)
        rest = zip(self[1:], other[1:], strict=True)
        return Solved(z, *(torch.where(rows, theirs, mine) for mine, theirs in rest))


class Iterated(NamedTuple):
    """Rows in the middle of the iteration."""

    z: Tensor
    going: Tensor  # (B,) bool, not ended
    ok: Tensor
    finite: Tensor
    iterations: Tensor
    rate: Tensor  # (B,) as measured last, 0 where it was not
    norm: Tensor  # (B,) of the last correction, in tolerances


class Newton:
    """Simplified Newton iteration; Hairer & Wanner II (2nd ed.), section IV.8.

    A row has converged when `rate / (1 - rate) * |last correction|`, in units of the tolerance, is
    at most `kappa`; it has failed when its rate reaches 1 or tells that the iterations left will
    not do. The first iteration is judged by the rate of the solve before.

    In tight mode rows go on to where rounding stops them: gradients, and steps of a fixed size,
    take the solution of the equations for exact.

    Args:
        like: `(B, D)`, for dtype and device.
        rtol: relative tolerance, a number or broadcastable to `(B, D)`.
        tight: whether to go on to rounding.
        limit: iterations allowed, outside tight mode.
    """

    def __init__(
        self,
        like: Tensor,
        rtol: float | Tensor,
        *,
        tight: bool,
        limit: int = LIMIT,
    ):
        """Know nothing of how fast the iteration converges."""
        self._tight, self._limit = tight, TIGHT_LIMIT if tight else limit
        self._eps = torch.finfo(like.dtype).eps
        self._fine = 64 * self._eps
        # What the first iteration is judged by, rate / (1 - rate) of the solve before, (B,)
        self.rate = torch.ones(len(like), dtype=like.dtype, device=like.device)
        # Where the rate was last measured, (B,): the step's size, and how many solves ago.
        self._h, self._fresh = self.rate * 0, self.rate > 0
        self.measured_at, self.ago = self._h, self._h.long()
        rtol = torch.as_tensor(rtol, dtype=like.dtype, device=like.device)
        smallest = rtol.amin(dim=-1) if rtol.ndim == 2 else rtol.amin()
        floor = 10 * self._eps / smallest.clamp_min(self._eps)
        self._kappa = torch.maximum(floor, smallest.sqrt().clamp(max=0.03))

    @property
    def kappa(self) -> float:
        """What the error that is left may be at most, in tolerances, of the strictest row."""
        return float(self._kappa.min()) if self._kappa.numel() else 0.03

    def doubt(self, h: Tensor, fresh: Tensor) -> None:
        """Trust what is known of the rate no more where it is of another step size, or old.

        A matrix of another place may make the first correction small however far off it is.

        Args:
            h: size of the step, `(B,)`.
            fresh: rows whose Jacobian is of this step, `(B,)` bool.
        """
        h = h.to(self.rate.dtype)
        near = (h <= 2 * self.measured_at) & (h >= 0.5 * self.measured_at)
        trusted = fresh | (near & (self.ago <= LASTS))
        self.rate = torch.where(trusted, self.rate, torch.inf)
        self._h, self._fresh = h, fresh

    def _note(self, iterations: Tensor, active: Tensor) -> None:
        """Note which rows have measured their rate."""
        measured = active & ((iterations > 1) | self._fresh)
        self.measured_at = torch.where(measured, self._h, self.measured_at)
        self.ago = torch.where(measured, 0, self.ago + active.long())

    def solve(
        self,
        residual: Callable[[Tensor], Tensor],
        correct: Callable[[Tensor], Tensor],
        z: Tensor,
        scale: Tensor,
        size: Tensor,
        active: Tensor,
        renew: Callable[[Tensor, Tensor], None] | None = None,
    ) -> Solved:
        """Solve `residual(z) = 0`.

        Args:
            residual: of all rows, shaped like `z`.
            correct: solves with the matrix, likewise.
            z: first guess `(B, N)`, or `(S, B, N)` where a row has S parts.
            scale: tolerance of each unknown, `(B, N)`.
            size: size of each unknown, `(B, N)`, for what rounding does to it.
            active: rows to solve for, `(B,)` bool.
            renew: makes a new matrix at `z` for `rows (B,)`; used in tight mode.
        """
        fine = self._fine * size + torch.finfo(z.dtype).tiny if self._tight else size
        count = z.shape[-1] * (len(z) if z.ndim == 3 else 1)
        per_scale = 1 / (scale * math.sqrt(max(count, 1)))
        begun = Iterated(
            z,
            active,
            ~active,
            torch.ones_like(active),
            torch.zeros_like(active, dtype=torch.int64),
            torch.zeros_like(self.rate),
            torch.ones_like(self.rate),
        )

        def iterate(number: int, now: Iterated) -> Iterated:
            if renew is not None and number > 1:
                self._renew(renew, number - 1, now)
            step = correct(residual(now.z))
            norm = torch.linalg.vector_norm(step * per_scale, dim=(0, 2) if step.ndim == 3 else -1)
            if self._tight:
                renewed = number > RENEW[0] or renew is None
                return self._near_rounding(number, now, step, norm, fine, renewed)
            return self._near_tolerance(number, now, step, norm)

        last = self._repeat(iterate, begun)
        rate = last.rate
        known = torch.where(last.iterations > 1, self._eta(rate).clamp_min(FASTEST), self.rate)
        self.rate = torch.where((rate < 1) & known.isfinite(), known, 1.0)
        self._note(last.iterations, active)
        return Solved(last.z, last.ok, last.finite & rate.isfinite(), last.iterations, rate)

    def _eta(self, rate: Tensor) -> Tensor:
        """Return `rate / (1 - rate)`, so large for rates from 1 on that nothing is small."""
        slower = rate.clamp(max=1 - self._eps)
        return slower / (1 - slower)

    def _repeat(self, iterate: Callable[[int, Iterated], Iterated], now: Iterated) -> Iterated:
        """Iterate while some row has not ended, as often as allowed."""
        for number in range(self._limit):
            if not bool(now.going.any()):
                break
            now = iterate(number, now)
        return now

    def _near_tolerance(self, number: int, now: Iterated, step: Tensor, norm: Tensor) -> Iterated:
        """Take over a correction; go on where what is left is not yet small beside the tolerance.

        A comparison with NaN is False, which counts as lost.
        """
        going, rate, finite = now.going, now.rate, now.finite
        if number:
            rate = torch.where(going, norm / now.norm, rate)
            left = self._eta(rate) * norm
            rest = self._limit - 1 - number
            hopeful = left * power(rate.clamp(max=1.0), rest) <= self._kappa
        else:
            left = power(self.rate, 0.8).clamp(max=1 / self._eps) * norm
            hopeful = norm.isfinite()
            finite = hopeful | ~going
        done = left <= self._kappa
        z = torch.where(going[:, None], now.z - step, now.z)
        ok = now.ok | (going & done)
        going, iterations = going & hopeful & ~done, now.iterations + going
        return Iterated(z, going, ok, finite, iterations, rate, norm)

    def _near_rounding(
        self, number: int, now: Iterated, step: Tensor, norm: Tensor, fine: Tensor, renewed: bool
    ) -> Iterated:
        """Take over a correction; go on where the next may still be better than rounding."""
        going, rate, first = now.going, now.rate, number == 0
        if not first:
            rate = torch.where(going, norm / now.norm, rate)
        good = norm.isfinite()
        finite = now.finite & (good | ~going)
        z = torch.where((going & good)[:, None], now.z - step, now.z)
        done, lost = self._at_rounding(step, norm, fine, rate, first, renewed), ~good
        if not first:
            lost = lost | ((rate > 1e3) & (norm > self._kappa))
        ok = now.ok | (going & done & good)
        going, iterations = going & ~done & ~lost, now.iterations + going
        return Iterated(z, going, ok, finite, iterations, rate, norm)

    def _renew(self, renew: Callable[[Tensor, Tensor], None], number: int, now: Iterated) -> None:
        """Make a new matrix for the rows that iteration `number` has left slow, in tight mode."""
        if self._tight:
            slow = (now.rate > POOR) & (now.norm > 1e-6)
            if number in RENEW:
                slow = slow | (now.rate > 0.2) | (now.rate == 0)
            renew(now.z, now.going & slow)

    def _at_rounding(
        self,
        step: Tensor,
        norm: Tensor,
        fine: Tensor,
        rate: Tensor,
        first: bool,
        renewed: bool,
    ) -> Tensor:
        """Whether rows cannot get nearer: corrections are rounding, or small and not shrinking.

        Slow may also be who has an old matrix, which is known once there is a new one.
        """
        below = (step.abs() <= fine).all(dim=-1)
        tiny = (below.all(dim=0) if step.ndim == 3 else below) | (norm == 0)
        if first:
            return tiny
        small = (rate >= 0.5) & (norm <= (1e-4 if renewed else 1e-8))
        return tiny | small | ((rate >= 0.9) & (norm <= 1e-6))

    def forget(self, rows: Tensor) -> None:
        """Know nothing of how fast the iteration converges in `rows (B,)`."""
        self.rate = self.rate.masked_fill(rows, 1.0)
