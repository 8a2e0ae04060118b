"""Gradients by solving the adjoint equation backward in time: not exact, and almost no memory."""

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from torch import Tensor

from solver.adjoints.augmented import AugmentedField, as_field
from solver.adjoints.base import Adjoint
from solver.adjoints.events import Events, as_solution
from solver.adjoints.graph import OnlyOnce, Unchanged, check_events, detached, graph_is_kept
from solver.adjoints.measure import Stopwatch
from solver.adjoints.parameters import VectorJacobian, find_parameters
from solver.bounds import Bounds, Help, check_bounds
from solver.dense import DenseRecord
from solver.errors import InvalidArgument, SolveFailed
from solver.hooks import BackwardInfo
from solver.loop import Loop, Outcome, Problem
from solver.norms import Tolerance
from solver.outputs import Outputs
from solver.recording import Recorder
from solver.status import Status
from solver.times import Times


@dataclass(frozen=True, kw_only=True)
class Backsolve(Adjoint):
    """Base of the continuous gradient modes.

    Output values and end states are kept, and the cotangents are integrated from each of them to
    the one before. The gradient is that of the exact solution up to the tolerance of this backward
    solve, not that of the steps taken. Chen et al. (2018), NeurIPS.
    """

    seminorm: Annotated[
        bool, Help("Leave parameters' integrals out of the error norm (Kidger et al., 2021)")
    ] = True
    method: Annotated[Any, Help("Method of the backward solve; None: that of the solve")] = None
    controller: Annotated[Any, Help("Controller backward; None: that of the solve")] = None
    rtol: Annotated[
        float | None, Bounds(0.0, 1.0, scale="log"), Help("Relative tolerance backward")
    ] = None
    atol: Annotated[
        float | None, Bounds(0.0, 1e6, scale="log"), Help("Absolute tolerance backward")
    ] = None

    joint = False  # one row for the whole batch
    keeps_dense = False  # whether states are kept as dense output

    def __post_init__(self) -> None:
        """Check the settings."""
        check_bounds(self)

    @abstractmethod
    def prepare(self, problem: Problem) -> None:
        """Refuse what this mode cannot do."""

    def integrate(
        self,
        problem: Problem,
        outputs: Outputs | None,
        dense: DenseRecord | None,
        recorder: Recorder | None,
        *,
        graph: bool,
    ) -> tuple[Outcome, Tensor | None]:
        """Solve without a graph and hang the adjoint equation on the results."""
        bare = detached(problem)
        inner = outputs.detached() if outputs is not None else None
        if graph and dense is not None:
            raise InvalidArgument(
                f"dense is True with adjoint {self.name!r}: gradients of dense output need "
                'adjoint="backprop", or ask for the times in t_eval'
            )
        kept = DenseRecord() if graph and self.keeps_dense else dense
        constants = Unchanged(problem) if graph else None
        if graph:
            check_events(problem, self.name)
            self.prepare(problem)
        with torch.no_grad():
            outcome = Loop(bare, inner, kept, recorder, graph=False).run()
        values, success = None, outcome.arrived
        if constants is not None:
            constants.solved()
            times = problem.times
            tau = None if outputs is None else outputs.tau
            given = [problem.y0, times.start, times.end, *([] if tau is None else [tau])]
            params, hidden = find_parameters(problem, given)
            none = success.long()[:0]
            rows, columns, values = none, none, problem.y0.detach()[:0]
            if inner is not None and inner.rows:
                rows, columns, values = inner.inner()
            states = None
            if kept is not None:
                reader = kept.finish(bare.field.layout, bare.times, outcome.t)
                states = reader.states
            plan = _Plan(self, replace(bare, slope0=None), rows, columns, success, states,
                         [outcome.y, values], params, hidden, recorder, constants)  # fmt: skip
            end, values = _Adjoint.apply(plan, problem.y0, times.start, times.end, tau, *params)
            outcome = replace(outcome, y=end)
        if outputs is None or inner is None:
            return outcome, None
        return outcome, inner.finish(problem.y0, outcome.y, success, values)


@dataclass(eq=False)
class _Plan:
    """What the backward solve needs besides saved tensors."""

    mode: Backsolve
    problem: Problem  # detached
    rows: Tensor  # (n,) of outputs read off polynomials
    columns: Tensor
    success: Tensor  # (B,) bool
    states: Callable[[Tensor], Tensor] | None  # (B,) -> (B, D), if they are kept
    results: list[Tensor]
    params: list[Tensor]  # themselves: what is unpacked from saved tensors may be copies
    hidden: bool  # whether some parameters were found behind others
    recorder: Recorder | None
    constants: Unchanged


