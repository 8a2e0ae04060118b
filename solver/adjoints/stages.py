"""Explicit Runge-Kutta steps taken back stage by stage, one evaluation's graph at a time."""

from typing import final

import torch
from torch import Tensor

from solver.adjoints.graph import leaf
from solver.adjoints.parameters import VectorJacobian
from solver.adjoints.reverser import Step, StepCotangents, StepReverser
from solver.loop import Problem
from solver.methods.explicit_rk import BufferStages
from solver.methods.tableau import ButcherTableau
from solver.problem import real_dtype


class Reading:
    """How the outputs of one step depend on its slopes: `y + h sum_i w_i(theta) k_i`."""

    def __init__(self, step: Step, interpolant: Tensor):
        """Evaluate weights and their derivatives at the places of the outputs."""
        assert step.rows is not None
        assert step.tau is not None
        assert step.cotangent is not None
        self.rows, self._cotangent = step.rows, step.cotangent
        self._t, self._dt = step.t[step.rows], step.dt[step.rows]
        self._theta = (step.tau - self._t) / self._dt
        powers = torch.arange(1, interpolant.shape[1] + 1, device=interpolant.device)
        at = self._theta[:, None]
        self._weights = (at**powers) @ interpolant.t()  # (n, S + E)
        self._rates = (at ** (powers - 1) * powers) @ interpolant.t()
        self.at_theta = torch.zeros_like(self._theta)

    def of_start(self, like: Tensor) -> Tensor:
        """Return the cotangent of the state at the start, `(B, D)`."""
        return torch.zeros_like(like).index_add_(0, self.rows, self._cotangent)

    def of_slope(self, i: int, like: Tensor) -> Tensor:
        """Return the cotangent of `h` times slope `i`, `(B, D)`."""
        share = (self._weights[:, i, None] * self._cotangent).to(like.dtype)
        return torch.zeros_like(like).index_add_(0, self.rows, share)

    def see(self, i: int, slope: Tensor) -> None:
        """Add what slope `i` says about the derivative by theta."""
        self.at_theta = self.at_theta + self._rates[:, i] * inner(self._cotangent, slope[self.rows])

    def times(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return derivatives by output time, start of the step and size of the step, `(n,)`."""
        at_theta = self.at_theta  # h cancels: d/dtheta has it, dtheta/dtau divides by it
        return at_theta, -at_theta, -at_theta * self._theta


def inner(a: Tensor, b: Tensor) -> Tensor:
    """Return the real inner product of each row, `(n, D), (n, D) -> (n,)`."""
    product = a * b if not a.is_complex() else (a.conj() * b).real
    return product.sum(dim=1)


@final
class StageByStage(StepReverser):
    """Goes back from the last stage to the first, eq. numbers of Hairer, Norsett & Wanner I, II.1.

    With `K_i` the cotangent of slope `k_i` and `Y_i` that of its argument,
    `K_i = h (b_i lam' + sum_{j > i} a_ji Y_j)`, `Y_i = (df/dy)^T K_i`, `lam = lam' + sum_i Y_i`:
    the exact derivative of the step, and the partner of the method in a symplectic partitioned
    pair, Sanz-Serna (2016), SIAM Review 58(1). No division by `b_i`, so none may vanish.

    Args:
        tableau: of the method.
        problem: field and shapes.
        product: vector-Jacobian products.
        graphs: keep the graphs of all stages of a step, which saves evaluating them twice.
        times: whether derivatives by times are wanted.
        budget: bytes; if the graphs of all stages turn out to fit, they are kept from then on.
    """

    def __init__(
        self,
        tableau: ButcherTableau,
        problem: Problem,
        product: VectorJacobian,
        *,
        graphs: bool,
        times: bool,
        budget: float | None = None,
    ):
        """Make the coefficients' tensors and room for slopes and cotangents."""
        like, self._field, self._product = problem.y0, problem.field, product
        self._graphs, self._times, self._number = graphs, times, 0
        self._budget, self.curious = budget, budget is not None
        self._real, time_dtype = real_dtype(like.dtype), problem.times.start.dtype
        tab = tableau.coefficients(self._real, like.device)
        in_time = tableau.coefficients(time_dtype, like.device)
        exact = tableau.exact
        self._a = [*tab.a, *tab.extra_a]
        self._c = [*exact.c, *exact.extra_c]
        self._interpolant = in_time.interpolant
        self._stages, self._count = len(exact.b), len(self._c)
        b = [*map(float, exact.b), *(0.0 for _ in exact.extra_c)]
        # Without outputs, trailing stages that only the error or the next step needs are left out.
        self._plain = 1 + max(i for i, weight in enumerate(b) if weight)
        self._slopes = BufferStages(self._count, like)
        self._cotangents = BufferStages(self._count + 1, like)
        rows = [[*map(float, row)] for row in (*exact.a, *exact.extra_a)]
        self._weights = {
            used: [
                torch.tensor(
                    [b[i], *(rows[j][i] for j in reversed(range(i + 1, used)))],
                    dtype=self._real,
                    device=like.device,
                )
                for i in range(used)
            ]
            for used in {self._plain, self._count}
        }
        self._ones = torch.ones(self._count + 1, dtype=self._real, device=like.device)

    @property
    def graphs_at_once(self) -> int:
        """How many evaluations have their graph at the same time."""
        return self._plain if self._graphs else 1

    def learn(self, graph_bytes: int) -> None:
        """Keep the graphs of all stages if they fit."""
        if self._budget is not None:
            self._graphs = self._plain * graph_bytes <= self._budget

    def reverse(self, step: Step, cotangent: Tensor) -> StepCotangents:
        """Take `cotangent (B, D)` of the state at the end to the start."""
        reading = None if step.rows is None else Reading(step, self._interpolant)
        used = self._plain if reading is None else self._count
        h = step.dt.to(self._real)[:, None]
        states, evaluated = self._forward(step, h, used)
        at_t = at_dt = at_seen = None
        if self._times:
            at_t, at_dt, at_seen = (torch.zeros_like(step.t) for _ in range(3))
        back = self._cotangents
        back.put(0, cotangent)
        self._number += 1
        for i in reversed(range(used)):
            wanted = back.combine(self._weights[used][i], used - i)
            if reading is not None:
                wanted = wanted + reading.of_slope(i, wanted)
            inputs, slope = evaluated.pop() if evaluated else self._evaluate(step, i, states[i])
            if i == self._number % used:
                self._product.check(slope, inputs)
            at_state, *at_time = self._product([slope], inputs, [h * wanted])
            back.put(used - i, self._masked(at_state, step, cotangent))
            if at_t is not None and at_dt is not None and at_seen is not None:
                slope = slope.detach()
                at_dt = at_dt + inner(wanted, slope)
                if reading is not None:
                    reading.see(i, slope)
                if at_time and at_time[0] is not None:
                    if self._c[i] == 1:
                        at_seen = at_seen + at_time[0]
                    else:
                        at_t = at_t + at_time[0]
                        at_dt = torch.add(at_dt, at_time[0], alpha=float(self._c[i]))
        y = back.combine(self._ones[: used + 1], used + 1)
        y = y.clone() if reading is None else y + reading.of_start(y)
        return self.result(step, reading, y, at_t, at_dt, at_seen)

    def _forward(
        self, step: Step, h: Tensor, used: int
    ) -> tuple[list[Tensor], list[tuple[list[Tensor], Tensor]]]:
        """Return the states of all stages and, if graphs are kept, their evaluations."""
        slopes, states, evaluated = self._slopes, [step.y], []
        known = 0 if step.slopes is None else self._stages
        if step.slopes is not None:
            for i, slope in enumerate(step.slopes.unbind(1)):
                slopes.put(i, slope)
        for i in range(used):
            if i:
                states.append(torch.addcmul(step.y, h, slopes.combine(self._a[i], i)))
            if self._graphs:
                evaluated.append(self._evaluate(step, i, states[i]))
                slopes.put(i, evaluated[-1][1].detach())
            elif known <= i < used - 1:
                slopes.put(i, self._field(self._time(step, i), states[i]))
        return states, evaluated

    def _time(self, step: Step, i: int) -> Tensor:
        if self._c[i] == 1:
            return step.seen
        if self._c[i]:
            return torch.add(step.t, step.dt, alpha=float(self._c[i]))
        return step.t if i or step.start is None else step.start

    def _evaluate(self, step: Step, i: int, state: Tensor) -> tuple[list[Tensor], Tensor]:
        """Evaluate the field in stage `i` with its graph."""
        time, inputs = self._time(step, i), [leaf(state)]
        if self._times:
            inputs.append(time := leaf(time))
        with torch.enable_grad():
            return inputs, self._field(time, inputs[0])

    def _masked(self, gradient: Tensor | None, step: Step, like: Tensor) -> Tensor:
        if gradient is None:
            return torch.zeros_like(like)
        return gradient if step.active is None else torch.where(step.active[:, None], gradient, 0)

    def result(
        self,
        step: Step,
        reading: Reading | None,
        y: Tensor,
        at_t: Tensor | None,
        at_dt: Tensor | None,
        at_seen: Tensor | None,
    ) -> StepCotangents:
        """Return the cotangents, those of times with what outputs add to them."""
        at_tau = None
        if at_t is not None and at_dt is not None and at_seen is not None:
            if reading is not None:
                at_tau, by_t, by_dt = reading.times()
                at_t = at_t.index_add(0, reading.rows, by_t)
                at_dt = at_dt.index_add(0, reading.rows, by_dt)
            if step.active is not None:
                at_t, at_dt, at_seen = (
                    torch.where(step.active, each, 0) for each in (at_t, at_dt, at_seen)
                )
        return StepCotangents(y, at_t, at_dt, at_seen, at_tau)
