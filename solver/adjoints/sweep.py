"""One pass back over the accepted steps of a solve."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from solver.adjoints.graph import Unchanged, leaf
from solver.adjoints.measure import Stopwatch, graph_bytes
from solver.adjoints.mesh import Mesh, MeshRecord, Window
from solver.adjoints.parameters import VectorJacobian
from solver.adjoints.reverser import Step, StepCotangents
from solver.hooks import BackwardInfo
from solver.loop import Problem
from solver.recording import Recorder

if TYPE_CHECKING:
    from solver.adjoints.replay import Replay


@dataclass(eq=False)
class Plan:
    """What the backward pass needs besides saved tensors."""

    mode: "Replay"
    problem: Problem  # detached
    layout: list[tuple[bool, ...]]
    count: Tensor  # (B,)
    rows: Tensor | None  # (n,) of outputs read off polynomials
    columns: Tensor | None
    steps: Tensor | None  # (n,) number of the step in its row
    results: list[Tensor]  # handed out once, so that nothing here keeps them
    params: list[Tensor]  # themselves: what is unpacked from saved tensors may be copies
    hidden: bool  # whether some parameters were found behind others
    recorder: Recorder | None
    record: MeshRecord | None  # what keeps states apart from the mesh
    constants: Unchanged


class Sweep:
    """One pass back over a mesh."""

    def __init__(
        self,
        plan: Plan,
        mesh: Mesh,
        product: VectorJacobian,
        y0: Tensor,
        start: Tensor,
        tau: Tensor | None,
        *,
        times: bool,
    ):
        """Sort the outputs by step."""
        self._plan, self._mesh, self._times = plan, mesh, times
        self._y0, self._start, self._tau = y0, start, tau
        self._product = product
        self._kept = sum(each.nbytes for each in mesh.tensors())
        if plan.record is not None:
            self._kept += plan.record.kept_apart
        self._reverser = plan.mode.reverser(plan.problem, product, self._kept, times=times)
        self._peak: int | None = None  # bytes of graphs in the first step reversed
        self._order: Tensor | None = None
        self._bounds: list[int] = []
        if plan.steps is not None:
            self._order = plan.steps.argsort()
            counts = torch.bincount(plan.steps, minlength=mesh.length)
            self._bounds = [0, *counts.cumsum(0).tolist()]

    def run(
        self, at_end: Tensor | None, at_outputs: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """Return derivatives of the loss by y0, start, end and output times."""
        y = torch.zeros_like(self._y0) if at_end is None else at_end
        t = end = tau = None
        if self._times:
            t, end = torch.zeros_like(self._start), torch.zeros_like(self._start)
            tau = None if self._tau is None else torch.zeros_like(self._tau)
        if not self._mesh.length:
            return y, t, end, tau
        sums = _Times(t, end, tau)
        like = self._standing()
        if self._reverser.width:
            y, left = self._run_windows(y, like, sums, at_outputs)
        else:
            left = self._mesh.length
        for window, i, state in self._steps(like, left):
            step, chosen = self._step(window, i, state, at_outputs)
            got = self._reverse(step, y)
            y = got.y
            sums.add(window, i, got.t, got.dt, got.seen)
            self._add_outputs(sums, chosen, got)
        return y, sums.t, sums.end, sums.tau

    def _run_windows(
        self, y: Tensor, like: Tensor, sums: "_Times", at_outputs: Tensor | None
    ) -> tuple[Tensor, int]:
        """Take back what can be in windows; return the cotangent and how many steps are left."""
        left, reverser = self._mesh.length, self._reverser
        for window in self._mesh.windows_backward(self._start, like, reverser.width):
            width = len(window.t)
            steps, chosen = self._whole_window(window, at_outputs)
            call = partial(reverser.reverse_window, steps, width, y)
            if left == self._mesh.length and self._asked:
                got, self._peak = graph_bytes(call, self._product.params)
            else:
                got = call()
            if got is None:
                break
            y, left = got.y, window.first
            if sums.t is not None:
                assert got.t is not None
                assert got.dt is not None
                assert got.seen is not None
                each = [part.unflatten(0, (width, -1)) for part in (got.t, got.dt, got.seen)]
                for i in reversed(range(width)):
                    sums.add(window, i, *(part[i] for part in each))
                self._add_outputs(sums, chosen, got)
        return y, left

    @property
    def _asked(self) -> bool:
        """Whether someone wants to know what graphs keep."""
        recorder = self._plan.recorder
        return recorder is not None and recorder.wants_memory

    def _add_outputs(self, sums: "_Times", chosen: Tensor | None, got: StepCotangents) -> None:
        if sums.tau is not None and got.tau is not None and chosen is not None:
            plan = self._plan
            assert plan.rows is not None
            assert plan.columns is not None
            sums.tau[plan.rows[chosen], plan.columns[chosen]] = got.tau

    def _reverse(self, step: Step, cotangent: Tensor) -> StepCotangents:
        """Take one step back; watch the first one if someone wants to know its memory."""
        reverser, first = self._reverser, self._product.count == 0
        if not first or not (reverser.curious or self._asked):
            return reverser.reverse(step, cotangent)
        call = partial(reverser.reverse, step, cotangent)
        got, self._peak = graph_bytes(call, self._product.params)
        if self._peak is not None:
            reverser.learn(self._peak)
        return got

    def tell(self, recorder: Recorder, calls: int, watch: Stopwatch) -> None:
        """Hand a record of this pass to the hooks; `calls` of the field were made before it."""
        seconds, allocated = watch.stop()
        field, start, y0 = self._plan.problem.field, self._start, self._y0
        n_f_calls = field.calls - calls
        single = None
        if recorder.wants_memory:
            with torch.enable_grad():
                _, single = graph_bytes(lambda: field(start, leaf(y0)), self._product.params)
        sums = sum(total.nbytes for total in self._product.totals if total is not None)
        row_steps = int(self._mesh.count.sum())
        predicted = None
        if single is not None:
            kept = row_steps * (y0[:1].nbytes + 2 * start[:1].nbytes)
            if self._plan.record is not None:
                kept = self._kept
            predicted = kept + self._reverser.graphs_at_once * single + 2 * sums
        recorder.backward(
            BackwardInfo(
                solve=recorder.info,
                n_steps=self._mesh.length,
                n_f_calls=n_f_calls,
                n_vjps=self._product.count,
                checkpoint_bytes=self._kept,
                graph_bytes=self._peak if recorder.wants_memory else None,
                gradient_bytes=2 * sums,
                predicted_bytes=predicted,
                allocated_bytes=allocated,
                seconds=seconds,
            )
        )

    def _standing(self) -> Tensor:
        """Return where rows stand that have fewer steps, `(B, D)`."""
        never = self._mesh.count == 0
        pad = self._y0
        if bool(never.any()):  # its field may not be finite: let it stand at a healthy row's state
            pad = torch.where(never[:, None], pad[self._mesh.count.argmax()], pad)
        return pad

    def _steps(self, pad: Tensor, below: int) -> Iterator[tuple[Window, int, Tensor]]:
        """Yield the steps with numbers less than `below`, last ones first."""
        plan = self._plan
        source = plan.mode.states(plan.problem, self._mesh, plan.record, self._start, pad)
        like = pad if source is None else pad[:, :0]
        for window in self._mesh.windows_backward(self._start, like):
            for i in reversed(range(min(len(window.t), below - window.first))):
                # A graph that keeps a state must not keep the window.
                state = window.y[i].clone() if source is None else next(source)
                yield window, i, state

    def _outputs(
        self, first: int, width: int, at_outputs: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
        """Return which outputs were read off steps, their rows, times and cotangents."""
        plan = self._plan
        if self._order is None or at_outputs is None:
            return None, None, None, None
        low, high = self._bounds[first], self._bounds[first + width]
        if high == low:
            return None, None, None, None
        assert plan.rows is not None
        assert plan.columns is not None
        assert self._tau is not None
        chosen = self._order[low:high]
        rows = plan.rows[chosen]
        return chosen, rows, self._tau[rows, plan.columns[chosen]], at_outputs[chosen]

    def _step(
        self, window: Window, i: int, state: Tensor, at_outputs: Tensor | None
    ) -> tuple[Step, Tensor | None]:
        """Return one step, and which outputs were read off it."""
        chosen, rows, tau, cotangent = self._outputs(window.first + i, 1, at_outputs)
        step = Step(
            t=window.t[i],
            dt=window.dt[i],
            start=None if window.start is None else window.start[i],
            seen=window.seen[i],
            y=state,
            active=None if window.active is None else window.active[i],
            slopes=None if window.slopes is None else window.slopes[i],
            choice=None if window.choice is None else window.choice[i].long(),
            rows=rows,
            tau=tau,
            cotangent=cotangent,
        )
        return step, chosen

    def _whole_window(
        self, window: Window, at_outputs: Tensor | None
    ) -> tuple[Step, Tensor | None]:
        """Return all steps of a window as one of many rows, and which outputs were read off it."""
        width, batch = window.t.shape
        chosen, rows, tau, cotangent = self._outputs(window.first, width, at_outputs)
        if rows is not None and chosen is not None:
            assert self._plan.steps is not None
            rows = (self._plan.steps[chosen] - window.first) * batch + rows
        flat = [
            None if each is None else each.flatten(0, 1)
            for each in (window.t, window.dt, window.start, window.seen, window.y, window.active)
        ]
        t, dt, start, seen, y, active = flat
        assert t is not None
        assert dt is not None
        assert seen is not None
        assert y is not None
        return Step(t, dt, start, seen, y, active, None, rows, tau, cotangent), chosen


class _Times:
    """Derivatives of the loss by start, end and output times, added up from the last step on.

    All None unless they are wanted.
    """

    def __init__(self, t: Tensor | None, end: Tensor | None, tau: Tensor | None):
        """Start from zeros: `(B,)`, `(B,)`, `(B, T)`."""
        self.t, self.end, self.tau = t, end, tau

    def add(
        self,
        window: Window,
        i: int,
        t: Tensor | None,
        dt: Tensor | None,
        seen: Tensor | None,
    ) -> None:
        """Add what step `i` of a window says of its start, size and end, `(B,)` each."""
        if self.t is None or self.end is None:
            return
        assert t is not None
        assert dt is not None
        assert seen is not None
        cut = None if window.cut is None else window.cut[i]
        if cut is None:
            self.t = self.t + t + seen
            return
        assert window.last is not None
        self.end = self.end + torch.where(window.last[i], self.t + seen + dt, 0)
        self.t = torch.where(cut, t - dt, self.t + t + seen)
