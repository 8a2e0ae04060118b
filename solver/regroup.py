"""Rows that are done are left out of the plain loop: the others go on as a smaller batch."""

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from solver.methods.base import Stepper
from solver.norms import Tolerance
from solver.problem import Field
from solver.recording import Attempt, Recorder, Told

if TYPE_CHECKING:
    from solver.loop import Loop, Problem

LOOK_EVERY = 32  # attempts between looks for rows that are done
SMALLEST = 64  # rows of a batch that is worth it
SAME = {torch.float32: 1e-4, torch.complex64: 1e-4}  # how far slopes may differ by rounding
SAME_WIDE = 1e-9


def possible(loop: "Loop") -> bool:
    """Return whether rows may be left out of a loop at all."""
    problem = loop.problem
    whole = problem.joint or loop.graph or problem.times.stops is not None
    watched = loop.dense is not None or loop.events is not None or loop.listener is not None
    users = type(problem.field) is Field  # not one made for an adjoint
    return problem.regroup and users and len(problem.y0) >= SMALLEST and not (whole or watched)


def go_on_with_fewer(loop: "Loop", fresh: type["Loop"]) -> bool:
    """Take a loop of which at most half of the rows run to its end; return whether that was done.

    It is not where the vector field gives other slopes for fewer rows, as one that holds a tensor
    with a number for each row does: hand that over in `args`.

    Args:
        loop: stands between two attempts.
        fresh: its class.
    """
    rows = loop.rows.running.nonzero()[:, 0]
    problem = _problem_of(loop, rows)
    stepper = loop.stepper.of_rows(rows, problem.field, problem.y0)
    if stepper is None or not _same_slopes(loop, problem, rows):
        return False
    outputs = None if loop.outputs is None else loop.outputs.of_rows(rows)
    recorder: Any = None if loop.recorder is None else _Spread(loop, rows)
    part = fresh(problem, outputs, None, recorder, graph=False)
    part.stepper, part.attempts, part.near = stepper, loop.attempts, loop.near
    part.dt, part.history = loop.dt[rows], _of_rows(loop.history, rows)
    part.fixed_dt = None if loop.fixed_dt is None else loop.fixed_dt[rows]
    part.rows.take_up(loop.rows, rows)
    part.go_on()
    _take_over(loop, part, rows)
    if loop.outputs is not None and outputs is not None:
        loop.outputs.take_over(rows, outputs)
    return True


def _problem_of(loop: "Loop", rows: Tensor) -> "Problem":
    problem, times = loop.problem, loop.problem.times
    batch = len(problem.y0)

    def own(value: Any) -> Any:
        there = isinstance(value, Tensor) and value.ndim > 0 and len(value) == batch
        return value[rows] if there else value

    def wide(value: Any) -> Any:  # a tolerance `(B, 1)` or `(B, D)`, or the same for all rows
        return own(value) if isinstance(value, Tensor) and value.ndim == 2 else value

    whole = problem.field
    layout = copy.copy(whole.layout)
    layout.batch = len(rows)
    field = Field(whole.function, layout, own(whole.direction), tree_map(own, whole.args))
    field.resume(whole)
    tolerance = Tolerance(wide(problem.tolerance.rtol), wide(problem.tolerance.atol))
    tolerance.may_vanish = problem.tolerance.may_vanish
    return replace(
        problem,
        field=field,
        y0=loop.y[rows],
        times=times._replace(
            t0=times.t0[rows],
            t1=times.t1[rows],
            start=loop.t[rows],
            end=loop.end[rows],
            direction=own(times.direction),
            ts=times.ts[rows],
            outputs=None if times.outputs is None else times.outputs[rows],
            columns=None if times.columns is None else times.columns[rows],
        ),
        tolerance=tolerance,
        dt_min=own(problem.dt_min),
        dt_max=own(problem.dt_max),
        max_steps=own(problem.max_steps),
        slope0=None,
    )


