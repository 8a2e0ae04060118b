"""Steps that are explicit or stiff, whichever each row needs, by its own estimate of stiffness."""

from collections.abc import Sequence
from typing import Any, final

import torch
from torch import Tensor

from solver.implicit.rosenbrock import RosenbrockStepper
from solver.methods.base import ReplayingStepper, Trial
from solver.methods.explicit_rk import ExplicitStepper
from solver.norms import Tolerance, rms_norm
from solver.problem import real_dtype

STIFF_FROM = 2.5  # |h lambda| from which an explicit step is taken to be limited by stability
EASY_BELOW = 1.0  # |h lambda| below which an explicit step would do as well
BECOMES_STIFF = 10  # more attempts that look stiff than ones that do not
BECOMES_EASY = 8  # accepted steps in a row


@final
class SwitchingStepper(ReplayingStepper):
    """Takes explicit steps in rows that are not stiff and Rosenbrock steps in those that are.

    `choice` is 0 for an explicit and 1 for a stiff step. An explicit step tells `h lambda` by its
    two stages at the end of the step, Hairer & Wanner II (2nd ed.), section IV.2; a stiff one by a
    power iteration on its Jacobian that goes on from step to step.

    Args:
        explicit: its method's last two stages lie at the end of the step, the last one is the
            first of the next step.
        stiff: needs no slope that the step before has left.
        last_two: what the arguments of these stages differ by, weights of the slopes, `(S,)`.
        like: `(B, D)`, a state.
        tolerance: of the solve.
    """

    evals_per_attempt = 0  # counted by `counts`, row by row
    keeps_end_slope = True
    interpolant_evals = 0
    interpolant_gives_end_slope = False
    remembers = True

    def __init__(
        self,
        explicit: ExplicitStepper,
        stiff: RosenbrockStepper,
        last_two: Sequence[float],
        like: Tensor,
        tolerance: Tolerance | None,
    ):
        """Begin with explicit steps in every row."""
        self._explicit, self._implicit = explicit, stiff
        self._last_two = [*last_two]
        self._real = real_dtype(like.dtype)
        self._tolerance = Tolerance(1e-4, 1e-6) if tolerance is None else tolerance
        assert stiff.counts is not None
        self.counts = self._counts = stiff.counts  # one for both
        rows = torch.zeros(len(like), dtype=torch.bool, device=like.device)
        self._stiff = rows  # who takes a stiff step next
        self._evidence = rows.long()  # for a switch
        self._unknown = rows  # whose start slope the explicit method does not have
        self._resting: Tensor | None = None  # (B,) bool
        self._behind: Tensor | None = None  # (B,) times just behind a jump
        self._vector: Tensor | None = None  # (B, D') of the power iteration
        self._ran = (True, False)  # which of the two took part in the attempt just made
        self._size = torch.zeros(len(like), dtype=self._real, device=like.device)  # |h lambda|

    def begin(self, slope: Tensor) -> None:
        """Start from `slope (B, D)`."""
        self._explicit.begin(slope)
        self._implicit.begin(slope)

    @property
    def start_slope(self) -> Tensor:
        """The slope the next attempt starts from, where an explicit one does."""
        return self._explicit.start_slope

    def replace_start(self, slope: Tensor) -> None:
        """Let the next attempt start from `slope (B, D)`."""
        self._explicit.replace_start(slope)

    def rest(self, rows: Tensor | None) -> None:
        """Let slopes of `rows (B,)` count as 0 from now on; None lets all count."""
        self._resting = rows
        self._explicit.rest(rows)
        self._implicit.rest(rows)

    def attempt(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Trial:
        """Try one step of either kind in each row."""
        self.choice = self._stiff.long()
        active = dt.detach() > 0
        if self._resting is not None:
            active = active & ~self._resting
        trial = self._step(t, dt, t_next, y, active)
        with torch.no_grad():
            explicit = active & ~self._stiff
            self._counts.add(explicit * (self._explicit.stages - 1))
            self._size = self._measure(dt.detach(), y.detach(), trial.y1.detach(), active)
        return trial

    def probe(self, dt: Tensor) -> Tensor | None:
        """Return what the choice between the methods goes by: a pair, taken for damped."""
        return torch.stack([torch.ones_like(self._size), -self._size])[:, :, None]

    def _step(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, active: Tensor) -> Trial:
        """Let each method step in its rows, while the others stand still."""
        assert self.choice is not None
        stiff = self.choice > 0
        stiff_ones, easy_ones = bool((active & stiff).any()), bool((active & ~stiff).any())
        self._ran = (easy_ones or not stiff_ones, stiff_ones)
        if self._ran[0]:
            self._meet_unknown(t, y, stiff)
        if not stiff_ones:
            return self._explicit.attempt(t, dt, t_next, y)
        if not easy_ones:
            return self._implicit.attempt(t, dt, t_next, y)
        one = self._explicit.attempt(
            t, torch.where(stiff, 0.0, dt), torch.where(stiff, t, t_next), y
        )
        other = self._implicit.attempt(
            t, torch.where(stiff, dt, 0.0), torch.where(stiff, t_next, t), y
        )
        assert one.error is not None
        assert other.error is not None
        column = stiff[:, None]
        y1 = torch.where(column, other.y1, one.y1)
        return Trial(y1, torch.where(column, other.error, one.error))

    def _meet_unknown(self, t: Tensor, y: Tensor, stiff: Tensor) -> None:
        """Evaluate the start slope of rows that come from a stiff step, and of rows that wait."""
        unknown = self._unknown
        if not bool(unknown.any()):
            return
        start = t if self._behind is None else torch.maximum(t, self._behind)
        slope = self._explicit.slope(start, y)
        self._explicit.replace_start(
            torch.where(unknown[:, None], slope, self._explicit.start_slope)
        )
        self._counts.add((unknown & ~stiff).long())
        self._unknown = unknown & stiff  # they stand elsewhere by the time they need it

    def _measure(self, dt: Tensor, y: Tensor, y1: Tensor, active: Tensor) -> Tensor:
        """Return |h lambda| of the attempt just made, `(B,)`."""
        scale = self._tolerance.scale(y.abs())
        h = dt.to(self._real)
        size = torch.zeros_like(self._size)
        if self._ran[0]:
            slopes = [slope.detach() for slope in self._explicit.known_slopes()]
            apart = slopes[0] * self._last_two[0]
            for slope, weight in zip(slopes[1:], self._last_two[1:], strict=False):
                apart = torch.add(apart, slope, alpha=weight)
            last = len(self._last_two) - 1
            change = rms_norm((slopes[last] - slopes[last - 1]) / scale)
            size = change / rms_norm(apart / scale).clamp_min(torch.finfo(self._real).tiny)
        if self._ran[1]:
            radius = self._implicit.spectral_radius(self._vector, scale)
            if radius is not None:
                found, self._vector = radius
                size = torch.where(self._stiff, h * found, size)
        return torch.where(active, size, 0.0).nan_to_num(nan=torch.inf)

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
        """Take an accepted step once more, each row by the method that took it."""
        assert self.choice is not None
        stiff = self.choice > 0
        some, every = bool(stiff.any()), bool(stiff.all())
        self._ran = (not every, some)
        options = {"start": start, "polynomial": polynomial}
        if not some:
            return self._explicit.replay(t, dt, t_next, y, **options)
        if every:
            return self._implicit.replay(t, dt, t_next, y, **options)
        one = self._explicit.replay(
            t, torch.where(stiff, 0.0, dt), torch.where(stiff, t, t_next), y, **options
        )
        other = self._implicit.replay(
            t, torch.where(stiff, dt, 0.0), torch.where(stiff, t_next, t), y, **options
        )
        return torch.where(stiff[:, None], other, one)

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the dense output of the attempt just made."""
        if not self._ran[1]:
            return self._explicit.polynomial(t, dt, t_next, y, y1)
        if not self._ran[0]:
            return self._implicit.polynomial(t, dt, t_next, y, y1)
        assert self.choice is not None
        stiff = (self.choice > 0)[:, None]
        one = self._explicit.polynomial(t, torch.where(stiff[:, 0], 0.0, dt), t_next, y, y1)
        other = self._implicit.polynomial(t, dt, t_next, y, y1)
        degree = max(len(one), len(other))
        one, other = (
            torch.cat([p, p.new_zeros((degree - len(p), *p.shape[1:]))]) for p in (one, other)
        )
        return torch.where(stiff, other, one)

    def advance(self, moved: Tensor) -> None:
        """Go on from the attempt just made in the rows `moved (B,)`; switch those that should."""
        easy = moved & ~self._stiff
        if self._ran[0]:
            self._explicit.advance(easy)
        self._implicit.advance(moved)
        self._unknown = self._unknown | (moved & self._stiff)
        self._weigh(moved)

    def _weigh(self, moved: Tensor) -> None:
        """Count what speaks for a switch, for the attempt just made."""
        size, stiff = self._size, self._stiff
        looks_stiff = size > STIFF_FROM
        up = torch.where(looks_stiff, self._evidence + 1, (self._evidence - 1).clamp_min(0))
        up = torch.where(size > 0, up, self._evidence)  # rows that stood still learn nothing
        down = torch.where(size < EASY_BELOW, self._evidence + 1, 0)
        down = torch.where(moved, down, self._evidence)
        evidence = torch.where(stiff, down, up)
        turned = evidence >= torch.where(stiff, BECOMES_EASY, BECOMES_STIFF)
        self._stiff = stiff ^ turned
        self._evidence = evidence.masked_fill(turned, 0)

    def restart(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Evaluate the start slope of `rows (B,)` anew."""
        self._behind = t.detach() if self._behind is None else torch.maximum(self._behind, t)
        self._explicit.restart(t, y, rows)
        self._implicit.restart(t, y, rows & self._stiff)
        self._implicit.advance(rows)  # no Jacobian is of the place they stand at now
        self._unknown = self._unknown & ~rows
        self._evidence = self._evidence.masked_fill(rows, 0)

    def keep(self) -> Any:
        """Return what attempts change besides their result."""
        mine = self._stiff, self._evidence, self._unknown, self._vector, self._size
        return self._implicit.keep(), mine

    def restore(self, kept: Any) -> None:
        """Take it up again."""
        theirs, mine = kept
        self._implicit.restore(theirs)
        self._stiff, self._evidence, self._unknown, self._vector, self._size = mine

    def slopes(self) -> Tensor:
        """Return the slope at the start, `(1, B, D)`: those of the two methods do not match."""
        return self.start_slope[None]

    def known_slopes(self) -> list[Tensor]:
        """Return the slope at the start."""
        return [self.start_slope]

    def continuing(self, slopes: Sequence[Tensor]) -> "SwitchingStepper":
        """Never asked for: which method a row takes is remembered from attempt to attempt."""
        raise TypeError("steps that switch between methods cannot begin anywhere")