class _Adjoint(torch.autograd.Function):
    """End states and outputs of a solve that has been run; backward solves the adjoint equation."""

    @staticmethod
    def forward(
        ctx: Any,
        plan: _Plan,
        y0: Tensor,
        start: Tensor,
        end: Tensor,
        tau: Tensor | None,
        *params: Tensor,
    ) -> tuple[Tensor, Tensor]:
        ctx.plan = plan
        ctx.set_materialize_grads(False)
        y_end, values = plan.results
        plan.results = []
        ctx.save_for_backward(y0, start, end, tau, y_end, values, *params)
        return y_end, values

    @staticmethod
    def backward(ctx: Any, at_end: Tensor | None, at_outputs: Tensor | None) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        y0, start, end, tau, y_end, values, *_ = ctx.saved_tensors
        plan: _Plan = ctx.plan
        plan.constants.check()
        params = plan.params
        need = ctx.needs_input_grad
        with torch.no_grad():
            events = Events.collect(
                plan.rows, plan.columns, plan.success, end, tau, y_end, values, at_end, at_outputs
            )
            product = VectorJacobian.over(params, need[5:], retain=plan.hidden)
            try:
                solve = _BackwardSolve(plan, product, y0, start, kept=[y_end, values])
                by_states = solve.run(events, tau, times=any(need[2:5]))
            finally:
                product.close()
        if not graph_is_kept():
            ctx.plan = None
        gradients = (
            *(g if n else None for g, n in zip(by_states, need[1:5], strict=True)),
            *product.totals,
        )
        if torch.is_grad_enabled():  # a graph of this pass is asked for
            made_of = (at_end, at_outputs, y0, start, end, tau, *params)
            gradients = tuple(None if g is None else OnlyOnce.apply(g, *made_of) for g in gradients)
        return None, *gradients


