"""Where functions change sign within a step: seen on a grid, then enclosed, all rows at once."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

NODES = 4  # intervals of a step whose ends are looked at
CELLS = 4  # cells of each, in which the interpolant through these ends is looked at
FINE = 2 * CELLS  # points of the grid to an interval: ends of cells, and a place inside each
MOST_ROUNDS = 100  # of enclosing; the method needs at most two more than bisection


class Crossing(NamedTuple):
    """One change of sign in every row that has it."""

    theta: Tensor  # (B,) place in the step, 0 to 1: the first one seen on the other side
    there: Tensor  # (B,) bool, which rows have it
    rising: Tensor  # (B,) bool


@cache
def _interpolation(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return what takes values at the nodes to those of their interpolant, `(2 (M + 1), 5)`.

    Its values at the ends of all `M` cells, then its derivatives there times a cell's length.
    """
    nodes = torch.linspace(0, 1, NODES + 1, dtype=torch.float64)
    ends = torch.linspace(0, 1, NODES * CELLS + 1, dtype=torch.float64)
    powers = torch.arange(NODES + 1)
    to_powers = torch.linalg.inv(nodes[:, None] ** powers)
    weights = (ends[:, None] ** powers) @ to_powers
    weights[::CELLS] = torch.eye(NODES + 1, dtype=torch.float64)  # exact at the nodes
    lower = (powers - 1).clamp(min=0)
    slopes = (powers * ends[:, None] ** lower) @ to_powers / (NODES * CELLS)
    return torch.cat([weights, slopes]).to(dtype=dtype, device=device)


