"""The one entrance: checks input once, picks defaults, solves."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from solver import catalogue
from solver.adjoints.base import Adjoint
from solver.controllers.base import Controller
from solver.controllers.fixed import Fixed
from solver.controllers.pid import PID
from solver.dense import DenseRecord
from solver.errors import InvalidArgument, InvalidType, UnknownEngine
from solver.hooks import Hook, SolveEnd, SolveInfo
from solver.loop import Outcome, Problem
from solver.methods.base import Method
from solver.norms import Tolerance
from solver.outputs import Outputs
from solver.problem import Field, StateLayout, real_dtype
from solver.recording import Recorder
from solver.solution import Solution, Stats
from solver.statistics.base import Statistic
from solver.status import Status
from solver.times import Times, read_times


def solve_ivp(
    f: Callable[..., Any],
    y0: Any,
    t_eval: Any = None,
    *,
    t0: Any = None,
    t1: Any = None,
    args: Any = None,
    method: str | Method = "tsit5",
    controller: str | Controller[Any] | None = None,
    rtol: float | Tensor = 1e-4,
    atol: float | Tensor = 1e-6,
    dt0: Any = None,
    dt_min: Any = None,
    dt_max: Any = None,
    max_steps: int | Tensor = 100_000,
    jump_t: Any = None,
    adjoint: str | Adjoint = "backprop",
    engine: str = "auto",
    stepping: Literal["independent", "joint"] = "independent",
    dense: bool = False,
    statistics: Sequence[str | Statistic] = (),
    hooks: Sequence[Hook] = (),
    time_dtype: torch.dtype | None = None,
    t_eval_mask: Tensor | None = None,
) -> Solution:
    """Solve a batch of initial value problems, every row with its own times, steps and end.

    A row never depends on its neighbours: it has its own step size, verdict and status, and one that fails
    ends alone. Memory without gradients does not grow with the number of steps.

    Args:
        f: vector field `f(t, y)`, or `f(t, y, args)` if `args` is given, with `t (B,)` and `y` like
            `y0`; returns the shape of `y`. Row i may depend on row i only. Never called with a time
            outside the row's span. `t` has the time dtype; a field that cannot take that beside a
            narrower state (a float32 network, say) gets `t` in the state's dtype.
        y0: initial states, a tensor `(B, ...)` or a pytree of such tensors, real or complex; float16
            and bfloat16 are computed in float32, whole numbers become floats.
        t_eval: output times `(T,)` or `(B, T)`, sorted in the row's direction, repeats allowed; NaN where
            a row has none. None gives the state at `t1` alone, T = 1.
        t0, t1: start and end, numbers or `(B,)`; default to the row's first and last output time.
        args: anything, handed to `f`.
        method: name or object, see `solver.catalogue.methods()`.
        controller: name, preset name or object; default `PID()`, or `Fixed()` for methods without an
            error estimate.
        rtol, atol: tolerances: a number, `(D,)` per component, `(B, 1)` or `(B,)` per row (a 1-D tensor
            of length B = D is per component), or `(B, D)`.
        dt0: size of the first step, a number or `(B,)`, positive; needed for fixed steps, otherwise
            chosen by Hairer's rule.
        dt_min, dt_max: bounds of the step size, numbers or `(B,)`. A step that is refused at `dt_min` ends
            its row with REACHED_DT_MIN.
        max_steps: attempts allowed per row, accepted or not, a number or `(B,)`.
        jump_t: times at which `f` is known to jump, a number, `(K,)` or `(B, K)` padded with NaN; they are
            stepped on exactly and each side sees its own side only.
        adjoint: how gradients get through: "backprop".
        engine: "plain" or "auto", the loop that runs.
        stepping: "joint" gives the whole batch one step size and one error norm.
        dense: whether to keep all steps, so that `sol(t)` works.
        statistics: further columns for hooks, names or objects.
        hooks: observers, see `solver.hooks`.
        time_dtype: float32 or float64; default float64, where the device has it.
        t_eval_mask: bool like `t_eval`, False where a row has no output.

    Returns:
        Solution with outputs, status and counts per row.

    Raises:
        InvalidArgument, InvalidType: an argument is not allowed; the message names it, what was given
            and what is allowed. Failing rows do not raise, see `Solution.raise_if_failed`.
    """
    began = time.perf_counter()
    if not callable(f):
        raise InvalidType(f"f is a {type(f).__name__}: must be callable as f(t, y)")
    layout = StateLayout(y0)
    device, batch = layout.device, layout.batch
    if time_dtype is None:
        time_dtype = torch.float32 if device.type == "mps" else torch.float64
    elif time_dtype not in (torch.float32, torch.float64):
        raise InvalidArgument(f"time_dtype is {time_dtype}: must be torch.float32 or torch.float64")
    times = read_times(t_eval, t0, t1, jump_t, t_eval_mask, batch, time_dtype, device)
    chosen = _method(method)
    control = _controller(controller, chosen, dt0)
    mode = _adjoint(adjoint)
    if engine not in ("auto", "plain"):
        raise UnknownEngine.among(engine, ("auto", "plain"))
    tolerance, like = _tolerance(rtol, atol, layout)
    field = Field(f, layout, times.direction, args)
    problem = Problem(
        field=field,
        y0=layout.y0,
        times=times,
        tolerance=tolerance,
        method=chosen,
        controller=control,
        dt0=_step("dt0", dt0, batch, times, zero=False, expand=True),
        dt_min=_step("dt_min", dt_min, batch, times, zero=True),
        dt_max=_step("dt_max", dt_max, batch, times, zero=False),
        max_steps=_max_steps(max_steps, batch, device),
        joint=_is_joint(stepping, times),
        slope0=None,
    )
    observers = _unique(hooks)
    recorder = None
    if observers or statistics:
        info = SolveInfo(
            batch=batch,
            dim=layout.dim,
            dtype=str(layout.dtype).removeprefix("torch."),
            time_dtype=str(time_dtype).removeprefix("torch."),
            device=str(device),
            method=chosen.name,
            method_order=chosen.order,
            error_order=chosen.error_order,
            controller=control.name,
            controller_settings=dataclasses.asdict(control),  # pyright: ignore[reportArgumentType]
            adjoint=mode.name,
            engine="plain",
            stepping=stepping,
            t0=times.t0.detach(),
            t1=times.t1.detach(),
            rtol=torch.as_tensor(tolerance.rtol).detach(),
            atol=torch.as_tensor(tolerance.atol).detach(),
            max_steps=problem.max_steps,
            y0=layout.y0.detach(),
            statistics=_statistics(statistics, observers),
        )
        end = times.end.detach()
        recorder = Recorder(
            observers, info, control, times.direction, end, problem.dt_min, problem.dt_max
        )
    own_ends = t0 is not None or t1 is not None
    try:
        if bool((times.start < times.end).any()) and bool(layout.y0.detach().isfinite().any()):
            problem = dataclasses.replace(problem, slope0=field(times.start, layout.y0))
        outcome, ys, record = _run(problem, mode, own_ends, dense, recorder)
    except BaseException as error:
        if recorder is not None:
            what = f"{type(error).__name__}: {error}"
            recorder.end(SolveEnd(info, None, time.perf_counter() - began, what))
        raise
    solution = _solution(problem, outcome, ys, record, began)
    if recorder is not None:
        recorder.end(SolveEnd(info, solution, solution.stats.wall_seconds))
    return solution


def _run(
    problem: Problem, mode: Adjoint, own_ends: bool, dense: bool, recorder: Recorder | None
) -> tuple[Outcome, Tensor | None, DenseRecord | None]:
    """Solve with autograd's graph if anything asks for it."""
    graph, times = _needs_graph(problem), problem.times
    outputs = None
    if times.outputs is not None:
        outputs = Outputs(times, differ=graph and own_ends and times.ts.requires_grad)
    record = DenseRecord() if dense else None
    outcome, ys = mode.integrate(problem, outputs, record, recorder, graph=graph)
    return outcome, ys, record


