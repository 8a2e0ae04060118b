"""What implicit steppers share: a Jacobian kept row by row, counters, rows at rest."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from solver.implicit.jacobian import Jacobian, JacobianSetup, Linearised, RealField
from solver.implicit.krylov import Accuracy, Products, tangents_travel
from solver.implicit.linear import Matrix
from solver.implicit.newton import Newton, Solved
from solver.methods.base import Counts, Stepper
from solver.norms import Tolerance, rms_norm
from solver.problem import Field, real_dtype

T = TypeVar("T")
GOLDEN = 0.6180339887498949
PRODUCTS = 4  # with the Jacobian, to estimate its spectral radius
# Growth of the step (at most 10 at once), and attempts, after which a Jacobian is taken anew.
FAR, OLD = 9.9, 30
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
        setup: JacobianSetup,
    ):
        """Know no Jacobian yet."""
        self._field, self._graph = RealField(field, like), graph
        self._tolerance = Tolerance(1e-4, 1e-6) if tolerance is None else tolerance
        self._jacobian = Jacobian(self._field, setup, self._tolerance)
        self._tight, self._like = exact or tolerance is None, like
        self._finest = Accuracy(0.0, torch.finfo(like.dtype).eps ** 0.75)
        self._jacobian.spent = self._count_products
        if self._tight:
            self._jacobian.accuracy = self._finest
        self._real = real_dtype(like.dtype)
        self._counts = self.counts = Counts(like)
        self._j: Matrix | None = None
        never = torch.zeros(len(like), dtype=torch.bool, device=like.device)
        self._h_of_j = torch.zeros(len(like), dtype=self._real, device=like.device)
        self._age_of_j = never.long()  # attempts since the Jacobian was taken, and its step size
        self._current = never  # rows whose Jacobian was taken at their present state
        self._slow = never  # rows whose iteration asks for a new one
        self._warm = False  # whether the power iteration has been under way before
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
        if jacobian is None or isinstance(jacobian, Products) or not self._start.shape[1]:
            return None  # products would cost evaluations of the field
        number = torch.arange(1, self._start.shape[1] + 1, dtype=torch.float64, device=dt.device)
        powers = [(1 + (number * GOLDEN).frac()).expand(len(dt), -1)]
        h = dt.detach().double()[:, None]
        with torch.no_grad():
            jacobian = jacobian.detached()
            for _ in range(PRODUCTS):
                size = powers[-1].norm(dim=1, keepdim=True).clamp_min(1e-300)
                product = jacobian.times((powers[-1] / size).to(self._start.dtype))
                powers.append(product.double() * (h * size))
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

    def evaluate_jacobian(self, t: Tensor, y: Tensor, *, time: bool = False) -> Linearised:
        """Return slope, Jacobian and, if asked for, derivative by time at a start, all rows."""
        return self._jacobian.at(self._at_start(t), y, graph=self._graph and time, time=time)

    def _take_jacobian(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Take the Jacobian of `rows (B,)` at `t`, `y`, and count it."""
        calls = self._field.field.calls
        found = self._jacobian.at(t.detach(), y.detach())
        calls = self._field.field.calls - calls
        self._counts.add(rows * calls, rows.long())
        self._keep_jacobian(found, rows)

    def _keep_jacobian(self, found: Linearised, rows: Tensor) -> None:
        """Take over what was found in `rows (B,)`; what is not finite counts as 0."""
        new = found.by_state.usable()
        if self._resting is not None:
            new = new.at_rest(self._resting[:, 0])
        # Of another kind where a band has turned out not to hold all: new everywhere.
        same = type(new) is type(self._j)
        self._j = new.merged(rows, self._j) if same and self._j is not None else new

    def _count_products(self, rows: Tensor) -> None:
        self._counts.add(rows.long())

    def _j_known(self) -> Matrix:
        assert self._j is not None
        return self._j

    def _jacobian_for(self, t: Tensor, y: Tensor, h: Tensor, active: Tensor) -> Matrix:
        """Return the Jacobian of every row, new in those that ask for one.

        Args:
            t, y: start of the step.
            h: its size, `(B, 1)`.
            active: rows that move, `(B,)` bool.
        """
        h = h.detach()[:, 0]
        # One of a place far behind can make all corrections small, and so look good.
        far = (h > FAR * self._h_of_j) | (self._age_of_j >= OLD)
        wanted = active if self._j is None else active & (self._slow | far) & ~self._current
        self._h_of_j = torch.where(wanted, h, self._h_of_j)
        self._age_of_j = (self._age_of_j + 1).masked_fill(wanted, 0)

        def take() -> None:
            self._take_jacobian(self._at_start(t), y, wanted)
            self._current = self._current | wanted
            self._slow = self._slow & ~wanted

        if self._j is None:
            take()
        else:
            self._if_any(wanted, take, None)
        return self._j_known()

    def _if_any(self, rows: Tensor, act: Callable[[], T], otherwise: T) -> T:
        """Return what `act` does for `rows (B,)`, `otherwise` if there is none of them."""
        return act() if bool(rows.any()) else otherwise

    def _with_jacobian(self, time: Tensor, state: Tensor) -> tuple[Tensor, Matrix]:
        """Return the slope with its graph, and the Jacobian without one."""
        if self.apart or (tangents_travel() and not state.requires_grad):
            matrix = self._jacobian.at(time.detach(), state.detach()).by_state
            if self._resting is not None:
                matrix = matrix.at_rest(self._resting[:, 0])
            slope = self._slope(time, state)
        else:
            state = state if state.requires_grad else state.detach().requires_grad_()
            slope = self._slope(time, state)
            matrix = self._jacobian.of(slope, time, state)
        matrix = matrix.usable()
        if isinstance(matrix, Products):
            matrix = replace(matrix, accuracy=self._finest)
        return slope, matrix

    def _learn(self, solved: Solved) -> None:
        """Note which rows converge slowly: they want a new Jacobian in their next step."""
        self._slow = self._slow | ((solved.iterations > 2) & (solved.rate > SLOW))

    def _newton(self, limit: int | None = None) -> Newton:
        like = self._field.real(self._like.detach())
        options = {} if limit is None else {"limit": limit}
        newton = Newton(like, self._tolerance.rtol, tight=self._tight, **options)
        self._newtons.append(newton)
        # As good as the iteration can make use of.
        self._jacobian.accuracy = (
            Accuracy(0.0, 1e-3) if self._tight else Accuracy(0.1 * newton.kappa, 0.02)
        )
        return newton

    def spectral_radius(self, vector: Tensor | None, scale: Tensor) -> tuple[Tensor, Tensor] | None:
        """Estimate the spectral radius of the Jacobian at hand, None if there is none yet.

        Args:
            vector: `(B, D)` what the call before returned, None in the first one.
            scale: what components are measured in, `(B, D)` of the states.

        Returns:
            Radius `(B,)`, and a vector to go on from.
        """
        if self._j is None:
            return None
        jacobian = self._j.detached()
        if self._field.complex:
            scale = scale.repeat_interleave(2, dim=1)
        if vector is None:
            places = torch.arange(scale.shape[1], device=scale.device).to(scale.dtype)
            vector = (1 + 0.5 * torch.cos(places)) * scale
        tiny = torch.finfo(scale.dtype).tiny
        radius = torch.zeros_like(scale[:, 0])
        for _ in range(2 if self._warm else 6):  # a pair of complex eigenvalues turns by turns
            length = rms_norm(vector / scale).clamp_min(tiny)
            once = jacobian.times(vector)
            twice = jacobian.times(once)
            radius = (rms_norm(twice / scale) / length).sqrt()
            grown = rms_norm(twice / scale).clamp_min(tiny)[:, None]
            usable = (grown > 1e-30) & twice.isfinite().all(dim=1, keepdim=True)
            vector = torch.where(usable, twice / grown, scale)
        self._warm = True
        return radius, vector

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
