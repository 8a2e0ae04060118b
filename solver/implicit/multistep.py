"""Backward differences of variable step and order, every row with its own of both."""

import torch
from torch import Tensor

from solver.implicit.jacobian import JacobianSetup
from solver.implicit.linear import Factored, Matrix
from solver.implicit.newton import Solved
from solver.implicit.stepper import ImplicitStepper, first_order
from solver.methods.base import Trial
from solver.norms import Tolerance, rms_norm
from solver.problem import Field

HIGHEST = 5
LEAPT = 1.5  # times what equal steps divide the error by
STARTING = 2  # states up to which a row has no estimate of order 2
POINTS = HIGHEST + 1  # states kept, the last one first


class BdfStepper(ImplicitStepper):
    """Takes steps of the polynomial through the last states whose slope at the end is the field's.

    Hairer, Norsett & Wanner I (2nd ed.), section III.5, in Newton's form with the true, unequal
    steps. Time is `s = (t - t1) / h`, so the end of the step is 0 and its start -1. The error at
    order p is `(y1 - P_p) / (-s_p)`, with `P_p` the polynomial through the last p + 1 states.

    A row that knows its start alone takes the slope there for a second point, so that its first
    step is the trapezium rule's; that one and the next are judged as if they had order 1.

    `choice` is the order. The controller counts with one order of error, 1. An error e at order p
    is handed over as `e ** (2 / (p + 1))`, which asks for the same step.
    """

    def __init__(
        self,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None,
        exact: bool,
        setup: JacobianSetup,
    ):
        """Know the start alone."""
        super().__init__(field, like, graph=graph, tolerance=tolerance, exact=exact, setup=setup)
        ones = torch.ones(len(like), dtype=torch.int64, device=like.device)
        self._order, self._known, self._since = ones, ones, ones * 0  # order, states, steps at it
        self._next, self._lower = ones, ones  # orders after acceptance, after refusal
        self._states: list[Tensor] = []  # (B, D) each, the last one first
        self._times: list[Tensor] = []  # (B,) each
        self._tried_at: Tensor | None = None
        self._solver = self._newton(4)
        self._s: list[Tensor] = []
        self._dd: list[Tensor] = []
        self._e = self._y = self._end = self._start
        self._t = torch.zeros(len(like), dtype=time_dtype, device=like.device)
        self._values: list[Tensor] = []  # of the polynomials through 1, 2, .. states, at the end

    def restart(self, t: Tensor, y: Tensor, rows: Tensor) -> None:
        """Forget what was before in `rows (B,)`, and evaluate their start slope."""
        super().restart(t, y, rows)
        self._known = torch.where(rows, 1, self._known)
        self._order = torch.where(rows, 1, self._order)
        self._since = torch.where(rows, 0, self._since)

    def attempt(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor) -> Trial:
        """Try one step; the estimate of its error is not part of autograd's graph."""
        y = self._field.real(y)
        if self._tried_at is not None:  # refused rows go on with the order that suits them better
            again = t.detach() == self._tried_at
            self._since = torch.where(again & (self._lower < self._order), 0, self._since)
            self._order = torch.where(again, self._lower, self._order)
        self._order = torch.where(self._known <= STARTING, 2, self._order)
        self._tried_at, self._t, self._y = t.detach(), t, y
        self.choice = self._order
        h, active = dt.to(self._real)[:, None], self._active(dt)
        base, slope, lead = self._predict(t, dt, y, h)
        with torch.no_grad():
            solved = self._iterate(t, t_next, h.detach(), base.detach(), slope.detach(),
                                   lead.detach(), y.detach(), active)  # fmt: skip
            z = solved.z.masked_fill(~(active & solved.ok)[:, None], 0.0)
        self.unsolved = active & ~solved.ok & solved.finite
        if self._graph:
            z = self._attached(t_next, h, base, slope, lead, z)
        self._e, y1 = z, base + z
        self._end = (lead * z + slope) / torch.where(h > 0, h, 1.0)
        with torch.no_grad():
            error = self._judge(y.detach(), y1.detach(), active & solved.ok)
        lost = active & ~solved.ok
        if bool(lost.any()):
            y1 = y1.masked_fill(lost[:, None], torch.nan)
        return Trial(self._field.back(y1), self._field.back(error))

    def _predict(
        self, t: Tensor, dt: Tensor, y: Tensor, h: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return value and slope, by s, at the end of what goes through the last `order` states.

        Also `(B, 1)` by how much one unit of what is added to the value adds to the slope. The
        start of rows that know nothing else counts twice, as a value and as a slope.
        """
        safe = torch.where(dt > 0, dt, 1.0)
        alone = self._known == 1
        places, values = [-torch.ones_like(safe)], [y]
        for k in range(1, POINTS):
            place, value = places[-1] - 1, values[-1]
            if k == 1:
                place = torch.where(alone, places[0], place)
            if k <= len(self._times):
                known = self._known > k
                place = torch.where(known, (self._times[k - 1] - t) / safe - 1, place)
                value = torch.where(known[:, None], self._states[k - 1], value)
            places.append(place)
            values.append(value)
        s = [place.to(self._real)[:, None] for place in places]
        dd, row = [values[0]], values
        for k in range(1, POINTS):  # divided differences, Newton's form
            apart = [s[i + k] - s[i] for i in range(POINTS - k)]
            if k == 1:
                apart[0] = torch.where(alone[:, None], 1.0, apart[0])
            row = [(row[i + 1] - row[i]) / apart[i] for i in range(POINTS - k)]
            if k == 1:
                row[0] = torch.where(alone[:, None], h * self._start, row[0])
            dd.append(row[0])
        self._s, self._dd = s, dd
        value, slope = torch.zeros_like(y), torch.zeros_like(y)
        lead = torch.zeros_like(s[0])
        basis, rate = torch.ones_like(s[0]), torch.zeros_like(s[0])
        self._values, total = [], torch.zeros_like(y)
        for k in range(POINTS):
            inside = (self._order > k)[:, None]
            total = total + basis * dd[k]
            self._values.append(total.detach())
            value = torch.where(inside, total, value)
            slope = torch.where(inside, slope + rate * dd[k], slope)
            lead = torch.where(inside, lead - 1 / s[k], lead)
            basis, rate = basis * -s[k], rate * -s[k] + basis
        return value, slope, lead

    def _iterate(
        self,
        t: Tensor,
        t_next: Tensor,
        h: Tensor,
        base: Tensor,
        slope: Tensor,
        lead: Tensor,
        y: Tensor,
        active: Tensor,
    ) -> Solved:
        """Solve `lead z + slope = h f(t_next, base + z)`."""
        t_next = t_next.detach()
        scale, size = self._scales(y)
        hb = (h / lead)[:, 0]
        matrix = [self._factored(self._jacobian_for(t, y, h, active), hb, active)]
        self._solver.doubt(h[:, 0], self._current)

        def renew(z: Tensor, rows: Tensor) -> None:
            if bool(rows.any()):
                self._take_jacobian(t_next, base + z, rows)
                matrix[0] = self._factored(self._j_known(), hb, active)

        def solve(z: Tensor, rows: Tensor) -> Solved:
            solved = self._solver.solve(
                lambda z: z - (h * self._slope(t_next, base + z) - slope) / lead,
                lambda r: matrix[0].solve(r),
                z, scale, size, rows, renew,
            )  # fmt: skip
            self._counts.add(solved.iterations, None, solved.iterations)
            return solved

        guess = torch.zeros_like(base)
        for k in range(1, POINTS):  # what one state more says
            guess = torch.where((self._order == k)[:, None], self._values[k] - base, guess)
        solved = solve(guess, active)
        again = active & ~solved.ok & solved.finite & ~self._current
        if bool(again.any()):
            self._take_jacobian(self._at_start(t), y, again)
            self._current = self._current | again
            matrix[0] = self._factored(self._j_known(), hb, active)
            self._solver.forget(again)
            solved = solved.replaced(again, solve(guess, again))
        self._learn(solved)
        return solved

    def _factored(self, jacobian: Matrix, h: Tensor, rows: Tensor) -> Factored:
        self._counts.factored(rows)
        return jacobian.shifted(h, rows)

    def _attached(
        self, t_next: Tensor, h: Tensor, base: Tensor, slope: Tensor, lead: Tensor, z: Tensor
    ) -> Tensor:
        """Return the solution as a function of what it was made from, to first order."""
        active = (h.detach()[:, 0] > 0).long()
        self._counts.add(active, active)
        self._counts.factored(active)
        with torch.enable_grad():
            field, jacobian = self._with_jacobian(t_next, base + z)
            factored = jacobian.shifted((h / lead).detach()[:, 0])
            return z - factored.solve(first_order(z - (h * field - slope) / lead))

    def _judge(self, y: Tensor, y1: Tensor, rows: Tensor) -> Tensor:
        """Return the error as the controller is to see it; choose the orders to go on with."""
        norms, errors = [], []
        for p in range(1, POINTS):
            # Of a step far shorter than those before, as behind a jump that made one shrink, the
            # division would hide what has no smooth continuation.
            error = (y1 - self._values[p]) / (-self._s[p].detach()).clamp(max=LEAPT * (p + 1))
            back = self._field.back
            norms.append(rms_norm(self._tolerance.weighted(back(error), back(y), back(y1))))
            errors.append(error)
        every = torch.stack(norms)  # (5, B), order 1 first
        order, starting = self._order, self._known <= STARTING
        judged = torch.where(starting, 1, order)
        own = every.gather(0, judged[None] - 1)[0]
        grown = []
        for place, bias in ((order - 1, 6.0), (order, 6.0), (order + 1, 10.0)):
            there = every.gather(0, (place.clamp(1, HIGHEST) - 1)[None])[0]
            grown.append(_root(bias * there, place + 1))
        below, same, above = grown  # 1 / the factor each order would allow
        may_fall = order > 1
        may_rise = (order < HIGHEST) & (self._known > order + 1) & (self._since >= order)
        fall = may_fall & (below < same)
        rise = may_rise & (above < torch.where(fall, below, same))
        self._next = torch.where(rise, order + 1, torch.where(fall, order - 1, order))
        self._lower = torch.where(fall | (may_fall & ~rows), order - 1, order)
        self._next = torch.where(starting, 2, self._next)
        self._lower = torch.where(starting, 2, self._lower)
        chosen = torch.where(starting, 1, torch.where(own <= 1, self._next, self._lower))
        best = every.gather(0, chosen[None] - 1)[0]
        # A refused row stays refused, an accepted one accepted, whatever another order says.
        wanted = _root(best, chosen + 1) ** 2
        least = torch.where(chosen > 1, 0.05, 0.0)  # steps that grow too fast are not stable
        wanted = torch.where(own <= 1, wanted.clamp(max=1.0), wanted.clamp(min=1.001))
        wanted = torch.maximum(wanted, least.to(wanted.dtype))
        error = torch.zeros_like(errors[0])
        for p, each in enumerate(errors, start=1):
            error = torch.where((judged == p)[:, None], each, error)
        return error * (wanted / own.clamp_min(1e-30))[:, None]

    def polynomial(self, t: Tensor, dt: Tensor, t_next: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return the dense output of the attempt just made, with the slopes of both ends."""
        s, order = self._s, self._order
        h = dt.to(self._real)[:, None]
        degree = HIGHEST + 3

        def times(p: list[Tensor], place: Tensor) -> list[Tensor]:  # p(theta) (theta - 1 - place)
            shifted_up = [torch.zeros_like(p[0]), *p[:-1]]
            return [up - (1 + place) * own for up, own in zip(shifted_up, p, strict=True)]

        zero = torch.zeros_like(s[0])
        basis = [torch.ones_like(zero), *[zero] * (degree - 1)]
        last, product = basis, torch.ones_like(zero)
        total = [torch.zeros_like(self._e)] * degree
        for k in range(HIGHEST):
            inside = (order > k)[:, None]
            pairs = zip(total, basis, strict=True)
            total = [torch.where(inside, c + b * self._dd[k], c) for c, b in pairs]
            basis = times(basis, s[k])
            product = torch.where(inside, product * -s[k], product)
            last = [torch.where(inside, b, c) for b, c in zip(basis, last, strict=True)]
        total = [c + b * (self._e / product) for c, b in zip(total, last, strict=True)]
        # What is added has no value at any node and no slope at the end, s^2 times the basis.
        bend = times(times(last, torch.zeros_like(zero)), torch.zeros_like(zero))
        missing = (h * self._start - total[1]) / torch.where(bend[1] == 0, 1.0, bend[1])
        total = [c + b * missing for c, b in zip(total, bend, strict=True)]
        return self._field.back(torch.stack(total[1:]))

    def advance(self, moved: Tensor) -> None:
        """Go on from the attempt just made in the rows `moved (B,)`."""
        self._moved(moved)
        column = moved[:, None]
        states = [self._y, *self._states][: POINTS - 1]
        times = [self._t, *self._times][: POINTS - 1]
        for kept, new, rows in ((self._states, states, column), (self._times, times, moved)):
            padded = [*kept, *new[len(kept) :]]
            new[:] = [torch.where(rows, a, b) for a, b in zip(new, padded, strict=True)]
        self._states, self._times = states, times
        self._known = torch.where(moved, (self._known + 1).clamp(max=POINTS), self._known)
        same = self._next == self._order
        self._since = torch.where(moved, torch.where(same, self._since + 1, 0), self._since)
        self._order = torch.where(moved, self._next, self._order)
        self._start = torch.where(column, self._end, self._start)


def _root(error: Tensor, degree: Tensor) -> Tensor:
    """Return the root of each row's degree, `(B,)`."""
    return (error.clamp_min(1e-30).log() / degree.to(error.dtype)).exp()
