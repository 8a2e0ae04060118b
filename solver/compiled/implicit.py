"""Steppers with Jacobians as a kernel has them: what they carry is loaded, and stored again."""

from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from solver.compiled.elimination import Eliminated, WrittenOut, derivative_by, jacobian_of
from solver.compiled.expression import Node
from solver.compiled.literal import numbers_of, weighted_sum
from solver.compiled.symbolic import SymbolicTensor, Trace
from solver.implicit.dirk import DirkStepper
from solver.implicit.newton import Iterated, Newton
from solver.implicit.rosenbrock import RosenbrockStepper
from solver.implicit.stepper import ImplicitStepper
from solver.loop import Problem
from solver.norms import Tolerance

T = TypeVar("T")
Load = Callable[[str, torch.dtype], Tensor]
_NOTHING = cast(Any, None)  # factored yet
COUNTS = ("f_evals", "jac_evals", "newton_iterations", "factorizations")


class TracedStepper(ImplicitStepper):
    """What traced steppers share.

    Numbers that go from one attempt to the next are named: `carried` says which, `load` takes them
    up before an attempt, `saved` returns them after it.
    """

    carries_slope = False  # whether the slope at the end goes into the next attempt
    slopes_known: int  # after an attempt
    _calls: int  # evaluations of the field that a Jacobian is
    _trace: Trace

    @classmethod
    def of(cls, stepper: ImplicitStepper, problem: Problem) -> Self:
        """Return one with the coefficients and the field of `stepper`; one Jacobian is taken."""
        traced = cls.__new__(cls)
        vars(traced).update(vars(stepper))
        traced._calls = _calls(problem, time=isinstance(stepper, RosenbrockStepper))
        return traced

    def enter(self, trace: Trace, tolerance: Tolerance, t: Tensor, y: Tensor) -> None:
        """Get ready, in a trace, for rows at `t (B,)`, `y (B, D)`; `tolerance` is traced too."""
        self._trace, self._tolerance = trace, tolerance

    def initial(self, going: Tensor) -> dict[str, Tensor]:
        """Return what the first attempt starts from, `(B,)` each; `going` are rows that run."""
        zero = torch.zeros_like(going, dtype=self._real)
        return {f"n_{name}": zero for name in COUNTS} | {"current": going & ~going}

    def load(self, load: Load) -> None:
        """Take up what the attempt before left."""
        self._current = load("current", torch.bool)
        self.told = {name: load(f"n_{name}", self._real) for name in COUNTS}
        for name, count in self.told.items():
            setattr(self._counts, name, count)

    def saved(self, moved: Tensor) -> dict[str, Tensor]:
        """Return what the next attempt needs, where the rows `moved (B,)` have moved."""
        self._moved(moved)
        counts = {f"n_{name}": getattr(self._counts, name) for name in COUNTS}
        return counts | {"current": self._current}

    def counted(self) -> Tensor:
        """Return what the attempt just made has counted, `(4, B)` int64."""
        now = [getattr(self._counts, name) - self.told[name] for name in COUNTS]
        return torch.stack(now).long()

    def _literally(self, slopes: Sequence[Tensor], interpolant: Tensor) -> Tensor:
        dtype = torch.promote_types(interpolant.dtype, slopes[0].dtype)
        wide = [each.to(dtype) for each in slopes]
        columns = zip(*numbers_of(interpolant), strict=True)
        return torch.stack([weighted_sum(wide, weights) for weights in columns])