def _solution(
    problem: Problem, outcome: Outcome, ys: Tensor | None, record: DenseRecord | None, began: float
) -> Solution:
    layout, times = problem.field.layout, problem.times
    sign = 1 if times.direction is None else times.direction
    if ys is None:
        success = (outcome.status == int(Status.SUCCESS))[:, None]
        ys = torch.where(success, outcome.y, torch.nan)[:, None]
    zero = torch.zeros_like(outcome.n_steps)
    calls = problem.field.calls
    return Solution(
        ts=times.ts,
        ys=layout.unflatten(ys),
        status=outcome.status,
        t_reached=(outcome.t * sign).detach(),
        y_reached=layout.unflatten(outcome.y.detach()),
        component=outcome.component,
        last_dt=outcome.last_dt * sign,
        stats=Stats(
            n_steps=outcome.n_steps,
            n_accepted=outcome.n_accepted,
            n_rejected=outcome.n_steps - outcome.n_accepted,
            n_f_evals=outcome.n_f_evals,
            n_jac_evals=zero,
            n_newton_iterations=zero,
            n_f_calls=calls,
            n_rows_evaluated=calls * layout.batch,
            wall_seconds=time.perf_counter() - began,
        ),
        dense=None if record is None else record.finish(layout, times, outcome.t.detach()),
    )


