"""Stabilized explicit steps: as many stages as the stiffness of each row asks for."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, final

import torch
from torch import Tensor

from solver.methods.base import Counts, ReplayingStepper, Trial
from solver.norms import Tolerance, rms_norm
from solver.polynomials import hermite
from solver.problem import Field, real_dtype

MOST = 400  # stages; steps that would need more are refused
LASTS = 25  # accepted steps after which the spectral radius is estimated anew
ROUNDS = 40  # of the power iteration
SPARE = 1.2  # times the radius found
DAMPING = 2 / 13


@lru_cache(maxsize=512)
def coefficients(s: int) -> Tensor:
    """Return `(5, s + 1)` float64: mu, nu, mu~, gamma~ and c of every stage.

    Sommeijer, Shampine & Verwer (1998), J. Comput. Appl. Math. 88, 315-326, eq. 2.8 to 2.12.
    """
    w0 = 1 + DAMPING / s**2
    t, d, dd = [1.0, w0], [0.0, 1.0], [0.0, 0.0]  # Chebyshev's polynomials, first and second slopes
    for _ in range(2, s + 1):
        t.append(2 * w0 * t[-1] - t[-2])
        d.append(2 * w0 * d[-1] - d[-2] + 2 * t[-2])
        dd.append(2 * w0 * dd[-1] - dd[-2] + 4 * d[-2])
    w1 = d[s] / dd[s]
    b = [0.0, 0.0, *(dd[j] / d[j] ** 2 for j in range(2, s + 1))]
    b[0] = b[1] = b[2]
    c = [0.0, 0.0, *(w1 * dd[j] / d[j] for j in range(2, s + 1))]
    c[1], c[s] = c[2] / d[2], 1.0
    rows = [[0.0, 0.0, b[1] * w1, 0.0, c[1]]]
    for j in range(2, s + 1):
        mu, nu, rate = 2 * b[j] * w0 / b[j - 1], -b[j] / b[j - 2], 2 * b[j] * w1 / b[j - 1]
        rows.append([mu, nu, rate, -(1 - b[j - 1] * t[j - 1]) * rate, c[j]])
    return torch.tensor([[0.0] * 5, *rows], dtype=torch.float64).t()


def stages_for(z: Tensor) -> Tensor:
    """Return how many stages are stable for `z = h rho (B,)`, int64."""
    return (1 + (1 + 1.54 * z).sqrt()).ceil().nan_to_num(nan=2.0, posinf=2e9).long().clamp_min(2)


@final
class StabilizedStepper(ReplayingStepper):
    """Takes steps of the Runge-Kutta-Chebyshev method of order 2.

    `choice` is the number of stages. The spectral radius of each row comes from a power iteration
    with differences of the field, and is looked at again after refusals.
    """

    evals_per_attempt = 0  # counted by `counts`, row by row
    keeps_end_slope = True
    interpolant_evals = 0
    interpolant_gives_end_slope = False
    remembers = True

    def __init__(
        self,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None,
    ):
        """Know nothing of the spectrum yet."""
        self._field, self._real, self._time = field, real_dtype(like.dtype), time_dtype
        self._tolerance = Tolerance(1e-4, 1e-6) if tolerance is None else tolerance
        self.counts = self._counts = Counts(like)
        self._quiet = torch.no_grad if graph else nullcontext
        self._start = self._end = torch.zeros_like(like)
        self._radius = torch.zeros(len(like), dtype=self._real, device=like.device)
        self._age = torch.full_like(self._radius, LASTS, dtype=torch.int64)
        self._open = False  # whether the attempt made last was not taken further
        self._vector: Tensor | None = None
        self._behind: Tensor | None = None  # (B,) times just behind a jump
        self._resting: Tensor | None = None
        self._y = self._y1 = self._start
        self._h = torch.zeros_like(self._radius[:, None])

    def begin(self, slope: Tensor) -> None:
        """Start from `slope (B, D)`."""
        self._start = slope

    @property
    def start_slope(self) -> Tensor:
        """The slope the next attempt starts from."""
        return self._start

    def replace_start(self, slope: Tensor) -> None:
        """Let the next attempt start from `slope (B, D)`."""
        self._start = slope

    def rest(self, rows: Tensor | None) -> None:
        """Let slopes of `rows (B,)` count as 0 from now on; None lets all count."""
        self._resting = None if rows is None else rows[:, None]

    def _slope(self, t: Tensor, y: Tensor) -> Tensor:
        slope = self._field(t, y)
        return slope if self._resting is None else slope.masked_fill(self._resting, 0.0)

    def probe(self, dt: Tensor) -> Tensor | None:
        """Return what the number of stages goes by: a pair, taken for damped."""
        size = dt.detach().to(self._real) * self._radius / SPARE
        return torch.stack([torch.ones_like(size), -size])[:, :, None]

    def attempt(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Trial:
        """Try one step; the estimate of its error is not part of autograd's graph."""
        if self._open:  # nobody moved, so nobody advanced
            self._look_again(torch.ones_like(dt, dtype=torch.bool))
        self._open = True
        with torch.no_grad():
            active = dt > 0
            if self._resting is not None:
                active = active & ~self._resting[:, 0]
            self._look_at_spectrum(t.detach(), y.detach(), active & (self._age >= LASTS))
            wanted = stages_for(dt.detach().to(self._real) * self._radius)
            too_many = active & (wanted > MOST)
            self.choice = torch.where(active, wanted.clamp(max=MOST), 2)
        y1 = self._stages(t, dt, t_next, y)
        self._end = self._slope(t_next, y1)
        self._counts.add(active * self.choice)
        with self._quiet():
            error = 0.8 * (y - y1) + 0.4 * self._h * (self._start + self._end)
            if bool(too_many.any()):  # not stable: refused, and made small enough
                size = 100 * self._tolerance.scale(y.detach().abs())
                error = torch.where(too_many[:, None], size.to(error.dtype), error)
                y1 = torch.where(too_many[:, None], y, y1)
        return Trial(y1, error)

    def _stages(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Tensor:
        """Go through the stages, each row through as many as `choice` says."""
        assert self.choice is not None
        h, count = dt.to(self._real)[:, None], self.choice.clamp_min(2)
        kinds, which = count.unique(return_inverse=True)
        most = int(kinds.max()) if kinds.numel() else 1
        table = torch.zeros((len(kinds), 5, most + 1), dtype=torch.float64)
        for place, s in zip(table, kinds.tolist(), strict=True):
            place[:, : s + 1] = coefficients(s)
        table = table.to(y.device)[which].permute(1, 2, 0)  # (5, s + 1, B)
        factors, c = table[:4].to(self._real)[..., None], table[4].to(self._time)
        h_start = h * self._start
        before, now = y, y + factors[2, 1] * h_start
        for j in range(2, most + 1):
            mu, nu, rate, first = factors[:, j]
            slope = self._slope(torch.addcmul(t, c[j - 1], dt), now)
            change = (1 - mu - nu) * y + mu * now + nu * before
            following = change + rate * (h * slope) + first * h_start
            going = (count >= j)[:, None]
            if bool(going.all()):
                before, now = now, following
            else:
                before, now = torch.where(going, now, before), torch.where(going, following, now)
        self._y, self._y1, self._h = y, now, h
        return now

    def _look_at_spectrum(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Estimate the spectral radius in `rows (B,)` by power iteration, with 20 % to spare."""
        if not bool(rows.any()):
            return
        if self._behind is not None:
            t = torch.maximum(t, self._behind)
        slope = self._start.detach()
        before = torch.zeros_like(slope) if self._vector is None else self._vector
        vector = torch.where((before == 0).all(dim=1, keepdim=True), slope, before)
        # A start that is an eigenvector itself would never show the others.
        bent = 1 + 0.1 * torch.cos(torch.arange(y.shape[1], device=y.device).to(self._real))
        vector = (vector * bent).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        nothing = (vector == 0).all(dim=1, keepdim=True)
        vector = torch.where(nothing, bent.to(vector.dtype).expand_as(vector), vector)
        size = rms_norm(y) + 1e-3 * rms_norm(self._tolerance.scale(y.abs()))
        size = (size * torch.finfo(self._real).eps ** 0.5).clamp_min(1e-30)[:, None]
        known, going = torch.zeros_like(self._radius), rows
        for number in range(ROUNDS):
            vector = vector * (size / rms_norm(vector).clamp_min(1e-300)[:, None])
            image = self._slope(t, y + vector) - slope
            self._counts.add(going.long())
            radius = rms_norm(image) / size[:, 0]
            usable = going & radius.isfinite() & (radius > 0)
            near = (radius - known).abs() <= 0.01 * radius
            known = torch.where(usable, radius, known)
            vector = torch.where(usable[:, None], image, vector)
            going = usable & ~(near & (number > 0))
            if not bool(going.any()):
                break
        found = SPARE * known
        self._radius = torch.where(rows, found, self._radius)
        self._vector = torch.where(rows[:, None], vector, before)
        self._age = self._age.masked_fill(rows, 0)

    def replay(
        self,
        t: Tensor,
        dt: Tensor,
        t_next: Tensor,
        y: Tensor,
        *,
        start: Tensor,
        polynomial: bool,
    ) -> Tensor:
        """Take an accepted step once more, from its start alone, with the stages of `choice`."""
        self._start = self._field(start, y)
        y1 = self._stages(t, dt, t_next, y)
        if polynomial:
            self._end = self._field(t_next, y1)
        return y1

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the cubic through both ends and their slopes."""
        return hermite(y1 - y, self._h * self._start, self._h * self._end)

    def advance(self, moved: Tensor) -> None:
        """Go on from the attempt just made in the rows `moved (B,)`."""
        self._open = False
        self._start = torch.where(moved[:, None], self._end, self._start)
        self._look_again(~moved)
        self._age = torch.where(moved, self._age + 1, self._age)

    def _look_again(self, refused: Tensor) -> None:
        """Look at the spectrum of `refused (B,)` rows again, unless that was just done."""
        refused = refused & (self._h.detach()[:, 0] > 0) & (self._age > 0)
        self._age = self._age.masked_fill(refused, LASTS)

    def restart(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Evaluate the start slope of `rows (B,)` anew."""
        slope = self._slope(t, y)
        self._start = torch.where(rows[:, None], slope, self._start)
        self._behind = t.detach() if self._behind is None else torch.maximum(self._behind, t)
        self._age = self._age.masked_fill(rows, LASTS)

    def keep(self) -> Any:
        """Return counts and what is known of the spectrum."""
        self._open = False  # the same attempt is made once more
        return self._counts.kept(), self._radius, self._age, self._vector

    def restore(self, kept: Any) -> None:
        """Take these up again."""
        counted, self._radius, self._age, self._vector = kept
        self._counts.restore(counted)

    def slopes(self) -> Tensor:
        """Return the slopes at both ends of the attempt just made, `(2, B, D)`."""
        return torch.stack([self._start, self._end])

    def known_slopes(self) -> list[Tensor]:
        """Return the slope at the start."""
        return [self._start]

    def continuing(self, slopes: Sequence[Tensor]) -> "StabilizedStepper":
        """Never asked for: the number of stages is remembered from attempt to attempt."""
        raise TypeError("steps with a spectral radius that is remembered cannot begin anywhere")