class TracedRosenbrock(TracedStepper, RosenbrockStepper):
    """A Rosenbrock stepper that takes the Jacobian of the expressions in every attempt."""

    keeps_end_slope = True  # nothing is evaluated but what is counted

    @property
    def slopes_known(self) -> int:  # type: ignore[override]
        """Number of slopes after an attempt."""
        return len(self._m) + 1

    def _linearise(self, t: Tensor, y: Tensor, active: Tensor) -> None:
        """Take slope, Jacobian and derivative by time, which count where they are new."""
        self._start = slope = self._field(t, y)
        self._j, self._by_time = jacobian_of(slope, y), derivative_by(slope, t)
        wanted = active & ~self._current
        self._counts.add(wanted * self._calls, wanted.long())
        self._current = self._current | wanted

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the dense output of the attempt just made, `(degree, B, D)`."""
        return self._literally(self._u, self._interpolant)


class TracedDirk(TracedStepper, DirkStepper):
    """A diagonally implicit stepper that iterates as often as it may, in rows that still do."""

    @property
    def slopes_known(self) -> int:  # type: ignore[override]
        """Number of slopes after an attempt."""
        return self._count + 1 + self._fsal

    @property
    def carries_slope(self) -> bool:
        """Whether the slope at the end goes into the next attempt."""
        return self._fsal

    def enter(self, trace: Trace, tolerance: Tolerance, t: Tensor, y: Tensor) -> None:
        """Find out where the Jacobian has entries."""
        super().enter(trace, tolerance, t, y)
        self._slope_like = self._field(t, y)
        self._places = jacobian_of(self._slope_like, y).places
        nobody = torch.zeros((0, self._like.shape[1]), dtype=self._real)  # rows are loaded
        self._solver = TracedNewton(nobody, tolerance.rtol, tight=False)
        self._solver.trace = trace

    def initial(self, going: Tensor) -> dict[str, Tensor]:
        """Let the first attempt take a Jacobian."""
        zero = torch.zeros_like(going, dtype=self._real)
        numbers = {"h_of_j": zero, "age_of_j": zero, "rate": zero + 1}
        numbers |= {"measured_at": zero, "ago": zero} | dict.fromkeys(
            map(_name, self._places), zero
        )
        never = going & ~going
        return super().initial(going) | numbers | {"slow": ~never, "unsolved_before": never}

    def load(self, load: Load) -> None:
        """Take up the Jacobian, and what is known of convergence."""
        super().load(load)
        real = self._real
        self._h_of_j, self._age_of_j = load("h_of_j", real), load("age_of_j", real)
        self._slow = load("slow", torch.bool)
        solver = self._solver
        solver.rate, solver.measured_at = load("rate", real), load("measured_at", real)
        solver.ago = load("ago", real)
        entries = {place: load(_name(place), real) for place in self._places}
        self._j, self._factored = WrittenOut.of(entries, self._slope_like), _NOTHING

    def saved(self, moved: Tensor) -> dict[str, Tensor]:
        """Return what the next attempt needs."""
        solver, unsolved = self._solver, self.unsolved
        assert unsolved is not None
        numbers = {"h_of_j": self._h_of_j, "age_of_j": self._age_of_j, "slow": self._slow}
        numbers |= {"rate": solver.rate, "measured_at": solver.measured_at, "ago": solver.ago}
        entries = cast(WrittenOut, self._j).entries()
        numbers |= {_name(place): entries[place] for place in self._places}
        numbers |= {"unsolved": unsolved, "unsolved_before": unsolved}
        return super().saved(moved) | numbers

    def _take_jacobian(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        self._counts.add(rows * self._calls, rows.long())
        new = jacobian_of(self._field(t, y), y).usable()
        self._j = new.merged(rows, self._j_known())

    def _if_any(self, rows: Tensor, act: Callable[[], T], otherwise: T) -> T:
        """Write what `act` does for `rows (B,)` into a region of its own."""
        solver, counts = self._solver, self._counts
        places = [
            *((self, name) for name in ("_current", "_slow")),
            *((solver, name) for name in ("rate", "measured_at", "ago")),
            *((counts, name) for name in COUNTS),
        ]
        before = [getattr(*place) for place in places]
        j, factored = cast(WrittenOut, self._j), self._factored
        result = act()
        after = [getattr(*place) for place in places]
        trace, region = self._trace, self._trace.new_region()
        leaves, tree = tree_flatten(() if result is None else result)
        olds = tree_flatten(otherwise)[0] if leaves else []
        changed = [new is not old for new, old in zip(after, before, strict=True)]
        picked = trace.guarded(
            rows,
            [*leaves, *(x for x, c in zip(after, changed, strict=True) if c)],
            [*olds, *(x for x, c in zip(before, changed, strict=True) if c)],
            region,
        )
        rest = iter(picked[len(leaves) :])
        for (owner, name), c in zip(places, changed, strict=True):
            if c:
                setattr(owner, name, next(rest))
        (mask,) = cast(SymbolicTensor, rows).cells

        def join(new: Node | None, old: Node | None) -> Node | None:
            if new is None or old is None:
                assert new is old  # where entries are does not change
                return None
            return trace.graph.guard(mask, new, old, region)

        if self._j is not j:
            self._j = cast(Any, self._j).joined(j, join)
        if self._factored is not factored and factored is not _NOTHING:
            self._factored = cast(Eliminated, self._factored).joined(
                cast(Eliminated, factored), join
            )
        return cast(T, tree_unflatten(picked[: len(leaves)], tree)) if leaves else result

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the dense output of the attempt just made, `(degree, B, D)`."""
        slopes = [*self._hk]
        if not self._fsal:
            self._end = self._slope(t_next, y1)
            slopes.append(dt.to(self._real)[:, None] * self._end)
        return self._literally(slopes, self._interpolant)


class TracedNewton(Newton):
    """Newton's iteration with each further correction in a region of rows that still go on."""

    trace: Trace

    def _repeat(self, iterate: Callable[[int, Iterated], Iterated], now: Iterated) -> Iterated:
        for number in range(self._limit):
            then = iterate(number, now)
            now = Iterated(*self.trace.guarded(now.going, list(then), list(now)))
        return now


def _name(place: tuple[int, int]) -> str:
    return f"j{place[0]}_{place[1]}"


def _calls(problem: Problem, *, time: bool) -> int:
    """Return how many evaluations of the field one Jacobian is, as the plain loop counts them."""
    field, times = problem.field, problem.times
    stepper = cast(
        ImplicitStepper,
        problem.method.stepper(
            field, problem.y0, times.start.dtype, graph=False, tolerance=problem.tolerance,
            exact=False,
        ),
    )  # fmt: skip
    before = field.calls
    stepper.evaluate_jacobian(times.start, problem.y0, time=time)
    after, field.calls = field.calls, before
    return after - before
