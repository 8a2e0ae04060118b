"""Many explicit steps taken back at once: their derivatives side by side, then a chain of products.

What a step makes of a cotangent is linear, so the D directions of a state tell all of it. For
small states that costs little more than one direction, and a window of steps is then gone through
by one small product a step instead of the vector field's derivatives.
"""

from typing import final

import torch
from torch import Tensor

from solver.adjoints.graph import leaf
from solver.adjoints.measure import graph_bytes
from solver.adjoints.parameters import VectorJacobian
from solver.adjoints.reverser import Step, StepCotangents, StepReverser
from solver.adjoints.stages import Reading, StageByStage, inner
from solver.loop import Problem
from solver.methods.tableau import ButcherTableau
from solver.problem import real_dtype

WIDEST = 512  # steps at once
SMALL = 250_000  # bytes of an evaluation's graph times D, up to which many steps at once are faster


@final
class StepParallel(StepReverser):
    """Takes windows of steps back, as `StageByStage` takes single ones, to rounding.

    The stage recursion of Hairer, Norsett & Wanner I, II.1, is run for the unit vectors in all
    steps of the window, and once more for what the outputs read off the steps add. The chain
    `lam_n = M_n^T lam_(n+1) + r_n` then gives every step's cotangent, and one product over all
    stages the gradients of parameters and times.

    The vector field is called under `torch.vmap` over the steps. One that cannot be, and complex
    states, are taken back step by step.

    Args:
        tableau: of the method.
        problem: field and shapes.
        product: vector-Jacobian products.
        times: whether derivatives by times are wanted.
        budget: bytes that the graphs and derivatives of a window may take.
        only_small: leave fields whose evaluations are no longer cheap to `StageByStage`, which
            keeps the graphs of a step if they fit in `budget`.
    """

    def __init__(
        self,
        tableau: ButcherTableau,
        problem: Problem,
        product: VectorJacobian,
        *,
        times: bool,
        budget: float,
        only_small: bool = False,
    ):
        """Make the coefficients and choose how many steps fit."""
        self._field, self._product, self._times = problem.field, product, times
        self._one = StageByStage(
            tableau, problem, product, graphs=not only_small, times=times,
            budget=budget if only_small else None,
        )  # fmt: skip
        like, exact = problem.y0, tableau.exact
        self._real = real_dtype(like.dtype)
        self._interpolant = tableau.coefficients(problem.times.start.dtype, like.device).interpolant
        self._a = [[*map(float, row)] for row in (*exact.a, *exact.extra_a)]
        self._b = [*map(float, exact.b), *(0.0 for _ in exact.extra_c)]
        self._c = [*exact.c, *exact.extra_c]
        self._plain = 1 + max(i for i, weight in enumerate(self._b) if weight)
        self.width = 0
        if not like.is_complex() and like.numel():
            self.width = self._fitting(problem, budget, only_small)
        self.curious = self._one.curious and not self.width
        self._number = 0

    def _fitting(self, problem: Problem, budget: float, only_small: bool) -> int:
        """Return how many steps fit in `budget` bytes; 0 if single ones are better."""
        y0 = problem.y0
        with torch.enable_grad():
            _, graph = graph_bytes(
                lambda: self._field(problem.times.start, leaf(y0)), self._product.params
            )
        graph = max(graph or 0, y0.nbytes)
        if only_small and graph * y0.shape[1] > SMALL:
            return 0
        derivatives = 2 * (y0.shape[1] + 1) * y0.nbytes
        width = int(budget / (self._plain * (graph + derivatives)))
        return max(0 if only_small else 1, min(WIDEST, width))

    @property
    def graphs_at_once(self) -> int:
        """How many evaluations have their graph at the same time."""
        return self._plain * self.width if self.width else self._one.graphs_at_once

    def learn(self, graph_bytes: int) -> None:
        """Tell who takes single steps."""
        self._one.learn(graph_bytes)

    def reverse(self, step: Step, cotangent: Tensor) -> StepCotangents:
        """Take `cotangent (B, D)` of the state at the end of one step to its start."""
        return self._one.reverse(step, cotangent)

    def reverse_window(self, steps: Step, width: int, cotangent: Tensor) -> StepCotangents | None:
        """Take `cotangent (B, D)` from the end of the last step to the start of the first.

        Args:
            steps: `width` steps as one of `width * B` rows, those of the first step first.
            width: how many.
            cotangent: `(B, D)`.

        Returns:
            `y (B, D)`, all else for each step; None, and nothing was done, if the vector field
            cannot be called for many steps at once.
        """
        try:
            evaluated = self._evaluate(steps, width)
            columns, ends = self._directions(steps, evaluated)
        except Exception:  # whatever vmap meets in a user's function: one by one it may do
            self.width = 0
            return None
        return self._chain(steps, width, cotangent, evaluated, columns, ends)

    def _evaluate(self, steps: Step, width: int) -> list[tuple[list[Tensor], Tensor]]:
        """Return inputs and slope, with its graph, of each stage."""
        used = self._plain if steps.rows is None else len(self._c)
        h, evaluated, slopes = steps.dt.to(self._real)[:, None], [], []
        for i in range(used):
            state = steps.y
            if i:
                parts = [k * w for k, w in zip(slopes, self._a[i], strict=False) if w]
                state = torch.addcmul(state, h, sum(parts[1:], parts[0]) if parts else state * 0)
            inputs = [leaf(state)]
            time = self._time(steps, i)
            if self._times:
                inputs.append(time := leaf(time))
            with torch.enable_grad():
                many = (width, -1)
                slope = torch.vmap(self._field)(
                    time.unflatten(0, many), inputs[0].unflatten(0, many)
                ).flatten(0, 1)
            evaluated.append((inputs, slope))
            slopes.append(slope.detach())
        self._number += 1
        inputs, slope = evaluated[self._number % used]
        self._product.check(slope, inputs)
        return evaluated

    def _time(self, steps: Step, i: int) -> Tensor:
        if self._c[i] == 1:
            return steps.seen
        if self._c[i]:
            return torch.add(steps.t, steps.dt, alpha=float(self._c[i]))
        return steps.t if i or steps.start is None else steps.start

    def _directions(
        self, steps: Step, evaluated: list[tuple[list[Tensor], Tensor]]
    ) -> tuple[list[Tensor], Tensor]:
        """Return what each stage and the start get from each direction at the end of its step.

        `(D + 1, W B, D)` each: unit vectors, and last what outputs add; cotangents of `h k_i`.
        """
        rows, dim = steps.y.shape
        reading = None if steps.rows is None else Reading(steps, self._interpolant)
        unit = torch.eye(dim, dtype=steps.y.dtype, device=steps.y.device)
        end = torch.cat([unit, torch.zeros_like(unit[:1])])[:, None].expand(dim + 1, rows, dim)
        h, total = steps.dt.to(self._real)[:, None], end
        columns: list[Tensor] = []
        back: list[Tensor | None] = [None] * len(evaluated)
        for i in reversed(range(len(evaluated))):
            inputs, slope = evaluated[i]
            wanted = end * self._b[i]
            for j in range(i + 1, len(evaluated)):
                weight, part = self._a[j][i], back[j]
                if weight and part is not None:
                    wanted = torch.add(wanted, part, alpha=weight)
            if reading is not None:
                wanted = wanted.clone()
                wanted[-1] += reading.of_slope(i, wanted[-1])
            columns.append(wanted)
            if not slope.requires_grad:
                continue
            part = torch.autograd.grad(
                slope, inputs[0], h * wanted, retain_graph=True, allow_unused=True,
                is_grads_batched=True,
            )[0]  # fmt: skip
            self._product.count += dim + 1
            if part is None:
                continue
            if steps.active is not None:
                part = torch.where(steps.active[:, None], part, 0)
            back[i] = part
            total = total + part
        if reading is not None:
            total = total.clone()
            total[-1] += reading.of_start(total[-1])
        return columns[::-1], total

    def _chain(
        self,
        steps: Step,
        width: int,
        cotangent: Tensor,
        evaluated: list[tuple[list[Tensor], Tensor]],
        columns: list[Tensor],
        total: Tensor,
    ) -> StepCotangents:
        """Go through the steps one by one; then add up the gradients of all stages."""
        dim = cotangent.shape[1]
        by_step = total.unflatten(1, (width, -1)).permute(1, 2, 0, 3)  # (W, B, D + 1, D)
        one = torch.ones_like(cotangent[:, :1])
        there = torch.cat([cotangent, one], dim=1)[:, None]  # (B, 1, D + 1)
        met = []
        for each in reversed(by_step.unbind(0)):
            met.append(there)
            there = torch.cat([torch.bmm(there, each), one[:, None]], dim=2)
        shares = torch.stack(met[::-1]).flatten(0, 1)  # (W B, 1, D + 1)
        wanted = [torch.bmm(shares, each.transpose(0, 1))[:, 0] for each in columns]
        h = steps.dt.to(self._real)[:, None]
        times = [inputs[1] for inputs, _ in evaluated] if self._times else []
        at_times = self._product(
            [slope for _, slope in evaluated], times, [h * each for each in wanted]
        )
        y = there[:, 0, :dim]
        if not self._times:
            return StepCotangents(y, None, None, None, None)
        reading = None if steps.rows is None else Reading(steps, self._interpolant)
        at_t, at_dt, at_seen = (torch.zeros_like(steps.t) for _ in range(3))
        for i, (_, slope) in enumerate(evaluated):
            at_dt = at_dt + inner(wanted[i], slope.detach())
            if reading is not None:
                reading.see(i, slope.detach())
            at_time = at_times[i]
            if at_time is None:
                continue
            if self._c[i] == 1:
                at_seen = at_seen + at_time
            else:
                at_t = at_t + at_time
                at_dt = torch.add(at_dt, at_time, alpha=float(self._c[i]))
        return self._one.result(steps, reading, y, at_t, at_dt, at_seen)
