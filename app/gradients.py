"""Gradients of sample problems: what one is asked for, and gradient modes compared by a spec."""

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from app.own_problem import problem_by_name
from sample_problems.base import Batch, LossProblem, SampleProblem
from solver.adjoints.compare import GradientProblem, adjoint_entries, exact_gradients, label_of
from solver.adjoints.measure import Mark, memory_trace
from solver.catalogue import adjoint_by_name, controller_by_name
from solver.errors import InvalidArgument
from solver.hooks import Hook
from solver.solution import Solution

DTYPES = {"float32": torch.float32, "float64": torch.float64}
MODES = ("backprop", "checkpoint_steps", "aca", "symplectic", "continuous", "joint")
TIGHT = 1e-10  # tolerance of the gradient that counts as exact
SWEEPS = ("", "rtol", "steps")
Make = Callable[[torch.dtype], GradientProblem]


@dataclass(frozen=True)
class Asked:
    """What a comparison's spec says, read once.

    Args:
        sweep: "", "rtol" (with `atol` in proportion) or "steps" (fixed ones).
        values: of what is swept; without a sweep the tolerance alone.
    """

    problem: SampleProblem
    modes: list[str]
    sweep: str
    values: list[float]
    options: dict[str, Any]
    dtype: torch.dtype
    rounds: int
    allocator: bool


def read_spec(spec: Mapping[str, Any]) -> Asked:
    """Read and check a spec.

    Raises:
        InvalidArgument: an entry is not allowed; the message names it.
    """
    problem = problem_by_name(spec["problem"], spec.get("parameters"))
    modes = [label_of(adjoint_by_name(mode)) for mode in spec.get("modes") or MODES]
    if len(set(modes)) < len(modes):
        raise InvalidArgument(f"modes={modes}: must differ")
    sweep = spec.get("sweep") or ""
    if sweep not in SWEEPS:
        raise InvalidArgument(f"sweep={sweep!r}: must be one of {', '.join(map(repr, SWEEPS))}")
    rtol = problem.rtol if spec.get("rtol") is None else float(spec["rtol"])
    atol = problem.atol if spec.get("atol") is None else float(spec["atol"])
    values = [float(value) for value in spec.get("values") or ()] if sweep else [rtol]
    if not values or any(not math.isfinite(value) or value <= 0 for value in values):
        raise InvalidArgument(f"values={values}: must be positive numbers, at least one")
    dtype = spec.get("dtype") or "float64"
    if dtype not in DTYPES:
        raise InvalidArgument(f"dtype={dtype!r}: must be one of {', '.join(DTYPES)}")
    options: dict[str, Any] = {"method": spec.get("method") or problem.method}
    options |= {"rtol": rtol, "atol": atol, "max_steps": spec.get("max_steps") or 100_000}
    controller = spec.get("controller")
    if isinstance(controller, Mapping):
        settings = {key: value for key, value in controller.items() if key != "name"}
        options["controller"] = controller_by_name(controller["name"], settings)
    rounds, allocator = int(spec.get("rounds") or 1), bool(spec.get("allocator", True))
    return Asked(problem, modes, sweep, values, options, DTYPES[dtype], rounds, allocator)


