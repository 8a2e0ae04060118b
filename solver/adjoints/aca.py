"""Adaptive checkpoint adjoint: accepted steps are replayed, one whole step's graph at a time."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from solver.adjoints.graph import leaf, zero_if_none
from solver.adjoints.parameters import VectorJacobian
from solver.adjoints.replay import Replay
from solver.adjoints.reverser import Step, StepCotangents, StepReverser
from solver.dense import horner
from solver.errors import InvalidArgument
from solver.loop import Problem
from solver.methods.base import ReplayingStepper
from solver.stops import Stops


@final
@dataclass(frozen=True)
class ACA(Replay):
    """Accepted states are kept, and each step is taken again with autograd's graph.

    Memory: one state for each accepted step, and the graph of one step, S evaluations. Exact; for
    every method. Zhuang et al. (2020), ICML, "Adaptive checkpoint adjoint".
    """

    name: ClassVar[str] = "aca"
    title: ClassVar[str] = "Adaptive checkpoint adjoint"

    def reverser(
        self, problem: Problem, product: VectorJacobian, kept: int, *, times: bool
    ) -> StepReverser:
        """Replay whole steps."""
        return WholeStep(problem, product, times=times)


@final
class WholeStep(StepReverser):
    """Takes a step once more and lets autograd go back through it."""

    def __init__(
        self, problem: Problem, product: VectorJacobian, *, times: bool, mode: str = "aca"
    ):
        """Make a stepper that keeps graphs; `mode` is what the user asked for."""
        self._field, self._product, self._times = problem.field, product, times
        dtype = problem.times.start.dtype
        stepper = problem.method.stepper(
            problem.field, problem.y0, dtype, graph=True, tolerance=problem.tolerance
        )
        if not isinstance(stepper, ReplayingStepper):
            raise InvalidArgument(
                f'adjoint is "{mode}" and method {problem.method.name!r}, whose steps cannot be '
                'taken once more: use adjoint="backprop"'
            )
        self._stepper = stepper
        self._stops = None
        if stepper.looks_ahead and problem.controller.adaptive:
            self._stops = Stops(problem.times, problem.times.end)

    @property
    def graphs_at_once(self) -> int:
        """How many evaluations have their graph at the same time."""
        return self._stepper.evals_per_attempt + (not self._stepper.keeps_end_slope)

    def reverse(self, step: Step, cotangent: Tensor) -> StepCotangents:
        """Take `cotangent (B, D)` of the state at the end to the start."""
        with_outputs = step.rows is not None
        if self._stops is not None:
            self._stepper.horizon = self._stops.from_here(step.t).limit()
        inputs = [leaf(step.y)]
        t, dt, seen, tau = step.t, step.dt, step.seen, step.tau
        if self._times:
            t, dt, seen = leaf(t), leaf(dt), leaf(seen)
            inputs += [t, dt, seen]
            if tau is not None:
                inputs.append(tau := leaf(tau))
        with torch.enable_grad():
            y = inputs[0]
            start = t if step.start is None else torch.where(step.start > step.t, step.start, t)
            self._stepper.choice = step.choice
            replay = self._stepper.replay
            results = [replay(t, dt, seen, y, start=start, polynomial=with_outputs)]
            cotangents = [cotangent]
            if step.rows is not None:
                assert tau is not None
                assert step.cotangent is not None
                polynomial = self._stepper.polynomial(t, dt, seen, y, results[0])
                theta = (tau - t[step.rows]) / dt[step.rows]
                results.append(horner(y[step.rows], polynomial[:, step.rows], theta))
                cotangents.append(step.cotangent)
        self._product.check(results[-1], inputs)
        gradients = self._product(results, inputs, cotangents)
        at_y, *at_times = zero_if_none(gradients, inputs)
        if step.active is not None:
            at_y = torch.where(step.active[:, None], at_y, cotangent)
            at_times = [
                torch.where(step.active, g, 0) if i < 3 else g for i, g in enumerate(at_times)
            ]
        return StepCotangents(at_y, *at_times, *[None] * (4 - len(at_times)))
