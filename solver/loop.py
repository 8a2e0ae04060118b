"""The stepping loop: every instance at its own time, with its own step, verdict and end."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from solver.controllers.base import Controller
from solver.dense import DenseRecord
from solver.initial_step import initial_step
from solver.methods.base import Method, Stepper, Trial
from solver.norms import Tolerance, rms_norm
from solver.outputs import Outputs
from solver.problem import Field
from solver.recording import Attempt, Recorder
from solver.status import Status
from solver.stops import Stops
from solver.times import Times

TALLY_EVERY = 64  # attempts whose masks are kept before they are added up
STALL_EVERY = 32  # attempts between looks for rows that are accepted but do not move


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


class Rows:
    """Who still runs, how the others ended, and what each needed."""

    def __init__(self, times: Times, fixed: bool):
        """Let every row run that has a span; `fixed` steps may be stretched a little more."""
        start, end = times.start.detach(), times.end.detach()
        eps = torch.finfo(start.dtype).eps
        # A step may be stretched this much to land on its end rather than leave a crumb.
        self.stretch = 1 + (1e-6 if fixed else max(1e-9, 4 * eps))
        self.smallest = eps * eps * (end - start)  # (B,) of a step, where t is near zero
        self.eps = eps
        self.running = start < end
        zero = torch.zeros_like(start, dtype=torch.int64)
        self.status, self.n_steps, self.n_accepted = zero, zero, zero
        self.component, self.extra_evals = zero - 1, zero.clone()
        self.last_dt = torch.full_like(start, torch.nan)
        self.ended_on_accept = self.running.logical_not()
        self._pending: list[tuple[Tensor, Tensor]] = []

    def tally(self, running: Tensor, moved: Tensor) -> None:
        """Count one attempt."""
        self._pending.append((running, moved))
        if len(self._pending) >= TALLY_EVERY:
            self.add_up()

    def add_up(self) -> None:
        """Add pending masks to the counts."""
        if self._pending:
            running, moved = zip(*self._pending, strict=True)
            self.n_steps = self.n_steps + torch.stack(running).sum(dim=0)
            self.n_accepted = self.n_accepted + torch.stack(moved).sum(dim=0)
            self._pending = []

    def fail(
        self, rows: Tensor, status: Tensor | Status, component: Tensor, dt: Tensor, moved: Tensor
    ) -> None:
        """End `rows (B,)` with `status`."""
        self.status = torch.where(rows, torch.as_tensor(status, device=rows.device), self.status)
        self.component = torch.where(rows, component, self.component)
        self.last_dt = torch.where(rows, dt, self.last_dt)
        self.ended_on_accept = torch.where(rows, moved, self.ended_on_accept)
        self.running = self.running & ~rows

    def floor(self, t: Tensor) -> Tensor:
        """Return the smallest step the time dtype resolves at `t`, `(B,)`."""
        return torch.maximum(2 * self.eps * t.abs(), self.smallest)


def integrate(
    problem: Problem,
    outputs: Outputs | None,
    dense: DenseRecord | None,
    recorder: Recorder | None,
    *,
    graph: bool,
) -> Outcome:
    """Step every row to its end or to its failure.

    Args:
        problem: what to solve.
        outputs, dense, recorder: who wants to see accepted steps, accepted polynomials, attempts.
        graph: keep autograd's graph through steps and outputs; step sizes are constants to it.
    """
    method, controller, tolerance = problem.method, problem.controller, problem.tolerance
    times, field, y = problem.times, problem.field, problem.y0
    rows = Rows(times, fixed=not controller.adaptive)
    error_order = method.error_order if method.error_order is not None else method.order
    stepper = method.stepper(field, y, times.start.dtype, graph=graph)
    t, end = times.start, times.end
    start_evals = torch.zeros_like(rows.status)
    dt, history = torch.zeros_like(t.detach()), controller.init(y.detach().real.new_ones(len(t)))
    y_failed: Tensor | None = None
    if bool(rows.running.any()):
        y, start_evals, y_failed = _start(field, stepper, rows, t, y, problem.slope0, graph)
        if problem.dt0 is not None:
            dt = torch.minimum(problem.dt0, (end - t).detach())
        elif bool(rows.running.any()):
            with torch.no_grad():
                slope = stepper.start_slope
                dt = initial_step(field, t, end - t, y, slope, error_order + 1, tolerance)
            start_evals = start_evals + rows.running
        with torch.no_grad():
            dt = _bounded(torch.maximum(dt, rows.floor(t)), problem)
            if problem.joint:
                dt = dt.amin().expand_as(dt)
        end = torch.where(rows.running, end, t)
    stops = Stops(times, end)
    sees_outputs = outputs is not None and outputs.inside
    limit = problem.max_steps
    fewest = int(limit.min()) if isinstance(limit, Tensor) and limit.numel() else limit
    attempts = 0
    while bool(rows.running.any()):
        running, stop = rows.running, stops.now
        reach = torch.add(t, dt, alpha=rows.stretch) >= stop
        dt_try = torch.where(reach, stop - t, dt)
        t_next = torch.where(reach, stop, t + dt_try)
        seen = stops.seen_from_left(t_next, reach)
        trial = stepper.attempt(t, dt_try, seen, y)
        with torch.no_grad():
            weighted, ratio = _error(trial, y, method, tolerance)
            if problem.joint:
                ratio = _joint(ratio, running)
            verdict = controller.propose(ratio, error_order, history)
            moved = verdict.accept & running
        attempts += 1
        settled = torch.equal(moved, running)
        if graph and not settled and not bool(ratio.isfinite().all()) and bool(moved.any()):
            # What a refused row did must not reach autograd, where 0 * NaN is NaN: stand still there.
            still = torch.where(moved, dt_try, 0.0)
            trial = stepper.attempt(t, still, torch.where(moved, seen, t), y)
        if dense is not None:
            polynomial = stepper.polynomial(t, dt_try, seen, y, trial.y1)
            dense.add(t, dt_try, moved, y, polynomial)
            hit = moved
        elif sees_outputs and bool((hit := outputs.passed(moved, t_next)).any()):
            polynomial = stepper.polynomial(t, dt_try, seen, y, trial.y1)
        else:
            polynomial = None
        if polynomial is not None:
            if sees_outputs:
                outputs.take(outputs.passed(moved, t_next), t, dt_try, t_next, y, polynomial)
            if stepper.interpolant_gives_end_slope:  # an inner step's would be needed anyway
                hit = hit & (t_next.detach() >= end.detach())
            rows.extra_evals += stepper.interpolant_evals * hit
        before = (t, history)
        if settled or bool(moved.any()):
            t = torch.where(moved, t_next, t)
            y = torch.where(moved[:, None], trial.y1, y)
            stepper.advance(moved)
        with torch.no_grad():
            dt_done, dt = dt, _bounded(dt_try * verdict.factor, problem)
            history = verdict.history
            if stops.jumps:
                cut = moved & reach
                dt = torch.where(cut, torch.maximum(dt_done, dt), dt)
                history = _kept(cut, before[1], history)
            if problem.joint:
                dt = torch.where(running, dt, torch.inf).amin().expand_as(dt)
            rows.tally(running, moved)
            rows.running = running & (t < end)
            if not settled or attempts >= fewest or attempts % STALL_EVERY == 0:
                gone = _failures(rows, problem, attempts, t, dt_try, dt, running, moved, ratio, weighted)
                if gone is not None:
                    end = torch.where(gone, t, end)
                    stops.leave(gone, t)
                    if graph:
                        y, y_failed = _aside(gone, rows.running, y, y_failed)
        if recorder is not None:
            recorder.add(
                Attempt(
                    before[0], dt_try, ratio, moved, running, reach, stop, weighted,
                    verdict.factor, before[1], y,
                )
            )  # fmt: skip
        if stops.jumps and bool((crossed := moved & reach & rows.running).any()):
            if stepper.restart(stops.pass_on(crossed, t), y, crossed):
                rows.extra_evals += crossed
    rows.add_up()
    n_f_evals = start_evals + stepper.evals_per_attempt * rows.n_steps + rows.extra_evals
    if not stepper.keeps_end_slope:
        idle = rows.ended_on_accept | (rows.status == int(Status.SUCCESS))
        n_f_evals = n_f_evals + rows.n_accepted - (idle & (rows.n_accepted > 0)).long()
    return Outcome(
        t=t,
        y=y if y_failed is None else torch.where((rows.status > 0)[:, None], y_failed, y),
        status=rows.status,
        component=rows.component,
        last_dt=rows.last_dt,
        n_steps=rows.n_steps,
        n_accepted=rows.n_accepted,
        n_f_evals=n_f_evals,
    )


def _start(
    field: Field,
    stepper: Stepper,
    rows: Rows,
    t: Tensor,
    y: Tensor,
    slope: Tensor | None,
    graph: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Begin from the first slope; end the rows whose start is not finite.

    Returns:
        The state to go on with, evaluations each row needed, and the failed rows' own state if it had
        to be put aside.
    """
    evals = rows.running.long()
    if slope is None:
        slope, evals = y, evals * 0
    stepper.begin(slope)
    lost = ~(slope.detach().isfinite() & y.detach().isfinite())
    bad = lost.any(dim=1) & rows.running
    if not bool(bad.any()):
        return y, evals, None
    nowhere = torch.zeros_like(bad)
    dt = torch.full_like(t.detach(), torch.nan)
    rows.fail(bad, Status.NON_FINITE_START, lost.int().argmax(dim=1), dt, nowhere)
    y_failed = None
    if graph and bool(rows.running.any()):
        y, y_failed = _aside(bad, rows.running, y, None)
        stepper.begin(field(t, y))
    return y, evals, y_failed