def gradient_problem(spec: Mapping[str, Any], asked: Asked) -> tuple[Make, float]:
    """Return what makes the problem in a dtype, with the same numbers in each, and its span.

    Networks are as they are before training, or after `trained` iterations of it. A problem without
    a network is differentiated by its parameters, with the mean square of its end states as loss.
    """
    problem, seed = asked.problem, int(spec.get("seed") or 0)
    batch = int(spec.get("batch") or problem.batch)
    narrow = asked.dtype
    if not isinstance(problem, LossProblem):
        built = problem.build(batch, seed, spec.get("spread", "default"))
        t1 = built.t1 if spec.get("t1") is None else float(spec["t1"])

        def plain(dtype: torch.dtype) -> GradientProblem:
            args = {k: v.to(narrow).to(dtype).requires_grad_() for k, v in built.args.items()}
            jumps = None if built.jump_t is None else built.jump_t.to(dtype)
            options = {"t0": built.t0, "t1": t1, "args": args, "jump_t": jumps}
            groups = {name: [value] for name, value in args.items()}
            y0 = built.y0.to(narrow).to(dtype)
            return GradientProblem(built.f, y0, groups, options, _mean_square)

        return plain, t1 - built.t0
    model = problem.model(seed, torch.float64)
    generator = torch.Generator().manual_seed(seed)
    train(problem, model, batch, int(spec.get("trained") or 0), generator)
    data = problem.draw(batch, generator)
    stored = {name: value.to(narrow) for name, value in model.state_dict().items()}

    def make(dtype: torch.dtype) -> GradientProblem:
        own = problem.model(seed, dtype)
        own.load_state_dict(stored)
        cast = _cast(_cast(data, narrow), dtype)
        options: dict[str, Any] = {"t_eval": cast.t_eval}
        if cast.args is not None:
            options["args"] = cast.args
        y0 = problem.begin(own, cast)
        groups = _groups_after(y0, parameter_groups(own))
        return GradientProblem(
            list(problem.fields(own)), y0, groups, options,
            lambda ys: problem.loss(problem.seen(own, ys), cast),
        )  # fmt: skip

    times = data.t_eval
    return make, float((times[..., -1] - times[..., 0]).abs().max())


def train(
    problem: LossProblem,
    model: nn.Module,
    batch: int,
    iterations: int,
    generator: torch.Generator,
    before: Callable[[int], None] = lambda done: None,
) -> None:
    """Take some steps of Adam with the problem's own settings."""
    optimizer = torch.optim.Adam(model.parameters(), lr=problem.learning_rate)
    for done in range(iterations):
        before(done)
        dtype = next(model.parameters()).dtype
        data = problem.draw(batch, generator, dtype)
        loss = problem.loss(problem.solve(model, data, adjoint="symplectic")[-1].ys, data)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def training_entries(
    spec: Mapping[str, Any],
    iterations: int,
    about: Callable[[str], None] = lambda text: None,
) -> Iterator[dict[str, Any]]:
    """Train with each gradient mode from the same start on the same data.

    The start is a fresh network, or one after `trained` iterations.

    Yields:
        `mode`, `measure` (of the test data), `peak_bytes` (of the allocator, in one iteration more
        at the end), `seconds` (median of an iteration), `steps` (of the last one, of the row that
        has most), `loss`.

    Raises:
        InvalidArgument: the problem has no loss.
    """
    asked = read_spec(spec)
    problem, seed = asked.problem, int(spec.get("seed") or 0)
    if not isinstance(problem, LossProblem):
        raise InvalidArgument(f"problem {problem.name!r}: has no loss, so it cannot be trained")
    batch = int(spec.get("batch") or problem.batch)
    common, numbers = problem.model(seed, asked.dtype), torch.Generator().manual_seed(seed)
    before = int(spec.get("trained") or 0)
    train(problem, common, batch, before, numbers,
          lambda done: about(f"all modes: iteration {done} of {before}"))  # fmt: skip
    for mode in asked.modes:
        model, generator = copy.deepcopy(common), torch.Generator()
        generator.set_state(numbers.get_state())
        optimizer = torch.optim.Adam(model.parameters(), lr=problem.learning_rate)
        seconds: list[float] = []
        options: dict[str, Any] = {**asked.options, "adjoint": mode}
        steps, loss = 0, math.nan
        for done in range(iterations):
            about(f"{mode}: iteration {done} of {iterations}")
            data = problem.draw(batch, generator, asked.dtype)
            began = time.perf_counter()
            solutions = problem.solve(model, data, **options)
            value = problem.loss(solutions[-1].ys, data)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            seconds.append(time.perf_counter() - began)
            steps, loss = (
                sum(int(sol.stats.n_accepted.max()) for sol in solutions),
                float(value.detach()),
            )
        data = problem.draw(batch, generator, asked.dtype)
        optimizer.zero_grad()

        def once(mark: Mark, data: Batch = data, model: nn.Module = model,
                 options: dict[str, Any] = options) -> None:  # fmt: skip
            mark("iteration")
            problem.loss(problem.solve(model, data, **options)[-1].ys, data).backward()

        peak = memory_trace(once, data.y0.device).peak
        yield {
            "mode": mode, "measure": problem.evaluate(model, **asked.options), "loss": loss,
            "peak_bytes": peak, "seconds": median(seconds), "steps": steps,
        }  # fmt: skip


