"""What an integration method is, and the working state it has during one solve."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from solver.norms import Tolerance
from solver.problem import Field


class Trial(NamedTuple):
    """Result of one attempt, all rows."""

    y1: Tensor  # (B, D) state at the end of the step
    error: Tensor | None  # (B, D) estimate of the local error, None for a method without one
    error_low: Tensor | None = None  # (B, D) a second estimate of lower order


class Counts:
    """What implicit steps needed, int64 `(B,)` each; never written to in place."""

    def __init__(self, like: Tensor):
        """Start from zero for the rows of `like (B, D)`."""
        self.f_evals = torch.zeros(len(like), dtype=torch.int64, device=like.device)
        self.jac_evals, self.newton_iterations = self.f_evals, self.f_evals
        self.factorizations = self.f_evals

    def add(
        self, f_evals: Tensor, jac_evals: Tensor | None = None, iterations: Tensor | None = None
    ) -> None:
        """Add to the rows' counts, `(B,)` each."""
        self.f_evals = self.f_evals + f_evals
        if jac_evals is not None:
            self.jac_evals = self.jac_evals + jac_evals
        if iterations is not None:
            self.newton_iterations = self.newton_iterations + iterations

    def factored(self, rows: Tensor) -> None:
        """Count a matrix that was factored for `rows (B,)` bool."""
        self.factorizations = self.factorizations + rows.long()

    def kept(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return what has been counted so far, for `restore`."""
        return self.f_evals, self.jac_evals, self.newton_iterations, self.factorizations

    def restore(self, counted: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
        """Forget what was counted since `kept`, as it was done twice."""
        self.f_evals, self.jac_evals, self.newton_iterations, self.factorizations = counted


class Stepper(ABC):
    """Working state of a method in one solve: takes attempts, remembers slopes between them."""

    evals_per_attempt: int  # evaluations of the vector field an attempt needs, start slope known
    keeps_end_slope: (
        bool  # whether an accepted attempt ends with the slope the next one starts from
    )
    interpolant_evals: int  # further evaluations an output inside a step needs
    interpolant_gives_end_slope: bool  # whether one of these is the slope the next starts from
    counts: "Counts | None" = None  # what attempts needed that differs from row to row
    unsolved: Tensor | None = None  # (B,) bool, rows whose last attempt found no solution
    # (B,) int64, what the attempt chose by itself in each row, as its method documents; a step
    # taken once more takes what it finds here. None where nothing is chosen.
    choice: Tensor | None = None
    apart: bool = False  # whether Jacobians may use nothing that autograd keeps for backward
    looks_ahead: bool = False  # whether some stage lies behind the end of the step
    horizon: Tensor | None = None  # (B,) time that no such stage may pass, None where it may

    @abstractmethod
    def begin(self, slope: Tensor) -> None:
        """Start from `slope (B, D)`, the vector field at the start."""

    @property
    @abstractmethod
    def start_slope(self) -> Tensor:
        """The slope the next attempt starts from, `(B, D)`; to be read, not kept."""

    @property
    def knows_start(self) -> bool:
        """Whether `start_slope` is that of the next attempt already."""
        return True

    def of_rows(self, rows: Tensor, field: Field, like: Tensor) -> "Stepper | None":
        """Return a stepper that goes on with some rows alone, None where that is not possible.

        Args:
            rows: which ones, `(n,)` int64.
            field: the vector field of these.
            like: their states `(n, D)`.
        """
        return None

    @abstractmethod
    def replace_start(self, slope: Tensor) -> None:
        """Let the next attempt start from `slope (B, D)`; everything else stays as it is."""

    @abstractmethod
    def rest(self, rows: Tensor | None) -> None:
        """Let slopes of `rows (B,)` count as 0 from now on, whatever they are; None: let all count.

        A row that stands still with a slope that is not finite would not: 0 * inf is NaN.
        """

    @abstractmethod
    def attempt(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Trial:
        """Try one step of `dt (B,)` from `t` to `t_next` (both given, so that ends are met
        exactly)."""

    def keep(self) -> Any:
        """Return what attempts change besides their result, for `restore`."""
        return None

    def restore(self, kept: Any) -> None:  # noqa: B027
        """Undo what an attempt made once more has changed since `keep`."""

    def probe(self, dt: Tensor) -> Tensor | None:
        """Return vectors that tell how stiff the attempt just made was, `(R, B, D)` real.

        x, h J x for some x, then x, h J x, (h J)^2 x, .. for another; None if there are none.
        """
        return None

    @abstractmethod
    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the step's dense output as `(degree, B, D)`, coefficients of theta, theta ** 2,
        ...

        `y(t + theta dt) = y + sum_j theta ** j * coefficient_j`; valid for the attempt just made.
        The dtype may be wider than the state's.
        """

    @abstractmethod
    def advance(self, moved: Tensor) -> None:
        """Go on from the attempt just made in the rows `moved (B,)`, stay in the others."""

    @abstractmethod
    def restart(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Evaluate the start slope of `rows (B,)` anew, behind a jump of the vector field."""


class ReplayingStepper(Stepper):
    """A stepper that can take a step once more, which gradients without a graph need."""

    remembers: bool = False  # whether attempts depend on earlier ones besides the start slope

    @abstractmethod
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
        """Take an accepted step once more, from its start alone; return the state at its end.

        Its first slope is evaluated at `start (B,)`, `t` or just behind it where the field jumps.
        Without `polynomial`, whatever only that, the error or the next step needs is left out.
        """

    @abstractmethod
    def slopes(self) -> Tensor:
        """Return the slopes of the attempt just made, `(S, B, D)`, to keep."""

    @abstractmethod
    def known_slopes(self) -> list[Tensor]:
        """Return the slopes evaluated so far: none, that of the start, or those of an attempt."""

    @abstractmethod
    def continuing(self, slopes: Sequence[Tensor]) -> "ReplayingStepper":
        """Return a stepper of the same solve that knows these slopes, see `known_slopes`."""


@dataclass(frozen=True)
class Method(ABC):
    """An integration method: a frozen settings object, one a file."""

    name: ClassVar[str]  # lower case, what `method="..."` looks up
    title: ClassVar[str]  # shown to people

    @property
    @abstractmethod
    def order(self) -> int:
        """Order of the step."""

    @property
    @abstractmethod
    def error_order(self) -> int | None:
        """Order of the error estimate; None without one, then only fixed steps are possible."""

    @property
    @abstractmethod
    def dense_order(self) -> int:
        """Order of the dense output."""

    @abstractmethod
    def stepper(
        self,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None = None,
        exact: bool = True,
    ) -> Stepper:
        """Make the working state of a solve of `like (B, D)`.

        Args:
            field: the vector field.
            like: the state at the start.
            time_dtype: dtype of time.
            graph: whether autograd's graph is kept.
            tolerance: of the solve, what implicit equations are solved to.
            exact: whether these are solved to rounding instead, as gradients need it.
        """

    def error_ratio(self, norm: Tensor, norm_low: Tensor | None) -> Tensor:
        """Combine the norms `(B,)` of the weighted error estimates to one ratio."""
        return norm