class _BackwardSolve:
    """One solve of the adjoint equation, segment by segment from the last event to the start."""

    def __init__(
        self, plan: _Plan, product: VectorJacobian, y0: Tensor, start: Tensor, kept: list[Tensor]
    ):
        """Choose method, controller and tolerances."""
        from solver.arguments import read_controller, read_method

        mode, problem = plan.mode, plan.problem
        self._plan, self._product, self._y0, self._start = plan, product, y0, start
        self._method = problem.method if mode.method is None else read_method(mode.method)
        chosen = problem.controller
        if mode.controller is not None or mode.method is not None:
            chosen = read_controller(mode.controller, self._method, problem.dt0)
        self._controller = chosen
        seen = torch.bincount(plan.rows, minlength=len(y0)) > 0
        never = ~(seen | plan.success)
        # The field of rows the loss never sees may not be finite: they stand at another's state.
        healthy = y0
        if bool(never.any()):
            healthy = torch.where(never[:, None], y0[never.int().argmin()], y0)
        self._healthy, known = healthy, plan.states

        def states(tau: Tensor) -> Tensor:
            assert known is not None
            return torch.where(never[:, None], healthy, known(tau))

        read = None if known is None else states
        self._field = AugmentedField(problem.field, y0, product, joint=mode.joint,
                                     integrals=not mode.seminorm, states=read)  # fmt: skip
        self._kept = sum(each.nbytes for each in kept)
        self._recorder: Recorder | None = None
        self._counts: list[Outcome] = []

    def run(
        self, events: Events, tau: Tensor | None, *, times: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """Return derivatives of the loss by y0, start, end and output times."""
        plan, field, start = self._plan, self._field, self._start
        inner, calls = plan.problem.field, plan.problem.field.calls
        watch = None if plan.recorder is None else Stopwatch(start.device)
        began = time.perf_counter()
        a, healthy = torch.zeros_like(self._y0), self._healthy
        at_end, at_tau = torch.zeros_like(start), None if tau is None else torch.zeros_like(tau)
        for k in reversed(range(events.tau.shape[1])):
            here = events.there[:, k]
            late = torch.where(here, events.tau[:, k], start)
            early = start
            if k:
                early = torch.where(events.there[:, k - 1], events.tau[:, k - 1], start)
            y = torch.where(here[:, None], events.y[:, k], healthy)
            new = torch.where(here[:, None], events.cotangent[:, k], 0)
            if times:
                by_time = (new.conj() * inner(late, y)).real.sum(dim=1).to(start.dtype)
                by_time = torch.where(here, by_time, 0)
                column, ends = events.column[:, k], events.column[:, k] < 0
                at_end = at_end + torch.where(ends, by_time, 0)
                if at_tau is not None:
                    rows = (~ends & here).nonzero()[:, 0]
                    at_tau[rows, column[rows]] = by_time[rows]
            a = a + new
            goes = here & (a != 0).any(dim=1)
            a = self._segment(late, torch.where(goes, early, late), y, a)
        at_start = None
        if times:
            at_start = -(a.conj() * inner(start, healthy)).real.sum(dim=1).to(start.dtype)
        field.close()
        if plan.recorder is not None and watch is not None:
            self._tell(plan.recorder, inner.calls - calls, watch, a, time.perf_counter() - began)
        return a, at_start, at_end if times else None, at_tau if times else None

    def _segment(self, late: Tensor, early: Tensor, y: Tensor, a: Tensor) -> Tensor:
        """Take cotangents `a (B, D)` from `late` to `early`, `(B,)`."""
        mode, field = self._plan.mode, self._field
        if not bool((late > early).any()):
            return a
        if mode.joint:
            field.anchor, field.scale = late, late - early
            begin, end = late.new_zeros(1), late.new_ones(1)
        else:
            begin, end = -late, -early
        z = field.pack(y, a, None)
        problem = self._problem(begin, end, z, late - early)
        if self._recorder is None and self._plan.recorder is not None:
            self._recorder = self._plan.recorder.beside(
                self._controller,
                None if mode.joint else -torch.ones_like(begin),
                end,
                {
                    "adjoint": f"{mode.name} (backward)",
                    "batch": len(z),
                    "dim": z.shape[1],
                    "y0": z,
                    "t0": late,
                    "t1": early,
                    "method": self._method.name,
                    "method_order": self._method.order,
                    "error_order": self._method.error_order,
                    "controller": self._controller.name,
                    "controller_settings": self._controller.settings(),
                },
            )
        beside: Any = field.quadrature(self._method.order)  # sees steps as dense output does
        outcome = Loop(problem, None, beside, self._recorder, graph=False).run()
        self._counts.append(outcome)
        if bool((outcome.status != int(Status.SUCCESS)).any()):
            row = int((outcome.status != 0).nonzero()[0])
            status = Status(int(outcome.status[row]))
            raise SolveFailed(
                f"the backward solve of adjoint {mode.name!r} failed in row {row} with "
                f"{status.name} at t = {-outcome.t[row].item():.9g}: the solution cannot be traced "
                'back; use an exact mode such as adjoint="symplectic"'
            )
        _, a, integrals = field.unpack(early, outcome.y)
        field.add_integrals(integrals)
        return a

    def _problem(self, begin: Tensor, end: Tensor, z: Tensor, span: Tensor) -> Problem:
        """Return the problem of one segment, its rows from `begin` to `end` in `s`."""
        forward, mode = self._plan.problem, self._plan.mode
        limit, dt0, low, high = forward.max_steps, None, forward.dt_min, forward.dt_max
        if mode.joint:
            limit = int(limit.max()) if isinstance(limit, Tensor) else limit
            low = high = None
        if not self._controller.adaptive:
            assert forward.dt0 is not None
            dt0 = forward.dt0
            if mode.joint:
                share = torch.where(span > 0, dt0 / span, torch.inf)
                dt0 = share.min().reshape(1)
        stops = None
        if forward.times.stops is not None and not mode.joint:
            s = -forward.times.stops
            inside = (s > begin[:, None]) & (s < end[:, None])
            stops = torch.where(inside, s, torch.inf).sort(dim=1).values
        times = Times(t0=begin, t1=end, start=begin, end=end, direction=None, ts=end[:, None],
                      outputs=None, columns=None, stops=stops)  # fmt: skip
        problem = Problem(
            field=as_field(self._field),
            y0=z,
            times=times,
            tolerance=self._tolerance(z),
            method=self._method,
            controller=self._controller,
            dt0=dt0,
            dt_min=low,
            dt_max=high,
            max_steps=limit,
            joint=False,
            slope0=None,
        )
        return replace(problem, slope0=self._field(begin, z))

    def _tolerance(self, z: Tensor) -> Tolerance:
        """Return tolerances for rows of states and cotangents."""
        mode, forward = self._plan.mode, self._plan.problem.tolerance
        pair = []
        for own, given in ((mode.rtol, forward.rtol), (mode.atol, forward.atol)):
            if own is not None or not isinstance(given, Tensor):
                pair.append(given if own is None else own)
                continue
            each = given.expand(self._y0.shape)
            each = each.reshape(1, -1) if mode.joint else each
            parts = [each] * (1 if self._plan.states else 2)
            rest = z.shape[1] - sum(part.shape[1] for part in parts)
            parts.append(each.amin(dim=1, keepdim=True).expand(-1, rest))
            pair.append(torch.cat(parts, dim=1))
        return Tolerance(*pair)

    def _tell(
        self, recorder: Recorder, calls: int, watch: Stopwatch, a: Tensor, seconds: float
    ) -> None:
        """Hand records of this pass to the hooks."""
        if self._recorder is not None:
            self._recorder.end(as_solution(self._counts, a, self._start, calls, seconds))
        sums = 2 * sum(total.nbytes for total in self._product.totals if total is not None)
        steps = sum(int(each.n_accepted.max()) for each in self._counts)
        elapsed, allocated = watch.stop()
        recorder.backward(
            BackwardInfo(
                solve=recorder.info,
                n_steps=steps,
                n_f_calls=calls,
                n_vjps=self._field.n_vjps,
                checkpoint_bytes=self._kept,
                graph_bytes=None,
                gradient_bytes=sums,
                predicted_bytes=None,
                allocated_bytes=allocated,
                seconds=elapsed,
            )
        )