def _aside(
    gone: Tensor, running: Tensor, y: Tensor, y_failed: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Put failed rows' states aside and let them stand at a healthy row's.

    There the vector field and its derivative are finite, so zero cotangents stay zero in backward.
    """
    y_failed = torch.where(gone[:, None], y, y if y_failed is None else y_failed).detach()
    if bool(running.any()):
        healthy = y.detach()[running.int().argmax()]
        y = torch.where(gone[:, None], healthy, y)
    return y, y_failed


def _error(
    trial: Trial, y: Tensor, method: Method, tolerance: Tolerance
) -> tuple[Tensor, Tensor]:
    """Return the error over tolerance `(B, D)` and its norm `(B,)`, NaN where the trial is not finite."""
    if trial.error is None:
        weighted = trial.y1 * 0
        return weighted, rms_norm(weighted)
    weighted = tolerance.weighted(trial.error, y, trial.y1)
    low = None
    if trial.error_low is not None:
        low = rms_norm(tolerance.weighted(trial.error_low, y, trial.y1))
    return weighted, method.error_ratio(rms_norm(weighted), low)


def _joint(ratio: Tensor, running: Tensor) -> Tensor:
    """Return one error ratio for all rows: the root mean square over those that run."""
    square = torch.where(running, ratio * ratio, 0.0).sum() / running.sum()
    return square.sqrt().expand_as(ratio)


def _bounded(dt: Tensor, problem: Problem) -> Tensor:
    if problem.dt_min is not None:
        dt = dt.clamp(min=problem.dt_min)
    return dt if problem.dt_max is None else dt.clamp(max=problem.dt_max)


def _kept(rows: Tensor, old: Any, new: Any) -> Any:
    """Return the old history in `rows (B,)`, the new one elsewhere."""
    return tree_map(lambda a, b: torch.where(rows, a, b), old, new)


def _failures(
    rows: Rows,
    problem: Problem,
    attempts: int,
    t: Tensor,
    dt_try: Tensor,
    dt: Tensor,
    running: Tensor,
    moved: Tensor,
    ratio: Tensor,
    weighted: Tensor,
) -> Tensor | None:
    """End the rows that cannot go on; return them, or None if there is none."""
    refused = running & ~moved
    bad = ~ratio.isfinite()
    too_small = rows.running & (dt < rows.floor(t))
    out_of_steps = rows.running & (attempts >= torch.as_tensor(problem.max_steps))
    gone = too_small | out_of_steps
    code = torch.where(too_small, int(Status.TIME_RESOLUTION), int(Status.REACHED_MAX_STEPS))
    if problem.dt_min is not None:
        at_min = refused & (dt_try <= problem.dt_min)
        gone, code = gone | at_min, torch.where(at_min, int(Status.REACHED_DT_MIN), code)
    if not problem.controller.adaptive:
        gone = gone | refused  # a fixed step that failed would fail again
    code = torch.where(refused & bad & ~out_of_steps, int(Status.NON_FINITE), code)
    if not bool(gone.any()):
        return None
    lost = weighted.abs().nan_to_num(nan=torch.inf)
    component = lost.argmax(dim=1) if lost.shape[1] else torch.zeros_like(rows.component)
    rows.fail(gone, code, component, dt_try.detach(), moved)
    return gone