def fine_values(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return a grid over the step and the interpolant of `values (5, ...)` there, `(2 M + 1, ...)`.

    It is the function itself where that is a polynomial of degree 4, as a linear function of a
    state with dense output of that degree is. Between the ends of every cell the grid has the
    place where the interpolant turns, if it does, so that no narrow pair of zeros is missed.
    """
    both = (_interpolation(values.dtype, values.device) @ values.flatten(1)).chunk(2)
    ends, slopes = (part.reshape(len(part), *values.shape[1:]) for part in both)
    left, right = slopes[:-1], slopes[1:]
    turns = left * right < 0
    place = torch.where(turns, left / torch.where(turns, left - right, 1.0), 0.5)
    bend = torch.where(turns, left, ends[1:] - ends[:-1])  # a parabola, or a straight line
    inside = ends[:-1] + 0.5 * bend * torch.where(turns, place, 1.0)
    fine = _interleaved(ends, inside)
    cells = torch.arange(len(place), device=place.device).reshape(-1, *[1] * (place.ndim - 1))
    whole = torch.arange(len(ends), device=place.device).reshape(-1, *[1] * (place.ndim - 1))
    grid = _interleaved(whole.to(place.dtype).expand_as(ends), place + cells)
    return grid / len(place), fine


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    last = even[-1:]
    return torch.cat([torch.stack([even[:-1], odd], dim=1).flatten(0, 1), last])


def crossings(
    g: Callable[[Tensor], Tensor],
    grid: Tensor,
    fine: Tensor,
    side: Tensor,
    begin: Tensor,
    width: Tensor,
    active: Tensor,
    enough: Callable[[Crossing], tuple[Tensor, Tensor]],
) -> tuple[list[Crossing], Tensor]:
    """Find changes of sign in the order in which they happen.

    Args:
        g: the function, at any place of the step in every row, `(B,) -> (B,)`.
        grid, fine: places in the step and its interpolant there, `(2 M + 1, B)`.
        side: its sign at the start, `(B,)`, 0 where it is not known.
        begin: where to begin, `(B,)`, 0 or little more.
        width: resolution wanted, `(B,)`.
        active: which rows to look at, `(B,)` bool.
        enough: says of a crossing in which rows it counts, and which of these need no further
            ones, `(B,)` bool each.

    Returns:
        The crossings that count and the sign at the end of the step, 0 where it is 0.
    """
    last = len(fine) - 1
    index = torch.arange(last + 1, device=fine.device)[:, None]
    is_node = index % FINE == 0
    at = torch.zeros_like(side, dtype=torch.int64)
    found: list[Crossing] = []
    for _ in range(last + 1):
        side = torch.where(side == 0, _sign_after(fine, at), side)
        beyond = ((fine * side < 0) | ((fine == 0) & is_node)) & (index > at) & (side != 0)
        has = beyond.any(dim=0) & active
        if not bool(has.any()):
            break
        j = torch.where(has, beyond.int().argmax(dim=0), 1)
        low, high = _picked(grid, torch.maximum(j - 1, at)), _picked(grid, j)
        low = torch.minimum(torch.maximum(low, begin), high)
        g_low, g_high = g(low), g(high)
        sure = (g_low * side > 0) & (g_high * side <= 0)
        # The interpolant may be wrong between nodes, but not about what happened at them.
        node_beyond = beyond & is_node
        k = torch.where(node_beyond.any(dim=0), node_beyond.int().argmax(dim=0), 0)
        doubtful = has & ~sure & (k > 0)
        if bool(doubtful.any()):
            before = _picked(grid, torch.maximum(k - FINE, at).clamp(min=0))
            low = torch.where(doubtful, torch.maximum(before, begin), low)
            high = torch.where(doubtful, _picked(grid, k), high)
            g_low, g_high = g(low), g(high)
            j = torch.where(doubtful, k, j)
        there = has & (sure | doubtful)
        theta = _enclose(g, side, low, high, g_low, g_high, width, there)
        rising = side < 0
        counts, full = enough(Crossing(theta, there, rising))
        if bool(counts.any()):
            found.append(Crossing(theta, counts, rising))
        at = torch.where(has, j, at)
        side = torch.where(there, torch.where(_picked(fine, j) == 0, 0.0, -side), side)
        active = active & ~full
    return found, side


def _picked(values: Tensor, index: Tensor) -> Tensor:
    """Return `values[index[b], b]`, `(B,)`."""
    return values.gather(0, index[None])[0]


def _sign_after(fine: Tensor, at: Tensor) -> Tensor:
    """Return the first sign of each row behind the grid point `at (B,)`, 0 if there is none."""
    index = torch.arange(len(fine), device=fine.device)[:, None]
    known = (fine != 0) & ~fine.isnan() & (index > at)
    first = known.int().argmax(dim=0)
    sign = _picked(fine, first).sign()
    return torch.where(known.any(dim=0), sign, 0.0)


def _enclose(
    g: Callable[[Tensor], Tensor],
    side: Tensor,
    low: Tensor,
    high: Tensor,
    g_low: Tensor,
    g_high: Tensor,
    width: Tensor,
    rows: Tensor,
) -> Tensor:
    """Return where `g` leaves `side`, `(B,)`: the end of a bracket of `width` that is beyond.

    The ITP method: never slower than bisection by more than a step, superlinear where `g` is
    smooth. Oliveira & Takahashi (2020), ACM Trans. Math. Softw. 47(1), with kappa_2 = 2.
    """
    high = torch.where(rows, high, low)
    half = width / 2
    length = (high - low).clamp(min=torch.finfo(low.dtype).tiny)
    bisections = (length / width).log2().ceil().clamp(min=0)
    reach = half * torch.exp2(bisections + 1)
    kappa = 0.01 / length
    a, b, g_a, g_b = low, high, g_low * side, g_high * side  # from above 0 to 0 or below
    for _ in range(MOST_ROUNDS):
        open_ = (b - a > width) & (g_b != 0)
        if not bool(open_.any()):
            break
        middle = (a + b) / 2
        secant = (a * g_b - b * g_a) / (g_b - g_a)
        secant = torch.where((secant >= a) & (secant <= b), secant, middle)
        to_middle = middle - secant
        push = kappa * (b - a) ** 2
        x = torch.where(push <= to_middle.abs(), secant + to_middle.sign() * push, middle)
        room = (reach - (b - a) / 2).clamp(min=0)
        x = x.clamp(middle - room, middle + room).clamp(a + half, b - half)
        x = torch.where(open_, x, b)
        g_x = g(x) * side
        beyond = open_ & (g_x <= 0)
        short = open_ & ~beyond
        b, g_b = torch.where(beyond, x, b), torch.where(beyond, g_x, g_b)
        a, g_a = torch.where(short, x, a), torch.where(short, g_x, g_a)
        reach = reach / 2
    return b
