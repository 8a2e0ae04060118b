"""What the steppers of the methods that have a compiled form are in a kernel."""

from dataclasses import dataclass

import torch
from torch import Tensor

from solver.compiled.implicit import TracedDirk, TracedRosenbrock, TracedStepper
from solver.compiled.literal import numbers_of, weighted_sum
from solver.implicit.dirk import DirkStepper
from solver.implicit.methods import DiagonallyImplicit, Rosenbrock
from solver.implicit.rosenbrock import RosenbrockStepper
from solver.loop import Problem
from solver.methods.base import Method, ReplayingStepper
from solver.methods.explicit_rk import ExplicitRungeKutta, GraphStages
from solver.problem import Field
from solver.split import Split

# Beyond, compiling what is written out number by number takes minutes.
MOST_WITH_MATRIX = 24
MOST_WITH_ITERATION = 8


@dataclass(frozen=True)
class Form:
    """A stepper whose attempts can be traced, and what one costs.

    Args:
        stepper: evaluates the traced field.
        traced: the same where it carries numbers from one attempt to the next, and counts.
        evals_per_attempt: evaluations of the field in every attempt, where it does not count.
        evals_per_start: those in an attempt from a new place.
        literal: coefficients, whose values become part of the code.
        known: how many slopes there are after an attempt.
        end_slope: which of them the next attempt starts from, where that is kept.
    """

    stepper: ReplayingStepper
    traced: TracedStepper | None
    evals_per_attempt: int
    evals_per_start: int
    literal: tuple[Tensor, ...]
    known: int
    end_slope: int | None


def reason_against(problem: Problem) -> str | None:
    """Return why a problem's method has no compiled form for it, None if it has."""
    method, dim = problem.method, problem.field.layout.dim
    if isinstance(method, ExplicitRungeKutta):
        return None
    if not isinstance(method, Rosenbrock | DiagonallyImplicit):
        return f"method {method.name!r} has no compiled form"
    if method.jacobian is not None:
        return f"{method.name} with a jacobian of one's own has no compiled form"
    if method.linear == "gmres":
        return f'{method.name} with linear="gmres" has no compiled form'
    most = MOST_WITH_MATRIX
    if isinstance(method, DiagonallyImplicit):
        most = MOST_WITH_ITERATION
        if isinstance(problem.field.function, Split):
            return f"{method.name} for a field in two parts has no compiled form"
        if problem.exact or not problem.controller.adaptive:
            return f"{method.name} that iterates to rounding has no compiled form"
    if dim > most:
        return f"D = {dim} components: must be at most {most} with {method.name}"
    return None


def patience(method: Method) -> float:
    """Return how many times longer than an explicit method this takes to trace and compile."""
    if isinstance(method, DiagonallyImplicit):
        return 10.0
    return 4.0 if isinstance(method, Rosenbrock) else 1.0


def form_of(problem: Problem, field: Field, like: Tensor) -> Form:
    """Return the form of a problem's method.

    Args:
        problem: what is solved; its own field is evaluated once where a Jacobian is needed.
        field: the traced field.
        like: tensor like the state, `(B, D)`.
    """
    method, time = problem.method, problem.times.start.dtype
    if isinstance(method, ExplicitRungeKutta):
        explicit = method.stepper(field, like, time, graph=True)
        keeps = explicit.keeps_end_slope
        return Form(
            stepper=explicit.with_stages(LiteralStages, like),
            traced=None,
            evals_per_attempt=explicit.evals_per_attempt,
            evals_per_start=0 if keeps else 1,
            literal=explicit.nodes,
            known=explicit.stages,
            end_slope=explicit.end_slope if keeps else None,
        )
    inner = method.stepper(field, like, time, graph=False, tolerance=problem.tolerance, exact=False)
    if isinstance(inner, RosenbrockStepper):
        stepper = TracedRosenbrock.of(inner, problem)
    else:
        assert isinstance(inner, DirkStepper)
        stepper = TracedDirk.of(inner, problem)
    return Form(
        stepper=stepper,
        traced=stepper,
        evals_per_attempt=0,
        evals_per_start=0 if stepper.keeps_end_slope else 1,
        literal=(),
        known=stepper.slopes_known,
        end_slope=stepper.slopes_known - 1 if stepper.carries_slope else None,
    )


class LiteralStages(GraphStages):
    """Slopes combined with weights that are numbers in the code; weights of 0 cost nothing."""

    def combine(self, weights: Tensor, n: int) -> Tensor:
        """Return `sum_{i<n} weights[i] k_i`."""
        return weighted_sum(self._rows[:n], numbers_of(weights))

    def polynomial(self, interpolant: Tensor) -> Tensor:
        """Return `interpolant^T k`, `(degree, B, D)`."""
        dtype = torch.promote_types(interpolant.dtype, self._rows[0].dtype)
        rows = [row.to(dtype) for row in self._rows]
        columns = zip(*numbers_of(interpolant), strict=True)
        return torch.stack([weighted_sum(rows, weights) for weights in columns])

    def sums(self, weights: Tensor, stride: int) -> Tensor:
        """Return `weights (R, n)` times the first slopes, of each `stride`-th one, `(R, B, E)`."""
        seen = [row[:, ::stride] for row in self._rows[: weights.shape[1]]]
        return torch.stack([weighted_sum(seen, row) for row in numbers_of(weights)])
