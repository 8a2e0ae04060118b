"""What implicit steppers share: a Jacobian kept row by row, counters, rows at rest."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from solver.implicit.jacobian import Jacobian, Linearised, RealField
from solver.implicit.newton import Newton, Solved
from solver.methods.base import Counts, Stepper
from solver.norms import Tolerance
from solver.problem import Field, real_dtype

GOLDEN = 0.6180339887498949
PRODUCTS = 4  # with the Jacobian, to estimate its spectral radius
SLOW = 1e-3  # rate of Newton's iteration above which the next step wants a new Jacobian


class ImplicitStepper(Stepper):
    """Base of steppers that need the Jacobian; states are real inside, see `RealField`.

    A row's Jacobian is kept until its Newton iteration becomes slow, or fails with it.
    """

    evals_per_attempt = 0  # counted by `counts`, row by row
    keeps_end_slope = True
    interpolant_evals = 0
    interpolant_gives_end_slope = False

    def __init__(
        self,
        field: Field,
        like: Tensor,
        *,
        graph: bool,
        tolerance: Tolerance | None,
        exact: bool,
        jacobian: Callable[..., Any] | None,
    ):
        """Know no Jacobian yet."""
        self._field, self._graph = RealField(field, like), graph
        self._jacobian = Jacobian(self._field, jacobian)
        self._tolerance = Tolerance(1e-4, 1e-6) if tolerance is None else tolerance
        self._tight, self._like = exact or tolerance is None, like
        self._real = real_dtype(like.dtype)
        self._counts = self.counts = Counts(like)
        self._j: Tensor | None = None  # (B, D, D)
        never = torch.zeros(len(like), dtype=torch.bool, device=like.device)
        self._current = never  # rows whose Jacobian was taken at their present state
        self._slow = never  # rows whose iteration asks for a new one
        self._stale = False  # whether the start slope has yet to be evaluated
        self._newtons: list[Newton] = []
        self._resting: Tensor | None = None  # (B, 1) bool
        self._behind: Tensor | None = None  # (B,) times just behind a jump
        self._start = torch.zeros_like(self._field.real(like.detach()))  # slope at the start

    def begin(self, slope: Tensor) -> None:
        """Start from `slope (B, D)`."""
        self._start = self._field.real(slope)

    @property
    def start_slope(self) -> Tensor:
        """The slope the next attempt starts from."""
        return self._field.back(self._start)

    def replace_start(self, slope: Tensor) -> None:
        """Let the next attempt start from `slope (B, D)`."""
        self._start = self._field.real(slope)

    def rest(self, rows: Tensor | None) -> None:
        """Let slopes of `rows (B,)` count as 0 from now on; None lets all count."""
        self._resting = None if rows is None else rows[:, None]

    def restart(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Evaluate the start slope of `rows (B,)` anew, and their Jacobian when it is wanted."""
        slope = self._slope(t, self._field.real(y))
        self._start = slope if self._stale else torch.where(rows[:, None], slope, self._start)
        self._stale = False
        self._behind = t.detach() if self._behind is None else torch.maximum(self._behind, t)
        self._current = self._current & ~rows
        self._slow = self._slow | rows

    def probe(self, dt: Tensor) -> Tensor | None:
        """Return a vector multiplied by `dt` times the Jacobian again and again, `(R, B, D)`.

        The vector is the same in every step and has a part in every direction.
        """
        jacobian = self._j
        if jacobian is None or jacobian.ndim != 3 or not jacobian.shape[-1]:
            return None
        product = dt.detach().double()[:, None, None] * jacobian.detach().double()
        size = torch.arange(1, jacobian.shape[-1] + 1, dtype=product.dtype, device=dt.device)
        powers = [(1 + (size * GOLDEN).frac()).expand(len(dt), -1)]
        for _ in range(PRODUCTS):
            powers.append((product @ powers[-1][:, :, None])[:, :, 0])
        return torch.stack([*powers[-2:], *powers])

    def _slope(self, t: Tensor, y: Tensor) -> Tensor:
        slope = self._field(t, y)
        return slope if self._resting is None else slope.masked_fill(self._resting, 0.0)

    def _scales(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the tolerance and the size of each unknown, `(B, D)`, out of the graph."""
        size = self._field.back(y.detach()).abs()
        scale = self._tolerance.scale(size)
        if self._field.complex:
            size, scale = (each.repeat_interleave(2, dim=1) for each in (size, scale))
        return scale, size

    def _active(self, dt: Tensor) -> Tensor:
        """Return the rows that move at all, `(B,)` bool."""
        active = dt.detach() > 0
        return active if self._resting is None else active & ~self._resting[:, 0]

    def _at_start(self, t: Tensor) -> Tensor:
        return t if self._behind is None else torch.maximum(t, self._behind)

    def _take_jacobian(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Take the Jacobian of `rows (B,)` at `t`, `y`, and count it."""
        calls = self._field.field.calls
        found = self._jacobian.at(t.detach(), y.detach())
        calls = self._field.field.calls - calls
        self._counts.add(rows * calls, rows.long())
        self._keep_jacobian(found, rows)

    def _keep_jacobian(self, found: Linearised, rows: Tensor) -> None:
        """Take over what was found in `rows (B,)`; what is not finite counts as 0."""
        new = found.by_state.detach().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        if self._resting is not None:
            new = new.masked_fill(self._resting[:, :, None], 0.0)
        self._j = new if self._j is None else torch.where(rows[:, None, None], new, self._j)

    def _jacobian_for(self, t: Tensor, y: Tensor, active: Tensor) -> Tensor:
        """Return the Jacobian of every row, new in those that ask for one."""
        wanted = active if self._j is None else active & self._slow & ~self._current
        if self._j is None or bool(wanted.any()):
            self._take_jacobian(self._at_start(t), y, wanted)
            self._current = self._current | wanted
            self._slow = self._slow & ~wanted
        assert self._j is not None
        return self._j

    def _with_jacobian(self, time: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the slope with its graph, and the Jacobian `(B, D, D)` without one."""
        if self.apart or (tangents_travel() and not state.requires_grad):
            matrix = self._jacobian.at(time.detach(), state.detach()).by_state
            if self._resting is not None:
                matrix = matrix.masked_fill(self._resting[:, :, None], 0.0)
            slope = self._slope(time, state)
        else:
            state = state if state.requires_grad else state.detach().requires_grad_()
            slope = self._slope(time, state)
            matrix = self._jacobian.of(slope, time, state)
        return slope, matrix.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)

    def _learn(self, solved: Solved) -> None:
        """Note which rows converge slowly: they want a new Jacobian in their next step."""
        self._slow = self._slow | ((solved.iterations > 2) & (solved.rate > SLOW))

    def _newton(self, limit: int | None = None) -> Newton:
        like = self._field.real(self._like.detach())
        options = {} if limit is None else {"limit": limit}
        newton = Newton(
            like, self._tolerance.rtol, tight=self._tight, followed=self._graph, **options
        )
        self._newtons.append(newton)
        return newton

    def keep(self) -> Any:
        """Return counts, Jacobians and what is known of convergence."""
        known = [newton.rate for newton in self._newtons]
        return self._counts.kept(), self._j, self._current, self._slow, known

    def restore(self, kept: Any) -> None:
        """Take these up again."""
        counted, self._j, self._current, self._slow, known = kept
        self._counts.restore(counted)
        for newton, rate in zip(self._newtons, known, strict=True):
            newton.rate = rate

    def _moved(self, moved: Tensor) -> None:
        """Note that the rows `moved (B,)` have left the place of their Jacobian."""
        self._current = self._current & ~moved


def tangents_travel() -> bool:
    """Whether forward-mode differentiation is under way."""
    return getattr(forward_ad, "_current_level", -1) >= 0


def first_order(x: Tensor) -> Tensor:
    """Return `x`, whose derivative may be taken once: the implicit function theorem gives no more.

    Without it a second derivative would be wrong without a word.
    """
    if x.requires_grad:
        x.register_hook(_marked)
    return x


def _marked(gradient: Tensor) -> Tensor:
    return _Marked.apply(gradient) if torch.is_grad_enabled() else gradient


class _Marked(torch.autograd.Function):
    """A gradient that must not be differentiated again."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise RuntimeError(
            "steps of a method that solves equations by Newton's iteration have first derivatives "
            "only: use a Rosenbrock method (rodas5p, rodas4, ros3p, ros2) or an explicit one for "
            "second derivatives"
        )
