"""The stepping loop: every instance at its own time, with its own step, verdict and end."""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from solver.controllers.base import Controller, Proposal
from solver.dense import DenseRecord
from solver.event_log import EventPlan
from solver.event_watch import EventWatch
from solver.initial_step import initial_step
from solver.methods.base import Method, Stepper, Trial
from solver.norms import Tolerance
from solver.outputs import Outputs
from solver.problem import Field
from solver.recording import Attempt, Recorder
from solver.regroup import LOOK_EVERY, go_on_with_fewer, possible
from solver.rows import Rows
from solver.status import Status
from solver.step import aim, bounded, failures, judge, limiting_component, resized
from solver.stops import Stops
from solver.times import Times

CHECK_EVERY = 8  # attempts between looks for rows whose step has become too small
NEAR = 1e6  # times the smallest step: who is as near as this is looked at after every attempt


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be solved: checked, flat, every row running forward in its own time."""

    field: Field
    y0: Tensor  # (B, D)
    times: Times
    tolerance: Tolerance
    method: Method
    controller: Controller[Any]
    dt0: Tensor | None  # (B,) positive, or None for an automatic first step
    dt_min: Tensor | float | None
    dt_max: Tensor | float | None
    max_steps: int | Tensor
    joint: bool  # one step size and one error norm for the whole batch
    slope0: Tensor | None  # (B, D) vector field at the start, None if no row has a finite one
    params: tuple[Tensor, ...] = ()  # tensors the vector field uses, as the caller lists them
    events: EventPlan | None = None
    exact: bool = False  # whether implicit equations are solved to rounding, for gradients
    regroup: bool = False  # whether rows that are done may be left out


class StepListener(Protocol):
    """Sees every attempt in which some row moved, before its end is taken over."""

    def add(
        self,
        t: Tensor,
        dt: Tensor,
        seen: Tensor,
        y: Tensor,
        moved: Tensor,
        reach: Tensor,
        last: Tensor,
        stepper: Stepper,
    ) -> None:
        """Take one attempt.

        Args:
            t, dt: start and size of the attempt, `(B,)`.
            seen: time at which its end was evaluated, `(B,)`.
            y: state at its start, `(B, D)`.
            moved: which rows were accepted, `(B,)` bool.
            reach: which rows were cut to end at a stop, `(B,)` bool.
            last: whether that stop is the end of the row's span, `(B,)` bool.
            stepper: holds the slopes of the attempt.
        """


@dataclass(frozen=True, eq=False)
class Outcome:
    """How every row ended; times are `tau`, counts int64 `(B,)`."""

    t: Tensor
    y: Tensor  # (B, D) last accepted state, part of autograd's graph
    status: Tensor
    component: Tensor
    last_dt: Tensor
    n_steps: Tensor
    n_accepted: Tensor
    n_f_evals: Tensor
    arrived: Tensor  # (B,) bool, which rows have reached the end of their span
    n_jac_evals: Tensor | None = None  # None for explicit methods
    n_newton_iterations: Tensor | None = None
    n_factorizations: Tensor | None = None
    n_f_calls: int | None = None  # None: as often as the field counted
    n_rows_evaluated: int | None = None  # None: all rows in each call


class Loop:
    """One solve under way; `integrate` runs it.

    Args:
        problem: what to solve.
        outputs, dense, recorder: who wants to see outputs passed, accepted polynomials, attempts.
        graph: keep autograd's graph through steps and outputs; step sizes are constants to it.
        listener: who wants to see accepted steps.
    """

    def __init__(
        self,
        problem: Problem,
        outputs: Outputs | None,
        dense: DenseRecord | None,
        recorder: Recorder | None,
        *,
        graph: bool,
        listener: StepListener | None = None,
    ):
        """Stand at the start; nothing is evaluated yet."""
        method, times = problem.method, problem.times
        self.problem, self.graph = problem, graph
        self.outputs = outputs if outputs is not None and outputs.inside else None
        self.events: EventWatch | None = None
        if problem.events is not None and outputs is not None:
            self.events = EventWatch(problem.events, outputs, problem.y0, graph=graph)
        self.dense, self.recorder, self.listener = dense, recorder, listener
        self.error_order = method.order if method.error_order is None else method.error_order
        self.rows = Rows(times)
        self.stepper = method.stepper(
            problem.field,
            problem.y0,
            times.start.dtype,
            graph=graph,
            tolerance=problem.tolerance,
            exact=graph or problem.exact or not problem.controller.adaptive,
        )
        self.t, self.end, self.y = times.start, times.end, problem.y0
        self.aside: Tensor | None = None  # (B,) bool, rows whose states are in `y_aside` instead
        self.y_aside = self.y
        self.dt = torch.zeros_like(self.t.detach())
        self.fixed_dt: Tensor | None = None  # (B,) where steps are fixed
        self.history = problem.controller.init(self.y.detach().real.new_ones(len(self.t)))
        limit = problem.max_steps
        self.fewest = int(limit.min()) if isinstance(limit, Tensor) and limit.numel() else limit
        self.attempts = 0
        # Without a graph the whole loop runs under no_grad, and entering it again would cost.
        self.quiet = torch.no_grad if graph else nullcontext
        # A step refused at its smallest, or one that cannot shrink, is not to be tried again.
        self.strict = problem.dt_min is not None or not problem.controller.adaptive
        self.near = False  # whether some step is nearly too small
        self.look_at = LOOK_EVERY if possible(self) else None  # attempts before rows are left out
        self.left_out = 0  # rows that were not evaluated

    def run(self) -> Outcome:
        """Step until every row has ended."""
        if bool(self.rows.running.any()):
            self._begin()
        self.stops = Stops(self.problem.times, self.end)
        if self.events is not None and bool(self.rows.running.any()):
            self.events.begin(self.t, self.y, self.rows.running)
            self._meet_events(self.rows.running, self.dt)
        self._step_on()
        return self._outcome()

    def go_on(self) -> None:
        """Step until every row has ended, from where a larger batch has come to."""
        self.stops = Stops(self.problem.times, self.end)
        self._step_on()

    def _step_on(self) -> None:
        while bool(self.rows.running.any()):
            self._attempt()
            if self.attempts == self.look_at:
                self._leave_out()

    def _leave_out(self) -> None:
        """Go on without the rows that are done, if they are at least half of all."""
        left = int(self.rows.running.sum())
        self.look_at = self.attempts + LOOK_EVERY
        if 0 < 2 * left <= len(self.t) and not go_on_with_fewer(self, Loop):
            self.look_at = None

    def _begin(self) -> None:
        """Take up the first slope, end rows whose start is not finite, choose first steps."""
        problem, rows, t = self.problem, self.rows, self.t
        slope = problem.slope0
        if slope is not None:  # which rows without any finite number did not need
            rows.extra_evals += rows.running & self.y.detach().isfinite().any(dim=1)
        slope = self.y if slope is None else slope
        self.stepper.begin(slope)
        lost = ~(slope.detach().isfinite() & self.y.detach().isfinite())
        bad = lost.any(dim=1) & rows.running
        if bool(bad.any()):
            nowhere, never = torch.zeros_like(bad), torch.full_like(self.dt, torch.nan)
            rows.fail(bad, Status.NON_FINITE_START, lost.int().argmax(dim=1), never, nowhere)
        going = bool(rows.running.any())
        if self.graph and going and not bool(rows.running.all()):
            y = torch.where(bad[:, None], self.y.detach(), self.y)
            self._put_aside(~rows.running, y)
            slope = problem.field(t, self.y)
            self.stepper.begin(slope.masked_fill(~rows.running[:, None], 0.0))
        with torch.no_grad():
            self._choose_first_steps(going)
        self.end = torch.where(rows.running, self.end, t)

    def _choose_first_steps(self, going: bool) -> None:
        problem, rows, t = self.problem, self.rows, self.t.detach()
        span, dt = self.end.detach() - t, self.dt
        if problem.dt0 is not None:
            dt = problem.dt0
        elif going:
            k, slope = self.error_order + 1, self.stepper.start_slope.detach()
            y = self.y.detach()
            dt = initial_step(problem.field, t, span, y, slope, k, problem.tolerance).detach()
            rows.extra_evals += rows.running
        fixed = not problem.controller.adaptive
        rows.settle(dt, span, fixed)
        dt = torch.minimum(dt, span)
        dt = bounded(
            dt if fixed else torch.maximum(dt, rows.floor(t)), problem.dt_min, problem.dt_max
        )
        self.dt = dt.amin().expand_as(dt) if problem.joint else dt
        self.fixed_dt = self.dt if fixed else None

    def _attempt(self) -> None:
        """Try one step in every running row, judge it, go on where it was accepted."""
        problem, rows, stops, stepper = self.problem, self.rows, self.stops, self.stepper
        t, y, history, running, stop = self.t, self.y, self.history, rows.running, stops.now
        asked = self.dt
        reach, t_next, dt, tried = aim(t, asked, rows.stretch, stop)
        seen = stops.seen_from_left(t_next, reach)
        if stepper.looks_ahead and problem.controller.adaptive:
            stepper.horizon = stops.limit()
        trial = stepper.attempt(t, dt, seen, y)
        told = None if self.recorder is None else self.recorder.told_by(stepper, dt)
        with self.quiet():
            weighted, own = judge(trial, y, problem.tolerance, problem.method)
            own = own.detach() if self.graph else own  # tangents end here
            ratio = _joint(own, running) if problem.joint else own
            verdict = problem.controller.propose(ratio, self.error_order, history)
            moved = verdict.accept & running
        self.attempts += 1
        settled = torch.equal(moved, running)
        made = event_cut = None
        if settled or bool(moved.any()):
            if self.graph and not settled:
                trial, made = self._without_refused(trial, own, moved, dt, t_next, seen)
            else:
                made = self._read_polynomial(trial, moved, dt, t_next, seen)
            if self.listener is not None:
                last = stop >= self.end
                self.listener.add(t, dt, seen, y, moved, reach, last, stepper)
            y1 = trial.y1
            if self.events is not None:  # the step may end earlier, and in another state
                t_next, y1, event_cut = self.events.t_next, self.events.y1, self.events.cut
            self.t = torch.where(moved, t_next, t)
            self.y = torch.where(moved[:, None], y1, y)
            stepper.advance(moved)
        y_after, gone = self.y, None
        cut = moved & reach if stops.jumps else None
        if event_cut is not None:
            cut = event_cut if cut is None else cut | event_cut
            self._meet_events(moved, dt)
        with self.quiet():
            self._resize(verdict, dt, tried, cut)
            rows.tally(running, moved)
            rows.running = running & (self.t < self.end)
            hopeless = self.near or (self.strict and not settled)
            if hopeless or self.attempts >= self.fewest or self.attempts % CHECK_EVERY == 0:
                gone = self._end_failures(tried, running, moved, own, weighted)
        if gone is not None:
            self._let_go(gone)
        if made is not None:
            rows.extra_evals += stepper.interpolant_evals * made
            if stepper.interpolant_gives_end_slope:  # which the next attempt need not evaluate
                rows.extra_evals -= (made & rows.running).long()
        if self.recorder is not None:
            size = tried if event_cut is None else torch.where(event_cut, self.t - t, tried)
            seen_by_hooks = (t, size, ratio, moved, running, reach, stop, weighted)
            self.recorder.add(
                Attempt(*seen_by_hooks, verdict.factor, history, y_after, event_cut, told)
            )
        if stops.jumps:
            crossed = moved & reach & rows.running
            self._cross_jumps(crossed if event_cut is None else crossed & ~event_cut, made)

    def _without_refused(
        self, trial: Trial, own: Tensor, moved: Tensor, dt: Tensor, t_next: Tensor, seen: Tensor
    ) -> tuple[Trial, Tensor | None]:
        """Return the trial, and who needed its polynomial, without what refused rows did.

        That must not reach autograd where it is not finite, as 0 * NaN is NaN: the attempt is made
        again while they stand still.
        """
        stepper, slope = self.stepper, self.stepper.start_slope
        dt, seen = torch.where(moved, dt, 0.0), torch.where(moved, seen, self.t)
        if bool(own.isfinite().all()):
            return trial, self._read_polynomial(trial, moved, dt, t_next, seen)
        kept = stepper.keep()
        stepper.rest(~moved)
        stepper.replace_start(slope.masked_fill(~moved[:, None], 0.0))
        trial = stepper.attempt(self.t, dt, seen, self.y)
        stepper.restore(kept)
        made = self._read_polynomial(trial, moved, dt, t_next, seen)
        stepper.rest(self.aside)
        stepper.replace_start(slope)
        return trial, made

    def _meet_events(self, moved: Tensor, dt: Tensor) -> None:
        """End the rows that a terminal event ended; let those it has changed start anew."""
        events, rows = self.events, self.rows
        assert events is not None
        if (ended := events.ended) is not None:
            rows.fail(ended, Status.EVENT, rows.component, dt.detach(), moved)
            self.end = torch.where(ended, self.t, self.end)
            self.stops.leave(ended, self.t)
            if self.graph:
                self._put_aside(ended, self.y)
        if (changed := events.restarted) is not None:
            self.stepper.restart(self.t, self.y, changed)
            if self.stepper.keeps_end_slope or self.stepper.interpolant_gives_end_slope:
                rows.extra_evals += changed & (self.t < self.end)

    def _cross_jumps(self, crossed: Tensor, made: Tensor | None) -> None:
        """Let the rows `crossed (B,)` start behind the jump they stand at."""
        if not bool(crossed.any()):
            return
        stepper = self.stepper
        stepper.restart(self.stops.pass_on(crossed, self.t), self.y, crossed)
        if stepper.keeps_end_slope:
            self.rows.extra_evals += crossed
        elif stepper.interpolant_gives_end_slope and made is not None:
            self.rows.extra_evals += crossed & made

    def _read_polynomial(
        self, trial: Trial, moved: Tensor, dt: Tensor, t_next: Tensor, seen: Tensor
    ) -> Tensor | None:
        """Evaluate the outputs passed in the step just taken; keep it if all steps are kept.

        Returns:
            Which rows needed the step's polynomial, `(B,)` bool, None if it was not made.
        """
        outputs, t, y, stepper = self.outputs, self.t, self.y, self.stepper
        polynomial = None
        if self.events is not None:
            polynomial = stepper.polynomial(t, dt, seen, y, trial.y1)
            t_next = self.events.look(t, dt, t_next, y, trial.y1, moved, polynomial)
            self.rows.extra_evals += self.events.evals
        hit = None if outputs is None else outputs.passed(moved, t_next)
        if polynomial is None:
            if self.dense is None and (hit is None or not bool(hit.any())):
                return None
            polynomial = stepper.polynomial(t, dt, seen, y, trial.y1)
        if outputs is not None and hit is not None:
            outputs.take(hit, t, dt, t_next, y, polynomial)
        if self.dense is not None:
            self.dense.add(t, dt, moved, y, polynomial)
        return hit if self.dense is None and self.events is None else moved

    def _resize(
        self, verdict: Proposal[Any], dt: Tensor, tried: Tensor, cut: Tensor | None
    ) -> None:
        """Take over the controller's next step.

        Args:
            verdict: what the controller says.
            dt, tried: length of the step after and before rounding `t + dt`, `(B,)`. A refused one
                shrinks from the latter, as rounding up could undo the shrinking again and again.
            cut: rows whose step was cut short by a jump, which teaches them nothing, `(B,)` bool;
                None if there are no jumps.
        """
        problem, asked = self.problem, self.dt
        if self.graph:
            dt, tried = dt.detach(), tried.detach()
        if self.fixed_dt is not None:
            self.history, self.fixed_dt = verdict.history, resized(self.fixed_dt, verdict.factor)
            self.dt = self.fixed_dt - (dt - tried)  # makes good what rounding took or gave
            return
        self.dt = bounded(resized(tried, verdict.factor), problem.dt_min, problem.dt_max)
        if cut is None:
            self.history = verdict.history
        else:
            self.dt = torch.where(cut, torch.maximum(asked, self.dt), self.dt)
            self.history = tree_map(partial(torch.where, cut), self.history, verdict.history)
        if problem.joint:
            self.dt = torch.where(self.rows.running, self.dt, torch.inf).amin().expand_as(dt)

    def _end_failures(
        self, tried: Tensor, running: Tensor, moved: Tensor, own: Tensor, weighted: Tensor
    ) -> Tensor | None:
        """End the rows that cannot go on, each with its own cause; return which, `(B,)` bool."""
        problem, rows = self.problem, self.rows
        room = self.dt / rows.floor(self.t.detach())
        self.near = bool((rows.running & (room < NEAR)).any())
        gone, code = failures(
            running=running,
            moved=moved,
            going=rows.running,
            tried=tried,
            room=room,
            own=own,
            unsolved=self.stepper.unsolved,
            exhausted=self.attempts >= torch.as_tensor(problem.max_steps),
            dt_min=problem.dt_min,
            adaptive=problem.controller.adaptive,
            joint=problem.joint,
        )
        if not bool(gone.any()):
            return None
        component = limiting_component(weighted)
        rows.fail(gone, code, component, tried.detach(), moved)
        if problem.joint:
            self.dt = torch.maximum(self.dt, rows.floor(self.t.detach()))
        return gone

    def _let_go(self, gone: Tensor) -> None:
        """Let the rows `gone (B,)` stand where they are; the others stay in autograd's graph."""
        self.end = torch.where(gone, self.t, self.end)
        self.stops.leave(gone, self.t)
        if self.graph:
            self._put_aside(gone, self.y.detach())

    def _put_aside(self, ended: Tensor, y: Tensor) -> None:
        """Keep the states `y` of rows that have ended; let these stand at a running row's.

        There, and with slopes of 0, the vector field and its derivative are finite, so zero
        cotangents stay zero in backward.
        """
        self.aside = ended if self.aside is None else self.aside | ended
        self.y_aside = torch.where(ended[:, None], y, self.y_aside)
        running = self.rows.running
        if bool(running.any()):
            there = self.y.detach()[running.int().argmax()]
            self.y = torch.where(ended[:, None], there, self.y)
            self.stepper.rest(self.aside)
            slope = self.stepper.start_slope.masked_fill(ended[:, None], 0.0)
            self.stepper.replace_start(slope)

    def _outcome(self) -> Outcome:
        rows, stepper, y = self.rows, self.stepper, self.y
        rows.add_up()
        n_f_evals = stepper.evals_per_attempt * rows.n_steps + rows.extra_evals
        if not stepper.keeps_end_slope:
            idle = rows.ended_on_accept | (rows.status == int(Status.SUCCESS))
            n_f_evals = n_f_evals + rows.n_accepted - (idle & (rows.n_accepted > 0)).long()
        if self.aside is not None:
            y = torch.where(self.aside[:, None], self.y_aside, y)
        arrived = rows.status == int(Status.SUCCESS)
        if self.events is not None:
            at_end = self.t.detach() >= self.problem.times.end.detach()
            arrived = arrived | ((rows.status == int(Status.EVENT)) & at_end)
        counts = stepper.counts
        if counts is not None:
            n_f_evals = n_f_evals + counts.f_evals
        return Outcome(
            t=self.t,
            y=y,
            status=rows.status,
            component=rows.component,
            last_dt=rows.last_dt,
            n_steps=rows.n_steps,
            n_accepted=rows.n_accepted,
            n_f_evals=n_f_evals,
            arrived=arrived,
            n_jac_evals=None if counts is None else counts.jac_evals,
            n_newton_iterations=None if counts is None else counts.newton_iterations,
            n_factorizations=None if counts is None else counts.factorizations,
            n_rows_evaluated=self._rows_evaluated() if self.left_out else None,
        )

    def _rows_evaluated(self) -> int:
        return self.problem.field.calls * len(self.t) - self.left_out


def _joint(ratio: Tensor, running: Tensor) -> Tensor:
    """Return one error ratio for all rows: the root mean square over those that run."""
    square = torch.where(running, ratio * ratio, 0.0).sum() / running.sum()
    return square.sqrt().expand_as(ratio)