def _same_slopes(loop: "Loop", problem: "Problem", rows: Tensor) -> bool:
    """Return whether the vector field gives for `rows` alone what it gives for the batch."""
    with torch.no_grad():
        expected = loop.stepper.start_slope if loop.stepper.knows_start else None
        if expected is None:
            expected = loop.problem.field(loop.t, loop.y)
        expected = expected[rows]
        try:
            found = problem.field(loop.t[rows], loop.y[rows])
        except Exception:  # whatever a user's function says to fewer rows
            return False
        loose = SAME.get(found.dtype, SAME_WIDE)
        size = expected.abs().amax(dim=1, keepdim=True) if expected.shape[1] else expected.abs()
        near = (found - expected).abs() <= loose * size
        return bool((near | (found == expected)).all())


def _of_rows(values: Any, rows: Tensor) -> Any:
    return tree_map(lambda leaf: leaf[rows] if isinstance(leaf, Tensor) else leaf, values)


def _take_over(loop: "Loop", part: "Loop", rows: Tensor) -> None:
    """Put back how the rows have ended, and what they needed."""
    loop.t = loop.t.index_copy(0, rows, part.t)
    loop.end = loop.end.index_copy(0, rows, part.end)
    loop.y = loop.y.index_copy(0, rows, part.y)
    loop.attempts = part.attempts
    loop.rows.put_back(part.rows, rows)
    whole, field = loop.problem.field, part.problem.field
    whole.calls += field.calls
    whole.seconds += field.seconds
    left_out = (len(loop.problem.y0) - len(rows)) * field.calls
    loop.left_out += left_out + part.left_out


class _Spread:
    """Hands attempts of a part of the rows to the recorder of all; the others have ended."""

    def __init__(self, loop: "Loop", rows: Tensor):
        """Keep what the rows that have ended show."""
        recorder = loop.recorder
        assert recorder is not None
        self._recorder: Recorder | _Spread = recorder
        self._rows = rows
        zero = torch.zeros_like(loop.t)
        never = torch.zeros_like(loop.rows.running)
        real = loop.y.detach().real if loop.y.is_complex() else loop.y.detach()
        self._rest = Attempt(
            t=loop.t, dt=zero, error_ratio=torch.zeros_like(real[:, :1]).sum(dim=1), moved=never,
            running=never, reach=never, stop=loop.end, weighted_error=torch.zeros_like(loop.y),
            factor=torch.ones_like(real[:, :1]).sum(dim=1), history=loop.history, y=loop.y,
        )  # fmt: skip

    def _all(self, rest: Tensor, part: Tensor) -> Tensor:
        return rest.to(part.dtype).index_copy(0, self._rows, part)

    def add(self, attempt: Attempt) -> None:
        """Take an attempt of the rows that go on."""
        rest = self._rest
        parts = {
            name: self._all(getattr(rest, name), getattr(attempt, name))
            for name in (
                *("t", "dt", "error_ratio", "moved", "running", "reach", "stop"),
                *("weighted_error", "factor", "y"),
            )
        }
        history = tree_map(self._all, rest.history, attempt.history)
        self._recorder.add(Attempt(**parts, history=history, told=attempt.told))

    def told_by(self, stepper: Stepper, dt: Tensor) -> Told | None:
        """Return what the stepper tells of all rows."""
        teller: Any = _Teller(stepper, dt, self._rows, len(self._rest.t))
        return self._recorder.told_by(teller, self._all(self._rest.dt, dt))


class _Teller:
    """Tells of all rows what a stepper of some knows."""

    def __init__(self, stepper: Stepper, dt: Tensor, rows: Tensor, batch: int):
        """Keep them."""
        self._stepper, self._dt, self._rows, self._batch = stepper, dt, rows, batch
        self.counts, self.unsolved, self.choice = None, None, None

    def probe(self, dt: Tensor) -> Tensor | None:
        """Return the vectors of the rows that go on, 0 for the others, `(R, B, E)`."""
        found = self._stepper.probe(self._dt)
        if found is None:
            return None
        shape = (found.shape[0], self._batch, found.shape[2])
        return found.new_zeros(shape).index_copy(1, self._rows, found)
