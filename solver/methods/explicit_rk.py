"""Explicit Runge-Kutta steps: every instance at its own time and with its own step size."""

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from operator import ne
from typing import ClassVar

import torch
from torch import Tensor

from solver.errors import InvalidArgument
from solver.methods.base import Method, ReplayingStepper, Trial
from solver.methods.tableau import ButcherTableau, Exact
from solver.norms import Tolerance
from solver.probes import SEEN, probe_weights
from solver.problem import Field, real_dtype


@dataclass(frozen=True)
class ExplicitRungeKutta(Method):
    """Base of explicit Runge-Kutta methods; a subclass is its tableau."""

    tableau: ClassVar[ButcherTableau]

    @property
    def order(self) -> int:
        """Order of the step."""
        return self.tableau.order

    @property
    def error_order(self) -> int | None:
        """Order of the error estimate, None for a method of fixed steps."""
        return self.tableau.error_order

    @property
    def dense_order(self) -> int:
        """Order of the dense output."""
        return self.tableau.interpolant_order

    @property
    def stages(self) -> int:
        """Number of stages."""
        return self.tableau.stages

    @property
    def fsal(self) -> bool:
        """Whether the last stage of a step is the first of the next."""
        return self.tableau.fsal

    def stepper(
        self,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None = None,
        exact: bool = True,
    ) -> "ExplicitStepper":
        """Make the working state of one solve."""
        return ExplicitStepper(self.tableau, field, like, time_dtype, graph)

    def error_ratio(self, norm: Tensor, norm_low: Tensor | None) -> Tensor:
        """Combine two estimates as DOP853 does, Hairer, Norsett & Wanner I, section II.10.

        `e5^2 / sqrt(e5^2 + 0.01 e3^2)`; 0 where both vanish.
        """
        if norm_low is None:
            return norm
        square = norm * norm
        total = square + 0.01 * norm_low * norm_low
        return square / total.clamp_min(torch.finfo(total.dtype).tiny).sqrt()


class BufferStages:
    """Slopes `k` in one buffer that every attempt overwrites: three operations a stage."""

    def __init__(self, count: int, like: Tensor):
        """Allocate `count` slopes shaped like the state `(B, D)`."""
        self.k = torch.zeros((count, *like.shape), dtype=like.dtype, device=like.device)
        flat = torch.view_as_real(self.k) if like.is_complex() else self.k
        self._flat = flat.reshape(count, -1)  # a view: (count, N)
        self._rows = self.k.unbind(0)
        self._prefix = [self._flat[:n].t() for n in range(count + 1)]
        self._sum = torch.zeros_like(like)
        self._flat_sum = (
            torch.view_as_real(self._sum) if like.is_complex() else self._sum
        ).reshape(-1)

    def put(self, i: int, slope: Tensor) -> None:
        """Store slope `i`."""
        self._rows[i].copy_(slope)

    def get(self, i: int) -> Tensor:
        """Return slope `i`, overwritten by the next attempt."""
        return self._rows[i]

    def combine(self, weights: Tensor, n: int) -> Tensor:
        """Return `sum_{i<n} weights[i] k_i`, valid until the next call."""
        torch.mv(self._prefix[n], weights, out=self._flat_sum)
        return self._sum

    def polynomial(self, interpolant: Tensor) -> Tensor:
        """Return `interpolant^T k`, `(degree, B, D)`, for `interpolant (count, degree)`."""
        out = interpolant.t() @ self._flat.to(interpolant.dtype)
        if self.k.is_complex():
            return torch.view_as_complex(out.reshape(len(out), *self.k.shape[1:], 2))
        return out.reshape(len(out), *self.k.shape[1:])

    def copy(self, n: int) -> Tensor:
        """Return the first `n` slopes, `(n, B, D)`."""
        return self.k[:n].clone()

    def sums(self, weights: Tensor, stride: int) -> Tensor:
        """Return `weights (R, n)` times the first slopes, of each `stride`-th one, `(R, B, E)`."""
        return _sums(self.k[: weights.shape[1]], weights, stride)

    def first(self, n: int) -> list[Tensor]:
        """Return the first `n` slopes, overwritten by the next attempt."""
        return list(self._rows[:n])

    def holding(self, slopes: Sequence[Tensor]) -> "BufferStages":
        """Return a buffer of the same size that begins with these slopes."""
        other = BufferStages(len(self._rows), self._sum)
        for i, slope in enumerate(slopes):
            other.put(i, slope)
        return other

    def take_over(self, moved: Tensor, source: int) -> None:
        """Let slope `source` be the first slope in the rows `moved (B, 1)`."""
        torch.where(moved, self._rows[source], self._rows[0], out=self._rows[0])

    def check(self) -> None:
        """Nothing can be wrong with copies."""


