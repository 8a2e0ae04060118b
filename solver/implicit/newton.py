"""Newton's iteration with a matrix that is kept, for all rows at once, each on its own account."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from solver.norms import power, rms_norm

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
        self._measured_at, self._ago = self._h, self._h.long()
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
        near = (h <= 2 * self._measured_at) & (h >= 0.5 * self._measured_at)
        trusted = fresh | (near & (self._ago <= LASTS))
        self.rate = torch.where(trusted, self.rate, torch.inf)
        self._h, self._fresh = h, fresh

    def _note(self, iterations: Tensor, active: Tensor) -> None:
        """Note which rows have measured their rate."""
        measured = active & ((iterations > 1) | self._fresh)
        self._measured_at = torch.where(measured, self._h, self._measured_at)
        self._ago = torch.where(measured, 0, self._ago + active.long())

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
        if not bool(active.any()):
            never, none = torch.zeros_like(active), torch.zeros_like(active, dtype=torch.int64)
            self._note(none, active)
            return Solved(z, ~never, ~never, none, torch.zeros_like(self.rate))
        if self._tight:
            return self._to_rounding(residual, correct, z, scale, size, active, renew)
        return self._to_tolerance(residual, correct, z, scale, active)

    def _to_tolerance(
        self,
        residual: Callable[[Tensor], Tensor],
        correct: Callable[[Tensor], Tensor],
        z: Tensor,
        scale: Tensor,
        active: Tensor,
    ) -> Solved:
        """Go on until what is left is small beside the tolerance; few operations a round.

        A comparison with NaN is False, which counts as lost; a rate is kept from the last round of
        its row, and tells in the end which rows met what is not finite.
        """
        per_scale = (scale * math.sqrt(z.numel() / max(len(scale), 1))).reciprocal()
        apart = (0, 2) if z.ndim == 3 else 1
        largest = 1 - self._eps  # of rates, so that rate / (1 - rate) is finite
        eta = power(self.rate, 0.8).clamp(max=1 / self._eps)
        going, ok = active, ~active
        iterations, rate = torch.zeros_like(active, dtype=torch.int64), torch.zeros_like(eta)
        met = before = eta
        for number in range(self._limit):
            step = correct(residual(z))
            norm = torch.linalg.vector_norm(step * per_scale, dim=apart)
            if number:
                rate = torch.where(going, norm / before, rate)
                slower = rate.clamp(max=largest)
                eta = slower / (1 - slower)
                left = eta * norm
                hopeful = left * power(slower, self._limit - 1 - number) <= self._kappa
            else:
                left, met, hopeful = eta * norm, norm, norm < torch.inf
            done = left <= self._kappa
            z = torch.where(going[:, None], z - step, z)
            iterations = iterations + going
            ok = ok | (going & done)
            going = going & (hopeful > done)  # hopeful and not done
            before = norm
            if not bool(going.any()):
                break
        finite = (met.isfinite() & rate.isfinite()) | ~active
        measured = (iterations > 1) & (rate < 1)
        slower = rate.clamp(max=largest)
        known = torch.where(measured, (slower / (1 - slower)).clamp_min(FASTEST), self.rate)
        self.rate = torch.where(known.isfinite() & ~(rate >= 1), known, 1.0)
        self._note(iterations, active)
        return Solved(z, ok, finite, iterations, rate)

    def _to_rounding(
        self,
        residual: Callable[[Tensor], Tensor],
        correct: Callable[[Tensor], Tensor],
        z: Tensor,
        scale: Tensor,
        size: Tensor,
        active: Tensor,
        renew: Callable[[Tensor, Tensor], None] | None,
    ) -> Solved:
        """Go on to where rounding stops the iteration."""
        going, ok, finite = active, ~active, torch.ones_like(active)
        iterations = torch.zeros_like(active, dtype=torch.int64)
        known, rate, before = self.rate, torch.zeros_like(self.rate), None
        fine = self._fine * size + torch.finfo(z.dtype).tiny
        for number in range(self._limit):
            step = correct(residual(z))
            norm = _norm(step / scale)
            if before is not None:
                rate = torch.where(going, norm / before, rate)
                eta = torch.where(rate < 1, rate / (1 - rate), torch.inf)
                known = torch.where(going, eta.clamp_min(FASTEST), known)
            iterations = iterations + going
            good = norm.isfinite()
            finite = finite & (good | ~going)
            lost = ~good
            if before is not None:
                lost = lost | ((rate > 1e3) & (norm > self._kappa))
            z = torch.where((going & good)[:, None], z - step, z)
            renewed = renew is None or number > RENEW[0]
            done = self._at_rounding(step, norm, fine, rate, before is None, renewed)
            ok = ok | (going & done & good)
            going = going & ~done & ~lost
            before = norm
            if not bool(going.any()):
                break
            if renew is not None and number:
                slow = (rate > POOR) & (norm > 1e-6)
                if number in RENEW:
                    slow = slow | (rate > 0.2) | (rate == 0)
                renew(z, going & slow)
        self.rate = torch.where(known.isfinite(), known, 1.0)
        self._note(iterations, active)
        return Solved(z, ok, finite, iterations, rate)

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


def _norm(x: Tensor) -> Tensor:
    """Return the root mean square of each row, `(B,)`, for `x (B, N)` or `(S, B, N)`."""
    return rms_norm(x.transpose(0, 1).flatten(1) if x.ndim == 3 else x)
