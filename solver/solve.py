"""The one entrance: checks input once, picks defaults, solves."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import forward_ad

from solver.adjoints.base import Adjoint
from solver.arguments import (
    check_step_bounds,
    read_adjoint,
    read_controller,
    read_hooks,
    read_max_steps,
    read_method,
    read_params,
    read_statistics,
    read_step,
    read_stepping,
    read_tolerance,
)
from solver.captured import captured_tensors
from solver.controllers.base import Controller
from solver.dense import DenseRecord
from solver.engines import ENGINES, Choice, choose, complain
from solver.errors import InvalidArgument, UnknownEngine
from solver.event_log import EventLog, event_log
from solver.events import read_events
from solver.hooks import Hook, SolveInfo
from solver.loop import Outcome, Problem
from solver.methods.base import Method
from solver.outputs import Outputs
from solver.problem import Field, StateLayout
from solver.recording import Recorder
from solver.slices import solve_in_slices
from solver.solution import Solution, Stats
from solver.split import Split, read_field
from solver.stability import stability_function
from solver.statistics.base import Statistic
from solver.times import read_times


def solve_ivp(
    f: Callable[..., Any] | tuple[Callable[..., Any], Callable[..., Any]] | Split,
    y0: Any,
    t_eval: Any = None,
    *,
    t0: Any = None,
    t1: Any = None,
    args: Any = None,
    params: Sequence[Tensor] = (),
    method: str | Method = "tsit5",
    controller: str | Controller[Any] | None = None,
    rtol: float | Tensor = 1e-4,
    atol: float | Tensor = 1e-6,
    dt0: Any = None,
    dt_min: Any = None,
    dt_max: Any = None,
    max_steps: int | Tensor = 100_000,
    jump_t: Any = None,
    events: Any = (),
    adjoint: str | Adjoint = "backprop",
    engine: str = "auto",
    stepping: Literal["independent", "joint"] = "independent",
    dense: bool = False,
    statistics: Sequence[str | Statistic] = (),
    hooks: Sequence[Hook] = (),
    time_dtype: torch.dtype | None = None,
    t_eval_mask: Tensor | None = None,
    regroup: bool = True,
    batch_size: int | None = None,
) -> Solution:
    """Solve a batch of initial value problems, every row with its own times, steps and end.

    A row never depends on its neighbours: it has its own step size, verdict and status, and one
    that fails ends alone. Memory without gradients does not grow with the number of steps.

    Args:
        f: vector field `f(t, y)`, or `f(t, y, args)` if `args` is given, with `t (B,)` and `y` like
            `y0`; returns the shape of `y`. Row i may depend on row i only. Never called with a time
            outside the row's span. Two such functions, `(explicit, implicit)`, are a field in two
            parts: additive methods (kencarp3, kencarp4) solve equations for the second one alone,
            others take their sum. `t` has the time dtype; a field that cannot take that beside a
            narrower state (a float32 network, say) gets `t` in the state's dtype.
        y0: initial states, a tensor `(B, ...)` or a pytree of such tensors, real or complex;
            float16 and bfloat16 are computed in float32, whole numbers become floats.
        t_eval: output times `(T,)` or `(B, T)`, sorted in the row's direction, repeats allowed;
            NaN where a row has none. None gives the state at `t1` alone, T = 1.
        t0, t1: start and end, numbers or `(B,)`; default to the row's first and last output time.
        args: anything, handed to `f`.
        params: tensors that `f` uses and gradients are wanted for, where neither modules, closures
            nor `args` show them; the others are found.
        method: name or object, see `solver.catalogue.methods()`.
        controller: name, preset name or object; default `PID()`, or `Fixed()` for methods without
            an error estimate.
        rtol, atol: tolerances: a number, `(D,)` per component, `(B, 1)` or `(B,)` per row (a 1-D
            tensor of length B = D is per component), or `(B, D)`.
        dt0: size of the first step, a number or `(B,)`, positive; needed for fixed steps, otherwise
            chosen by Hairer's rule.
        dt_min, dt_max: bounds of the step size, numbers or `(B,)`. A step that is refused at
            `dt_min` ends its row with REACHED_DT_MIN.
        max_steps: attempts allowed per row, accepted or not, a number or `(B,)`.
        jump_t: times at which `f` is known to jump, a number, `(K,)` or `(B, K)` padded with NaN;
            they are stepped on exactly and each side sees its own side only.
        events: what to watch for, `solver.Event` and `solver.SteadyState` objects or callables
            `g(t, y)`, one or several: rows end, or change their state, where it happens. What
            happened stands in `Solution.events`.
        adjoint: how gradients get through, name or object, see `solver.catalogue.adjoints()`.
        engine: "plain", the loop in Python; "compiled", many attempts in one call of native code
            made from `f`, where that is possible (on the CPU, real states of few components, a
            field of single rows, gradients by a mode that needs accepted steps alone, such as
            "symplectic"), otherwise one warning says why not; "auto", plain until solves of this
            kind have cost enough for compiling to pay.
        stepping: "joint" gives the whole batch one step size and one error norm.
        dense: whether to keep all steps, so that `sol(t)` works.
        statistics: further columns for hooks, names or objects.
        hooks: observers, see `solver.hooks`.
        time_dtype: float32 or float64; default float64, where the device has it.
        t_eval_mask: bool like `t_eval`, False where a row has no output.
        regroup: whether rows that are done are left out, so that only the others cost anything:
            always in a compiled solve, in the plain loop where an explicit method solves without
            gradients, events or jumps, and `f` is found to give the same slopes for fewer rows.
            Tensors in `args` whose first axis is as long as the batch are cut with it.
        batch_size: solve so many rows at a time, in bounded memory; tensors in `args` whose first
            axis is as long as the batch are cut with it, and `f` must take any number of rows.

    Returns:
        Solution with outputs, status and counts per row.

    Raises:
        InvalidArgument, InvalidType: an argument is not allowed; the message names it, what was
            given and what is allowed. Failing rows do not raise, see `Solution.raise_if_failed`.
    """
    began = time.perf_counter()
    f = read_field(f)
    if batch_size is not None:
        given = {
            "y0": y0, "t_eval": t_eval, "t0": t0, "t1": t1, "args": args, "params": params,
            "method": method, "controller": controller, "rtol": rtol, "atol": atol, "dt0": dt0,
            "dt_min": dt_min, "dt_max": dt_max, "max_steps": max_steps, "jump_t": jump_t,
            "events": events, "adjoint": adjoint, "engine": engine, "stepping": stepping,
            "dense": dense, "statistics": statistics, "time_dtype": time_dtype,
            "t_eval_mask": t_eval_mask, "regroup": regroup,
        }  # fmt: skip
        return solve_in_slices(solve_ivp, f, given, batch_size, read_hooks(hooks))
    layout = StateLayout(y0)
    device, batch = layout.device, layout.batch
    if time_dtype is None:
        time_dtype = torch.float32 if device.type == "mps" else torch.float64
    elif time_dtype not in (torch.float32, torch.float64):
        raise InvalidArgument(f"time_dtype is {time_dtype}: must be torch.float32 or torch.float64")
    times = read_times(t_eval, t0, t1, jump_t, t_eval_mask, batch, time_dtype, device)
    chosen = read_method(method)
    control = read_controller(controller, chosen, dt0)
    mode = read_adjoint(adjoint)
    if engine not in ENGINES:
        raise UnknownEngine.among(engine, ENGINES)
    field = Field(f, layout, times.direction, args)
    problem = Problem(
        field=field,
        y0=layout.y0,
        times=times,
        tolerance=read_tolerance(rtol, atol, layout),
        method=chosen,
        controller=control,
        dt0=read_step("dt0", dt0, batch, times, zero=False, expand=True),
        dt_min=read_step("dt_min", dt_min, batch, times, zero=True),
        dt_max=read_step("dt_max", dt_max, batch, times, zero=False),
        max_steps=read_max_steps(max_steps, batch, device),
        joint=read_stepping(stepping, times),
        slope0=None,
        params=read_params(params),
        events=read_events(events, field),
        regroup=regroup,
    )
    check_step_bounds(problem.dt_min, problem.dt_max)
    hooks = read_hooks(hooks)
    wanted = read_statistics(statistics, hooks)
    own_ends = t0 is not None or t1 is not None
    choice, outputs = _choose(problem, mode, engine, wanted, hooks, dense, own_ends)
    recorder = None
    if hooks:
        recorder = _recorder(problem, mode, hooks, wanted, choice.engine, choice.seconds)
    record = DenseRecord() if dense else None
    try:
        if recorder is not None:
            recorder.begin()
        log = None
        if choice.engine == "compiled" and choice.starts:
            problem = _with_slope(problem)
            outcome, ys = mode.follow(problem, outputs, recorder, choice.steps)
        elif choice.engine == "compiled":
            outcome, ys = choice.run(problem, outputs, record, recorder, regroup=regroup)
        else:
            outcome, ys, log = _run(problem, mode, own_ends, record, recorder)
            choice.spent(time.perf_counter() - began)
    except BaseException as error:
        if recorder is not None:
            recorder.broken_off(error, time.perf_counter() - began)
        raise
    solution = _solution(problem, outcome, ys, record, log, began, choice.engine)
    if recorder is not None:
        recorder.end(solution)
    return solution


def _choose(
    problem: Problem,
    mode: Adjoint,
    engine: str,
    statistics: Sequence[Statistic],
    hooks: Sequence[Hook],
    dense: bool,
    own_ends: bool,
) -> tuple[Choice, Outputs | None]:
    """Choose the executor; return it with the outputs it has to find."""
    if engine == "plain":
        return Choice(), None
    graph = _needs_graph(problem)
    if graph and (dense or not mode.needs_steps_only or _has_tangents()):
        if engine == "compiled":
            complain(f"gradients are wanted, and adjoint {mode.name!r} needs the loop's graph")
        return Choice(), None
    times = problem.times
    differ = graph and own_ends and times.ts.requires_grad
    outputs = None if times.outputs is None else Outputs(times, differ)
    choice = choose(
        problem,
        engine,
        statistics,
        outputs=outputs is not None and outputs.inside,
        dense=dense,
        starts=graph,
        states=any(hook.wants_states for hook in hooks),
        recorded=bool(hooks) or dense or graph,
        on_compile=lambda: _recorder(problem, mode, hooks, statistics, "compiled").compiling(),
    )
    return choice, outputs


def _recorder(
    problem: Problem,
    mode: Adjoint,
    hooks: Sequence[Hook],
    wanted: Sequence[Statistic],
    engine: str,
    compile_seconds: float = 0.0,
) -> Recorder:
    """Make the recorder of a solve that someone watches."""
    times, layout, control = problem.times, problem.field.layout, problem.controller

    def own(value: float | Tensor) -> Tensor:  # what a hook does to it must not reach the solve
        if isinstance(value, Tensor):
            return value.detach().to(layout.device, copy=True)
        return torch.tensor(value, device=layout.device)

    info = SolveInfo(
        batch=layout.batch,
        dim=layout.dim,
        dtype=str(layout.dtype).removeprefix("torch."),
        time_dtype=str(times.t0.dtype).removeprefix("torch."),
        device=str(layout.device),
        method=problem.method.name,
        method_order=problem.method.order,
        error_order=problem.method.error_order,
        controller=control.name,
        controller_settings=control.settings(),
        adjoint=mode.name,
        engine=engine,
        stepping="joint" if problem.joint else "independent",
        t0=own(times.t0),
        t1=own(times.t1),
        rtol=own(problem.tolerance.rtol),
        atol=own(problem.tolerance.atol),
        max_steps=problem.max_steps,
        y0=own(layout.y0),
        statistics=wanted,
        stability=stability_function(problem.method),
        compile_seconds=compile_seconds,
        dt_min=None if problem.dt_min is None else own(problem.dt_min),
        dt_max=None if problem.dt_max is None else own(problem.dt_max),
    )
    end = times.end.detach()
    jumps = times.stops is not None
    return Recorder(
        hooks, info, control, times.direction, end, jumps, problem.dt_min, problem.dt_max
    )


def _run(
    problem: Problem,
    mode: Adjoint,
    own_ends: bool,
    record: DenseRecord | None,
    recorder: Recorder | None,
) -> tuple[Outcome, Tensor | None, EventLog | None]:
    """Solve by the plain loop, with autograd's graph if anything asks for it."""
    problem = _with_slope(problem)
    times = problem.times
    graph = _needs_graph(problem)
    outputs = None
    plan = problem.events
    if times.outputs is not None or plan is not None:
        asked = times
        if times.outputs is None:
            asked = times._replace(outputs=times.ts[:, :0])
        differ = graph and own_ends and times.ts.requires_grad
        outputs = Outputs(asked, differ, None if plan is None else plan.record)
    outcome, ys = mode.integrate(problem, outputs, record, recorder, graph=graph)
    if plan is None or ys is None:
        return outcome, ys, None
    asked = 0 if times.outputs is None else times.outputs.shape[1]
    log = event_log(plan, ys[:, asked:], times.start, times.direction, graph=graph)
    return outcome, None if times.outputs is None else ys[:, :asked], log


