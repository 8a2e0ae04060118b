"""Gradient modes side by side: error, memory, time and evaluations of the same loss."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import median
from typing import Any

import torch
from torch import Tensor

from solver.adjoints.base import Adjoint
from solver.adjoints.measure import GraphMeter, Mark, memory_trace
from solver.arguments import read_adjoint
from solver.hooks import BackwardInfo, Hook, SolveInfo
from solver.solution import Solution
from solver.solve import solve_ivp

MOST_TRACED = 4000  # evaluations of a solve and its backward pass: the profiler takes 1 MB for each
Gradients = Mapping[str, Sequence[Tensor]]  # of each group, in the order of its tensors


@dataclass(frozen=True, eq=False)
class GradientProblem:
    """A solve with a loss, in one dtype.

    Args:
        f, y0: vector field and initial state `(B, D)`; `y0` is differentiated as well. Several
            fields are solved one after another, each from where the one before ended.
        parameters: what to differentiate by, in named groups; tensors that `f` uses or that are
            among the options, such as `t1` or `args`.
        options: further arguments of `solve_ivp`, times among them.
        loss: of the outputs `(B, T, D)` of the last field, a scalar.
    """

    f: Callable[..., Any] | Sequence[Callable[..., Any]]
    y0: Tensor
    parameters: Mapping[str, Sequence[Tensor]]
    options: Mapping[str, Any] = field(default_factory=dict)
    loss: Callable[[Tensor], Tensor] = lambda ys: (ys * ys.conj()).real.sum()

    def solve(
        self, mode: str | Adjoint, options: Mapping[str, Any]
    ) -> tuple[Tensor, list[Solution], Tensor]:
        """Return `y0` as a leaf, the solutions of all fields, and the loss."""
        y0 = self.y0.detach().requires_grad_()
        given = {"params": self.listed, **self.options, **options}
        solutions: list[Solution] = []
        y = y0
        for f in [self.f] if callable(self.f) else self.f:
            solutions.append(solve_ivp(f, y, adjoint=mode, **given))
            y = solutions[-1].ys[:, -1]
        return y0, solutions, self.loss(solutions[-1].ys)

    def gradients(
        self, mode: str | Adjoint, options: Mapping[str, Any]
    ) -> tuple[float, Gradients, list[Solution]]:
        """Return the loss, its gradients, `y0` first, and the solutions."""
        y0, solutions, loss = self.solve(mode, options)
        leaves = [y0, *self.listed]
        found = iter(torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True))
        gradients = {"y0": [next(found)]}
        for name, group in self.parameters.items():
            gradients[name] = [next(found) for _ in group]
        return float(loss.detach()), gradients, solutions

    @property
    def listed(self) -> list[Tensor]:
        """All parameters."""
        return [tensor for group in self.parameters.values() for tensor in group]


def compare_adjoints(
    make: Callable[[torch.dtype], GradientProblem],
    modes: Sequence[str | Adjoint],
    *,
    dtype: torch.dtype = torch.float64,
    rounds: int = 1,
    tight: float = 1e-11,
    allocator: bool = False,
    **options: Any,
) -> list[dict[str, Any]]:
    """Return one entry for each mode: plain numbers, strings and lists.

    Two references, both backpropagation in float64: over steps at the same tolerances, which exact
    modes meet to rounding (in float32 to the rounding of step sizes), and at tolerance `tight`.

    Args:
        make: gives the problem in a dtype, with the same numbers in each.
        modes: gradient modes, names or objects.
        dtype: the state's dtype of the modes compared.
        rounds: timed repetitions, interleaved; medians are given.
        tight: tolerance of the second reference, `rtol` and `atol`.
        allocator: measure the true peak of memory and its course as well, slow on the CPU; left out
            where more than `MOST_TRACED` evaluations would be followed.
        options: further arguments of `solve_ivp`, over those of the problem.

    Returns:
        Entries with `mode`, `title`, `settings`, `label` (mode and settings that differ from the
        default), `loss`, `n_failed`, `n_accepted` (sum over rows), `error` and `error_exact` by
        group, `y0` among them (relative, in the norm of the group), `error_rows` (of the gradient
        by y0, relative to its largest row), `kept_bytes` after the solve, `checkpoint_bytes`,
        `graph_bytes` at the peak, `gradient_bytes`, `predicted_bytes`, `peak_bytes` and `trace` (a
        `MemoryTrace` as a dictionary; both None without `allocator`), `seconds_forward`,
        `seconds_backward`, `n_f_forward`, `n_f_backward`, `n_vjps`.
    """
    exact = exact_gradients(make, tight, options)
    entries = adjoint_entries(
        make, modes, exact, dtype=dtype, rounds=rounds, allocator=allocator, **options
    )
    found = dict(entries)  # the last one of each mode
    return [found[number] for number in sorted(found)]


def exact_gradients(
    make: Callable[[torch.dtype], GradientProblem], tight: float, options: Mapping[str, Any]
) -> Gradients:
    """Return gradients in float64 at tolerance `tight`, whatever method the options name."""
    problem = make(torch.float64)
    others = {k: v for k, v in options.items() if k not in ("controller", "dt0", "engine")}
    accurate = {"method": "dopri8", "controller": None, "dt0": None, "rtol": tight, "atol": tight}
    return problem.gradients("backprop", {**others, **accurate})[1]


def adjoint_entries(
    make: Callable[[torch.dtype], GradientProblem],
    modes: Sequence[str | Adjoint],
    exact: Gradients,
    *,
    dtype: torch.dtype = torch.float64,
    rounds: int = 1,
    allocator: bool = False,
    keep_going: bool = False,
    about: Callable[[str], None] = lambda text: None,
    watchers: Sequence[Hook] = (),
    **options: Any,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the place of each mode and its entry as soon as it is there, see `compare_adjoints`.

    With more than one round every entry comes again, with medians.

    Args:
        exact: what `exact_gradients` gave.
        keep_going: whether a mode that fails gives an entry with `failure`, the reason.
        about: told what comes next, before each part.
        watchers: hooks of one solve and backward pass of each mode, neither timed nor metered.
    """
    about("reference")
    _, same, _ = make(torch.float64).gradients("backprop", options)
    problem = make(dtype)
    chosen = [read_adjoint(mode) for mode in modes]
    seconds: dict[int, list[tuple[float, float]]] = {}
    entries: dict[int, dict[str, Any]] = {}
    for number, mode in enumerate(chosen):
        about(label_of(mode))
        named: dict[str, Any] = {"mode": mode.name, "title": mode.title, "label": label_of(mode)}
        named["settings"] = {k: v for k, v in vars(mode).items() if _is_plain(v)}
        try:
            watched = {**options, "hooks": list(watchers)}
            loss, gradients, solutions = problem.gradients(mode, watched)
            entry = named | {
                "loss": loss,
                "n_failed": int((~solutions[-1].success).sum()),
                "n_accepted": sum(int(sol.stats.n_accepted.sum()) for sol in solutions),
                "error": {name: _apart(gradients[name], same[name]) for name in same},
                "error_exact": {name: _apart(gradients[name], exact[name]) for name in exact},
                "error_rows": _rows_apart(gradients["y0"][0], same["y0"][0]),
                **_memory(problem, mode, options),
                "peak_bytes": None,
                "trace": None,
            }
            evaluations = entry["n_f_forward"] + (entry["n_f_backward"] or 0)
            if allocator and evaluations <= MOST_TRACED:
                trace = memory_trace(_run_of(problem, mode, options), problem.y0.device)
                entry |= {"peak_bytes": trace.peak, "trace": vars(trace)}
            seconds[number] = [_timed(problem, mode, options)]
        except Exception as error:
            if not keep_going:
                raise
            yield number, named | {"failure": f"{type(error).__name__}: {error}"}
            continue
        entries[number] = entry
        yield number, entry | _medians(seconds[number])
    for again in range(1, rounds):
        about(f"timing, round {again + 1} of {rounds}")
        for number in entries:
            seconds[number].append(_timed(problem, chosen[number], options))
    if rounds > 1:
        for number, entry in entries.items():
            yield number, entry | _medians(seconds[number])


