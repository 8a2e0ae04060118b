"""Additive Runge-Kutta steps: a field of two parts, of which only the stiff one is implicit."""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from solver.implicit.dirk import DirkStepper, combined
from solver.implicit.jacobian import JacobianSetup, RealField
from solver.methods.tableau import ButcherTableau
from solver.norms import Tolerance
from solver.polynomials import hermite
from solver.problem import Field
from solver.split import Split


@final
class ImexStepper(DirkStepper):
    """Takes steps of a pair with common nodes and weights; Kennedy & Carpenter (2003), eq. 3.

    The last stage is not the end of the step, as its explicit slope counts too: both parts are
    evaluated once more at the start of the next one.

    Args:
        tableau, explicit: of the implicit and of the explicit part.
        split: the parts.
    """

    remembers = True

    def __init__(
        self,
        tableau: ButcherTableau,
        explicit: ButcherTableau,
        split: Split,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None,
        exact: bool,
        setup: JacobianSetup,
    ):
        """Take the field apart."""
        super().__init__(
            tableau, field.part(split.implicit), like, time_dtype,
            graph=graph, tolerance=tolerance, exact=exact, setup=setup,
        )  # fmt: skip
        self._other = RealField(field.part(split.explicit), like)
        self._other_a = [[float(x) for x in row] for row in explicit.exact.a]
        self._other_start, self._other_hk = self._start, list[Tensor]()
        self._fsal, self._total, self._stale = False, self._start, True
        self.keeps_end_slope, self.interpolant_evals = False, 1
        self.interpolant_gives_end_slope = False

    def begin(self, slope: Tensor) -> None:
        """Know the slope of both parts together, which the first step does not need."""
        self._total, self._stale = slope, True

    @property
    def start_slope(self) -> Tensor:
        """The slope of both parts together where the solve began."""
        return self._total

    def replace_start(self, slope: Tensor) -> None:
        """Evaluate both parts anew, with those rows at rest that are."""
        self._total, self._stale = slope, True

    def restart(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Let the next attempt of `rows (B,)` begin just behind a jump."""
        self._behind = t.detach() if self._behind is None else torch.maximum(self._behind, t)
        self._current, self._slow = self._current & ~rows, self._slow | rows
        self._stale = True

    def _evaluate_start(self, t: Tensor, y: Tensor) -> None:
        super()._evaluate_start(t, y)
        self._other_start = self._other_slope(t, y)

    def _other_slope(self, t: Tensor, y: Tensor) -> Tensor:
        slope = self._other(t, y)
        return slope if self._resting is None else slope.masked_fill(self._resting, 0.0)

    def _base(self, i: int, y: Tensor, h: Tensor, hk: list[Tensor]) -> Tensor:
        """Return what stage i adds its own slope to."""
        if i == 1:
            self._other_hk = [h * self._other_start]
        return super()._base(i, y, h, hk) + combined(self._other_hk, self._other_a[i])

    def _took(self, time: Tensor, h: Tensor, state: Tensor, rows: Tensor) -> None:
        """Evaluate the explicit part in the stage just solved."""
        self._other_hk.append(h * self._other_slope(time, state))
        self._counts.add(rows.long())

    def _finish(self, y: Tensor, h: Tensor, hk: list[Tensor], states: list[Tensor]) -> Tensor:
        """Return the state at the end; keep the slopes of both parts together."""
        self._hk = [one + other for one, other in zip(hk, self._other_hk, strict=True)]
        return y + combined(self._hk, self._b)

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the cubic through both ends and their slopes."""
        end = self._field.real(y1)
        h_end = dt.to(self._real)[:, None] * (
            self._slope(t_next, end) + self._other_slope(t_next, end)
        )
        return self._field.back(hermite(end - self._field.real(y), self._hk[0], h_end))

    def advance(self, moved: Tensor) -> None:
        """Go on from the attempt just made in the rows `moved (B,)`."""
        self._moved(moved)
        self._stale = True

    def continuing(self, slopes: Sequence[Tensor]) -> "ImexStepper":
        """Never asked for: both parts are evaluated at every start."""
        raise TypeError("steps of two parts cannot begin from one slope")
