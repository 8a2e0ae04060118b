"""Trains a sample problem that has a loss, on one process or on several, and records it."""

import math
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils import _pytree as pytree

from app.own_problem import problem_by_name
from inspector import Inspector
from sample_problems.base import Batch, LossProblem
from solver.adjoints.base import Adjoint
from solver.catalogue import adjoint_by_name, controller_by_name
from solver.controllers.base import Controller
from solver.errors import InvalidArgument
from solver.hooks import Hook
from solver.optim import MADGRAD, AdaHessian, AdamW, AliG, Lion

KIND = "training"  # `kind` of a spec that trains
EVALUATIONS = 10  # of the test data in a training
SCHEDULES = ("constant", "cosine")
DTYPES = {"float32": torch.float32, "float64": torch.float64}

Make = Callable[[list[nn.Parameter], float], Optimizer]
# name -> how it is made, and its learning rate as a multiple of the problem's own, for Adam
OPTIMIZERS: Mapping[str, tuple[Make, float]] = {
    "adamw": (lambda params, lr: AdamW(params, lr=lr), 1.0),
    "lion": (lambda params, lr: Lion(params, lr=lr), 0.3),
    "madgrad": (lambda params, lr: MADGRAD(params, lr=lr), 1.0),
    "adahessian": (lambda params, lr: AdaHessian(params, lr=lr), 10.0),
    "alig": (lambda params, lr: AliG(params, max_lr=lr), 10.0),
    "adam": (lambda params, lr: torch.optim.Adam(params, lr=lr), 1.0),
    "sgd": (lambda params, lr: torch.optim.SGD(params, lr=lr, momentum=0.9), 10.0),
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A training as it is to be done; made from a spec by `read_plan`."""

    problem: LossProblem
    iterations: int
    batch: int
    seed: int
    dtype: torch.dtype
    optimizer: str
    learning_rate: float
    schedule: str
    pool: int
    options: dict[str, Any]  # of `solve_ivp`


@dataclass
class Outcome:
    """What a training came to."""

    losses: list[float] = field(default_factory=list)
    measures: list[float] = field(default_factory=list)  # on the test data, before and behind too
    seconds: float = 0.0


def read_plan(spec: Mapping[str, Any]) -> Plan:
    """Return what a spec asks for.

    Args:
        spec: `kind, problem, parameters, iterations, batch, seed, dtype, optimizer, learning_rate,
            schedule, pool, method, controller, rtol, atol, adjoint, stepping, max_steps`; what is
            missing is as the problem has it.

    Raises:
        InvalidArgument: an entry is not allowed; the message names it.
    """
    problem = problem_by_name(str(spec["problem"]), spec.get("parameters"))
    if not isinstance(problem, LossProblem):
        raise InvalidArgument(f"problem {problem.name!r} has no loss, there is nothing to train")
    name = str(spec.get("optimizer") or problem.optimizer).lower()
    if name not in OPTIMIZERS:
        raise InvalidArgument(f"optimizer {name!r}: must be one of {', '.join(OPTIMIZERS)}")
    mode = adjoint_by_name(spec.get("adjoint") or problem.adjoint)
    if name == "adahessian" and mode.name != "backprop":
        raise InvalidArgument(
            f"optimizer 'adahessian' with adjoint {mode.name!r}: it differentiates twice, which "
            "only adjoint 'backprop' allows"
        )
    rate = spec.get("learning_rate")
    numbers = {
        "iterations": spec.get("iterations") or problem.iterations,
        "batch": spec.get("batch") or problem.batch,
        "pool": spec.get("pool") or problem.pool,
    }
    for entry, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidArgument(f"{entry}={value!r}: must be a whole number of at least 1")
    dtype = str(spec.get("dtype") or problem.dtype)
    if dtype not in DTYPES:
        raise InvalidArgument(f"dtype {dtype!r}: must be one of {', '.join(DTYPES)}")
    schedule = str(spec.get("schedule") or problem.schedule)
    if schedule not in SCHEDULES:
        raise InvalidArgument(f"schedule {schedule!r}: must be one of {', '.join(SCHEDULES)}")
    return Plan(
        problem=problem,
        **{**numbers, "batch": min(numbers["batch"], numbers["pool"])},
        seed=int(spec.get("seed") or 0),
        dtype=DTYPES[dtype],
        optimizer=name,
        learning_rate=problem.learning_rate * OPTIMIZERS[name][1] if rate is None else float(rate),
        schedule=schedule,
        options=_options(spec, problem, mode),
    )


def _options(spec: Mapping[str, Any], problem: LossProblem, mode: Adjoint) -> dict[str, Any]:
    controller: Any = spec.get("controller")
    if isinstance(controller, Mapping):
        settings = {key: value for key, value in controller.items() if key != "name"}
        controller = controller_by_name(str(controller["name"]), settings)
    assert controller is None or isinstance(controller, str | Controller)
    options = {
        "method": spec.get("method") or problem.method,
        "controller": controller,
        "rtol": spec.get("rtol") or problem.rtol,
        "atol": spec.get("atol") or problem.atol,
        "adjoint": mode,
        "stepping": spec.get("stepping") or "independent",
    }
    if spec.get("max_steps"):
        options["max_steps"] = spec["max_steps"]
    return options


class Learner(nn.Module):
    """From a batch to its loss, as one module, so that several processes can share the work."""

    def __init__(self, plan: Plan, model: nn.Module, hooks: list[Hook]) -> None:
        super().__init__()
        self.model = model
        self._plan, self._hooks = plan, hooks

    def forward(self, batch: Batch) -> Tensor:
        """Return the loss, a scalar."""
        problem = self._plan.problem
        options: dict[str, Any] = self._plan.options | {"hooks": self._hooks}
        return problem.loss(problem.solve(self.model, batch, **options)[-1].ys, batch)


def train(
    plan: Plan,
    recorder: Inspector | None = None,
    hooks: list[Hook] | None = None,
    about: Callable[[int, float], None] | None = None,
) -> Outcome:
    """Train, on this process' share of each batch if `torch.distributed` is set up.

    Args:
        recorder: told of every iteration.
        hooks: further observers of every solve.
        about: called after each iteration with its number and loss; may raise to end the training.

    Returns:
        The losses of this process, and the measure on the test data over the training.
    """
    problem, outcome = plan.problem, Outcome()
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    rank = torch.distributed.get_rank() if distributed else 0
    world = torch.distributed.get_world_size() if distributed else 1
    model = problem.model(plan.seed, plan.dtype)
    watchers = [*([] if recorder is None else [recorder]), *(hooks or [])]
    learner: nn.Module = Learner(plan, model, watchers)
    if distributed:
        learner = nn.parallel.DistributedDataParallel(learner)
    params = list(model.parameters())
    optimizer = OPTIMIZERS[plan.optimizer][0](params, plan.learning_rate)
    if recorder is not None:
        recorder.watch(model, optimizer)
    generator = torch.Generator().manual_seed(plan.seed)
    data = problem.draw(plan.pool, generator, plan.dtype)
    every = max(1, plan.iterations // EVALUATIONS)
    evaluated = {"method": plan.options["method"], "rtol": plan.options["rtol"],
                 "atol": plan.options["atol"]}  # fmt: skip
    share = max(1, plan.batch // world)
    waiting = torch.empty(0, dtype=torch.long)
    began = time.perf_counter()
    for step in range(plan.iterations):
        while len(waiting) < share * world:
            waiting = torch.cat([waiting, torch.randperm(plan.pool, generator=generator)])
        ids = waiting[rank * share : (rank + 1) * share]
        waiting = waiting[share * world :]
        inside: AbstractContextManager[Any] = nullcontext()
        if recorder is not None:
            inside = recorder.iteration(sample_ids=ids)
        with inside:
            _set_rate(optimizer, plan, step)
            optimizer.zero_grad()
            loss = learner(take(data, ids))
            _backward(loss, optimizer)
            if plan.optimizer == "alig":
                optimizer.step(lambda value=loss: value)
            else:
                optimizer.step()
            outcome.losses.append(float(loss.detach()))
            if recorder is not None:
                recorder.log(loss=outcome.losses[-1])
        if step % every == 0 or step == plan.iterations - 1:
            outcome.measures.append(problem.evaluate(model, **evaluated))
            if recorder is not None:
                recorder.log(test=outcome.measures[-1])
        if about is not None:
            about(step, outcome.losses[-1])
    outcome.seconds = time.perf_counter() - began
    return outcome


def _set_rate(optimizer: Optimizer, plan: Plan, step: int) -> None:
    """Let the learning rate fall from its own value to 0 along half a cosine, if asked for."""
    if plan.schedule == "cosine":
        factor = (1 + math.cos(math.pi * step / plan.iterations)) / 2
        for group in optimizer.param_groups:
            group["lr" if "lr" in group else "max_lr"] = factor * plan.learning_rate


def _backward(loss: Tensor, optimizer: Optimizer) -> None:
    """Fill the gradients, with a graph of their own if the optimizer asks for one."""
    if not getattr(optimizer, "needs_graph", False):
        loss.backward()
        return
    with warnings.catch_warnings():  # the optimizer lets go of the graph after its step
        warnings.filterwarnings("ignore", r"Using backward\(\) with create_graph", UserWarning)
        loss.backward(create_graph=True)


def take(data: Batch, ids: Tensor) -> Batch:
    """Return some samples of a batch, `ids (B,)`."""
    size = len(data.y0)

    def part(leaf: Any) -> Any:
        whole = isinstance(leaf, Tensor) and leaf.ndim > 0 and len(leaf) == size
        return leaf[ids] if whole else leaf

    times = data.t_eval[ids] if data.t_eval.ndim == 2 else data.t_eval
    target, args = pytree.tree_map(part, (data.target, data.args))
    return Batch(data.y0[ids], times, target, args)


def record_training(
    spec: Mapping[str, Any],
    path: Path,
    *,
    note: str = "",
    hooks: Callable[[Inspector], list[Hook]] | None = None,
    look: Callable[[], None] | None = None,
    about: Callable[[int, float], None] | None = None,
    cancelled: type[BaseException] | tuple[type[BaseException], ...] = (),
) -> Outcome:
    """Train what a spec asks for and record it into a run, which is continued if it is there.

    Args:
        path: folder of the run.
        note: shown in the list of runs.
        hooks: makes further observers of every solve, beside the recorder.
        look: called after each iteration; may raise to end the training.
        about: called after each iteration with its number and loss.
        cancelled: what is no failure.

    Raises:
        Exception: what `read_plan` and `train` raise; it is recorded as the reason.
    """
    kept = {name: spec[name] for name in ("every", "budget_bytes") if spec.get(name)}
    recorder = Inspector(path, note=note, spec=dict(spec), tags=["training"], **kept)

    def after(step: int, loss: float) -> None:
        if about is not None:
            about(step, loss)
        if look is not None:
            look()

    try:
        outcome = train(read_plan(spec), recorder, [] if hooks is None else hooks(recorder), after)
    except cancelled as reason:
        recorder.event("cancelled", str(reason))
        recorder.close("cancelled")
        raise
    except BaseException as error:
        recorder.event("failed", f"{type(error).__name__}: {error}")
        recorder.close("failed" if isinstance(error, Exception) else "interrupted")
        raise
    recorder.close()
    return outcome
