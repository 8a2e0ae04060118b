"""Solves that autograd follows: run, and tell hooks of the backward passes it makes by itself."""

from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor

from solver.adjoints.graph import Unchanged, leaf
from solver.adjoints.measure import Stopwatch, graph_bytes
from solver.adjoints.parameters import find_parameters
from solver.dense import DenseRecord
from solver.hooks import BackwardInfo
from solver.loop import Loop, Outcome, Problem
from solver.outputs import Outputs
from solver.recording import Recorder


def solve_followed(
    problem: Problem,
    outputs: Outputs | None,
    dense: DenseRecord | None,
    recorder: Recorder | None,
    *,
    graph: bool,
    checkpoints: bool,
) -> tuple[Outcome, Tensor | None]:
    """Run the loop, with autograd's graph if one is wanted.

    Args:
        checkpoints: whether steps keep where they began in place of their graphs.
    """
    with torch.set_grad_enabled(graph and torch.is_grad_enabled()):
        loop = Loop(problem, outputs, dense, recorder, graph=graph)
        told = graph and recorder is not None and recorder.wants_backward
        watch = None
        if told and recorder is not None:
            watch = PassWatch(problem, loop, recorder, checkpoints=checkpoints)
        constants = Unchanged(problem) if graph and checkpoints else None
        outcome = loop.run()
        values = None
        if outputs is not None:
            values = outputs.finish(problem.y0, outcome.y, outcome.arrived)
    if constants is not None:
        constants.solved()
        for result in (outcome.y, values):
            if result is not None and result.requires_grad:
                result.register_hook(lambda gradient, seen=constants: seen.check())
    if watch is not None:
        watch.look_at(outcome, outputs, values)
    return outcome, values


@final
class PassWatch:
    """Tells hooks of backward passes through a solve; measures the graph of its first attempt.

    A pass lasts from where it reaches the results of the solve to the end of autograd's run.
    """

    def __init__(self, problem: Problem, loop: Loop, recorder: Recorder, *, checkpoints: bool):
        """Watch the first attempt of the loop, which is about to run."""
        self._problem, self._recorder, self._checkpoints = problem, recorder, checkpoints
        self._evals = loop.stepper.evals_per_attempt
        self._of_attempt: int | None = None
        self._of_evaluation: int | None = None
        self._attempts = self._steps = self._gradients = self._calls = 0
        self._known: list[Tensor] = []
        self._task = -1  # of autograd, whose end is waited for
        stepper: Any = loop.stepper
        attempt: Callable[..., Any] = stepper.attempt

        def first(*arguments: Tensor) -> Any:
            del stepper.attempt  # from now on the class's own
            trial, self._of_attempt = graph_bytes(lambda: attempt(*arguments), self._tensors())
            return trial

        stepper.attempt = first

    def _tensors(self) -> list[Tensor]:
        """Return what is no part of a solve's memory: parameters."""
        seen = [*self._problem.params, *self._problem.field.captured()]
        return [tensor for tensor in seen if isinstance(tensor, Tensor)]

    def look_at(self, outcome: Outcome, outputs: Outputs | None, values: Tensor | None) -> None:
        """Look at the results of the solve, so that a pass through them is noticed."""
        problem = self._problem
        self._attempts = int(outcome.n_steps.max()) if outcome.n_steps.numel() else 0
        self._steps = int(outcome.n_accepted.max()) if outcome.n_accepted.numel() else 0
        self._calls = problem.field.calls
        given = [problem.y0, problem.times.start, problem.times.end]
        if outputs is not None and outputs.tau is not None:
            given.append(outputs.tau)
        self._known = find_parameters(problem, given)[0]
        self._gradients = 2 * sum(parameter.nbytes for parameter in self._known)
        for result in (outcome.y, values):
            if result is not None and result.requires_grad:
                result.register_hook(self._begin)

    def _begin(self, gradient: Tensor) -> None:
        """Note that a pass has come to the solve; look again when it is over."""
        task = torch._C._current_graph_task_id()  # pyright: ignore[reportPrivateUsage]
        if task == self._task or task < 0:
            return
        self._task = task
        field = self._problem.field
        if self._of_evaluation is None:
            calls = field.calls
            start, y0 = self._problem.times.start.detach(), leaf(self._problem.y0)
            with torch.enable_grad():
                _, self._of_evaluation = graph_bytes(lambda: field(start, y0), self._known)
            field.calls = calls
        watch, calls = Stopwatch(gradient.device), field.calls
        engine: Any = torch.autograd.Variable._execution_engine  # pyright: ignore[reportPrivateUsage]
        engine.queue_callback(lambda: self._tell(watch, calls))

    def _tell(self, watch: Stopwatch, calls: int) -> None:
        seconds, allocated = watch.stop()
        y0, start = self._problem.y0, self._problem.times.start
        single, again = self._of_evaluation, self._problem.field.calls - calls
        if self._checkpoints:
            kept = self._attempts * (2 * y0.nbytes + 3 * start.nbytes)
            graph = None if single is None else self._evals * single
            graphs_at_once = self._evals
        else:
            kept, graphs_at_once = 0, self._attempts * self._evals
            graph = None if self._of_attempt is None else self._attempts * self._of_attempt
        predicted = None if single is None else kept + graphs_at_once * single + self._gradients
        self._recorder.backward(
            BackwardInfo(
                solve=self._recorder.info,
                n_steps=self._steps,
                n_f_calls=again,
                n_vjps=again if self._checkpoints else self._calls,
                checkpoint_bytes=kept,
                graph_bytes=graph,
                gradient_bytes=self._gradients,
                predicted_bytes=predicted,
                allocated_bytes=allocated,
                seconds=seconds,
            )
        )