def differentiate(
    problem: LossProblem,
    data: Batch,
    speed: Tensor,
    adjoint: str,
    seed: int,
    options: Mapping[str, Any],
) -> Solution:
    """Solve a problem with a loss, take its gradient, and return the last field's solution.

    Args:
        speed: factor on the field in each row, `(B,)`; 1 everywhere leaves the field as it is.
        options: of `solve_ivp`.
    """
    model = problem.model(seed, data.y0.dtype)
    factor = None if bool((speed == 1).all()) else speed
    solutions = problem.solve(model, data, speed=factor, adjoint=adjoint, **options)
    problem.loss(solutions[-1].ys, data).backward()
    return solutions[-1]


def parameter_groups(model: nn.Module) -> dict[str, list[Tensor]]:
    """Return the parameters that learn, by layer: weight and bias together."""
    groups: dict[str, list[Tensor]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups.setdefault(name.rpartition(".")[0] or name, []).append(parameter)
    return groups


def _groups_after(y0: Tensor, groups: dict[str, list[Tensor]]) -> dict[str, list[Tensor]]:
    """Return the groups that `y0` was not made from: modes are compared from there on."""
    if not y0.requires_grad:
        return groups
    flat = [tensor for group in groups.values() for tensor in group]
    used = torch.autograd.grad(y0.sum(), flat, allow_unused=True, retain_graph=True)
    before = {id(p) for p, slope in zip(flat, used, strict=True) if slope is not None}
    return {name: group for name, group in groups.items() if id(group[0]) not in before}


def compare_spec(
    spec: Mapping[str, Any],
    *,
    about: Callable[[str, int, int], None] = lambda text, done, of: None,
    watchers: Sequence[Hook] = (),
    keep_going: bool = True,
) -> Iterator[tuple[int, float, dict[str, Any]]]:
    """Yield `place, value, entry` of each mode at each value as it is measured.

    An entry may come again with more rounds of timing.

    Args:
        about: told what comes next, how many parts are done, and of how many.
        watchers: hooks of one solve and backward pass of each mode.
    """
    asked = read_spec(spec)
    rounds = asked.rounds - 1
    of, done = 1 + len(asked.values) * (1 + len(asked.modes) + rounds), -1

    def tell(text: str) -> None:
        nonlocal done
        done += 1
        about(text, done, of)

    tell("training the network" if spec.get("trained") else "exact gradient")
    make, span = gradient_problem(spec, asked)
    exact = exact_gradients(make, TIGHT, asked.options)
    for place, value in enumerate(asked.values):
        options = dict(asked.options)
        named = ""
        if asked.sweep == "rtol":
            options |= {"rtol": value, "atol": asked.options["atol"] * value / options["rtol"]}
            named = f" at rtol {value:g}"
        elif asked.sweep == "steps":
            options |= {"controller": "fixed", "dt0": span / value}
            named = f" in {value:g} steps"
        entries = adjoint_entries(
            make, asked.modes, exact, dtype=asked.dtype, rounds=asked.rounds,
            allocator=asked.allocator, keep_going=keep_going, watchers=watchers,
            about=lambda text, named=named: tell(text + named), **options,
        )  # fmt: skip
        for _, entry in entries:
            yield place, value, entry
    about("done", of, of)


def _mean_square(ys: Tensor) -> Tensor:
    return ys[:, -1].square().mean()


def _cast(batch: Batch, dtype: torch.dtype) -> Batch:
    return Batch(
        batch.y0.to(dtype),
        batch.t_eval.to(dtype),
        None if batch.target is None else batch.target.to(dtype),
        None if batch.args is None else batch.args.to(dtype),
    )
