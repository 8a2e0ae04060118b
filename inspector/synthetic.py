"""Runs that look like real ones, written by the real writer without a solver."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inspector.schema import Column
from inspector.store.writer import RunWriter

STATISTICS = (
    Column("limiting_component", "i4", "index", "component with the largest share of the error"),
    Column(
        "limiter",
        "i2",
        "",
        "what set the size of this step",
        dict(
            enumerate(
                (
                    *("accuracy", "dt_min", "dt_max", "end of span", "event", "jump"),
                    *("non-finite", "first step"),
                )
            )
        ),
    ),
    Column("factor", "f4", "ratio", "what the controller multiplied the step by"),
    Column("share_p", "f4", "log10", "proportional part of the factor"),
    Column("share_i", "f4", "log10", "integral part of the factor"),
    Column("share_d", "f4", "log10", "derivative part of the factor"),
    Column(
        "clamped",
        "i2",
        "",
        "whether a limit cut the factor",
        {-1: "from below", 0: "no", 1: "from above"},
    ),
)


@dataclass
class ArrayBlock:
    """Rows as grids `(n, B)` in numpy, as a writer takes them."""

    first: int
    running: np.ndarray  # (n, B) bool
    grids: Mapping[str, np.ndarray]  # (n, B) each

    @property
    def attempts(self) -> tuple[int, int]:
        """Half-open range of attempts."""
        return self.first, self.first + len(self.running)

    @property
    def rows(self) -> int:
        """Most rows it can have."""
        return self.running.size

    def counted(self) -> int:
        """Return how many rows there are."""
        return int(np.count_nonzero(self.running))

    def columns(self) -> tuple[Mapping[str, np.ndarray], bool]:
        """Return the columns of the instances that were running."""
        attempt, instance = np.nonzero(self.running)
        columns = {name: grid[self.running] for name, grid in self.grids.items()}
        columns["attempt"] = (attempt + self.first).astype("i4")
        columns["instance"] = instance.astype("i4")
        return columns, bool(self.running.all())


def write_synthetic_run(
    path: str | os.PathLike[str],
    *,
    batch: int = 64,
    solves: int = 1,
    attempts: int | None = None,
    failed: tuple[int, ...] = (),
    states: int = 0,
    statistics: bool = True,
    seed: int = 0,
    seconds_per_block: float = 0.0,
    finish: bool = True,
    spec: Mapping[str, Any] | None = None,
    on_block: Callable[[RunWriter], None] | None = None,
    **settings: Any,
) -> Path:
    """Write a run of a relaxation oscillator whose stiffness grows with the instance.

    Args:
        batch: number of instances; `mu` goes from 0.5 to 50.
        solves: one after another, with a falling `loss` logged after each.
        attempts: most attempts of one solve; None for as many as the oscillator asks for.
        failed: instances that stop half way with NON_FINITE.
        states: number of instances whose trajectories are stored.
        statistics: store the further statistics too.
        seconds_per_block: pause after each block of attempts, to watch a run grow.
        finish: close the run; otherwise it is left as a killed process leaves it.
        on_block: called after each block.
        settings: further arguments of `RunWriter`.
    """
    rng = np.random.default_rng(seed)
    mu = np.geomspace(0.5, 50.0, batch)
    writer = RunWriter(
        path,
        spec=synthetic_spec(batch, seed) if spec is None else spec,
        parameters={"mu": mu},
        versions={"stepscope": "synthetic"},
        **settings,
    )
    for number in range(solves):
        _write_solve(
            writer,
            number,
            mu,
            attempts,
            failed,
            states,
            statistics,
            rng,
            seconds_per_block,
            on_block,
        )
        writer.scalars(number, {"loss": 1.0 / (1 + number), "accept_share": 0.9})
    if finish:
        writer.close()
    else:
        writer.flush()
    return Path(path)


def synthetic_spec(batch: int = 64, seed: int = 0) -> dict[str, Any]:
    """Return the spec of a synthetic run."""
    return {
        "problem": "van_der_pol",
        "parameters": {},
        "spread": {"parameter": "mu", "low": 0.5, "high": 50.0, "scale": "log"},
        "batch": batch,
        "seed": seed,
        "t1": 20.0,
        "n_eval": 200,
        "method": "tsit5",
        "controller": {"name": "pid", "pcoeff": 0.2, "icoeff": 0.5, "dcoeff": 0.0},
        "rtol": 1e-4,
        "atol": 1e-6,
        "dt0": None,
        "dt_min": None,
        "dt_max": None,
        "max_steps": 100_000,
        "dtype": "float64",
        "stepping": "independent",
        "adjoint": "backprop",
        "engine": "plain",
        "statistics": [column.name for column in STATISTICS],
        "attempts_per_second": None,
        "keep_running": False,
        "parent": None,
    }


def _write_solve(
    writer: RunWriter,
    number: int,
    mu: np.ndarray,
    most: int | None,
    failed: tuple[int, ...],
    states: int,
    statistics: bool,
    rng: np.random.Generator,
    pause: float,
    on_block: Callable[[RunWriter], None] | None,
) -> None:
    batch = len(mu)
    began = time.perf_counter()
    settings = {
        "iteration": number,
        "batch": batch,
        "dim": 2,
        "dtype": "float64",
        "time_dtype": "float64",
        "device": "cpu",
        "method": "tsit5",
        "method_order": 5,
        "error_order": 4,
        "controller": "pid",
        "controller_settings": {"pcoeff": 0.2, "icoeff": 0.5, "dcoeff": 0.0, "safety": 0.9},
        "adjoint": "backprop",
        "engine": "plain",
        "stepping": "independent",
        "max_steps": 100_000,
        "t0": np.zeros(batch),
        "t1": np.full(batch, 20.0),
        "rtol": 1e-4,
        "atol": 1e-6,
        "instances": None,
    }
    solve = writer.start_solve(lambda: settings, STATISTICS if statistics else ())
    n_steps, n_accepted = np.zeros(batch, "i8"), np.zeros(batch, "i8")
    t = np.zeros(batch)
    status = np.zeros(batch, "i8")
    chosen = np.linspace(0, batch - 1, min(states, batch)).astype(int)
    for first, running, grids in _attempts(mu, most, failed, rng):
        if not statistics:
            grids = {name: grids[name] for name in ("t", "dt", "error_ratio", "accepted")}
        writer.steps(solve, ArrayBlock(first, running, grids))
        taken = running & (grids["accepted"] != 0)
        n_steps += running.sum(0)
        n_accepted += taken.sum(0)
        after = grids["t"] + grids["dt"]
        t = (
            np.where(taken, after, -np.inf).max(0, initial=0.0, where=taken | ~taken)
            if len(after)
            else t
        )
        if len(chosen):
            y = np.stack([2 * np.cos(after / (1 + mu / 3)), -np.sin(after / (1 + mu / 3))], -1)
            keep = np.zeros_like(taken)
            keep[:, chosen] = taken[:, chosen]
            writer.steps(solve, _StateBlock(first, keep, after, y), "states")
        if on_block is not None:
            on_block(writer)
        time.sleep(pause)
    status[list(failed)] = 4
    rows = {
        "status": status,
        "n_steps": n_steps,
        "n_accepted": n_accepted,
        "n_rejected": n_steps - n_accepted,
        "n_f_evals": 2 + 6 * n_steps,
        "t_reached": np.where(status == 4, 10.0, 20.0),
        "component": np.where(status == 4, 1, -1),
        "messages": {str(row): "component 1 became infinite at t = 10" for row in failed},
    }
    totals = {
        name: int(rows[name].sum()) for name in ("n_steps", "n_accepted", "n_rejected", "n_f_evals")
    }
    end = {
        "seconds": time.perf_counter() - began,
        "n_attempts": int(n_steps.max(initial=0)),
        "totals": totals,
        "n_failed": len(failed),
        "n_f_calls": int(2 + 6 * n_steps.max(initial=0)),
        "error": None,
        "n_rows_evaluated": int(batch * (2 + 6 * n_steps.max(initial=0))),
    }
    writer.end_solve(solve, lambda: (end, rows))


def _attempts(
    mu: np.ndarray,
    most: int | None,
    failed: tuple[int, ...],
    rng: np.random.Generator,
    block: int = 16,
) -> Iterator[tuple[int, np.ndarray, dict[str, np.ndarray]]]:
    """Yield `(first attempt, running, grids)` of a made-up but consistent solve to t = 20."""
    batch = len(mu)
    t, end = np.zeros(batch), np.full(batch, 20.0)
    end[list(failed)] = 10.0
    size = 0.02 / (1 + mu)
    before = np.full(batch, 0.5)
    first = 0
    while (t < end).any() and (most is None or first < most):
        count = block if most is None else min(block, most - first)
        rows: list[tuple[np.ndarray, ...]] = []
        for number in range(count):
            running = t < end
            dt = np.minimum(size, end - t)
            span = dt < size
            phase = np.sin(2 * np.pi * t / (2 + 1.6 * mu))
            best = 0.25 / (1 + mu * phase**8)
            ratio = (dt / best) ** 5 * rng.lognormal(0, 0.3, batch) * 0.6
            accepted = ratio <= 1
            p, i = (
                0.04 * np.log10(np.maximum(before / np.maximum(ratio, 1e-9), 1e-9)),
                -0.1 * np.log10(np.maximum(ratio, 1e-9)),
            )
            factor = 0.9 * 10 ** (p + i)
            cut = np.clip(factor, 0.2, 10)
            limiter = np.where(span, 3, 7 if first + number == 0 else 0)
            rows.append(
                (
                    running,
                    t,
                    dt,
                    ratio,
                    accepted,
                    (phase > 0).astype("i4"),
                    limiter,
                    cut,
                    p,
                    i,
                    factor,
                )
            )
            moved = running & accepted
            t = np.where(moved, np.where(span, end, t + dt), t)
            before = np.where(moved, ratio, before)
            size = np.where(
                running & ~span, size * np.where(accepted, cut, np.minimum(cut, 0.9)), size
            )
        stacked = [np.stack(column) for column in zip(*rows, strict=True)]
        running, t_grid, dt, ratio, accepted, component, limiter, cut, p, i, factor = stacked
        yield (
            first,
            running,
            {
                "t": t_grid,
                "dt": dt,
                "error_ratio": ratio.astype("f4"),
                "accepted": accepted.astype("u1"),
                "limiting_component": component,
                "limiter": limiter.astype("i2"),
                "factor": cut.astype("f4"),
                "share_p": p.astype("f4"),
                "share_i": i.astype("f4"),
                "share_d": np.zeros_like(p, "f4"),
                "clamped": (np.sign(cut - factor) * -1).astype("i2"),
            },
        )
        first += count


@dataclass
class _StateBlock:
    """Sampled states, as a writer takes them."""

    first: int
    keep: np.ndarray  # (n, B) bool
    t: np.ndarray  # (n, B)
    y: np.ndarray  # (n, B, D)

    @property
    def attempts(self) -> tuple[int, int]:
        """Half-open range of attempts."""
        return self.first, self.first + len(self.keep)

    @property
    def rows(self) -> int:
        """Most rows it can have."""
        return int(self.keep.sum())

    def counted(self) -> int:
        """Return how many rows there are."""
        return self.rows

    def columns(self) -> tuple[Mapping[str, np.ndarray], bool]:
        """Return the columns of the states that are kept."""
        attempt, instance = np.nonzero(self.keep)
        return {
            "attempt": (attempt + self.first).astype("i4"),
            "instance": instance.astype("i4"),
            "t": self.t[self.keep],
            "y": self.y[self.keep],
        }, False
