"""Runs a compiled kernel through a solve: state, outputs, record, interruptions."""

import ctypes
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_unflatten

from solver.compiled.body import HISTORY
from solver.compiled.build import Kernel
from solver.compiled.expression import F32, F64
from solver.compiled.fingerprint import Fingerprint
from solver.compiled.implicit import COUNTS
from solver.compiled.plan import Plan
from solver.dense import DenseRecord
from solver.loop import Outcome, Problem
from solver.outputs import Outputs
from solver.recording import MAX_ELEMENTS, Recorder
from solver.status import Status

ROUND = 32  # attempts between looks for rows that are done, whose lanes are given to others
# Attempts of a recorded block: more of them where rows are few.
RECORDED, MOST_RECORDED, RECORDED_NUMBERS = 64, 256, 16_384
MILLISECONDS = 50  # that a kernel runs before Python may handle signals
ENDLESS = 2**62


class MeshBlocks(Protocol):
    """Takes the steps of a solve, block by block."""

    def add_block(self, t: Tensor, dt: Tensor, moved: Tensor, y: Tensor) -> None:
        """Take `n` attempts: start, size, whether accepted, `(n, B)`, state there `(n, B, D)`."""


class Run:
    """One solve by a kernel.

    Args:
        problem: what to solve.
        plan, kernel: what solves it.
        fingerprint: of its field, with the tensors the field uses now.
        outputs, dense, recorder, mesh: who wants outputs, polynomials, attempts, steps.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        kernel: Kernel,
        fingerprint: Fingerprint,
        outputs: Outputs | None,
        dense: DenseRecord | None,
        recorder: Recorder | None,
        mesh: MeshBlocks | None = None,
    ):
        """Lay out the state; nothing is evaluated yet."""
        self.problem, self.plan, self.kernel = problem, plan, kernel
        self.outputs = outputs if outputs is not None and outputs.inside else None
        self.dense, self.recorder, self.mesh = dense, recorder, mesh
        watched = (recorder, dense, mesh)
        self._recorded = any(each is not None for each in watched)
        layout, times = plan.layout, problem.times
        batch, dim = problem.y0.shape
        self.batch, self.dim = batch, dim
        totals = layout.totals
        self.state = {
            kind: torch.empty((totals[kind], batch), dtype=dtype)
            for kind, dtype in ((F32, torch.float32), (F64, torch.float64))
            if totals[kind]
        }
        self.counts = torch.zeros((len(layout.counts), batch), dtype=torch.int64)
        self.rows = torch.arange(batch)
        self.tensors: dict[str, Tensor] = {
            **{f"S_{kind}": tensor for kind, tensor in self.state.items()},
            "C": self.counts,
            "Y0": problem.y0.detach().contiguous(),
            "START": times.start.detach().contiguous(),
            "END": times.end.detach().contiguous(),
        }
        if problem.dt0 is not None:
            self.tensors["FIRST"] = problem.dt0.detach().contiguous()
        self.ys: Tensor | None = None
        length = 0
        if self.outputs is not None:
            search = self.outputs.search
            length = search.shape[1]
            self.counts[layout.counts.index("index")] = self.outputs.reached
            self.ys = self.outputs.empty(problem.y0)
            self.tensors |= {"SEARCH": search, "YS": self.ys}
        for i, tensor in enumerate(plan.tensors(problem, fingerprint)):
            self.tensors[f"U{i}"] = tensor
        addresses = [
            0 if tensor is None else tensor.data_ptr()
            for tensor in map(self.tensors.get, plan.pointers)
        ]
        self._addresses = (ctypes.c_void_p * len(addresses))(*addresses)
        # B, running rows, attempts done, attempts allowed, T, first of the record, whether to
        # begin, milliseconds, attempts a round, attempts of all rows,
        # whether to leave out rows that are done
        self.q = (ctypes.c_int64 * 11)(
            batch, batch, 0, ENDLESS, length, 0, 1, MILLISECONDS, ROUND, 0, 1
        )

    def run(self, *, regroup: bool) -> Outcome:
        """Step until every row has ended; `regroup` leaves out those that have."""
        # A record ends with the last attempt of its last row, so its rows are always left out.
        self.q[10] = regroup or self._recorded
        if not self._recorded:
            while self._call():
                pass
        else:
            while self._record():
                pass
        return self._outcome()

    def _call(self) -> int:
        # A recorder's thread would hold up every block; it has its turn between them.
        run = self.kernel.free if self.recorder is None else self.kernel.holding
        left = run(
            ctypes.addressof(self._addresses), ctypes.addressof(self.q),
            ctypes.addressof(self.plan.numbers), self.rows.data_ptr(),
        )  # fmt: skip
        self.q[6] = 0
        return left

    def _record(self) -> int:
        """Run one block of attempts and hand it over; return how many rows still run."""
        plan, batch = self.plan, self.batch
        size = max(RECORDED, RECORDED_NUMBERS // max(batch, 1))
        size = max(1, min(size, MOST_RECORDED, MAX_ELEMENTS // max(batch * self.dim, 1)))
        # One piece of memory, every column on a line of the processor's cache.
        ends = [0]
        for each in plan.record:
            ends.append((ends[-1] + size * batch * each.bytes + 63) & ~63)
        piece = torch.empty(ends[-1], dtype=torch.uint8)
        address, memory = piece.data_ptr(), piece.numpy()
        for each, begin in zip(plan.record, ends, strict=False):
            self._addresses[each.pointer] = address + begin
        before = self.q[2]
        self.q[3] = self.q[8] = size
        self.q[5] = before
        left = self._call()
        used = self.q[2] - before
        if used == 0:
            return left
        record = {
            each.name: torch.from_numpy(
                np.ndarray((used, batch, *each.shape), each.dtype, memory, begin)
            )
            for each, begin in zip(plan.record, ends, strict=False)
        }
        if self.dense is not None:
            moved = record["moved"].clone()  # what a hook does to its records must not reach it
            self.dense.add_block(
                record["t"].clone(), record["step"], moved, record["start"],
                record["polynomial"].permute(0, 2, 1, 3),
            )  # fmt: skip
        if self.mesh is not None:
            t, moved = record["t"].clone(), record["moved"].clone()
            self.mesh.add_block(t, record["step"], moved, record["start"])
        if self.recorder is not None:
            ready = {name: record[name] for name in plan.column_kinds if name[0] != "_"}
            self.recorder.add_block(
                before, record["t"], record["dt"], record["ratio"], record["moved"],
                record["running"], ready, partial(self._measurable, record), record.get("y"),
            )  # fmt: skip
        return left

    def _measurable(self, record: dict[str, Tensor]) -> dict[str, Any]:
        """Return what statistics that are not in a record are measured from, by name."""
        body, ratio = self.plan.body, record["ratio"]
        nothing = ratio.new_zeros(()).expand_as(ratio)  # where none of these statistics looks
        leaves = [record.get(f"_{HISTORY}{i}", nothing) for i in range(len(body.history))]
        return {
            "weighted_error": nothing[..., None],
            "limiter": nothing.long(),
            "factor": record.get("_factor", nothing),
            "history": tree_unflatten(leaves, body.history_tree),
        }

    def _outcome(self) -> Outcome:
        plan, layout = self.plan, self.plan.layout

        rows = {kind: tensor.unbind(0) for kind, tensor in self.state.items()}

        def row(name: str) -> Tensor:
            kind, place = layout.places[name]
            return rows[kind][place]

        count = dict(zip(layout.counts, self.counts.unbind(0), strict=True))
        accepted = row("accepted").to(torch.int64)
        steps, status = count["n_steps"], count["status"]
        extra, success = count["extra"], status == int(Status.SUCCESS)
        form = plan.form
        evals = torch.add(extra, steps, alpha=form.evals_per_attempt)
        if form.evals_per_start:
            idle = (count["on_accept"] != 0) | success
            starts = accepted - (idle & (accepted > 0)).long()
            evals = torch.add(evals, starts, alpha=form.evals_per_start)
        rows_evaluated = form.evals_per_attempt * self.q[9] + int(extra.sum())
        jacobians = iterations = factored = None
        if form.traced is not None:
            counted, jacobians, iterations, factored = (row(f"n_{name}").long() for name in COUNTS)
            evals = evals + counted
            rows_evaluated = int(evals.sum())  # others of a group of rows are not counted
        kind, place = layout.places["y0"]
        y = self.state[kind][place : place + self.dim].t().contiguous()
        return Outcome(
            t=row("t"),
            y=y,
            status=status,
            component=count["component"],
            last_dt=row("last_dt"),
            n_steps=steps,
            n_accepted=accepted,
            n_f_evals=evals,
            arrived=success,
            n_f_calls=int(evals.max()) if self.batch else 0,
            n_rows_evaluated=rows_evaluated,
            n_jac_evals=jacobians,
            n_newton_iterations=iterations,
            n_factorizations=factored,
        )