class GraphStages:
    """Slopes as a list of tensors, so that autograd can follow each one."""

    def __init__(self, count: int, like: Tensor):
        """Reserve `count` places."""
        self._rows: list[Tensor] = [torch.zeros_like(like)] * count
        self._versions = [0] * count
        self._floats: dict[int, list[float]] = {}

    def put(self, i: int, slope: Tensor) -> None:
        """Store slope `i`."""
        self._rows[i] = slope
        self._versions[i] = _version(slope)

    def get(self, i: int) -> Tensor:
        """Return slope `i`."""
        return self._rows[i]

    def combine(self, weights: Tensor, n: int) -> Tensor:
        """Return `sum_{i<n} weights[i] k_i`; scalar weights make autograd keep nothing."""
        floats = self._floats.get(id(weights))
        if floats is None:
            floats = self._floats.setdefault(id(weights), weights.tolist())
        total = self._rows[0] * floats[0]
        for slope, weight in zip(self._rows[1:n], floats[1:n], strict=True):
            if weight:
                total = torch.add(total, slope, alpha=weight)
        return total

    def polynomial(self, interpolant: Tensor) -> Tensor:
        """Return `interpolant^T k`, `(degree, B, D)`, for `interpolant (count, degree)`."""
        k = torch.stack(self._rows)
        dtype = torch.promote_types(interpolant.dtype, k.dtype)
        return torch.tensordot(interpolant.t().to(dtype), k.to(dtype), dims=1)

    def copy(self, n: int) -> Tensor:
        """Return the first `n` slopes, `(n, B, D)`."""
        return torch.stack(self._rows[:n])

    def sums(self, weights: Tensor, stride: int) -> Tensor:
        """Return `weights (R, n)` times the first slopes, of each `stride`-th one, `(R, B, E)`."""
        k = torch.stack([row.detach() for row in self._rows[: weights.shape[1]]])
        return _sums(k, weights, stride)

    def first(self, n: int) -> list[Tensor]:
        """Return the first `n` slopes."""
        return self._rows[:n]

    def holding(self, slopes: Sequence[Tensor]) -> "GraphStages":
        """Return a buffer of the same size that begins with these slopes."""
        other = copy.copy(self)
        other._rows = [*slopes, *self._rows[len(slopes) :]]
        other._versions = [*map(_version, slopes), *self._versions[len(slopes) :]]
        return other

    def take_over(self, moved: Tensor, source: int) -> None:
        """Let slope `source` be the first slope in the rows `moved (B, 1)`."""
        self.put(0, torch.where(moved, self._rows[source], self._rows[0]))

    def check(self) -> None:
        """Refuse a field that wrote into a slope it had returned before.

        Raises:
            InvalidArgument: it did.
        """
        if any(map(ne, map(_version, self._rows), self._versions)):
            raise InvalidArgument(
                "f wrote into a tensor it had returned before: must return a new one when "
                "gradients are wanted"
            )


def _sums(k: Tensor, weights: Tensor, stride: int) -> Tensor:
    real = torch.view_as_real(k).flatten(2) if k.is_complex() else k
    seen = real[:, :, ::stride] if stride > 1 else real
    return torch.mm(weights, seen.reshape(len(k), -1)).view(len(weights), k.shape[1], -1)


def _version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


