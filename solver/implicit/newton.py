"""Newton's iteration with a matrix that is kept, for all rows at once, each on its own account."""

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

    z: Tensor  # (B, N)
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
    known: Tensor  # (B,) rate / (1 - rate) as measured last
    rate: Tensor
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
            residual: `(B, N) -> (B, N)`, one evaluation for all rows.
            correct: solves with the matrix, `(B, N) -> (B, N)`.
            z: first guess `(B, N)`.
            scale: tolerance of each unknown, `(B, N)`.
            size: size of each unknown, `(B, N)`, for what rounding does to it.
            active: rows to solve for, `(B,)` bool.
            renew: makes a new matrix at `z` for `rows (B,)`; used in tight mode.
        """
        fine = self._fine * size + torch.finfo(z.dtype).tiny
        begun = Iterated(
            z,
            active,
            ~active,
            torch.ones_like(active),
            torch.zeros_like(active, dtype=torch.int64),
            self.rate,
            torch.zeros_like(self.rate),
            torch.ones_like(self.rate),
        )

        def iterate(number: int, now: Iterated) -> Iterated:
            if renew is not None and number > 1:
                self._renew(renew, number - 1, now)
            step = correct(residual(now.z))
            norm = rms_norm(step / scale)
            return self._judged(number, now, step, norm, fine, number > RENEW[0] or renew is None)

        last = self._repeat(iterate, begun)
        self.rate = torch.where(last.known.isfinite(), last.known, 1.0)
        self._note(last.iterations, active)
        return Solved(last.z, last.ok, last.finite, last.iterations, last.rate)

    def _repeat(self, iterate: Callable[[int, Iterated], Iterated], now: Iterated) -> Iterated:
        """Iterate while some row has not ended, as often as allowed."""
        for number in range(self._limit):
            if not bool(now.going.any()):
                break
            now = iterate(number, now)
        return now

    def _judged(
        self, number: int, now: Iterated, step: Tensor, norm: Tensor, fine: Tensor, renewed: bool
    ) -> Iterated:
        """Take over a correction; say which rows have converged, and which never will."""
        going, first, rate, known = now.going, number == 0, now.rate, now.known
        if first:
            eta = power(known, 0.8)
        else:
            rate = torch.where(going, norm / now.norm, rate)
            eta = torch.where(rate < 1, rate / (1 - rate), torch.inf)
            known = torch.where(going, eta.clamp_min(FASTEST), known)
        good = norm.isfinite()
        finite = now.finite & (good | ~going)
        z = torch.where((going & good)[:, None], now.z - step, now.z)
        lost = ~good
        if self._tight:
            done = self._at_rounding(step, norm, fine, rate, first, renewed)
            if not first:
                lost = lost | ((rate > 1e3) & (norm > self._kappa))
        else:
            done = eta * norm <= self._kappa
            if not first:
                done = done | (norm == 0)
                left = self._limit - 1 - number
                lost = lost | (rate >= 1) | (eta * norm * power(rate, left) > self._kappa)
        ok = now.ok | (going & done & good)
        iterations = now.iterations + going
        return Iterated(z, going & ~done & ~lost, ok, finite, iterations, known, rate, norm)

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
        tiny = ((step.abs() <= fine).all(dim=1)) | (norm == 0)
        if first:
            return tiny
        small = (rate >= 0.5) & (norm <= (1e-4 if renewed else 1e-8))
        return tiny | small | ((rate >= 0.9) & (norm <= 1e-6))

    def forget(self, rows: Tensor) -> None:
        """Know nothing of how fast the iteration converges in `rows (B,)`."""
        self.rate = self.rate.masked_fill(rows, 1.0)
