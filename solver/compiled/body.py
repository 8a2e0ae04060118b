"""What one row does in an attempt, traced from the functions of the plain loop itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from solver.compiled.expression import Graph, Node, reachable
from solver.compiled.forms import form_of
from solver.compiled.symbolic import SymbolicTensor, Trace, Untraceable
from solver.initial_step import initial_step
from solver.loop import Problem
from solver.norms import Tolerance
from solver.problem import Field
from solver.recording import PROBE_EVERY
from solver.statistics.base import Attempts, Probe, Statistic
from solver.statistics.limiter import limiter_codes
from solver.status import Status
from solver.step import (
    aim,
    bounded,
    failures,
    judge,
    limiting_component,
    resized,
    resolvable,
    smallest_and_stretch,
)

HISTORY = "history_"  # and its number: one tensor of a controller's history
RECORDED = "[recorded]"  # marks what is in the record when a statistic is measured


@dataclass
class Body:
    """The traced parts of a solve; each maps names of lane arrays to the expressions stored there.

    Lane arrays are `name[l]`; bools are kept as 0 and 1 of the time's type, and read as
    `(name[l] != 0)`.
    """

    trace: Trace
    begin: dict[str, Node]
    attempt: dict[str, Node]
    failure: dict[str, Node]  # of rows that failed: status and component
    polynomial: dict[str, Node]  # `P{j}_{d}`, of rows whose outputs or polynomials are wanted
    columns: dict[str, Node]  # further columns of the record, by statistic
    late: frozenset[str]  # statistics that are measured from the record, by who looks at them
    carried: dict[str, torch.dtype]  # what else goes from one attempt to the next
    history: list[torch.dtype]
    history_tree: Any
    pool: list[float]
    degree: int = 0


class _TracedField(Field):
    """The field as it is evaluated, without watching over what the user's function does."""

    def __init__(self, other: Field, pool: list[float]):
        self.__dict__.update(other.__dict__)
        self._pool = pool
        self._numbers: list[tuple[int, float]] = []  # its numbers, in order: place in the pool

    def __call__(self, tau: Tensor, y: Tensor) -> Tensor:
        """Evaluate for the row; numbers written in the field go to the pool."""
        assert isinstance(tau, SymbolicTensor)
        graph = tau.owner.graph
        t = tau if self.direction is None else tau * self.direction
        if self._narrow_time is not None:
            t = t.to(self._narrow_time)
        graph.pool, graph.reused = self._pool, self._numbers
        graph.place = 0
        try:
            slope = self.call(t.clone(), y.clone())
        finally:
            graph.pool, graph.reused = None, None
        slope = self.layout.flatten_slope(slope)
        if not isinstance(slope, SymbolicTensor):  # a constant field
            slope = slope + torch.zeros_like(y)
        return slope.clone() if self.column is None else slope * self.column