class ExplicitStepper(ReplayingStepper):
    """Takes explicit Runge-Kutta steps; Hairer, Norsett & Wanner I (2nd ed.), eq. II.1.8."""

    def __init__(
        self,
        tableau: ButcherTableau,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        graph: bool,
    ):
        """Make the coefficients' tensors and room for the slopes."""
        self._field, self.stages = field, tableau.stages
        self._tableau = tableau
        self._probe: Tensor | None = None  # weights, made when first asked for
        self._real = real_dtype(like.dtype)
        self._tab = tableau.coefficients(self._real, like.device)
        in_time = tableau.coefficients(time_dtype, like.device)
        self._c = in_time.c[:, None]  # (S, 1)
        # Interpolants of high order have weights of size 1000 that nearly cancel: rounded to
        # float32 they would cost four digits, so they are used in the dtype of time.
        self._interpolant = in_time.interpolant
        self._extra_c = in_time.extra_c[:, None]
        exact = tableau.exact
        self._at_end = [c == 1 for c in exact.c]
        self._extra_at_end = [c == 1 for c in exact.extra_c]
        extra = len(exact.extra_c)
        self._quiet = torch.no_grad if graph else nullcontext
        self._stages = (GraphStages if graph else BufferStages)(self.stages + extra, like)
        # The slope at the end of the step, if some stage is that: the last one, or an extra one.
        at_end = [e for e, row in enumerate(exact.extra_a) if _is_end(row, exact.b)]
        self.end_slope = self.stages + at_end[0] if at_end else None
        if tableau.fsal:
            self.end_slope = self.stages - 1
        self._fsal, self._polynomial_made, self._stale = tableau.fsal, False, False
        self._known = 1  # slopes evaluated so far
        self._resting: Tensor | None = None  # (B, 1) bool
        self.evals_per_attempt = self.stages - 1
        self.keeps_end_slope = tableau.fsal
        self.interpolant_evals = extra
        self.interpolant_gives_end_slope = bool(at_end) and not tableau.fsal

    def begin(self, slope: Tensor) -> None:
        """Start from `slope (B, D)`."""
        self._stages.put(0, slope)
        self._known = 1

    @property
    def start_slope(self) -> Tensor:
        """The slope the next attempt starts from."""
        return self._stages.get(0)

    @property
    def knows_start(self) -> bool:
        """Whether the slope at the start has been evaluated."""
        return not self._stale

    def of_rows(self, rows: Tensor, field: Field, like: Tensor) -> "ExplicitStepper":
        """Return a stepper that goes on with some rows alone."""
        other = copy.copy(self)
        other._field = field
        other._stages = type(self._stages)(self.stages + self.interpolant_evals, like)
        other.begin(self.start_slope[rows])
        return other

    def replace_start(self, slope: Tensor) -> None:
        """Let the next attempt start from `slope (B, D)`."""
        self._stages.put(0, slope)

    def rest(self, rows: Tensor | None) -> None:
        """Let slopes of `rows (B,)` count as 0 from now on; None lets all count."""
        self._resting = None if rows is None else rows[:, None]

    def slope(self, t: Tensor, y: Tensor) -> Tensor:
        """Evaluate the vector field, 0 in rows at rest."""
        slope = self._field(t, y)
        return slope if self._resting is None else slope.masked_fill(self._resting, 0.0)

    def attempt(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Trial:
        """Try one step; the estimate of its error is not part of autograd's graph."""
        tab, stages = self._tab, self._stages
        if self._stale:
            stages.put(0, self.slope(t, y))
            self._stale = False
        self._polynomial_made, self._known = False, self.stages
        h = dt.to(self._real)[:, None]
        y1 = self._evaluate_stages(t, dt, h, t_next, y, self.stages)
        stages.check()
        if tab.b_error is None:
            return Trial(y1, None)
        with self._quiet():
            error = h * stages.combine(tab.b_error, self.stages)
            low = tab.b_error_low
            error_low = None if low is None else h * stages.combine(low, self.stages)
        return Trial(y1, error, error_low)

    def _evaluate_stages(
        self, t: Tensor, dt: Tensor, h: Tensor, t_next: Tensor, y: Tensor, count: int
    ) -> Tensor:
        """Evaluate the slopes from the second up to `count`; return the state at the end."""
        tab, stages = self._tab, self._stages
        field = self._field if self._resting is None else self.slope
        times = torch.addcmul(t, self._c, dt).unbind(0)
        y1 = y
        for i in range(1, self.stages):
            y1 = torch.addcmul(y, h, stages.combine(tab.a[i], i))
            if i < count:
                stages.put(i, field(t_next if self._at_end[i] else times[i], y1))
        return y1 if self._fsal else torch.addcmul(y, h, stages.combine(tab.b, self.stages))

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
        """Take an accepted step once more, from its start alone."""
        self._stages.put(0, self._field(start, y))
        count = self.stages if polynomial or not self._fsal else self.stages - 1
        return self._evaluate_stages(t, dt, dt.to(self._real)[:, None], t_next, y, count)

    @property
    def nodes(self) -> tuple[Tensor, Tensor]:
        """Places of stages in the step, as tensors: those of the step, those of its interpolant."""
        return self._c, self._extra_c

    def with_stages(self, kind: type["GraphStages"], like: Tensor) -> "ExplicitStepper":
        """Return a stepper that keeps its slopes, like the state `(B, D)`, in another way."""
        other = copy.copy(self)
        other._stages = kind(self.stages + self.interpolant_evals, like)
        return other

    def known_slopes(self) -> list[Tensor]:
        """Return the slopes evaluated so far."""
        return [] if self._stale else self._stages.first(self._known)

    def continuing(self, slopes: Sequence[Tensor]) -> "ExplicitStepper":
        """Return a stepper of the same solve that knows these slopes."""
        other = copy.copy(self)
        other._stages = self._stages.holding(slopes)
        other._stale, other._known = not slopes, len(slopes)
        other._polynomial_made = len(slopes) > self.stages
        return other

    def probe(self, dt: Tensor) -> Tensor | None:
        """Return sums of the slopes that tell how stiff the attempt just made was."""
        if self._probe is None:
            rows = probe_weights(self._tableau)
            like = self._stages.get(0)
            self._probe = torch.tensor(rows, dtype=self._real, device=like.device)
        stride = -(-self._stages.get(0).shape[1] // SEEN)
        return self._stages.sums(self._probe, stride) if len(self._probe) else None

    def slopes(self) -> Tensor:
        """Return a copy of the slopes of the attempt just made, `(S, B, D)`."""
        return self._stages.copy(self.stages)

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the dense output of the attempt just made, after its extra stages."""
        tab, stages, h = self._tab, self._stages, dt.to(self._real)[:, None]
        if len(tab.extra_a):
            times = torch.addcmul(t, self._extra_c, dt).unbind(0)
            for e, row in enumerate(tab.extra_a):
                at = self.stages + e
                state = torch.addcmul(y, h, stages.combine(row, at))
                stages.put(at, self.slope(t_next if self._extra_at_end[e] else times[e], state))
            stages.check()
        self._polynomial_made, self._known = True, self.stages + len(tab.extra_a)
        return stages.polynomial(self._interpolant) * h

    def advance(self, moved: Tensor) -> None:
        """Go on from the attempt just made in the rows `moved (B,)`."""
        self._known = 1
        if self.end_slope is not None and (self._fsal or self._polynomial_made):
            self._stages.take_over(moved[:, None], self.end_slope)
        else:
            self._stale = True

    def restart(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Evaluate the start slope of `rows (B,)` anew."""
        slope = self.slope(t, y)
        if self._stale:
            self._stages.put(0, slope)
            self._stale = False
            return
        last = self.stages - 1  # free between attempts
        self._stages.put(last, slope)
        self._stages.take_over(rows[:, None], last)


def _is_end(row: Exact, b: Exact) -> bool:
    """Whether a stage with these weights is the slope at the end of the step."""
    return row[: len(b)] == b and not any(row[len(b) :])
