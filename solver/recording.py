"""Gathers attempts and hands them to hooks, block by block; made only when there is a hook."""

import dataclasses
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from solver.controllers.base import Controller
from solver.errors import InvalidArgument
from solver.hooks import BackwardInfo, Hook, SolveEnd, SolveInfo, StepBlock
from solver.methods.base import Stepper
from solver.statistics.base import Attempts, Probe, Statistic
from solver.statistics.limiter import EVENT, limiter_codes

if TYPE_CHECKING:
    from solver.solution import Solution

MAX_SECONDS = 0.25  # a block is handed over after this long even if it is not full
PROBE_EVERY = 4  # attempts between looks at how stiff the field is
MAX_ELEMENTS = 4_000_000  # of weighted errors held in a block


class Told(NamedTuple):
    """What the stepper told of an attempt, for statistics that want it."""

    probe: tuple[Tensor, Tensor] | None  # (R, B, E) and the size of that step, (B,)
    counted: tuple[Tensor, ...] | None  # (B,) each, sums since the start
    unsolved: Tensor | None  # (B,) bool, implicit equations not solved
    choice: Tensor | None  # (B,) what the method chose by itself


class Attempt(NamedTuple):
    """One attempt as the loop saw it; tensors are never written to again."""

    t: Tensor
    dt: Tensor
    error_ratio: Tensor
    moved: Tensor
    running: Tensor
    reach: Tensor  # (B,) bool, the step was cut to reach a stop
    stop: Tensor  # (B,) where it was cut
    weighted_error: Tensor
    factor: Tensor
    history: Any
    y: Tensor  # (B, D) state after the attempt
    event: Tensor | None = None  # (B,) bool, the step was cut short by an event
    told: Told | None = None


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    return torch.stack(tuple(tensors)).detach()


def _stack_history(histories: Sequence[Any]) -> Any:
    """Return a controller's histories as one with `(n, B)` leaves."""
    first = histories[0]
    if isinstance(first, tuple) and all(isinstance(leaf, Tensor) for leaf in first):
        leaves = [_stack(leaf) for leaf in zip(*histories, strict=True)]
        # A named tuple of tensors is what most are, and is ten times faster than any pytree.
        return type(first)(*leaves) if hasattr(first, "_fields") else tuple(leaves)
    return tree_map(lambda *leaves: _stack(leaves), *histories)


def _unsolved(told: Sequence[Told | None], like: Tensor) -> Tensor | None:
    """Return whether equations were not solved in each attempt, `(n, B)`; None if never."""
    found = [None if each is None else each.unsolved for each in told]
    if all(each is None for each in found):
        return None
    never = torch.zeros_like(like, dtype=torch.bool)
    return torch.stack([never if each is None else each for each in found])


def _choices(told: Sequence[Told | None]) -> Tensor | None:
    """Return what the method chose in each attempt, `(n, B)`; None if it chooses nothing."""
    found = [each.choice for each in told if each is not None and each.choice is not None]
    return torch.stack(found) if found and len(found) == len(told) else None


def _probes(told: Sequence[Told | None]) -> Probe | None:
    """Return what tells of stiffness; None if it is not known."""
    found = [each.probe for each in told if each is not None and each.probe is not None]
    if len(found) < len(told):
        return None
    place: dict[int, int] = {}
    of = [place.setdefault(id(each), len(place)) for each in found]
    several = [found[of.index(i)] for i in range(len(place))]
    vectors, dt = (torch.stack(each) for each in zip(*several, strict=True))
    places = torch.tensor(of, device=dt.device)
    return Probe(vectors, dt, lambda rate: rate[places])


def _differences(told: Sequence[Told | None]) -> Tensor | None:
    """Return what was counted in each attempt, `(n, 4, B)`; the first of `told` is the one before.

    None if nothing is counted.
    """
    sums = [torch.stack(each.counted) for each in told if each and each.counted]
    if len(sums) < len(told) - 1:
        return None
    if len(sums) < len(told):
        sums.insert(0, torch.zeros_like(sums[0]))
    return torch.stack(sums).diff(dim=0)


