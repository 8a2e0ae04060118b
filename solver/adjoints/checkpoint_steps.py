"""Every step as a checkpoint of PyTorch: its graph is made again when backward comes to it."""

import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from solver.adjoints.base import Adjoint
from solver.adjoints.followed import solve_followed
from solver.dense import DenseRecord
from solver.errors import InvalidArgument
from solver.loop import Outcome, Problem
from solver.methods.base import Method, ReplayingStepper, Stepper, Trial
from solver.norms import Tolerance
from solver.outputs import Outputs
from solver.problem import Field
from solver.recording import Recorder


@final
@dataclass(frozen=True)
class CheckpointSteps(Adjoint):
    """Autograd follows every attempt, but keeps no more of it than where it began.

    Exact, for every method whose steps do not depend on those before, second derivatives and dense
    output included, and whatever tensors the vector field uses. Memory: states and slopes at the
    start of every attempt, and the graph of one step. An attempt that every row refused costs no
    evaluation in backward. A vector field that differentiates inside, such as one made from an
    energy, is evaluated many times more, as each look at its own graph makes the step anew: take
    `"aca"` or `"symplectic"` for it.
    """

    name: ClassVar[str] = "checkpoint_steps"
    title: ClassVar[str] = "Checkpointed steps"

    def integrate(
        self,
        problem: Problem,
        outputs: Outputs | None,
        dense: DenseRecord | None,
        recorder: Recorder | None,
        *,
        graph: bool,
    ) -> tuple[Outcome, Tensor | None]:
        """Backpropagate through steps that are checkpoints."""
        if graph:
            problem = replace(problem, method=_Checkpointed(problem.method))
        return solve_followed(problem, outputs, dense, recorder, graph=graph, checkpoints=True)


@dataclass(frozen=True)
class _Checkpointed(Method):
    """A method whose steps are checkpoints."""

    inner: Method

    @property
    def order(self) -> int:
        """Order of the step."""
        return self.inner.order

    @property
    def error_order(self) -> int | None:
        """Order of the error estimate."""
        return self.inner.error_order

    @property
    def dense_order(self) -> int:
        """Order of the dense output."""
        return self.inner.dense_order

    def error_ratio(self, norm: Tensor, norm_low: Tensor | None) -> Tensor:
        """Combine the norms of the error estimates."""
        return self.inner.error_ratio(norm, norm_low)

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
        """Make the working state of one solve."""
        stepper = self.inner.stepper(
            field, like, time_dtype, graph=graph, tolerance=tolerance, exact=exact
        )
        if not isinstance(stepper, ReplayingStepper):
            raise InvalidArgument(
                f'adjoint is "checkpoint_steps" and method {self.inner.name!r}, whose steps cannot '
                'be taken once more: use adjoint="backprop"'
            )
        if stepper.remembers:
            raise InvalidArgument(
                f'adjoint is "checkpoint_steps" and method {self.inner.name!r}, whose steps depend '
                'on those before: use adjoint="symplectic" or "backprop"'
            )
        return _CheckpointedStepper(stepper)


@final
class _CheckpointedStepper(Stepper):
    """Takes attempts inside checkpoints; between them only the slopes are in the graph."""

    def __init__(self, inner: ReplayingStepper):
        """Take over what the method's own stepper says of itself."""
        # Checkpoints hold on to what they run: never to a stepper that holds slopes of the graph.
        self._blank, self._inner, inner.apart = inner, inner, True
        self.evals_per_attempt = inner.evals_per_attempt
        self.keeps_end_slope = inner.keeps_end_slope
        self.interpolant_evals = inner.interpolant_evals
        self.interpolant_gives_end_slope = inner.interpolant_gives_end_slope
        self.counts, self.looks_ahead = inner.counts, inner.looks_ahead

    def begin(self, slope: Tensor) -> None:
        """Start from `slope (B, D)`."""
        self._inner = self._blank.continuing([slope])

    @property
    def start_slope(self) -> Tensor:
        """The slope the next attempt starts from."""
        return self._inner.start_slope

    def replace_start(self, slope: Tensor) -> None:
        """Let the next attempt start from `slope (B, D)`."""
        self._inner.replace_start(slope)

    def rest(self, rows: Tensor | None) -> None:
        """Let slopes of `rows (B,)` count as 0 from now on, not in steps that are taken already."""
        self._blank = copy.copy(self._blank)
        self._blank.rest(rows)
        self._inner.rest(rows)

    def attempt(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Trial:
        """Try one step inside a checkpoint."""
        blank, first = self._blank, self._inner.known_slopes()[:1]
        blank.horizon, unsolved = self.horizon, []

        def run(t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, *known: Tensor) -> tuple:
            stepper = blank.continuing(known)
            trial = stepper.attempt(t, dt, t_next, y)
            unsolved.append(stepper.unsolved)
            return (*trial, *stepper.known_slopes())

        y1, error, low, *slopes = checkpoint(run, t, dt, t_next, y, *first, use_reentrant=False)
        self._inner = blank.continuing(slopes)
        self.unsolved = unsolved[0]
        return Trial(y1, error, low)

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the dense output of the attempt just made, its extra stages in a checkpoint."""

        blank, known = self._blank, self._inner.known_slopes()

        def run(
            t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor, *known: Tensor
        ) -> tuple:
            stepper = blank.continuing(known)
            polynomial = stepper.polynomial(t, dt, t_next, y, y1)
            return polynomial, *stepper.known_slopes()

        polynomial, *slopes = checkpoint(run, t, dt, t_next, y, y1, *known, use_reentrant=False)
        self._inner = blank.continuing(slopes)
        return polynomial

    def keep(self) -> Any:
        """Return what has been counted so far."""
        return None if self.counts is None else self.counts.kept()

    def restore(self, kept: Any) -> None:
        """Forget what was counted since."""
        if self.counts is not None:
            self.counts.restore(kept)

    def advance(self, moved: Tensor) -> None:
        """Go on from the attempt just made in the rows `moved (B,)`."""
        self._inner.advance(moved)

    def restart(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Evaluate the start slope of `rows (B,)` anew."""
        self._inner.restart(t, y, rows)
