"""Solves made by hand, fed to the recorder as a solver would."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from inspector.inspector import Inspector
from solver.catalogue import statistic_by_name
from solver.hooks import SolveEnd, SolveInfo, StepBlock
from solver.solution import Solution, Stats


@dataclass
class Feed:
    """A solve with random numbers: what goes in, to be compared with what comes out."""

    info: SolveInfo
    blocks: list[StepBlock]
    end: SolveEnd

    def into(self, *inspectors: Inspector, upto: int | None = None, end: bool = True) -> None:
        """Hand it over as the solver does."""
        for inspector in inspectors:
            inspector.on_solve_start(self.info)
        for block in self.blocks[:upto]:
            for inspector in inspectors:
                inspector.on_steps(block)
        for inspector in inspectors if end else ():
            inspector.on_solve_end(self.end)

    def rows(self, column: str) -> np.ndarray:
        """Return a column of all attempts in which an instance was running, in stored order."""
        parts = []
        for block in self.blocks:
            grid = block.columns[column] if column in block.columns else getattr(block, column)
            parts.append(grid[block.running])
        return torch.cat(parts).numpy()


def _feed(
    batch: int = 5,
    attempts: int = 40,
    block: int = 16,
    seed: int = 0,
    statistics: Sequence[str] = ("limiter", "factor", "limiting_component"),
    dim: int = 2,
    error: str | None = None,
) -> Feed:
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    found = tuple(statistic_by_name(name) for name in statistics)
    info = SolveInfo(
        batch=batch,
        dim=dim,
        dtype="float64",
        time_dtype="float64",
        device="cpu",
        method="tsit5",
        method_order=5,
        error_order=4,
        controller="pid",
        controller_settings={"kp": 0.2},
        adjoint="backprop",
        engine="plain",
        stepping="independent",
        t0=torch.zeros(batch, dtype=torch.float64),
        t1=torch.linspace(1, 2, batch, dtype=torch.float64),
        rtol=torch.tensor(1e-4),
        atol=torch.tensor(1e-6),
        max_steps=1000,
        y0=random(batch, dim),
        statistics=found,
    )
    last = (
        torch.linspace(attempts, max(attempts // 2, 1), batch).round().long()
    )  # rows end one by one
    blocks, counts, taken = [], torch.zeros(batch, dtype=torch.long), torch.zeros(batch).long()
    for first in range(0, attempts, block):
        n = min(block, attempts - first)
        running = torch.arange(first, first + n)[:, None] < last
        accepted = (random(n, batch) < 0.8) & running
        counts, taken = counts + running.sum(0), taken + accepted.sum(0)
        columns = {
            one.name: (random(n, batch) * 5).long()
            if one.labels or one.unit == "index"
            else random(n, batch)
            for one in found
        }
        blocks.append(
            StepBlock(
                solve=info,
                first=first,
                t=random(n, batch),
                dt=random(n, batch) - 0.5,
                error_ratio=random(n, batch),
                accepted=accepted,
                running=running,
                columns=columns,
                y=random(n, batch, dim),
            )
        )
    status = torch.zeros(batch, dtype=torch.long)
    status[-1] = 4
    solution = Solution(
        ts=info.t1[:, None],
        ys=info.y0[:, None],
        status=status,
        t_reached=info.t1 * (status == 0),
        y_reached=info.y0,
        component=torch.where(status == 4, 1, -1),
        last_dt=info.t1,
        stats=Stats(
            n_steps=counts,
            n_accepted=taken,
            n_rejected=counts - taken,
            n_f_evals=2 + 6 * counts,
            n_jac_evals=counts * 0,
            n_newton_iterations=counts * 0,
            n_factorizations=counts * 0,
            n_f_calls=2 + 6 * attempts,
            n_rows_evaluated=batch * (2 + 6 * attempts),
            wall_seconds=0.5,
        ),
    )
    return Feed(info, blocks, SolveEnd(info, None if error else solution, 0.5, error))


@pytest.fixture
def feed() -> Callable[..., Feed]:
    """Return `feed(batch=5, attempts=40, block=16, seed=0, ...)`, which makes a solve by hand."""
    return _feed