class Columns(Mapping[str, Tensor]):
    """Statistics of a block, `(n, B)` each, measured when first asked for.

    What a hook does not look at costs nothing, and a hook that looks from its own thread takes the
    work there; the recorded tensors are never written to again, so that is safe.
    """

    def __init__(
        self,
        statistics: Sequence[Statistic],
        make: Callable[[], Attempts],
        broken: set[str],
        ready: Mapping[str, Tensor] | None = None,
    ):
        """Keep what is needed to measure; `make` gathers the attempts.

        Names of statistics that raise are put into `broken`, and those in it are not asked again.
        Columns in `ready` are measured; codes may be int8 there.
        """
        self._ready = {} if ready is None else ready
        self._statistics = {statistic.name: statistic for statistic in statistics}
        self._make, self._broken = make, broken
        self._attempts: Attempts | None = None
        self._done: dict[str, Tensor] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Tensor:
        """Return one column."""
        with self._lock, torch.no_grad():
            if name not in self._done:
                self._done[name] = self._measure(self._statistics[name])
            return self._done[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._statistics)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._statistics)

    def _measure(self, statistic: Statistic) -> Tensor:
        if (column := self._ready.get(statistic.name)) is not None:
            return column.long() if column.dtype == torch.int8 else column
        if self._attempts is None:
            self._attempts = self._make()
        like = self._attempts.error_ratio
        if statistic.name in self._broken:
            return torch.full_like(like, torch.nan)
        try:
            column = statistic.measure(self._attempts)
            if column.shape != like.shape:
                raise InvalidArgument(
                    f"returned shape {tuple(column.shape)}: must be {tuple(like.shape)}"
                )
        except Exception as error:  # a user's statistic must not end a solve
            self._broken.add(statistic.name)
            warnings.warn(
                f"statistic {statistic.name!r} raised {type(error).__name__}: {error}; "
                "it is NaN for the rest of this solve",
                RuntimeWarning,
                stacklevel=3,
            )
            return torch.full_like(like, torch.nan)
        return column