def label_of(mode: Adjoint) -> str:
    """Return a mode's name and what of its settings differs from the default."""
    parts = []
    for each in fields(mode):
        value = getattr(mode, each.name)
        if value != each.default:
            written = str(value).lower() if isinstance(value, bool) else str(value)
            parts.append(f"{each.name}={written}")
    return mode.name + (":" + ",".join(parts) if parts else "")


class _Watch(Hook):
    """Keeps records of backward passes."""

    def __init__(self) -> None:
        """Start with none."""
        self.passes: list[BackwardInfo] = []
        self.solves: list[SolveInfo] = []

    def on_solve_start(self, info: SolveInfo) -> None:
        """Keep one."""
        self.solves.append(info)

    def on_backward(self, info: BackwardInfo) -> None:
        """Keep one."""
        self.passes.append(info)


def _memory(
    problem: GradientProblem, mode: Adjoint, options: Mapping[str, Any]
) -> dict[str, int | None]:
    """Run once under a meter; what a mode keeps for itself it tells its hooks."""
    watch = _Watch()
    parameters = problem.listed
    meter = GraphMeter(parameters)
    with meter.watching():
        y0, solutions, loss = problem.solve(mode, {**options, "hooks": [watch]})
        after, forward = meter.now, list(watch.solves)
        torch.autograd.grad(loss, [y0, *parameters], allow_unused=True)
    told = [info for info in watch.passes if info.solve in forward]
    measured = meter.peak - after
    graphs = [info.graph_bytes for info in told if info.graph_bytes is not None]
    checkpoints = sum(info.checkpoint_bytes for info in told)

    def total(name: str) -> int | None:
        values = [getattr(info, name) for info in told]
        return None if not told or None in values else sum(values)

    predicted = total("predicted_bytes")
    if predicted is not None and mode.name != "backprop":  # one field's graphs at a time
        kept = [info.checkpoint_bytes for info in told]
        rest = [(info.predicted_bytes or 0) - info.checkpoint_bytes for info in told]
        predicted = sum(kept) + max(rest)
    if mode.name == "backprop":  # its own measurement of an attempt hides that from the meter
        after = max(after, sum(graphs))
    return {
        "kept_bytes": max(after, checkpoints),
        "checkpoint_bytes": checkpoints,
        "graph_bytes": max(graphs) if graphs else measured,
        "gradient_bytes": max((info.gradient_bytes for info in told), default=None),
        "predicted_bytes": predicted,
        "n_f_forward": sum(sol.stats.n_f_calls for sol in solutions),
        "n_f_backward": total("n_f_calls"),
        "n_vjps": total("n_vjps"),
    }