class Tracer:
    """Traces one problem.

    Args:
        problem: what is solved; its tensors stand for those of later solves of the same form.
        statistics: columns to record.
        settings: tolerances, bounds and the like, as tensors.
        polynomial: whether polynomials are read or kept.
    """

    def __init__(
        self,
        problem: Problem,
        statistics: Sequence[Statistic],
        settings: dict[str, Tensor | None],
        *,
        polynomial: bool,
    ):
        """Prepare what is common to the traces."""
        self.problem, self.statistics, self.tensors = problem, statistics, settings
        self.wants_polynomial = polynomial
        self.polynomial_dtype = problem.field.layout.dtype
        layout = problem.field.layout
        self.batch, self.dim = layout.batch, layout.dim
        self.state, self.time = layout.dtype, problem.times.start.dtype
        if self.state not in (torch.float32, torch.float64):
            raise Untraceable(f"the state is {self.state}")
        self.pool: list[float] = []
        self.trace = Trace(Graph(), self.batch)
        self.field = _TracedField(problem.field, self.pool)
        like = torch.zeros((self.batch, self.dim), dtype=self.state)
        self.form = form_of(problem, self.field, like)
        self.stepper = self.form.stepper
        self.rates: dict[str, Tensor] = {}  # what statistics hold between looks at the slopes
        self.holding = ""  # the statistic that is being traced
        self.trace.literal = {id(tensor) for tensor in self.form.literal}
        order = problem.method.error_order
        self.error_order = problem.method.order if order is None else order

    def run(self) -> Body:
        """Trace all parts.

        Raises:
            Untraceable: some part cannot be written for single rows.
        """
        rtol, atol = self.tensors["rtol"], self.tensors["atol"]
        assert rtol is not None
        assert atol is not None
        tolerance = Tolerance(rtol, atol)
        tolerance.may_vanish = self.problem.tolerance.may_vanish
        self.tolerance = tolerance
        traced = self.form.traced
        with torch.no_grad(), self.trace:
            if traced is not None:
                traced.enter(self.trace, tolerance, self._row("t", self.time), self._state("y"))
            begin = self._begin()
            attempt = self._attempt()
            failure = self._failure()
            polynomial = self._polynomial() if self.wants_polynomial else {}
        return Body(
            trace=self.trace,
            begin=begin,
            attempt=attempt,
            failure=failure,
            polynomial=polynomial,
            columns=self.columns,
            late=frozenset(self.late),
            carried=self.carried,
            history=self.history_dtypes,
            history_tree=self.history_tree,
            pool=self.pool,
            degree=len(polynomial) // max(self.dim, 1),
        )

    # ---- loads

    def _row(self, name: str, dtype: torch.dtype) -> Any:
        text = f"({name}[l] != 0)" if dtype == torch.bool else f"{name}[l]"
        return self.trace.row(text, dtype)

    def _state(self, name: str) -> Any:
        return self.trace.row([f"{name}{d}[l]" for d in range(self.dim)], self.state, axis=0)

    def _cell(self, tensor: Tensor) -> Node:
        cells = self.trace.cells_of(tensor, 1, 0, tensor.dtype)
        return cells.reshape(-1)[0]

    def _store(self, out: dict[str, Node], name: str, tensor: Tensor) -> None:
        """Store `(B,)` as `name`, `(B, D)` as `name0`, `name1`, ..."""
        cells = self.trace.cells_of(tensor, tensor.ndim, 0, tensor.dtype)
        if tensor.ndim == 1:
            out[name] = cells.reshape(-1)[0]
        else:
            for d, cell in enumerate(cells.reshape(-1)):
                out[f"{name}{d}"] = cell

    def _history(self, like: Tensor) -> Any:
        leaves, self.history_tree = tree_flatten(self.problem.controller.init(like))
        self.history_dtypes = [leaf.dtype for leaf in leaves]
        rows = [self._row(f"h{i}", leaf.dtype) for i, leaf in enumerate(leaves)]
        return tree_unflatten(rows, self.history_tree), leaves

    # ---- parts

    def _begin(self) -> dict[str, Node]:
        """First slope, first step, and what each row starts from."""
        problem, out = self.problem, {}
        t, end = self._row("t", self.time), self._row("end", self.time)
        y = self._state("y")
        running = t < end
        slope = self.field(t, y)
        lost = ~(slope.isfinite() & y.isfinite())
        bad = lost.any(dim=1) & running if self.dim else torch.zeros_like(running)
        finite = y.isfinite().any(dim=1) if self.dim else running
        extra = (running & finite).long()
        going = running & ~bad
        span = end - t
        if problem.dt0 is not None:
            dt = self._row("first", self.time)
        else:
            k = self.error_order + 1
            dt = initial_step(self.field, t, span, y, slope, k, self.tolerance)
            extra = extra + going.long()
        fixed = not problem.controller.adaptive
        far = torch.maximum(t.abs(), end.abs())
        smallest, stretch = smallest_and_stretch(dt, span, far, fixed)
        dt = torch.minimum(dt, span)
        dt = dt if fixed else torch.maximum(dt, resolvable(t, smallest))
        dt = bounded(dt, self.tensors["dt_min"], self.tensors["dt_max"])
        self._store(out, "asked", dt)
        if fixed:
            self._store(out, "fixed", dt)
        self._store(out, "smallest", smallest)
        self._store(out, "stretch", stretch)
        self._store(out, "running", going)
        self._store(out, "end", torch.where(going, end, t))
        if self.form.end_slope is not None:
            self._store(out, "k", slope)
        self.carried = {}
        if self.form.traced is not None:
            for name, tensor in self.form.traced.initial(going).items():
                self._store(out, name, tensor)
                self.carried[name] = tensor.dtype
        self._store(out, "extra", extra)
        status = torch.where(bad, int(Status.NON_FINITE_START), 0)
        self._store(out, "status", status)
        first = lost.int().argmax(dim=1) if self.dim else status * 0
        self._store(out, "component", torch.where(bad, first, -1))
        control = torch.ones_like(t, dtype=self.state)
        _, leaves = self._history(control)
        for i, leaf in enumerate(leaves):
            self._store(out, f"h{i}", leaf)
        self._store(out, "prev", control)
        for name in self._probes:
            self._store(out, f"rate_{name}", control * 0.0)
            self.carried[f"rate_{name}"] = self.state
        return out

    def _attempt(self) -> dict[str, Node]:
        """One attempt of a row, as `Loop._attempt` makes it."""
        problem, stepper, out = self.problem, self.stepper, {}
        t, asked, end = (self._row(name, self.time) for name in ("t", "asked", "end"))
        stretch, smallest = self._row("stretch", self.time), self._row("smallest", self.time)
        running, y = self._row("running", torch.bool), self._state("y")
        history, _ = self._history(self._row("prev", self.state))
        reach, t_next, dt, tried = aim(t, asked, stretch, end)
        kept, traced = self.form.end_slope, self.form.traced
        if traced is not None:
            traced.load(self._row)
            if stepper.looks_ahead and problem.controller.adaptive:
                stepper.horizon = end
        if kept is not None or not stepper.keeps_end_slope:
            stepper.begin(self.field(t, y) if kept is None else self._state("k"))
        start = None if kept is None else stepper.start_slope
        trial = stepper.attempt(t, dt, t_next, y)
        probe = None
        if self._probes:
            probe = stepper.probe(dt)
        weighted, own = judge(trial, y, self.tolerance, problem.method)
        verdict = self._propose(own, history)
        moved = verdict.accept & running
        after, y_after = torch.where(moved, t_next, t), torch.where(moved[:, None], trial.y1, y)
        if problem.controller.adaptive:
            following = bounded(
                resized(tried, verdict.factor), self.tensors["dt_min"], self.tensors["dt_max"]
            )
        else:
            fixed = resized(self._row("fixed", self.time), verdict.factor)
            self._store(out, "fixed", fixed)
            following = fixed - (dt - tried)
        going = running & (after < end)
        room = following / resolvable(after, smallest)
        attempts = self.trace.row("(done + 1)", self.time)
        gone, _ = failures(
            running=running, moved=moved, going=going, tried=tried, room=room, own=own,
            unsolved=stepper.unsolved, exhausted=attempts >= self._limit(),
            dt_min=self.tensors["dt_min"], adaptive=problem.controller.adaptive, joint=False,
        )  # fmt: skip
        self._trace_columns(
            t, dt, tried, own, moved, running, reach, weighted, verdict, history, probe
        )
        values = {
            "t": after, "y": y_after, "asked": following, "end": torch.where(gone, after, end),
            "running": going & ~gone, "moved": moved, "was": running, "gone": gone, "going": going,
            "tried": tried, "room": room, "own": own, "weighted": weighted, "t_old": t,
            "dt": dt, "t_next": t_next, "y_old": y, "z": trial.y1, "prev": own,
        }  # fmt: skip
        values |= {f"rate_{name}": self.rates[name] for name in self._probes}
        if kept is not None and start is not None:
            last = stepper.known_slopes()[kept]
            values["k"] = torch.where(moved[:, None], last, start)
        if traced is not None:
            values |= traced.saved(moved)
        for i, slope in enumerate(stepper.known_slopes()):
            values[f"s{i}_"] = slope
        for i, leaf in enumerate(tree_flatten(verdict.history)[0]):
            values[f"h{i}"] = leaf
        for name, tensor in values.items():
            self._store(out, name, tensor)
        return out

    @property
    def _probes(self) -> list[str]:
        return [each.name for each in self.statistics if "probe" in each.needs]

    def _held(self, rate: Tensor) -> Tensor:
        """Return the rate where one is due, else the one before, as the plain loop holds it."""
        due = self.trace.row(f"(done % {PROBE_EVERY} == 0)", torch.bool)
        before = self._row(f"rate_{self.holding}", self.state)
        (self.rates[self.holding],) = self.trace.guarded(due, [rate[0]], [before], "probe")
        return self.rates[self.holding][None]

    def _limit(self) -> Tensor:
        limit = self.tensors["max_steps"]
        assert limit is not None
        return limit

    def _propose(self, own: Tensor, history: Any) -> Any:
        """Let the controller judge; its numbers go to the pool, so that gains are inputs."""
        self.trace.graph.pool = self.pool
        try:
            return self.problem.controller.propose(own, self.error_order, history)
        finally:
            self.trace.graph.pool = None

    def _trace_columns(
        self, t: Tensor, dt: Tensor, tried: Tensor, own: Tensor, moved: Tensor, running: Tensor,
        reach: Tensor, weighted: Tensor, verdict: Any, history: Any, probe: Tensor | None,
    ) -> None:  # fmt: skip
        """Trace the statistics that need more than the record holds; note what others need."""
        self.columns: dict[str, Node] = {}
        self.late: list[str] = []
        if not self.statistics:
            return
        first = self.trace.row("(done == 0)", torch.bool)
        failed_before = ~self._row("prev", self.state).isfinite()
        codes = limiter_codes(
            failed_before=failed_before, first=first, t=t, dt=tried,
            dt_min=self.tensors["dt_min"], dt_max=self.tensors["dt_max"], reach=reach, jump=None,
            unsolved_before=None if self.stepper.unsolved is None else
            self._row("unsolved_before", torch.bool),
        )  # fmt: skip
        leaves, tree = tree_flatten(history)
        factor = torch.where(running, verdict.factor, verdict.factor)
        given = {
            "t": t, "dt": tried, "error_ratio": own, "accepted": moved, "running": running,
            "weighted_error": weighted, "limiter": codes, "factor": factor,
        }  # fmt: skip
        given |= {f"{HISTORY}{i}": leaf for i, leaf in enumerate(leaves)}
        recorded = {
            name: tensor if name in ("weighted_error", "limiter") else
            self.trace.row(name + RECORDED, tensor.dtype)
            for name, tensor in given.items()
        }  # fmt: skip

        def attempts(parts: dict[str, Any]) -> Attempts:
            one = {name: part[None] for name, part in parts.items()}
            leaves = [one.pop(name) for name in parts if name.startswith(HISTORY)]
            return Attempts(
                **one,
                history=tree_unflatten(leaves, tree),
                controller=self.problem.controller,
                error_order=self.error_order,
                probe=None if probe is None else Probe(probe[None], dt[None], self._held),
                counted=counted,
            )

        traced = self.form.traced
        counts = traced is not None and any("counted" in each.needs for each in self.statistics)
        counted = traced.counted()[None] if counts and traced is not None else None
        needed: set[str] = set()
        self.trace.graph.pool = self.pool
        try:
            for statistic in self.statistics:
                loads = _loads(self._column(statistic, attempts(recorded)))
                if all(load.endswith(RECORDED) for load in loads):
                    self.late.append(statistic.name)
                    needed |= {load.removesuffix(RECORDED) for load in loads}
                else:
                    self.columns[statistic.name] = self._column(statistic, attempts(given))
        finally:
            self.trace.graph.pool = None
        for name, tensor in given.items():
            if name in needed and (name == "factor" or name.startswith(HISTORY)):
                self._store(self.columns, f"_{name}", tensor)

    def _column(self, statistic: Statistic, attempts: Attempts) -> Node:
        self.holding = statistic.name
        try:
            column = statistic.measure(attempts)
        except Untraceable as error:
            raise Untraceable(f"statistic {statistic.name!r}: {error}") from None
        if not isinstance(column, SymbolicTensor) or column.shape != (1, self.batch):
            raise Untraceable(f"statistic {statistic.name!r} is no column")
        return column.cells.reshape(-1)[0]

    def _failure(self) -> dict[str, Node]:
        """Status and component of a row that failed, from what its attempt left."""
        out: dict[str, Node] = {}
        weighted = self._state("weighted")
        attempts = self.trace.row("(done + 1)", self.time)
        _, code = failures(
            running=self._row("was", torch.bool), moved=self._row("moved", torch.bool),
            going=self._row("going", torch.bool), tried=self._row("tried", self.time),
            room=self._row("room", self.time), own=self._row("own", self.state),
            unsolved=None if self.stepper.unsolved is None else self._row("unsolved", torch.bool),
            exhausted=attempts >= self._limit(), dt_min=self.tensors["dt_min"],
            adaptive=self.problem.controller.adaptive, joint=False,
        )  # fmt: skip
        self._store(out, "code", code)
        self._store(out, "worst", limiting_component(weighted))
        return out

    def _polynomial(self) -> dict[str, Node]:
        """Dense output of the attempt just made."""
        out: dict[str, Node] = {}
        slopes = [self._state(f"s{i}_") for i in range(self.form.known)]
        stepper = self.stepper.continuing(slopes)
        t, dt, t_next = (self._row(name, self.time) for name in ("t_old", "dt", "t_next"))
        polynomial = stepper.polynomial(t, dt, t_next, self._state("y_old"), self._state("z"))
        self.polynomial_dtype = polynomial.dtype
        cells = self.trace.cells_of(polynomial, 3, 1, polynomial.dtype)
        for j in range(cells.shape[0]):
            for d in range(self.dim):
                out[f"P{j}_{d}"] = cells[j, 0, d]
        return out


def _loads(node: Node) -> list[str]:
    """Return what an expression reads besides numbers, as C++ text."""
    texts = [found.args[0] for found in reachable([node]) if found.op == "load"]
    return [text for text in texts if not text.startswith(("K[", "(float)K["))]