class Recorder:
    """Turns attempts into StepBlocks and keeps hooks from ever hurting a solve."""

    def __init__(
        self,
        hooks: Sequence[Hook],
        info: SolveInfo,
        controller: Controller[Any],
        direction: Tensor | None,
        end: Tensor,
        jumps: bool,
        dt_min: Tensor | float | None,
        dt_max: Tensor | float | None,
    ):
        """Size the blocks after what the hooks want."""
        self._hooks = list(hooks)
        self._info, self._controller, self._direction = info, controller, direction
        self._jumps = jumps
        self._end, self._dt_min, self._dt_max = end, dt_min, dt_max
        self._pending: list[Attempt] = []
        self._since, self._first = 0.0, 0
        self._ratio_before: Tensor | None = None
        self._told_before: Told | None = None
        self._probe: tuple[Tensor, Tensor] | None = None
        self._probed = 0
        needs = frozenset[str]().union(*(each.needs for each in info.statistics))
        self._probes, self._counts = "probe" in needs, "counted" in needs
        self._broken: set[str] = set()
        self._size = self._block_size()
        self._states = any(hook.wants_states for hook in self._hooks)
        self._order = info.error_order or info.method_order

    def begin(self) -> None:
        """Tell the hooks that the solve begins."""
        waiting, self._hooks = self._hooks, []
        for hook in waiting:  # who is told the beginning will be told the end, whatever comes
            self._hooks.append(hook)
            self._tell(lambda hook: hook.on_solve_start(self._info), hook)

    def compiling(self) -> None:
        """Tell the hooks that native code is about to be made."""
        self._tell(lambda hook: hook.on_compile(self._info))

    def _tell(self, call: Callable[[Hook], None], *only: Hook) -> None:
        for hook in only or tuple(self._hooks):
            try:
                call(hook)
            except Exception as error:  # a hook may raise anything, the solve goes on
                self._hooks = [other for other in self._hooks if other is not hook]
                warnings.warn(
                    f"{type(hook).__name__} raised {type(error).__name__}: {error}; "
                    "it is switched off for the rest of this solve, which goes on",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def _block_size(self) -> int:
        """Return how many attempts the next block may have; hooks may change their mind."""
        wanted = min((max(int(hook.block_size), 1) for hook in self._hooks), default=1)
        elements = max(self._info.batch * self._info.dim, 1)
        return max(1, min(wanted, MAX_ELEMENTS // elements))

    def add(self, attempt: Attempt) -> None:
        """Keep one attempt; hand a block over when it is full or old."""
        now = time.monotonic()
        if not self._pending:
            self._since = now
        self._pending.append(attempt)
        if len(self._pending) >= self._size or now - self._since >= MAX_SECONDS:
            self.flush()

    def told_by(self, stepper: Stepper, dt: Tensor) -> Told | None:
        """Return what statistics want to know of the attempt a stepper has just made."""
        counts, unsolved, choice = stepper.counts, stepper.unsolved, stepper.choice
        if not self._probes and counts is None and choice is None:
            return None
        if self._probes:
            if self._probed % PROBE_EVERY == 0:
                found = stepper.probe(dt)
                self._probe = None if found is None else (found, dt.detach())
            self._probed += 1
        probe = self._probe
        return Told(probe, None if counts is None else counts.kept(), unsolved, choice)

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
        self._size = self._block_size()

    def add_block(
        self,
        first: int,
        t: Tensor,
        dt: Tensor,
        ratio: Tensor,
        moved: Tensor,
        running: Tensor,
        ready: Mapping[str, Tensor],
        late: Callable[[], Mapping[str, Any]],
        y: Tensor | None,
    ) -> None:
        """Hand over attempts that come as a block, `(n, B)` each, `y (n, B, D)`.

        Args:
            ready: statistics that are measured, see `Columns`.
            late: makes what `Attempts` holds besides, for those that are not.
        """
        if not self._hooks:
            return
        own = {"t": t, "dt": dt, "error_ratio": ratio, "accepted": moved, "running": running}

        def make() -> Attempts:
            return Attempts(**own, **late(), controller=self._controller, error_order=self._order)

        columns = Columns(self._info.statistics, make, self._broken, ready)
        if self._direction is not None:
            t, dt = t * self._direction, dt * self._direction
        block = StepBlock(
            solve=self._info, first=first, t=t, dt=dt, error_ratio=ratio, accepted=moved,
            running=running, columns=columns, y=y if self._states else None,
        )  # fmt: skip
        self._tell(lambda hook: hook.on_steps(block))

    @property
    def wants_states(self) -> bool:
        """Whether some hook wants states."""
        return self._states

    def _block(self, pending: list[Attempt], first: int) -> StepBlock:
        raw = dict(zip(Attempt._fields, zip(*pending, strict=True), strict=True))
        t, dt, ratio, moved, running = (
            _stack(part)
            for part in (raw["t"], raw["dt"], raw["error_ratio"], raw["moved"], raw["running"])
        )
        y = _stack(raw["y"]) if self._states else None
        self._ratio_before, ratio_before = raw["error_ratio"][-1], self._ratio_before
        self._told_before, told_before = raw["told"][-1], self._told_before
        for name in ("t", "dt", "y", "error_ratio", "moved", "running"):
            del raw[name]  # a kept block must not keep autograd's graph
        columns: Mapping[str, Tensor] = {}
        if self._info.statistics:
            make = partial(
                self._attempts,
                raw,
                first,
                (ratio_before, told_before),
                t,
                dt,
                ratio,
                moved,
                running,
            )
            columns = Columns(self._info.statistics, make, self._broken)
            if ratio.device.type != "cpu":  # another thread may have another current stream
                columns = dict(columns)
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
            y=y,
        )

    def _attempts(
        self,
        raw: Mapping[str, tuple[Any, ...]],
        first: int,
        before: tuple[Tensor | None, Told | None],
        t: Tensor,
        dt: Tensor,
        ratio: Tensor,
        moved: Tensor,
        running: Tensor,
    ) -> Attempts:
        """Gather what statistics measure, `(n, B)` each."""
        last, told_before = before
        last = torch.ones_like(ratio[0]) if last is None else last
        told: list[Told | None] = [told_before, *raw["told"]]
        number = torch.arange(first, first + len(ratio), device=ratio.device)
        limiter = limiter_codes(
            failed_before=~torch.cat([last[None], ratio[:-1]]).isfinite(),
            unsolved_before=_unsolved(told[:-1], ratio[0]),
            first=(number == 0)[:, None],
            t=t,
            dt=dt,
            dt_min=self._dt_min,
            dt_max=self._dt_max,
            reach=_stack(raw["reach"]),
            jump=_stack(raw["stop"]) < self._end if self._jumps else None,
        )
        for i, cut in enumerate(raw["event"]):
            if cut is not None:
                limiter[i] = limiter[i].masked_fill(cut, EVENT)
        return Attempts(
            t=t,
            dt=dt,
            error_ratio=ratio,
            accepted=moved,
            running=running,
            weighted_error=_stack(raw["weighted_error"]),
            limiter=limiter,
            factor=_stack(raw["factor"]),
            history=_stack_history(raw["history"]),
            controller=self._controller,
            error_order=self._order,
            probe=_probes(told[1:]),
            choice=_choices(told[1:]),
            counted=_differences(told) if self._counts else None,
        )

    def end(self, solution: "Solution") -> None:
        """Hand over what is pending and tell the hooks how the solve ended."""
        self._finish(SolveEnd(self._info, solution, solution.stats.wall_seconds))

    def broken_off(self, error: BaseException, seconds: float) -> None:
        """Hand over what is pending and tell the hooks what broke the solve off."""
        self._finish(SolveEnd(self._info, None, seconds, f"{type(error).__name__}: {error}"))

    @property
    def info(self) -> SolveInfo:
        """What the hooks were told at the start."""
        return self._info

    def beside(
        self,
        controller: Controller[Any],
        direction: Tensor | None,
        end: Tensor,
        changes: Mapping[str, Any],
    ) -> "Recorder":
        """Tell the same hooks that another solve begins, which differs from this by `changes`."""
        info = dataclasses.replace(self._info, backward_of=self._info, **changes)
        other = Recorder(self._hooks, info, controller, direction, end, False, None, None)
        other.begin()
        return other

    @property
    def wants_backward(self) -> bool:
        """Whether any hook wants to know of backward passes."""
        return any(type(hook).on_backward is not Hook.on_backward for hook in self._hooks)

    @property
    def wants_memory(self) -> bool:
        """Whether a hook asks what the graphs of the next backward pass take."""
        return any(hook.wants_memory for hook in self._hooks)

    def backward(self, info: BackwardInfo) -> None:
        """Tell the hooks about a backward pass."""
        self._tell(lambda hook: hook.on_backward(info))

    def _finish(self, end: SolveEnd) -> None:
        self.flush()
        self._tell(lambda hook: hook.on_solve_end(end))
