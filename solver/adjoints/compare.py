"""Gradient modes side by side: error, memory, time and evaluations of the same loss."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from solver.adjoints.base import Adjoint
from solver.adjoints.measure import GraphMeter, allocator_peak
from solver.arguments import read_adjoint
from solver.hooks import BackwardInfo, Hook, SolveInfo
from solver.solve import solve_ivp


@dataclass(frozen=True, eq=False)
class GradientProblem:
    """A solve with a loss, in one dtype.

    Args:
        f, y0: vector field and initial state `(B, D)`; `y0` is differentiated as well.
        parameters: what to differentiate by, in named groups; tensors that `f` uses or that are
            among the options, such as `t1` or `args`.
        options: further arguments of `solve_ivp`, times among them.
        loss: of the outputs `(B, T, D)`, a scalar.
    """

    f: Callable[..., Any]
    y0: Tensor
    parameters: Mapping[str, Sequence[Tensor]]
    options: Mapping[str, Any] = field(default_factory=dict)
    loss: Callable[[Tensor], Tensor] = lambda ys: (ys * ys.conj()).real.sum()


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
        allocator: measure the true peak of memory as well, slow on the CPU.
        options: further arguments of `solve_ivp`, over those of the problem.

    Returns:
        Entries with `mode`, `title`, `settings`, `loss`, `n_failed`, `n_accepted` (sum over rows),
        `error` and `error_exact` by group, `y0` among them (relative, in the norm of the group),
        `error_rows` (of the gradient by y0, relative to its largest row), `kept_bytes` after the
        solve, `graph_bytes` at the peak, `gradient_bytes`, `predicted_bytes`, `peak_bytes`
        (allocator, or None), `seconds_forward`, `seconds_backward`, `n_f_forward`, `n_f_backward`,
        `n_vjps`.
    """
    wide = make(torch.float64)
    _, same, _ = _gradients(wide, "backprop", options)
    _, exact, _ = _gradients(wide, "backprop", {**options, "rtol": tight, "atol": tight})
    problem, entries = make(dtype), []
    chosen = [read_adjoint(mode) for mode in modes]
    for mode in chosen:
        loss, gradients, sol = _gradients(problem, mode, options)
        entries.append(
            {
                "mode": mode.name,
                "title": mode.title,
                "settings": {k: v for k, v in vars(mode).items() if not isinstance(v, Adjoint)},
                "loss": loss,
                "n_failed": int((~sol.success).sum()),
                "n_accepted": int(sol.stats.n_accepted.sum()),
                "error": {name: _apart(gradients[name], same[name]) for name in same},
                "error_exact": {name: _apart(gradients[name], exact[name]) for name in exact},
                "error_rows": _rows_apart(gradients["y0"][0], same["y0"][0]),
                **_memory(problem, mode, options),
                "peak_bytes": None,
            }
        )
        if allocator:
            run = _runner(problem, mode, options)
            entries[-1]["peak_bytes"] = allocator_peak(run, problem.y0.device)
    _time(problem, chosen, options, rounds, entries)
    return entries


def _solve(problem: GradientProblem, mode: str | Adjoint, options: Mapping[str, Any]) -> Any:
    y0 = problem.y0.detach().requires_grad_()
    listed = [tensor for group in problem.parameters.values() for tensor in group]
    given = {"params": listed, **problem.options, **options}
    sol = solve_ivp(problem.f, y0, adjoint=mode, **given)
    return y0, sol, problem.loss(sol.ys)


def _gradients(
    problem: GradientProblem, mode: str | Adjoint, options: Mapping[str, Any]
) -> tuple[float, dict[str, list[Tensor]], Any]:
    y0, sol, loss = _solve(problem, mode, options)
    leaves = [y0, *(tensor for group in problem.parameters.values() for tensor in group)]
    found = iter(torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True))
    gradients = {"y0": [next(found)]}
    for name, group in problem.parameters.items():
        gradients[name] = [next(found) for _ in group]
    return float(loss.detach()), gradients, sol


def _runner(
    problem: GradientProblem, mode: str | Adjoint, options: Mapping[str, Any]
) -> Callable[[], object]:
    return lambda: _gradients(problem, mode, options)


def _memory(
    problem: GradientProblem, mode: Adjoint, options: Mapping[str, Any]
) -> dict[str, int | None]:
    """Run once under a meter; what a mode keeps for itself it tells its hooks."""
    watch = _Watch()
    parameters = [tensor for group in problem.parameters.values() for tensor in group]
    meter = GraphMeter(parameters)
    with meter.watching():
        _, sol, loss = _solve(problem, mode, {**options, "hooks": [watch]})
        after = meter.now
        loss.backward(inputs=parameters or None)
    for tensor in parameters:
        tensor.grad = None
    told = [info for info in watch.passes if info.solve is watch.solves[0]]
    last = told[-1] if told else None
    return {
        "kept_bytes": after,
        "graph_bytes": meter.peak - after if last and last.graph_bytes is None else (
            last.graph_bytes if last else meter.peak - after
        ),
        "gradient_bytes": last.gradient_bytes if last else None,
        "predicted_bytes": last.predicted_bytes if last else None,
        "n_f_forward": sol.stats.n_f_calls,
        "n_f_backward": last.n_f_calls if last else None,
        "n_vjps": last.n_vjps if last else None,
    }  # fmt: skip


def _time(
    problem: GradientProblem,
    modes: Sequence[Adjoint],
    options: Mapping[str, Any],
    rounds: int,
    entries: list[dict[str, Any]],
) -> None:
    """Put the medians of seconds into the entries, one run of each mode a round."""
    forward: list[list[float]] = [[] for _ in modes]
    backward: list[list[float]] = [[] for _ in modes]
    for _ in range(rounds):
        for i, mode in enumerate(modes):
            began = time.perf_counter()
            y0, _, loss = _solve(problem, mode, options)
            between = time.perf_counter()
            leaves = [y0, *(tensor for group in problem.parameters.values() for tensor in group)]
            torch.autograd.grad(loss, leaves, allow_unused=True)
            backward[i].append(time.perf_counter() - between)
            forward[i].append(between - began)
    for entry, *both in zip(entries, forward, backward, strict=True):
        entry["seconds_forward"], entry["seconds_backward"] = (sorted(s)[len(s) // 2] for s in both)


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