def _method(method: str | Method) -> Method:
    if isinstance(method, str):
        return catalogue.method_by_name(method)
    if isinstance(method, type) and issubclass(method, Method):
        return method()
    if not isinstance(method, Method):
        raise InvalidType(f"method is a {type(method).__name__}: must be a name or a Method")
    return method


def _controller(
    controller: str | Controller[Any] | None, method: Method, dt0: Any
) -> Controller[Any]:
    if controller is None:
        control: Controller[Any] = Fixed() if method.error_order is None else PID()
    elif isinstance(controller, str):
        control = catalogue.controller_by_name(controller)
    elif isinstance(controller, type) and issubclass(controller, Controller):
        control = controller()
    elif isinstance(controller, Controller):
        control = controller
    else:
        raise InvalidType(
            f"controller is a {type(controller).__name__}: must be a name or a Controller"
        )
    if control.adaptive and method.error_order is None:
        raise InvalidArgument(
            f"controller is {control.name!r}, but method {method.name!r} has no error estimate: "
            'use controller="fixed" with dt0, or a method with an estimate'
        )
    if not control.adaptive and dt0 is None:
        raise InvalidArgument("dt0 is missing: fixed steps need their size")
    return control


def _adjoint(adjoint: str | Adjoint) -> Adjoint:
    if isinstance(adjoint, str):
        return catalogue.adjoint_by_name(adjoint)
    if isinstance(adjoint, type) and issubclass(adjoint, Adjoint):
        return adjoint()
    if not isinstance(adjoint, Adjoint):
        raise InvalidType(f"adjoint is a {type(adjoint).__name__}: must be a name or an Adjoint")
    return adjoint


def _tolerance(rtol: Any, atol: Any, layout: StateLayout) -> tuple[Tolerance, torch.dtype]:
    real = real_dtype(layout.dtype)
    r, a = (_one_tolerance(n, v, layout, real) for n, v in (("rtol", rtol), ("atol", atol)))
    total = torch.as_tensor(r) + torch.as_tensor(a)
    if bool((total == 0).any()):
        raise InvalidArgument("rtol and atol are both 0: one of them must be positive")
    return Tolerance(r, a), real


