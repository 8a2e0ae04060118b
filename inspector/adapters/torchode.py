"""Watches torchode: every attempt of every row, through its step-size controller."""

import time
from collections.abc import Callable
from importlib import metadata
from typing import Any, final

import torch
from torch import Tensor

from inspector.adapters.feed import INTERRUPTED, SUCCESS, Feed, Seen, solve_info, wanted
from inspector.adapters.swap import swap
from solver.hooks import BackwardInfo, Hook, SolveInfo
from solver.status import Status

STATISTICS = ("limiting_component", "factor")  # what can be measured from outside
# torchode's status codes, in ours; 1 is a "general error"
_STATUS = {
    0: SUCCESS,
    1: INTERRUPTED,
    2: int(Status.REACHED_DT_MIN),
    3: int(Status.REACHED_MAX_STEPS),
    4: int(Status.NON_FINITE),
}
_GAINS = ("pcoeff", "icoeff", "dcoeff", "safety", "factor_min", "factor_max", "dt_min", "dt_max")


def attach(hook: Hook, solver: Any) -> Callable[[], None]:
    """Record every solve of a torchode solver, forward and backward.

    Args:
        hook: who is told, such as an `Inspector`.
        solver: `AutoDiffAdjoint`, `BacksolveAdjoint` or `JointBacksolveAdjoint`, not compiled.

    Returns:
        A function that detaches again. A solver that is attached to the same hook already stays so.

    Raises:
        TypeError: it is none of these.
    """
    loops = _loops(solver)
    if loops is None:
        raise TypeError(
            f"attach_torchode got a {type(solver).__name__}: must be torchode's AutoDiffAdjoint, "
            "BacksolveAdjoint or JointBacksolveAdjoint, not compiled"
        )
    held = [getattr(type(loop), "_watched_by", None) for loop, _ in loops]
    if any(one is hook for one in held):
        return lambda: None
    spy = _Spy(hook, solver)
    undo: list[Callable[[], None]] = []
    seen: set[int] = set()
    for loop, backward in loops:
        undo.append(swap(loop, {"solve": spy.solving(loop, backward)}))
        type(loop)._watched_by = hook
        controller = loop.step_size_controller
        if id(controller) not in seen:  # forward and backward share one
            seen.add(id(controller))
            methods = {
                "init": spy.on_init,
                "adapt_step_size": spy.on_adapt(controller),
                "merge_states": spy.on_merge,
            }
            undo.append(swap(controller, methods))
    if len(loops) == 2:
        undo.append(swap(solver, {"solve": spy.outer}))
        undo.append(swap(solver.augmented_term, {"vf": spy.on_augmented}))

    def detach() -> None:
        for one in undo:
            one()

    return detach


def _loops(solver: Any) -> list[tuple[Any, bool]] | None:
    """Return the loops of a solver and whether each one runs backward."""
    if isinstance(solver, torch.jit.ScriptModule):
        return None
    for forward, backward in (
        ("forward_adjoint", "backward_adjoint"),
        ("forward_loop", "backward_loop"),
    ):
        if hasattr(solver, forward) and hasattr(solver, backward):
            return [(getattr(solver, forward), False), (getattr(solver, backward), True)]
    alone = hasattr(solver, "step_method") and hasattr(solver, "step_size_controller")
    return [(solver, False)] if alone and hasattr(solver, "solve") else None


