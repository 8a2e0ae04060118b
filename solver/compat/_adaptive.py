"""Adaptive explicit steps of one system, with torchdiffeq's choice of steps, in floats of time.

It steps beyond an output and reads it off a quartic; it judges a step by one norm. Everything that
is a scalar there is a float here, so that a step costs two operations a stage and one wait for the
device.
"""

import bisect
import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

from solver.compat._norms import rms
from solver.compat._roots import beside
from solver.compat._system import System, use
from solver.compat._tableaus import ADAPTIVE, Pair

OPTIONS: dict[str, Any] = {
    "min_step": 0.0, "max_step": math.inf, "first_step": None, "step_t": None, "jump_t": None,
    "safety": 0.9, "ifactor": 10.0, "dfactor": 0.2, "max_num_steps": 2**31 - 1,
    "dtype": torch.float64,
}  # fmt: skip
SUPPORTED = ("callback_step", "callback_accept_step", "callback_reject_step")


class _NeedsGraph(Exception):
    """A slope turned out to be part of autograd's graph."""


@cache
def _weights(pair: Pair, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    rows = [torch.tensor(row, dtype=dtype, device=device) for row in pair.a]
    return {
        "a": rows,
        "b": torch.tensor(pair.b, dtype=dtype, device=device),
        "error": torch.tensor(pair.error, dtype=dtype, device=device),
        "dense": torch.tensor(pair.dense(), dtype=torch.float64, device=device),
    }


class Adaptive:
    """One solve under way."""

    def __init__(self, method: str, system: System):
        """Read the options; nothing is evaluated yet."""
        self.system, self.pair = system, ADAPTIVE[method]
        options = use(method, system.options, OPTIONS)
        self._min, self._max = float(options["min_step"]), float(options["max_step"])
        self._safety = float(options["safety"])
        self._grow, self._shrink = float(options["ifactor"]), float(options["dfactor"])
        self.limit, self._first = int(options["max_num_steps"]), options["first_step"]
        self.dtype = torch.promote_types(options["dtype"], system.real)
        self._sign = system.sign
        y0 = system.y0
        self._shape = y0.shape
        self.y = y0
        self._weights = _weights(self.pair, y0.dtype, y0.device)
        self.t = self.t_before = self._float(system.t[0])
        # Zero, and what carries the derivative by the start: all steps move with it.
        self.shift: Tensor | None = None
        if system.t.requires_grad and torch.is_grad_enabled():
            self.shift = system.t[0] - system.t[0].detach()
        self._stops = _stops(options["step_t"], options["jump_t"], self.t, self._sign)
        self._next = [0, 0]
        self.dt, self.h = 0.0, 0.0
        self.y_before = y0
        self._plain = system.norm is rms and not isinstance(system.rtol, Tensor)
        self._plain = self._plain and not isinstance(system.atol, Tensor)
        self._graph = False
        self._list: list[Tensor] = []
        self._k = y0.new_empty(0)

    # What is common to all uses

    def begin(self) -> None:
        """Evaluate the first slope and choose the first step."""
        system = self.system
        slope = system.slope(self._times([self.t])[0], self.y)
        graph = torch.is_grad_enabled()
        self._graph = graph and (
            slope.requires_grad or self.y.requires_grad or self.shift is not None
        )
        if not self._graph:
            self._make_buffer()
            self._rows[0].copy_(slope.reshape(-1))
        else:
            self._list = [slope] * len(self.pair.b)
        with torch.no_grad():
            self._size = self.y.detach().abs()
            if self._first is None:
                self.dt = self._choose_first_step(slope.detach())
            else:
                self.dt = float(self._first)
        assert bool(self.y.detach().isfinite().all()), (
            f"non-finite values in state `y`: {self.y.detach()}"
        )

    def step(self) -> bool:
        """Try a step; return whether it was accepted.

        Afterwards `t_before`, `y_before`, `h` and the slopes tell of it, `t`, `y` of its end.

        Raises:
            AssertionError: the step is too small for the time, or the state is not finite.
        """
        system, sign, t = self.system, self._sign, self.t
        dt = self.dt if math.isfinite(self.dt) else self._min
        dt = min(max(dt, self._min), self._max)
        if system.callbacks:
            system.tell("callback_step", self.scalar(t), self.y, self.scalar(dt))
        t1 = self._rounded(t + sign * dt)
        assert (t1 - t) * sign > 0, f"underflow in dt {dt}"
        t1, stopped, jumped = self._stop(t, t1)
        if stopped is not None:
            dt = (t1 - t) * sign
        h = sign * dt
        try:
            y1 = self._attempt(t, h, t1)
        except _NeedsGraph:
            self._to_graph()
            y1 = self._attempt(t, h, t1)
        with torch.no_grad():
            ratio, size = self._ratio(y1.detach(), dt)
        accepted = (ratio <= 1 and not dt > self._max) or dt <= self._min
        if system.callbacks:
            name = "callback_accept_step" if accepted else "callback_reject_step"
            system.tell(name, self.scalar(t), self.y, self.scalar(dt))
        if accepted:
            if not ratio <= 1:
                assert bool(y1.detach().isfinite().all()), f"non-finite values in state `y`: {y1}"
            self.t_before, self.y_before, self.h = t, self.y, h
            self.t, self.y, self._size = t1, y1, size
            if stopped is not None:
                self._next[stopped] = min(self._next[stopped] + 1, len(self._stops[stopped]) - 1)
            self._jumped = jumped
        self.dt = min(max(dt * self._factor(ratio), self._min), self._max)
        return accepted

    def go_on(self) -> None:
        """Take the slope at the end of the step just accepted for the next."""
        slope = None
        if self._jumped:
            after = self._times([beside(self.t, self._sign, self.system.real)])[0]
            slope = self.system.slope(after, self.y)
            if slope.requires_grad and torch.is_grad_enabled() and not self._graph:
                self._to_graph()
        if self._graph:
            self._list[0] = self._list[-1] if slope is None else slope
        else:
            self._rows[0].copy_(self._rows[-1] if slope is None else slope.reshape(-1))

    def read(self, thetas: list[float] | Tensor) -> Tensor:
        """Return states of the step just accepted at `(n,)` places in it, `(n, *shape)`."""
        y, at = self.y_before, thetas
        if not isinstance(at, Tensor):
            at = torch.tensor(at, dtype=torch.float64, device=y.device)
        powers = at[:, None] ** torch.arange(1, 5, device=y.device)
        weights = (powers.to(torch.float64) @ self._weights["dense"] * self.h).to(y.dtype)
        k = torch.stack(self._list).reshape(len(self._list), -1) if self._graph else self._k
        return torch.addmm(y.reshape(1, -1), weights, k).reshape(-1, *self._shape)

    def coefficients(self) -> Tensor:
        """Return the polynomial of the step just accepted, `(5, *shape)`, in powers of theta."""
        k = torch.stack(self._list).reshape(len(self._list), -1) if self._graph else self._k
        weights = (self._weights["dense"] * self.h).to(self.y.dtype)
        return torch.cat([self.y_before.reshape(1, -1), weights @ k]).reshape(5, *self._shape)

    # Times

    def _float(self, t: Tensor) -> float:
        return float(t.detach().to(self.dtype))

    def _rounded(self, t: float) -> float:
        if self.dtype == torch.float64:
            return t
        return float(torch.tensor(t, dtype=self.dtype))

    def scalar(self, t: float) -> Tensor:
        return torch.tensor(t, dtype=self.dtype, device=self.y.device)

    def _times(self, times: list[float]) -> tuple[Tensor, ...]:
        made = torch.tensor(times, dtype=self.system.real, device=self.y.device)
        if self.shift is not None:
            made = made + self.shift.to(made.dtype)
        return made.unbind(0)

    def _stop(self, t: float, t1: float) -> tuple[float, int | None, bool]:
        """Return where the step ends, and which list of stops it ends at."""
        stopped = None
        for which in (0, 1):  # grid points first, then jumps, which may come earlier
            stops = self._stops[which]
            if stops:
                stop = stops[self._next[which]]
                if (stop - t) * self._sign > 0 and (t1 - stop) * self._sign > 0:
                    t1, stopped = stop, which
        return t1, stopped, stopped == 1

    # Slopes

    def _make_buffer(self) -> None:
        y, count = self.y.detach(), len(self.pair.b)
        self._k = torch.zeros((count, y.numel()), dtype=y.dtype, device=y.device)
        self._rows = self._k.unbind(0)
        self._first_rows = [self._k[: i + 1].t() for i in range(count)]

    def _to_graph(self) -> None:
        self._graph = True
        first = self._rows[0].clone().view(self._shape)
        self._list = [first] * len(self.pair.b)

    def _attempt(self, t: float, h: float, t1: float) -> Tensor:
        """Evaluate the slopes of a step; return its end."""
        pair, real = self.pair, self.system.real
        before = beside(t1, -self._sign, real)
        times = self._times([before if c == 1.0 else t + c * h for c in pair.c])
        if self._graph:
            y1 = self._stages_in_graph(times, h)
            return y1 if pair.ends_with_step else self._sum(pair.b, h)
        y1 = self._stages(times, h)
        return y1 if pair.ends_with_step else self._combined(self._weights["b"], -1, h)

    def _stages(self, times: tuple[Tensor, ...], h: float) -> Tensor:
        slope_of, rows, y_i = self.system.slope, self._rows, self.y
        for i, (t, weights) in enumerate(zip(times, self._weights["a"], strict=True)):
            y_i = self._combined(weights, i, h)
            slope = slope_of(t, y_i)
            if slope.requires_grad and torch.is_grad_enabled():
                raise _NeedsGraph
            rows[i + 1].copy_(slope.reshape(-1))
        return y_i

    def _combined(self, weights: Tensor, i: int, h: float) -> Tensor:
        flat = torch.addmv(self.y.reshape(-1), self._first_rows[i], weights, alpha=h)
        return flat.view(self._shape)

    def _stages_in_graph(self, times: tuple[Tensor, ...], h: float) -> Tensor:
        k, slope_of, y_i = self._list, self.system.slope, self.y
        for i, (t, weights) in enumerate(zip(times, self.pair.a, strict=True)):
            y_i = self._sum(weights, h)
            k[i + 1] = slope_of(t, y_i)
        return y_i

    def _sum(self, weights: tuple[float, ...], h: float) -> Tensor:
        total, factor = None, 1.0  # small terms first: the state may be much larger
        for slope, weight in zip(self._list, weights, strict=False):
            if not weight:
                continue
            if total is None:
                total, factor = slope, weight
            else:
                total = torch.add(total, slope, alpha=weight / factor)
        return self.y if total is None else torch.add(self.y, total, alpha=factor * h)

    # Sizes of steps

    def _ratio(self, y1: Tensor, dt: float) -> tuple[float, Tensor]:
        """Return the error over the tolerance, and the size of the end."""
        system = self.system
        if self._graph:
            error: Tensor | None = None
            for slope, weight in zip(self._list, self.pair.error, strict=True):
                if weight:
                    bare = slope.detach()
                    error = bare * weight if error is None else error.add_(bare, alpha=weight)
            assert error is not None
        else:
            error = torch.mv(self._first_rows[-1], self._weights["error"]).view(self._shape)
        size = y1.abs()
        scale = torch.maximum(self._size, size).mul_(system.rtol) if self._plain else (
            torch.maximum(self._size, size) * system.rtol
        )  # fmt: skip
        scale = scale.add_(system.atol) if self._plain else scale + system.atol
        if self._plain:
            count = max(error.numel(), 1)
            norm = torch.linalg.vector_norm(error.div_(scale)).item()
            return norm * dt / math.sqrt(count), size
        return abs(float(system.norm(error * dt / scale))), size

    def _factor(self, ratio: float) -> float:
        if ratio == 0:
            return self._grow
        if math.isnan(ratio):
            return math.nan
        least = 1.0 if ratio < 1 else self._shrink
        wanted = 0.0 if math.isinf(ratio) else self._safety / ratio ** (1.0 / self.pair.order)
        return min(self._grow, max(wanted, least))

    def _choose_first_step(self, slope: Tensor) -> float:
        """Choose the first step; Hairer, Norsett & Wanner I (2nd ed.), section II.4."""
        system, y, order = self.system, self.y.detach(), self.pair.order
        scale = system.atol + self._size * system.rtol
        d0, d1 = (abs(float(system.norm(each / scale))) for each in (y, slope))
        h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
        probe_t = self._times([self.t + self._sign * h0])[0].detach()
        probe = system.slope(probe_t, torch.add(y, slope, alpha=self._sign * h0))
        d2 = abs(float(system.norm((probe - slope) / scale))) / h0 if h0 else math.nan
        if d1 <= 1e-15 and d2 <= 1e-15:
            h1 = max(1e-6, h0 * 1e-3)
        else:
            largest = max(d1, d2)
            h1 = (0.01 / largest) ** (1.0 / order) if largest > 0 else math.nan
        return min(100 * h0, h1)


def _stops(step_t: Any, jump_t: Any, t0: float, sign: float) -> tuple[list[float], list[float]]:
    lists = []
    for given in (step_t, jump_t):
        times = [] if given is None else torch.as_tensor(given, dtype=torch.float64).tolist()
        ahead = sorted((t for t in times if (t - t0) * sign >= 0), key=lambda t: t * sign)
        lists.append(ahead)
    both = lists[0] + lists[1]
    if len(set(both)) < len(both):
        raise ValueError("`step_t` and `jump_t` must not have any repeated elements between them.")
    first = [bisect.bisect([t * sign for t in each], t0 * sign) for each in lists]
    return lists[0][first[0] :], lists[1][first[1] :]