def _one_tolerance(
    name: str, value: Any, layout: StateLayout, dtype: torch.dtype
) -> float | Tensor:
    batch, dim = layout.batch, layout.dim
    if isinstance(value, bool) or not isinstance(value, int | float | Tensor | list | tuple):
        raise InvalidType(f"{name} is a {type(value).__name__}: must be a number or a tensor")
    try:
        tensor = torch.as_tensor(value, dtype=dtype, device=layout.device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidType(f"{name} = {value!r}: must be a number or a tensor") from error
    wrong = ~(tensor.isfinite() & (tensor >= 0))
    if bool(wrong.any()):
        worst = tensor[wrong].flatten()[0].item()
        raise InvalidArgument(f"{name} is {worst!r}: must be finite and not negative")
    if tensor.ndim == 0:
        return tensor.item()
    shapes = {(dim,): (dim,), (batch, dim): (batch, dim), (batch, 1): (batch, 1), (1, dim): (1, dim)}
    if layout.single:
        shape = tuple(layout.shapes[0])
        shapes |= {shape: (dim,), (batch, *shape): (batch, dim)}
    if (batch,) not in shapes:
        shapes[(batch,)] = (batch, 1)
    target = shapes.get(tuple(tensor.shape))
    if target is None:
        raise InvalidArgument(
            f"{name} has shape {tuple(tensor.shape)}: must be a number, ({dim},) per component, "
            f"({batch}, 1) per row or ({batch}, {dim})"
        )
    return tensor.reshape(target)


def _step(
    name: str, value: Any, batch: int, times: Times, *, zero: bool, expand: bool = False
) -> Any:
    """Return a step size or bound: None, a number, or `(B,)`; positive whichever way time runs."""
    if value is None:
        return None
    try:
        size = torch.as_tensor(value, dtype=times.t0.dtype, device=times.t0.device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidType(f"{name} is a {type(value).__name__}: must be a number or a tensor") from error
    if name == "dt0" and times.direction is not None and bool((size < 0).any()):
        size = size.abs()  # a signed first step of a row that runs backward
    wrong = ~((size >= 0 if zero else size > 0) & ~size.isnan())
    if name == "dt0":
        wrong = wrong | size.isinf()
    if bool(wrong.any()):
        bound = "not negative" if zero else "positive"
        raise InvalidArgument(f"{name} is {size[wrong].flatten()[0].item()!r}: must be {bound}")
    if size.numel() == 1 and not (size.ndim and batch == 1):
        size = size.reshape(())
        return size.expand(batch) if expand else size.item()
    if tuple(size.shape) not in ((batch,), (batch, 1)):
        raise InvalidArgument(f"{name} has shape {tuple(size.shape)}: must be a number or ({batch},)")
    return size.reshape(batch)


def _max_steps(value: Any, batch: int, device: torch.device) -> int | Tensor:
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise InvalidArgument(f"max_steps is {value}: must be at least 1")
        return value
    if not isinstance(value, Tensor) or value.is_floating_point() or value.dtype == torch.bool:
        raise InvalidType(f"max_steps is {value!r}: must be a whole number or a tensor of them")
    if value.numel() not in (1, batch):
        raise InvalidArgument(f"max_steps has shape {tuple(value.shape)}: must be a number or ({batch},)")
    if bool((value < 1).any()):
        raise InvalidArgument(f"max_steps is {int(value.min())}: must be at least 1")
    return value.to(device).reshape(-1).expand(batch)


def _is_joint(stepping: str, times: Times) -> bool:
    if stepping not in ("independent", "joint"):
        raise InvalidArgument(f'stepping is {stepping!r}: must be "independent" or "joint"')
    if stepping == "independent":
        return False
    if times.stops is not None:
        raise InvalidArgument('stepping is "joint": jump_t needs stepping="independent"')
    for name, ends in (("t0", times.t0), ("t1", times.t1)):
        if bool((ends.detach() != ends.detach()[:1]).any()):
            raise InvalidArgument(f'stepping is "joint": all rows need the same {name}')
    return True


def _needs_graph(problem: Problem) -> bool:
    """Whether anything that a gradient may be asked for goes into the solve."""
    times, field = problem.times, problem.field
    if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
        return False
    given = [problem.y0, times.t0, times.t1, times.ts, *field.captured()]
    if problem.slope0 is not None:
        given.append(problem.slope0)
    return any(tensor.requires_grad for tensor in given)


def _unique(hooks: Sequence[Hook]) -> list[Hook]:
    """Return the hooks without repeats.

    Raises:
        InvalidType: something is no Hook.
    """
    if isinstance(hooks, Hook):
        hooks = (hooks,)
    unique: list[Hook] = []
    for hook in hooks:
        if not isinstance(hook, Hook):
            raise InvalidType(f"hooks holds a {type(hook).__name__}: must be solver.Hook objects")
        if not any(hook is other for other in unique):
            unique.append(hook)
    return unique


def _statistics(
    statistics: Sequence[str | Statistic], hooks: Sequence[Hook]
) -> tuple[Statistic, ...]:
    found: dict[str, Statistic] = {}
    for each in (*statistics, *(wanted for hook in hooks for wanted in hook.statistics)):
        if isinstance(each, str):
            statistic = catalogue.statistic_by_name(each)
        elif isinstance(each, Statistic):
            statistic = each
        else:
            raise InvalidType(
                f"statistics holds a {type(each).__name__}: must be names or Statistic objects"
            )
        found.setdefault(statistic.name, statistic)
    return tuple(found.values())
