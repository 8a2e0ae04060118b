"""Exact gradients from the accepted steps alone: solve without a graph, then go back step by step.

What is differentiated are the steps that were taken, with their sizes as constants: the mesh moves
with t0, and the last step of a row takes up a change of t1. Refused attempts leave no trace.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from solver.adjoints.base import Adjoint, Solve
from solver.adjoints.graph import OnlyOnce, Unchanged, check_events, detached, graph_is_kept
from solver.adjoints.measure import Stopwatch
from solver.adjoints.mesh import Mesh, MeshRecord
from solver.adjoints.parameters import VectorJacobian, find_parameters
from solver.adjoints.reverser import StepReverser
from solver.adjoints.sweep import Plan, Sweep
from solver.dense import DenseRecord
from solver.errors import InvalidArgument
from solver.loop import Loop, Outcome, Problem
from solver.outputs import Outputs
from solver.recording import Recorder


@dataclass(frozen=True)
class Replay(Adjoint):
    """Base of the gradient modes that go back over the accepted steps.

    The n-th accepted steps of all rows are taken back together, whenever each of them was taken:
    the vector field must treat rows apart, which a batch norm in training does not.
    """

    keeps_slopes = False  # whether the slopes of all stages are kept with the mesh

    @abstractmethod
    def reverser(
        self, problem: Problem, product: VectorJacobian, kept: int, *, times: bool
    ) -> StepReverser:
        """Make what takes single steps back.

        Args:
            problem: field and method; everything detached.
            product: vector-Jacobian products of the field, which add up the parameters' gradients.
            kept: bytes of the mesh.
            times: whether derivatives by times are wanted.
        """

    def record(self, like: Tensor, outputs: Outputs | None) -> MeshRecord:
        """Return what collects the steps of states like `like (B, D)`."""
        return MeshRecord(like, outputs, slopes=self.keeps_slopes)

    def states(
        self, problem: Problem, mesh: Mesh, record: MeshRecord | None, start: Tensor, pad: Tensor
    ) -> Iterator[Tensor] | None:
        """Yield the states `(B, D)` at the start of each step, last ones first.

        None if the mesh holds them all.

        Args:
            problem: everything detached.
            mesh, record: the steps, and what collected them if it keeps something apart.
            start, pad: `(B,)`, `(B, D)`, where rows that have fewer steps stand.
        """
        return None

    def integrate(
        self,
        problem: Problem,
        outputs: Outputs | None,
        dense: DenseRecord | None,
        recorder: Recorder | None,
        *,
        graph: bool,
    ) -> tuple[Outcome, Tensor | None]:
        """Solve without a graph, keep the accepted steps, and hang them on the results."""
        if graph and dense is not None:
            raise InvalidArgument(
                f"dense is True with adjoint {self.name!r}: gradients of dense output need "
                'adjoint="backprop", or ask for the times in t_eval'
            )

        def solve(
            bare: Problem, inner: Outputs | None, recorder: Recorder | None, mesh: Any
        ) -> tuple[Outcome, Tensor | None]:
            with torch.no_grad():
                loop = Loop(bare, inner, dense, recorder, graph=False, listener=mesh)
                return loop.run(), None

        return self._integrate(problem, outputs, recorder, solve, graph=graph)

    @property
    def needs_steps_only(self) -> bool:
        """Whether accepted steps are all it needs of a solve."""
        return not self.keeps_slopes

    def follow(
        self,
        problem: Problem,
        outputs: Outputs | None,
        recorder: Recorder | None,
        solve: Solve,
    ) -> tuple[Outcome, Tensor | None]:
        """Solve by `solve`, and hang its accepted steps on the results."""
        return self._integrate(problem, outputs, recorder, solve, graph=True)

    def _integrate(
        self,
        problem: Problem,
        outputs: Outputs | None,
        recorder: Recorder | None,
        solve: Solve,
        *,
        graph: bool,
    ) -> tuple[Outcome, Tensor | None]:
        bare = replace(detached(problem), exact=graph)
        inner = outputs.detached() if outputs is not None else None
        mesh = self.record(bare.y0, inner) if graph else None
        if graph:
            check_events(problem, self.name)
        dice = torch.get_rng_state() if graph else None
        constants = Unchanged(problem) if graph else None
        outcome, ys = solve(bare, inner, recorder, mesh)
        if mesh is not None:
            mesh.end_blocks(outcome.t, outcome.arrived, ys)
        if dice is not None and not torch.equal(dice, torch.get_rng_state()):
            raise InvalidArgument(
                f"f draws random numbers, which adjoint {self.name!r} would draw anew: draw them "
                'before the solve, call eval() on a model with dropout, or use adjoint="backprop"'
            )
        values, success = None, outcome.arrived
        if mesh is not None and constants is not None:
            constants.solved()
            outcome, values = self._attach(
                problem, bare, outcome, inner, outputs, mesh, recorder, constants
            )
        if outputs is None or inner is None:
            return outcome, None
        return outcome, inner.finish(problem.y0, outcome.y, success, values)

    def _attach(
        self,
        problem: Problem,
        bare: Problem,
        outcome: Outcome,
        inner: Outputs | None,
        outputs: Outputs | None,
        record: MeshRecord,
        recorder: Recorder | None,
        constants: Unchanged,
    ) -> tuple[Outcome, Tensor | None]:
        """Return end states and outputs as functions of what the solve was given."""
        mesh, steps = record.finish()
        rows = columns = steps
        values = problem.y0.new_zeros((0, problem.y0.shape[1]))
        if inner is not None and inner.rows:
            rows, columns, values = inner.inner()
        times = problem.times
        tau = None if outputs is None else outputs.tau
        given = [problem.y0, times.start, times.end, *([] if tau is None else [tau])]
        params, hidden = find_parameters(problem, given)
        plan = Plan(self, replace(bare, slope0=None), mesh.layout(), mesh.count, rows, columns,
                     steps, [outcome.y, values], params, hidden, recorder,
                     record if record.kept_apart else None, constants)  # fmt: skip
        end, values = _Reverse.apply(
            plan, problem.y0, times.start, times.end, tau, *params, *mesh.tensors()
        )
        return replace(outcome, y=end), values


class _Reverse(torch.autograd.Function):
    """End states and outputs of a solve that has been run; backward goes over its mesh."""

    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        y0: Tensor,
        start: Tensor,
        end: Tensor,
        tau: Tensor | None,
        *tensors: Tensor,
    ) -> tuple[Tensor, Tensor]:
        ctx.plan = plan
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(y0, start, tau, *tensors)
        y_end, values = plan.results
        plan.results = []
        return y_end, values

    @staticmethod
    def backward(ctx: Any, at_end: Tensor | None, at_outputs: Tensor | None) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        plan: Plan = ctx.plan
        y0, start, tau, *tensors = ctx.saved_tensors
        if plan is None:
            raise RuntimeError("the steps of this solve were freed by an earlier backward pass")
        plan.constants.check()
        params = plan.params
        with torch.no_grad():
            gradients = _Reverse.gradients(plan, ctx.needs_input_grad, y0, start, tau, tensors,
                                           at_end, at_outputs)  # fmt: skip
        if not graph_is_kept():
            ctx.plan = None
        if torch.is_grad_enabled():  # a graph of this pass is asked for
            made_of = (at_end, at_outputs, y0, start, tau, *params)
            gradients = tuple(None if g is None else OnlyOnce.apply(g, *made_of) for g in gradients)
        return (None, *gradients, *(None for _ in tensors[len(params) :]))

    @staticmethod
    def gradients(
        plan: Plan,
        need: Sequence[bool],
        y0: Tensor,
        start: Tensor,
        tau: Tensor | None,
        tensors: Sequence[Tensor],
        at_end: Tensor | None,
        at_outputs: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        """Return derivatives of the loss by y0, start, end, output times and parameters."""
        params = plan.params
        mesh = Mesh.from_tensors(plan.layout, iter(tensors[len(params) :]), plan.count)
        watch = None if plan.recorder is None else Stopwatch(y0.device)
        calls = plan.problem.field.calls
        wanted = need[5 : 5 + len(params)]
        product = VectorJacobian.over(params, wanted, retain=plan.hidden)
        try:
            backward = Sweep(plan, mesh, product, y0, start, tau, times=any(need[2:5]))
            gradients = backward.run(at_end, at_outputs)
            if plan.recorder is not None and watch is not None:
                backward.tell(plan.recorder, calls, watch)
        finally:
            product.close()
        by_states = (g if n else None for g, n in zip(gradients, need[1:5], strict=True))
        return (*by_states, *product.totals)
