"""From attempts seen one by one to the records that hooks take."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from solver.catalogue import statistic_by_name
from solver.hooks import Hook, SolveEnd, SolveInfo, StepBlock
from solver.recording import MAX_SECONDS
from solver.solution import Solution, Stats
from solver.statistics.base import Statistic
from solver.status import Status


class Seen(NamedTuple):
    """One attempt of all rows; tensors are detached and nobody writes to them again."""

    t: Tensor  # (B,) each
    dt: Tensor
    error_ratio: Tensor
    accepted: Tensor
    running: Tensor
    columns: Mapping[str, Tensor] = {}


@final
class Feed:
    """One solve of another package, handed to a hook.

    What the hook raises is reported by one warning, and it is told no more of this solve.

    Args:
        hook: who is told.
        info: of the solve.
    """

    def __init__(self, hook: Hook, info: SolveInfo) -> None:
        self._hook, self.info = hook, info
        self._waiting: list[Seen] = []
        self._first = 0
        self._since = self.began = time.perf_counter()
        self._broken = False
        batch, device = info.batch, info.t0.device
        self.n_steps = torch.zeros(batch, dtype=torch.long, device=device)
        self.n_accepted = torch.zeros_like(self.n_steps)
        self.t_reached, self.last_dt = info.t0.clone(), torch.zeros_like(info.t0)
        self._tell(lambda: hook.on_solve_start(info))

    def add(self, seen: Seen) -> None:
        """Take an attempt."""
        moved = seen.accepted & seen.running
        self.n_steps = self.n_steps + seen.running
        self.n_accepted = self.n_accepted + moved
        self.t_reached = torch.where(moved, seen.t + seen.dt, self.t_reached)
        self.last_dt = torch.where(seen.running, seen.dt, self.last_dt)
        now = time.perf_counter()
        if not self._waiting:
            self._since = now
        self._waiting.append(seen._replace(accepted=moved))
        if len(self._waiting) >= self._hook.block_size or now - self._since > MAX_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Hand over what waits."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        names = [*dict.fromkeys(name for seen in waiting for name in seen.columns)]
        nothing = torch.full_like(waiting[0].dt, torch.nan)
        block = StepBlock(
            solve=self.info,
            first=self._first,
            t=torch.stack([seen.t for seen in waiting]),
            dt=torch.stack([seen.dt for seen in waiting]),
            error_ratio=torch.stack([seen.error_ratio for seen in waiting]),
            accepted=torch.stack([seen.accepted for seen in waiting]),
            running=torch.stack([seen.running for seen in waiting]),
            columns={
                name: torch.stack([seen.columns.get(name, nothing) for seen in waiting])
                for name in names
            },
        )
        self._first += len(waiting)
        self._tell(lambda: self._hook.on_steps(block))

    def end(self, status: Tensor, n_f_evals: Tensor, n_f_calls: int, ys: Tensor) -> Stats:
        """Say how the solve ended.

        Args:
            status: `(B,)` as in `Status`.
            n_f_evals: `(B,)` that each row needed.
            n_f_calls: of the vector field, each for all rows.
            ys: `(B, T, D)`.
        """
        self.flush()
        seconds = time.perf_counter() - self.began
        info, nothing = self.info, torch.zeros_like(self.n_steps)
        stats = Stats(
            n_steps=self.n_steps,
            n_accepted=self.n_accepted,
            n_rejected=self.n_steps - self.n_accepted,
            n_f_evals=n_f_evals,
            n_jac_evals=nothing,
            n_newton_iterations=nothing,
            n_factorizations=nothing,
            n_f_calls=n_f_calls,
            n_rows_evaluated=n_f_calls * info.batch,
            wall_seconds=seconds,
        )
        solution = Solution(
            ts=info.t1[:, None],
            ys=ys.detach(),
            status=status,
            t_reached=self.t_reached,
            y_reached=ys[:, -1].detach(),
            component=torch.full_like(nothing, -1),
            last_dt=self.last_dt,
            stats=stats,
        )
        end = SolveEnd(info, solution, seconds)
        self._tell(lambda: self._hook.on_solve_end(end))
        return stats

    def broken_off(self, error: BaseException) -> None:
        """Say what broke the solve off."""
        self.flush()
        seconds = time.perf_counter() - self.began
        end = SolveEnd(self.info, None, seconds, f"{type(error).__name__}: {error}")
        self._tell(lambda: self._hook.on_solve_end(end))

    def _tell(self, say: Callable[[], None]) -> None:
        if self._broken:
            return
        try:
            say()
        except Exception as error:  # watching must not end a training
            self._broken = True
            text = f"the solve is no longer watched: {type(error).__name__}: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)


def wanted(hook: Hook, names: Sequence[str]) -> tuple[Statistic, ...]:
    """Return those of the statistics that a hook wants and another package lets us measure."""
    asked = {each if isinstance(each, str) else each.name for each in hook.statistics}
    return tuple(statistic_by_name(name) for name in names if name in asked)


def solve_info(**known: Any) -> SolveInfo:
    """Return a `SolveInfo` of another package's solve; what is not known has a plain default."""
    plain = {"error_order": None, "controller_settings": {}, "adjoint": "backprop"}
    plain |= {"stepping": "independent", "max_steps": 0}
    return SolveInfo(**(plain | known))


INTERRUPTED = int(Status.INTERRUPTED)
SUCCESS = int(Status.SUCCESS)