def _with_slope(problem: Problem) -> Problem:
    """Return the problem with the slope at its start, in autograd's graph."""
    times, y0 = problem.times, problem.y0
    if bool((times.start < times.end).any()) and bool(y0.detach().isfinite().any()):
        return dataclasses.replace(problem, slope0=problem.field(times.start, y0))
    return problem


def _solution(
    problem: Problem,
    outcome: Outcome,
    ys: Tensor | None,
    record: DenseRecord | None,
    log: EventLog | None,
    began: float,
    engine: str,
) -> Solution:
    layout, times = problem.field.layout, problem.times
    sign, t, last_dt = times.direction, outcome.t.detach(), outcome.last_dt
    if ys is None:
        ys = torch.where(outcome.arrived[:, None], outcome.y, torch.nan)[:, None]
    calls = problem.field.calls if outcome.n_f_calls is None else outcome.n_f_calls
    evaluated = outcome.n_rows_evaluated
    return Solution(
        ts=times.ts,
        ys=layout.unflatten(ys),
        status=outcome.status,
        t_reached=t if sign is None else t * sign,
        y_reached=layout.unflatten(outcome.y.detach().clone()),
        component=outcome.component,
        last_dt=last_dt if sign is None else last_dt * sign,
        stats=Stats(
            n_steps=outcome.n_steps,
            n_accepted=outcome.n_accepted,
            n_rejected=outcome.n_steps - outcome.n_accepted,
            n_f_evals=outcome.n_f_evals,
            n_jac_evals=_counted(outcome.n_jac_evals, outcome),
            n_newton_iterations=_counted(outcome.n_newton_iterations, outcome),
            n_factorizations=_counted(outcome.n_factorizations, outcome),
            n_f_calls=calls,
            n_rows_evaluated=calls * layout.batch if evaluated is None else evaluated,
            wall_seconds=time.perf_counter() - began,
            f_seconds=problem.field.seconds,
            engine=engine,
        ),
        dense=None if record is None else record.finish(layout, times, outcome.t.detach()),
        events=log,
    )


def _counted(count: Tensor | None, outcome: Outcome) -> Tensor:
    return torch.zeros_like(outcome.n_steps) if count is None else count


def _has_tangents() -> bool:
    return getattr(forward_ad, "_current_level", -1) >= 0


def _needs_graph(problem: Problem) -> bool:
    """Whether anything that a gradient may be asked for goes into the solve."""
    times, field = problem.times, problem.field
    if _has_tangents():  # which travel where tensors travel
        return True
    if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
        return False
    given = [problem.y0, times.t0, times.t1, times.ts, *problem.params]
    if problem.slope0 is not None:
        given.append(problem.slope0)
    seen = field.captured()
    if problem.events is not None:
        functions = [(event.value, event.apply) for event in problem.events.events]
        seen = chain(seen, captured_tensors(functions))
    return any(tensor.requires_grad for tensor in chain(given, seen))
