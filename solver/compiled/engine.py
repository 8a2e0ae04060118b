"""Runs a compiled kernel through a solve: state, outputs, record, interruptions."""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_unflatten

from solver.compiled.body import HISTORY
from solver.compiled.build import Kernel
from solver.compiled.expression import F32, F64
from solver.compiled.fingerprint import Fingerprint
from solver.compiled.plan import Plan, column_dtype
from solver.dense import DenseRecord
from solver.loop import Outcome, Problem
from solver.outputs import Outputs
from solver.recording import MAX_ELEMENTS, Recorder
from solver.status import Status

ROUND = 32  # attempts between looks for rows that are done, whose lanes are given to others
RECORDED = 64  # attempts of a recorded block at most
MILLISECONDS = 50  # that a kernel runs before Python may handle signals
ENDLESS = 2**62


class Run:
    """One solve by a kernel.

    Args:
        problem: what to solve.
        plan, kernel: what solves it.
        fingerprint: of its field, with the tensors the field uses now.
        outputs, dense, recorder: who wants outputs, polynomials, attempts.
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
    ):
        """Lay out the state; nothing is evaluated yet."""
        self.problem, self.plan, self.kernel = problem, plan, kernel
        self.outputs = outputs if outputs is not None and outputs.inside else None
        self.dense, self.recorder = dense, recorder
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
        # B, running rows, attempts done, attempts allowed, T, first of the record, whether to
        # begin, milliseconds, attempts a round, attempts of all rows,
        # whether to leave out rows that are done
        self.q = (ctypes.c_int64 * 11)(
            batch, batch, 0, ENDLESS, length, 0, 1, MILLISECONDS, ROUND, 0, 1
        )

    def run(self, *, regroup: bool) -> Outcome:
        """Step until every row has ended; `regroup` leaves out those that have."""
        # A record ends with the last attempt of its last row, so its rows are always left out.
        self.q[10] = regroup or self.recorder is not None or self.dense is not None
        if self.recorder is None and self.dense is None:
            pointers = self._pointers({})
            while self._call(pointers):
                pass
        else:
            while self._record():
                pass
        return self._outcome()

    def _pointers(self, record: dict[str, Tensor]) -> Any:
        found = [record.get(name, self.tensors.get(name)) for name in self.plan.pointers]
        addresses = [0 if tensor is None else tensor.data_ptr() for tensor in found]
        return (ctypes.c_void_p * len(addresses))(*addresses)

    def _call(self, pointers: Any) -> int:
        # A recorder's thread would hold up every block; it has its turn between them.
        run = self.kernel.free if self.recorder is None else self.kernel.holding
        left = run(
            ctypes.addressof(pointers), ctypes.addressof(self.q),
            ctypes.addressof(self.plan.numbers), self.rows.data_ptr(),
        )  # fmt: skip
        self.q[6] = 0
        return left

    def _record(self) -> int:
        """Run one block of attempts and hand it over; return how many rows still run."""
        plan, batch, dim = self.plan, self.batch, self.dim
        size = max(1, min(RECORDED, MAX_ELEMENTS // max(batch * max(dim, 1), 1)))
        time, state = self.problem.times.start.dtype, self.problem.y0.dtype

        def empty(dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.empty((size, batch, *shape), dtype=dtype)

        record = {
            "R_t": empty(time), "R_dt": empty(time), "R_ratio": empty(state),
            "R_moved": empty(torch.bool), "R_running": empty(torch.bool),
        }  # fmt: skip
        for name, kind in plan.column_kinds.items():
            record[f"R_{name}"] = empty(column_dtype(kind))
        if plan.states:
            record["R_y"] = empty(state, dim)
        if plan.dense:
            record |= {
                "R_step": empty(time), "R_start": empty(state, dim),
                "R_polynomial": empty(plan.polynomial_dtype, plan.body.degree, dim),
            }  # fmt: skip
        before = self.q[2]
        self.q[3] = self.q[8] = size
        self.q[5] = before
        left = self._call(self._pointers(record))
        used = self.q[2] - before
        if used == 0:
            return left
        record = {name[2:]: tensor[:used] for name, tensor in record.items()}
        if self.dense is not None:
            moved = record["moved"].clone()  # what a hook does to its records must not reach it
            self.dense.add_block(
                record["t"].clone(), record["step"], moved, record["start"],
                record["polynomial"].permute(0, 2, 1, 3),
            )  # fmt: skip
        if self.recorder is not None:
            self.recorder.add_block(
                before, record["t"], record["dt"], record["ratio"], record["moved"],
                record["running"], *self._columns(record), record.get("y"),
            )  # fmt: skip
        return left

    def _columns(self, record: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the statistics in a record, and what others are measured from, by name."""
        plan, ratio = self.plan, record["ratio"]
        ready = {name: record[name] for name in plan.column_kinds if name[0] != "_"}
        if not plan.body.late:
            return ready, {}
        nothing = ratio.new_zeros(()).expand_as(ratio)  # where none of these statistics looks
        leaves = [record.get(f"_{HISTORY}{i}", nothing) for i in range(len(plan.body.history))]
        late = {
            "weighted_error": nothing[..., None],
            "limiter": nothing,
            "factor": record.get("_factor", nothing),
            "history": tree_unflatten(leaves, plan.body.history_tree),
        }
        return ready, late

    def _outcome(self) -> Outcome:
        plan, layout = self.plan, self.plan.layout

        def row(name: str) -> Tensor:
            kind, place = layout.places[name]
            return self.state[kind][place]

        count = dict(zip(layout.counts, self.counts, strict=True))
        accepted = row("accepted").to(torch.int64)
        steps, status = count["n_steps"], count["status"]
        evals = plan.evals_per_attempt * steps + count["extra"]
        if not plan.keeps_end_slope:
            idle = (count["on_accept"] != 0) | (status == int(Status.SUCCESS))
            evals = evals + accepted - (idle & (accepted > 0)).long()
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
            arrived=status == int(Status.SUCCESS),
            n_f_calls=int(evals.max()) if self.batch else 0,
            n_rows_evaluated=plan.evals_per_attempt * self.q[9] + int(count["extra"].sum()),
        )
