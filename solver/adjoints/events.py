"""Where a continuous adjoint takes up cotangents, and its backward solve as a solution."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from solver.loop import Outcome
from solver.solution import Solution, Stats


@dataclass(eq=False)
class Events:
    """Times of every row at which the loss looks at the state, ascending, `E` at most."""

    tau: Tensor  # (B, E), whatever where missing
    y: Tensor  # (B, E, D)
    cotangent: Tensor  # (B, E, D), 0 where missing
    there: Tensor  # (B, E) bool
    column: Tensor  # (B, E) column of the output, -1 for the end of the span

    @staticmethod
    def collect(
        rows: Tensor,
        columns: Tensor,
        success: Tensor,
        end: Tensor,
        tau: Tensor | None,
        y_end: Tensor,
        values: Tensor,
        at_end: Tensor | None,
        at_outputs: Tensor | None,
    ) -> "Events":
        """Line up outputs and ends of every row."""
        batch, count = len(end), torch.bincount(rows, minlength=len(end))
        most = int(count.max()) + 1 if batch else 0
        times, there = end.new_zeros((batch, most)), end.new_zeros((batch, most), dtype=torch.bool)
        states = y_end.new_zeros((batch, most, y_end.shape[1]))
        cotangent, column = torch.zeros_like(states), torch.full_like(times, -1, dtype=torch.int64)
        order = torch.argsort(columns, stable=True)
        if tau is not None and len(rows):  # states at events lie between other outputs
            order = order[tau[rows, columns][order].argsort(stable=True)]
        order = order[rows[order].argsort(stable=True)]
        rows, columns = rows[order], columns[order]
        place = torch.arange(len(rows), device=rows.device) - (count.cumsum(0) - count)[rows]
        if len(rows):
            assert tau is not None
            times[rows, place], there[rows, place] = tau[rows, columns], True
            states[rows, place], column[rows, place] = values[order], columns
            if at_outputs is not None:
                cotangent[rows, place] = at_outputs[order]
        every = torch.arange(batch, device=rows.device)
        times[every, count], states[every, count], there[every, count] = end, y_end, success
        if at_end is not None:
            cotangent[every, count] = torch.where(success[:, None], at_end, 0)
        return Events(times, states, cotangent, there, column)


def as_solution(
    parts: Sequence[Outcome], a: Tensor, start: Tensor, calls: int, seconds: float
) -> Solution:
    """Return the backward solve as a solution, its segments added up."""
    status, zero = parts[-1].status, torch.zeros_like(parts[-1].n_steps)
    steps, accepted, evals = (
        sum((getattr(part, name) for part in parts), zero)
        for name in ("n_steps", "n_accepted", "n_f_evals")
    )
    joint = len(status) != len(a)
    return Solution(
        ts=start[:1, None] if joint else start[:, None],
        ys=a.reshape(1, 1, -1) if joint else a[:, None],
        status=status,
        t_reached=start[:1] if joint else start,
        y_reached=a.reshape(1, -1) if joint else a,
        component=zero - 1,
        last_dt=parts[-1].last_dt,
        stats=Stats(
            n_steps=steps,
            n_accepted=accepted,
            n_rejected=steps - accepted,
            n_f_evals=evals,
            n_jac_evals=zero,
            n_newton_iterations=zero,
            n_factorizations=zero,
            n_f_calls=calls,
            n_rows_evaluated=calls * len(a),
            wall_seconds=seconds,
        ),
    )
