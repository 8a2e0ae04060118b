"""What is done with adaptive steps: outputs, a stop at an event, dense output."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from solver.compat._adaptive import Adaptive
from solver.compat._roots import first_zero
from solver.compat._system import System


def integrate(method: str, system: System) -> Tensor:
    """Return the states at all times, `(T, *shape)`."""
    solve, times = Adaptive(method, system), system.t.detach().to(torch.float64).tolist()
    if len(times) == 1:
        return system.y0[None]
    solve.begin()
    found = [system.y0[None]]
    at, steps, sign, last = 1, 0, system.sign, len(times)
    while at < last:
        assert steps < solve.limit, f"max_num_steps exceeded ({steps}>={solve.limit})"
        steps += 1
        if not solve.step():
            continue
        end = at
        while end < last and (times[end] - solve.t) * sign <= 0:
            end += 1
        if end > at:
            found.append(solve.read(_places(solve, times[at:end], system.t[at:end])))
            at, steps = end, 0
        solve.go_on()
    return torch.cat(found)


def _places(solve: Adaptive, times: list[float], given: Tensor) -> list[float] | Tensor:
    """Return the places of outputs in the step just accepted."""
    places = [(time - solve.t_before) / solve.h for time in times]
    if solve.shift is None:
        return places
    found = torch.tensor(places, dtype=torch.float64, device=given.device)
    return found + ((given - given.detach()) - solve.shift) / solve.h


def until_event(
    method: str, system: System, event: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Return when `event` first becomes zero, and the states at both ends, `(2, *shape)`."""
    solve = Adaptive(method, system)
    solve.begin()

    def value(t: float, y: Tensor) -> float:
        with torch.no_grad():
            return float(event(solve.scalar(t), y))

    before = now = value(solve.t, solve.y)
    if now == 0:
        return solve.scalar(solve.t), torch.stack([system.y0, solve.y])
    steps = 0
    while True:
        assert steps < solve.limit, f"max_num_steps exceeded ({steps}>={solve.limit})"
        steps += 1
        if not solve.step():
            continue
        now = value(solve.t, solve.y)
        if now * before <= 0 or math.isnan(now):
            break
        before = now
        solve.go_on()

    def inside(theta: float) -> float:
        with torch.no_grad():
            y = solve.read([theta])[0]
        return value(solve.t_before + theta * solve.h, y)

    size = max(abs(solve.t_before), abs(solve.t)) / abs(solve.h)
    theta = first_zero(
        inside, 0.0, 1.0, before, now, 4 * torch.finfo(solve.dtype).eps * max(size, 1)
    )
    place: list[float] | Tensor = [theta]
    if solve.shift is not None:  # the step moves with the start, the event does not
        place = theta - solve.shift.reshape(1).to(torch.float64) / solve.h
    y1 = solve.read(place)[0]
    return solve.scalar(solve.t_before + theta * solve.h), torch.stack([system.y0, y1])


def dense(method: str, system: System) -> Callable[[Any], Tensor]:
    """Return the solution between the first and the last time as a function of time."""
    solve, end, sign = Adaptive(method, system), float(system.t[-1].detach()), system.sign
    solve.begin()
    starts, ends, polynomials = [], [], []
    steps = 0
    while (end - solve.t) * sign > 0:
        assert steps < solve.limit, f"max_num_steps exceeded ({steps}>={solve.limit})"
        steps += 1
        if solve.step():
            starts.append(solve.t_before)
            ends.append(solve.t)
            polynomials.append(solve.coefficients())
            solve.go_on()
    like = {"dtype": torch.float64, "device": system.y0.device}
    first, last = torch.tensor(starts, **like), torch.tensor(ends, **like)
    keys, whole = first * sign, torch.stack(polynomials)
    low = float(system.t[0].detach())

    def solution(t: Any) -> Tensor:
        at = torch.as_tensor(t, **like)
        inside = ((at.detach() - low) * sign >= 0) & ((last[-1] - at.detach()) * sign >= 0)
        assert bool(inside.all()), f"t must lie between {low} and {ends[-1]}"
        place = torch.searchsorted(keys, (at.detach() * sign).contiguous(), right=True) - 1
        place = place.clamp(min=0)
        theta = (at - first[place]) / (last[place] - first[place])
        theta = theta.to(system.real).reshape(*at.shape, *[1] * system.y0.ndim)
        rows = whole[place].movedim(at.ndim, 0)
        y = rows[-1]
        for row in rows[:-1].flip(0):
            y = row + theta * y
        return y

    return solution