def _run_of(
    problem: GradientProblem, mode: Adjoint, options: Mapping[str, Any]
) -> Callable[[Mark], Any]:
    """Return one solve and backward pass that says which of them it is in."""

    def run(mark: Mark) -> None:
        mark("forward")
        y0, _, loss = problem.solve(mode, options)
        mark("backward")
        torch.autograd.grad(loss, [y0, *problem.listed], allow_unused=True)

    return run


def _timed(
    problem: GradientProblem, mode: Adjoint, options: Mapping[str, Any]
) -> tuple[float, float]:
    """Return seconds forward and backward."""
    began = time.perf_counter()
    y0, _, loss = problem.solve(mode, options)
    between = time.perf_counter()
    torch.autograd.grad(loss, [y0, *problem.listed], allow_unused=True)
    return between - began, time.perf_counter() - between


def _medians(seconds: Sequence[tuple[float, float]]) -> dict[str, float]:
    forward, backward = (median(each) for each in zip(*seconds, strict=True))
    return {"seconds_forward": forward, "seconds_backward": backward}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _apart(got: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """Return the relative error of a group of gradients."""
    square = torch.stack([(g.to(w.dtype) - w).norm() for g, w in zip(got, wanted, strict=True)])
    size = torch.stack([w.norm() for w in wanted]).norm()
    return float(square.norm() / size.clamp_min(torch.finfo(size.dtype).tiny))


def _rows_apart(got: Tensor, wanted: Tensor) -> list[float]:
    """Return the error of each row, relative to the largest row."""
    error = (got.to(wanted.dtype) - wanted).flatten(1).norm(dim=1)
    size = wanted.flatten(1).norm(dim=1).max()
    return (error / size.clamp_min(torch.finfo(size.dtype).tiny)).tolist()
