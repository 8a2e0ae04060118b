"""Gathers attempts and hands them to hooks, block by block; made only when there is a hook."""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from solver.controllers.base import Controller
from solver.hooks import Hook, SolveEnd, SolveInfo, StepBlock
from solver.statistics.base import Attempts, Statistic
from solver.statistics.limiter import ACCURACY, DT_MAX, DT_MIN, FIRST, JUMP, NON_FINITE, SPAN

if TYPE_CHECKING:
    from solver.solution import Solution

MAX_SECONDS = 0.25  # a block is handed over after this long even if it is not full
MAX_ELEMENTS = 4_000_000  # of weighted errors held in a block


class Attempt(NamedTuple):
    """One attempt as the loop saw it; tensors are never written to again."""

    t: Tensor
    dt: Tensor
    error_ratio: Tensor
    moved: Tensor
    running: Tensor
    reach: Tensor  # (B,) bool, the step was cut to reach a stop
    stop: Tensor  # (B,) where it was cut
    weighted_error: Tensor | None
    factor: Tensor
    history: Any
    y: Tensor  # (B, D) state after the attempt


class Recorder:
    """Turns attempts into StepBlocks and keeps hooks from ever hurting a solve."""

    def __init__(
        self,
        hooks: Sequence[Hook],
        info: SolveInfo,
        controller: Controller[Any],
        direction: Tensor | None,
        end: Tensor,
        dt_min: Tensor | float | None,
        dt_max: Tensor | float | None,
    ):
        """Tell the hooks that a solve begins."""
        self._hooks = list(hooks)
        self._info, self._controller, self._direction = info, controller, direction
        self._end, self._dt_min, self._dt_max = end, dt_min, dt_max
        self._pending: list[Attempt] = []
        self._since, self._first = 0.0, 0
        self._non_finite_before: Tensor | None = None
        elements = max(info.batch * info.dim, 1)
        wanted = min((max(int(hook.block_size), 1) for hook in self._hooks), default=1)
        self._size = max(1, min(wanted, MAX_ELEMENTS // elements))
        self._states = any(hook.wants_states for hook in self._hooks)
        self._tell(lambda hook: hook.on_solve_start(info))

    def _tell(self, call: Callable[[Hook], None]) -> None:
        for hook in tuple(self._hooks):
            try:
                call(hook)
            except Exception as error:  # a hook may raise anything, the solve goes on
                self._hooks.remove(hook)
                warnings.warn(
                    f"{type(hook).__name__} raised {type(error).__name__}: {error}; "
                    "it is switched off for the rest of this solve, which goes on",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def add(self, attempt: Attempt) -> None:
        """Keep one attempt; hand a block over when it is full or old."""
        now = time.monotonic()
        if not self._pending:
            self._since = now
        self._pending.append(attempt)
        if len(self._pending) >= self._size or now - self._since >= MAX_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Hand over what is pending."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        first, self._first = self._first, self._first + len(pending)
        if not self._hooks:
            return
        with torch.no_grad():
            block = self._block(pending, first)
        self._tell(lambda hook: hook.on_steps(block))

    def _block(self, pending: list[Attempt], first: int) -> StepBlock:
        def stack(values: Sequence[Tensor]) -> Tensor:
            return torch.stack(list(values)).detach()

        (t, dt, ratio, moved, running, reach, stop, weighted, factor, history, y) = zip(
            *pending, strict=True
        )
        t, dt, ratio, moved, running = (stack(part) for part in (t, dt, ratio, moved, running))
        columns: dict[str, Tensor] = {}
        if self._info.statistics:
            attempts = Attempts(
                t=t,
                dt=dt,
                error_ratio=ratio,
                accepted=moved,
                running=running,
                weighted_error=stack(
                    [ratio.new_zeros((*ratio.shape[1:], 0)) if w is None else w for w in weighted]
                ),
                limiter=self._limiter(first, dt, ratio, stack(reach), stack(stop)),
                factor=stack(factor),
                history=tree_map(lambda *leaves: stack(leaves), *history),
                controller=self._controller,
                error_order=self._info.error_order or self._info.method_order,
            )
            columns = {each.name: self._measure(each, attempts) for each in self._info.statistics}
        if self._direction is not None:
            t, dt = t * self._direction, dt * self._direction
        return StepBlock(
            solve=self._info,
            first=first,
            t=t,
            dt=dt,
            error_ratio=ratio,
            accepted=moved,
            running=running,
            columns=columns,
            y=stack(y) if self._states else None,
        )

    def _measure(self, statistic: Statistic, attempts: Attempts) -> Tensor:
        try:
            return statistic.measure(attempts)
        except Exception as error:  # a user's statistic must not end a solve
            warnings.warn(
                f"statistic {statistic.name!r} raised {type(error).__name__}: {error}; it is NaN "
                "here",
                RuntimeWarning,
                stacklevel=2,
            )
            return torch.full_like(attempts.error_ratio, torch.nan)

    def _limiter(
        self, first: int, dt: Tensor, ratio: Tensor, reach: Tensor, stop: Tensor
    ) -> Tensor:
        """Return codes `(n, B)` of what set the size of each step."""
        bad = ~ratio.isfinite()
        before = self._non_finite_before
        before = torch.zeros_like(bad[0]) if before is None else before
        self._non_finite_before = bad[-1]
        code = torch.full_like(ratio, ACCURACY, dtype=torch.int64)
        code = torch.where(torch.cat([before[None], bad[:-1]]), NON_FINITE, code)
        if first == 0:
            code[0] = FIRST
        if self._dt_min is not None:
            code = torch.where(dt <= self._dt_min, DT_MIN, code)
        if self._dt_max is not None:
            code = torch.where(dt >= self._dt_max, DT_MAX, code)
        return torch.where(reach, torch.where(stop < self._end, JUMP, SPAN), code)

    def end(self, solution: "Solution") -> None:
        """Hand over what is pending and tell the hooks how the solve ended."""
        self._finish(SolveEnd(self._info, solution, solution.stats.wall_seconds))

    def broken_off(self, error: BaseException, seconds: float) -> None:
        """Hand over what is pending and tell the hooks what broke the solve off."""
        self._finish(SolveEnd(self._info, None, seconds, f"{type(error).__name__}: {error}"))

    def _finish(self, end: SolveEnd) -> None:
        self.flush()
        self._tell(lambda hook: hook.on_solve_end(end))