@final
class _Spy:
    """What is known of the solves of one solver."""

    def __init__(self, hook: Hook, solver: Any) -> None:
        self._hook = hook
        self._mode = {"BacksolveAdjoint": "continuous", "JointBacksolveAdjoint": "joint"}.get(
            type(solver).__name__, "backprop"
        )
        self._feed: Feed | None = None  # of the solve under way
        self._running: Tensor | None = None
        self._calls: Tensor | None = None  # (B,) evaluations when each row ran last
        self._gradient = False  # whether a backward pass may follow
        self._pending: list[tuple[SolveInfo, int]] = []  # solves that wait for it, and its parts
        self._parts: list[tuple[int, int]] = []  # accepted steps, calls of a backward pass
        self._began = 0.0
        self._augmented = 0  # calls of the backward field in the solve under way
        try:
            self._engine = f"torchode {metadata.version('torchode')}"
        except metadata.PackageNotFoundError:
            self._engine = "torchode"

    def outer(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Around `solve` of a backsolve adjoint: whether gradients are wanted."""
        self._gradient = torch.is_grad_enabled()
        return original(*args, **kwargs)

    def solving(self, loop: Any, backward: bool) -> Callable[..., Any]:
        """Return what goes around `solve` of a loop."""

        def solve(original: Callable[..., Any], problem: Any, *args: Any, **kwargs: Any) -> Any:
            before = self._feed, self._running, self._calls
            if backward and not self._parts:
                self._began = time.perf_counter()
            feed = self._feed = Feed(self._hook, self._info(loop, problem, backward))
            self._running = self._calls = None
            self._augmented = 0
            try:
                solution = original(problem, *args, **kwargs)
            except BaseException as error:
                feed.broken_off(error)
                raise
            else:
                self._ended(feed, solution, problem, backward)
            finally:
                self._feed, self._running, self._calls = before
            return solution

        return solve

    def _info(self, loop: Any, problem: Any, backward: bool) -> SolveInfo:
        controller, method = loop.step_size_controller, loop.step_method
        y0 = problem.y0.detach()
        order = int(method.convergence_order())
        known = {name: getattr(controller, name, None) for name in _GAINS}
        tolerances = [getattr(controller, name, torch.tensor(0.0)) for name in ("rtol", "atol")]
        forward = self._pending[-1][0] if backward and self._pending else None
        return solve_info(
            batch=len(y0),
            dim=y0.shape[1],
            dtype=str(y0.dtype).removeprefix("torch."),
            time_dtype=str(problem.t_start.dtype).removeprefix("torch."),
            device=str(y0.device),
            method=type(method).__name__.lower(),
            method_order=order,
            controller=type(controller).__name__,
            controller_settings={k: v for k, v in known.items() if isinstance(v, int | float)},
            adjoint=f"{self._mode} (backward)" if backward else self._mode,
            engine=self._engine,
            stepping="joint" if self._mode == "joint" else "independent",
            t0=problem.t_start.detach(),
            t1=problem.t_end.detach(),
            rtol=torch.as_tensor(tolerances[0]).detach(),
            atol=torch.as_tensor(tolerances[1]).detach(),
            max_steps=loop.max_steps or 0,
            y0=y0,
            statistics=wanted(self._hook, STATISTICS),
            backward_of=forward,
        )

    def on_augmented(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Around the backward field, which torchode itself does not always count."""
        self._augmented += 1
        return original(*args, **kwargs)

    def on_init(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Around `init` of a controller."""
        return original(*args, **kwargs)

    def on_adapt(self, controller: Any) -> Callable[..., Any]:
        """Return what goes around `adapt_step_size`: here every attempt is seen."""

        def adapt(
            original: Callable[..., Any],
            t0: Tensor,
            dt: Tensor,
            y0: Tensor,
            step_result: Any,
            state: Any,
            stats: Any,
        ) -> Any:
            found = original(t0, dt, y0, step_result, state, stats)
            if self._feed is not None:
                with torch.no_grad():
                    self._see(controller, t0, dt, y0, step_result, found, stats)
            return found

        return adapt

    def on_merge(self, original: Callable[..., Any], running: Tensor, *args: Any) -> Any:
        """Around `merge_states`, which is told who runs on."""
        if self._feed is not None:
            self._running = running.detach()
        return original(running, *args)

    def _see(
        self,
        controller: Any,
        t0: Tensor,
        dt: Tensor,
        y0: Tensor,
        result: Any,
        found: Any,
        stats: Any,
    ) -> None:
        feed = self._feed
        assert feed is not None
        accept, dt_next = found[0].detach(), found[1].detach()
        if self._running is None:
            self._running = torch.ones_like(accept)
        columns: dict[str, Tensor] = {}
        error = result.error_estimate
        ratio = torch.zeros_like(dt)
        if error is not None:
            bounds = controller.atol + controller.rtol * torch.maximum(y0.abs(), result.y.abs())
            weighted = error.abs() / bounds
            ratio = controller.norm(weighted).detach().to(dt.dtype)
            columns["limiting_component"] = weighted.argmax(dim=1)
            columns["factor"] = dt_next / dt.detach()
        feed.add(Seen(t0.detach(), dt.detach(), ratio, accept, self._running, columns))
        now = torch.full_like(feed.n_steps, self._evaluations(stats))
        before = torch.zeros_like(now) if self._calls is None else self._calls
        self._calls = torch.where(self._running, now, before)

    def _evaluations(self, stats: Any) -> int:
        """Return how often the field of the solve under way was evaluated so far."""
        told = stats.get("n_f_evals")
        counted = int(told.max()) if isinstance(told, Tensor) and len(told) else 0
        return max(counted, self._augmented)

    def _ended(self, feed: Feed, solution: Any, problem: Any, backward: bool) -> None:
        status = solution.status.detach()
        known = torch.tensor([_STATUS[code] for code in range(5)], device=status.device)
        status = known[status.clamp(0, 4)]
        if self._running is not None:  # a failed row ends all of them: who was still on the way?
            status = torch.where(self._running & (status == SUCCESS), INTERRUPTED, status)
            done = ~self._running & (status == int(Status.REACHED_MAX_STEPS))
            status = torch.where(done, SUCCESS, status)
        calls = self._evaluations(solution.stats)
        evals = torch.zeros_like(feed.n_steps) if self._calls is None else self._calls
        stats = feed.end(status, evals, calls, solution.ys)
        if backward:
            self._parts.append((int(stats.n_accepted.max()), calls))
            self._backward_done(problem)
        elif self._gradient:
            parts = 1 if problem.t_eval is None else problem.t_eval.shape[1] - 1
            self._pending = [*self._pending[-99:], (feed.info, parts)]

    def _backward_done(self, problem: Any) -> None:
        """Tell of a backward pass when its last part is done."""
        if not self._pending or len(self._parts) < self._pending[-1][1]:
            return
        info, _ = self._pending.pop()
        parts, self._parts = self._parts, []
        calls = sum(each for _, each in parts)
        states = info.y0.nbytes * (len(parts) + 1)
        self._hook.on_backward(
            BackwardInfo(
                solve=info,
                n_steps=sum(steps for steps, _ in parts),
                n_f_calls=calls,
                n_vjps=calls,
                checkpoint_bytes=states,
                graph_bytes=None,
                gradient_bytes=problem.y0.nbytes - 2 * info.y0.nbytes,
                predicted_bytes=None,
                allocated_bytes=None,
                seconds=time.perf_counter() - self._began,
            )
        )
