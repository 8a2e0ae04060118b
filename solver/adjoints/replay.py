"""Exact gradients from the accepted steps alone: solve without a graph, then go back step by step.

What is differentiated are the steps that were taken, with their sizes as constants: the mesh moves
with t0, and the last step of a row takes up a change of t1. Refused attempts leave no trace.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from solver.adjoints.base import Adjoint, Solve
from solver.adjoints.graph import OnlyOnce, Unchanged, check_events, detached, graph_is_kept, leaf
from solver.adjoints.measure import Stopwatch, graph_bytes
from solver.adjoints.mesh import Mesh, MeshRecord, Window
from solver.adjoints.parameters import VectorJacobian, find_parameters
from solver.dense import DenseRecord
from solver.errors import InvalidArgument
from solver.hooks import BackwardInfo
from solver.loop import Loop, Outcome, Problem
from solver.outputs import Outputs
from solver.recording import Recorder


class Step(NamedTuple):
    """One accepted step of every row, and the outputs read off it."""

    t: Tensor  # (B,)
    dt: Tensor  # (B,), 0 in rows that stand still
    start: Tensor | None  # (B,) time at which its start was evaluated, None where that is t
    seen: Tensor  # (B,) time at which its end was evaluated
    y: Tensor  # (B, D) state at its start
    active: Tensor | None  # (B,) bool, None where all are
    slopes: Tensor | None  # (B, S, D), if they were kept
    rows: Tensor | None  # (n,) rows of the outputs read off this step, None without any
    tau: Tensor | None  # (n,) their times
    cotangent: Tensor | None  # (n, D) derivative of the loss by them
    choice: Tensor | None = None  # (B,) what the method chose by itself


class StepCotangents(NamedTuple):
    """Derivatives of the loss by what a step was made from; times are None unless asked for."""

    y: Tensor  # (B, D)
    t: Tensor | None  # (B,)
    dt: Tensor | None
    seen: Tensor | None
    tau: Tensor | None  # (n,)


class StepReverser(ABC):
    """Takes cotangents from the end of a step to its start."""

    curious = False  # whether it wants to `learn` even if nobody watches
    width = 0  # steps it takes back together, by `reverse_window`; 0: single ones

    @property
    @abstractmethod
    def graphs_at_once(self) -> int:
        """How many evaluations of the vector field have their graph at the same time."""

    @abstractmethod
    def reverse(self, step: Step, cotangent: Tensor) -> StepCotangents:
        """Take `cotangent (B, D)` of the state at the end to the start."""

    def reverse_window(self, steps: Step, width: int, cotangent: Tensor) -> StepCotangents | None:
        """Take `width` steps back, laid out as one of `width * B` rows; None if it cannot."""
        return None

    def learn(self, graph_bytes: int) -> None:  # noqa: B027
        """Take up what the graphs of the first step reversed kept at most."""


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
        plan = _Plan(self, replace(bare, slope0=None), mesh.layout(), mesh.count, rows, columns,
                     steps, [outcome.y, values], params, hidden, recorder,
                     record if record.kept_apart else None, constants)  # fmt: skip
        end, values = _Reverse.apply(
            plan, problem.y0, times.start, times.end, tau, *params, *mesh.tensors()
        )
        return replace(outcome, y=end), values


@dataclass(eq=False)
class _Plan:
    """What the backward pass needs besides saved tensors."""

    mode: Replay
    problem: Problem  # detached
    layout: list[tuple[bool, ...]]
    count: Tensor  # (B,)
    rows: Tensor | None  # (n,) of outputs read off polynomials
    columns: Tensor | None
    steps: Tensor | None  # (n,) number of the step in its row
    results: list[Tensor]  # handed out once, so that nothing here keeps them
    params: list[Tensor]  # themselves: what is unpacked from saved tensors may be copies
    hidden: bool  # whether some parameters were found behind others
    recorder: Recorder | None
    record: MeshRecord | None  # what keeps states apart from the mesh
    constants: Unchanged


class _Reverse(torch.autograd.Function):
    """End states and outputs of a solve that has been run; backward goes over its mesh."""

    @staticmethod
    def forward(
        ctx: Any,
        plan: _Plan,
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
        plan: _Plan = ctx.plan
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
        plan: _Plan,
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
            backward = _Backward(plan, mesh, product, y0, start, tau, times=any(need[2:5]))
            gradients = backward.run(at_end, at_outputs)
            if plan.recorder is not None and watch is not None:
                backward.tell(plan.recorder, calls, watch)
        finally:
            product.close()
        by_states = (g if n else None for g, n in zip(gradients, need[1:5], strict=True))
        return (*by_states, *product.totals)


class _Backward:
    """One pass back over a mesh."""

    def __init__(
        self,
        plan: _Plan,
        mesh: Mesh,
        product: VectorJacobian,
        y0: Tensor,
        start: Tensor,
        tau: Tensor | None,
        *,
        times: bool,
    ):
        """Sort the outputs by step."""
        self._plan, self._mesh, self._times = plan, mesh, times
        self._y0, self._start, self._tau = y0, start, tau
        self._product = product
        self._kept = sum(each.nbytes for each in mesh.tensors())
        if plan.record is not None:
            self._kept += plan.record.kept_apart
        self._reverser = plan.mode.reverser(plan.problem, product, self._kept, times=times)
        self._peak: int | None = None  # bytes of graphs in the first step reversed
        self._order: Tensor | None = None
        self._bounds: list[int] = []
        if plan.steps is not None:
            self._order = plan.steps.argsort()
            counts = torch.bincount(plan.steps, minlength=mesh.length)
            self._bounds = [0, *counts.cumsum(0).tolist()]

    def run(
        self, at_end: Tensor | None, at_outputs: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """Return derivatives of the loss by y0, start, end and output times."""
        y = torch.zeros_like(self._y0) if at_end is None else at_end
        t = end = tau = None
        if self._times:
            t, end = torch.zeros_like(self._start), torch.zeros_like(self._start)
            tau = None if self._tau is None else torch.zeros_like(self._tau)
        if not self._mesh.length:
            return y, t, end, tau
        sums = _Times(t, end, tau)
        like = self._standing()
        if self._reverser.width:
            y, left = self._run_windows(y, like, sums, at_outputs)
        else:
            left = self._mesh.length
        for window, i, state in self._steps(like, left):
            step, chosen = self._step(window, i, state, at_outputs)
            got = self._reverse(step, y)
            y = got.y
            sums.add(window, i, got.t, got.dt, got.seen)
            self._add_outputs(sums, chosen, got)
        return y, sums.t, sums.end, sums.tau

    def _run_windows(
        self, y: Tensor, like: Tensor, sums: "_Times", at_outputs: Tensor | None
    ) -> tuple[Tensor, int]:
        """Take back what can be in windows; return the cotangent and how many steps are left."""
        left, reverser = self._mesh.length, self._reverser
        for window in self._mesh.windows_backward(self._start, like, reverser.width):
            width = len(window.t)
            steps, chosen = self._whole_window(window, at_outputs)
            call = partial(reverser.reverse_window, steps, width, y)
            if left == self._mesh.length and self._asked:
                got, self._peak = graph_bytes(call, self._product.params)
            else:
                got = call()
            if got is None:
                break
            y, left = got.y, window.first
            if sums.t is not None:
                assert got.t is not None
                assert got.dt is not None
                assert got.seen is not None
                each = [part.unflatten(0, (width, -1)) for part in (got.t, got.dt, got.seen)]
                for i in reversed(range(width)):
                    sums.add(window, i, *(part[i] for part in each))
                self._add_outputs(sums, chosen, got)
        return y, left

    @property
    def _asked(self) -> bool:
        """Whether someone wants to know what graphs keep."""
        recorder = self._plan.recorder
        return recorder is not None and recorder.wants_memory

    def _add_outputs(self, sums: "_Times", chosen: Tensor | None, got: StepCotangents) -> None:
        if sums.tau is not None and got.tau is not None and chosen is not None:
            plan = self._plan
            assert plan.rows is not None
            assert plan.columns is not None
            sums.tau[plan.rows[chosen], plan.columns[chosen]] = got.tau

    def _reverse(self, step: Step, cotangent: Tensor) -> StepCotangents:
        """Take one step back; watch the first one if someone wants to know its memory."""
        reverser, first = self._reverser, self._product.count == 0
        if not first or not (reverser.curious or self._asked):
            return reverser.reverse(step, cotangent)
        call = partial(reverser.reverse, step, cotangent)
        got, self._peak = graph_bytes(call, self._product.params)
        if self._peak is not None:
            reverser.learn(self._peak)
        return got

    def tell(self, recorder: Recorder, calls: int, watch: Stopwatch) -> None:
        """Hand a record of this pass to the hooks; `calls` of the field were made before it."""
        seconds, allocated = watch.stop()
        field, start, y0 = self._plan.problem.field, self._start, self._y0
        n_f_calls = field.calls - calls
        single = None
        if recorder.wants_memory:
            with torch.enable_grad():
                _, single = graph_bytes(lambda: field(start, leaf(y0)), self._product.params)
        sums = sum(total.nbytes for total in self._product.totals if total is not None)
        row_steps = int(self._mesh.count.sum())
        predicted = None
        if single is not None:
            kept = row_steps * (y0[:1].nbytes + 2 * start[:1].nbytes)
            if self._plan.record is not None:
                kept = self._kept
            predicted = kept + self._reverser.graphs_at_once * single + 2 * sums
        recorder.backward(
            BackwardInfo(
                solve=recorder.info,
                n_steps=self._mesh.length,
                n_f_calls=n_f_calls,
                n_vjps=self._product.count,
                checkpoint_bytes=self._kept,
                graph_bytes=self._peak if recorder.wants_memory else None,
                gradient_bytes=2 * sums,
                predicted_bytes=predicted,
                allocated_bytes=allocated,
                seconds=seconds,
            )
        )

    def _standing(self) -> Tensor:
        """Return where rows stand that have fewer steps, `(B, D)`."""
        never = self._mesh.count == 0
        pad = self._y0
        if bool(never.any()):  # its field may not be finite: let it stand at a healthy row's state
            pad = torch.where(never[:, None], pad[self._mesh.count.argmax()], pad)
        return pad

    def _steps(self, pad: Tensor, below: int) -> Iterator[tuple[Window, int, Tensor]]:
        """Yield the steps with numbers less than `below`, last ones first."""
        plan = self._plan
        source = plan.mode.states(plan.problem, self._mesh, plan.record, self._start, pad)
        like = pad if source is None else pad[:, :0]
        for window in self._mesh.windows_backward(self._start, like):
            for i in reversed(range(min(len(window.t), below - window.first))):
                # A graph that keeps a state must not keep the window.
                state = window.y[i].clone() if source is None else next(source)
                yield window, i, state

    def _outputs(
        self, first: int, width: int, at_outputs: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
        """Return which outputs were read off steps, their rows, times and cotangents."""
        plan = self._plan
        if self._order is None or at_outputs is None:
            return None, None, None, None
        low, high = self._bounds[first], self._bounds[first + width]
        if high == low:
            return None, None, None, None
        assert plan.rows is not None
        assert plan.columns is not None
        assert self._tau is not None
        chosen = self._order[low:high]
        rows = plan.rows[chosen]
        return chosen, rows, self._tau[rows, plan.columns[chosen]], at_outputs[chosen]

    def _step(
        self, window: Window, i: int, state: Tensor, at_outputs: Tensor | None
    ) -> tuple[Step, Tensor | None]:
        """Return one step, and which outputs were read off it."""
        chosen, rows, tau, cotangent = self._outputs(window.first + i, 1, at_outputs)
        step = Step(
            t=window.t[i],
            dt=window.dt[i],
            start=None if window.start is None else window.start[i],
            seen=window.seen[i],
            y=state,
            active=None if window.active is None else window.active[i],
            slopes=None if window.slopes is None else window.slopes[i],
            choice=None if window.choice is None else window.choice[i].long(),
            rows=rows,
            tau=tau,
            cotangent=cotangent,
        )
        return step, chosen

    def _whole_window(
        self, window: Window, at_outputs: Tensor | None
    ) -> tuple[Step, Tensor | None]:
        """Return all steps of a window as one of many rows, and which outputs were read off it."""
        width, batch = window.t.shape
        chosen, rows, tau, cotangent = self._outputs(window.first, width, at_outputs)
        if rows is not None and chosen is not None:
            assert self._plan.steps is not None
            rows = (self._plan.steps[chosen] - window.first) * batch + rows
        flat = [
            None if each is None else each.flatten(0, 1)
            for each in (window.t, window.dt, window.start, window.seen, window.y, window.active)
        ]
        t, dt, start, seen, y, active = flat
        assert t is not None
        assert dt is not None
        assert seen is not None
        assert y is not None
        return Step(t, dt, start, seen, y, active, None, rows, tau, cotangent), chosen


class _Times:
    """Derivatives of the loss by start, end and output times, added up from the last step on.

    All None unless they are wanted.
    """

    def __init__(self, t: Tensor | None, end: Tensor | None, tau: Tensor | None):
        """Start from zeros: `(B,)`, `(B,)`, `(B, T)`."""
        self.t, self.end, self.tau = t, end, tau

    def add(
        self,
        window: Window,
        i: int,
        t: Tensor | None,
        dt: Tensor | None,
        seen: Tensor | None,
    ) -> None:
        """Add what step `i` of a window says of its start, size and end, `(B,)` each."""
        if self.t is None or self.end is None:
            return
        assert t is not None
        assert dt is not None
        assert seen is not None
        cut = None if window.cut is None else window.cut[i]
        if cut is None:
            self.t = self.t + t + seen
            return
        assert window.last is not None
        self.end = self.end + torch.where(window.last[i], self.t + seen + dt, 0)
        self.t = torch.where(cut, t - dt, self.t + t + seen)
