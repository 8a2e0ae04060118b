"""One attempt of a step, as pure functions of tensors: what every executor of the loop does."""

from typing import NamedTuple

import torch
from torch import Tensor

from solver.methods.base import Method, Trial
from solver.norms import Tolerance, rms_norm
from solver.status import Status

SMALLEST = 2.0**-104  # of the first step, where t is near zero and any step could be resolved


class Aim(NamedTuple):
    """Where an attempt goes; all `(B,)`, in the time dtype but for `reach`."""

    reach: Tensor  # bool, cut to end at the stop
    t_next: Tensor
    dt: Tensor  # as long as the time dtype makes it
    tried: Tensor  # before rounding `t + dt`


def aim(t: Tensor, asked: Tensor, stretch: Tensor, stop: Tensor) -> Aim:
    """Cut the step asked for at the stop, which it may be stretched a little to land on."""
    reach = torch.addcmul(t, asked, stretch) >= stop
    t_next = torch.where(reach, stop, t + asked)
    dt = t_next - t
    return Aim(reach, t_next, dt, torch.where(reach, dt, asked))


def judge(trial: Trial, y: Tensor, tolerance: Tolerance, method: Method) -> tuple[Tensor, Tensor]:
    """Return the error over tolerance `(B, D)` and its norm `(B,)`, NaN for a trial not finite."""
    if trial.error is None:
        weighted = trial.y1 * 0
        return weighted, rms_norm(weighted)
    weighted = tolerance.weighted(trial.error, y, trial.y1)
    low = None
    if trial.error_low is not None:
        low = rms_norm(tolerance.weighted(trial.error_low, y, trial.y1))
    return weighted, method.error_ratio(rms_norm(weighted), low)


def resized(tried: Tensor, factor: Tensor) -> Tensor:
    """Return the next step, `(B,)`, in the time dtype though the factor may be wider."""
    return (tried * factor).to(tried.dtype)


def bounded(dt: Tensor, dt_min: Tensor | float | None, dt_max: Tensor | float | None) -> Tensor:
    """Return the step within its bounds, `(B,)`."""
    if dt_min is not None:
        dt = dt.clamp(min=dt_min)
    return dt if dt_max is None else dt.clamp(max=dt_max)


def smallest_and_stretch(
    first_dt: Tensor, span: Tensor, far: Tensor, fixed: bool
) -> tuple[Tensor, Tensor]:
    """Return how small a step may get and how far one may be stretched, given the first, `(B,)`.

    A step may be stretched a little to land on its end rather than leave a crumb; `fixed` ones by
    what rounding may have moved them.

    Args:
        first_dt, span: first step and length of the span.
        far: largest time there is, by magnitude.
        fixed: whether steps do not change.
    """
    eps = torch.finfo(span.dtype).eps
    guess = torch.where(first_dt > 0, first_dt, span)
    smallest = (guess * SMALLEST).clamp(min=torch.finfo(span.dtype).tiny)
    if fixed:
        rounding = 4 * eps * far / guess
        return smallest, 1 + rounding.clamp(1e-6, 0.5)
    return smallest, torch.full_like(span, 1 + max(1e-9, 4 * eps))


def resolvable(t: Tensor, smallest: Tensor) -> Tensor:
    """Return the smallest step the time dtype resolves at `t`, `(B,)`."""
    return torch.maximum(2 * torch.finfo(t.dtype).eps * t.abs(), smallest)


def failures(
    *,
    running: Tensor,
    moved: Tensor,
    going: Tensor,
    tried: Tensor,
    room: Tensor,
    own: Tensor,
    unsolved: Tensor | None = None,
    exhausted: Tensor,
    dt_min: Tensor | float | None,
    adaptive: bool,
    joint: bool,
) -> tuple[Tensor, Tensor]:
    """Return which rows cannot go on, `(B,)` bool, and their `Status` codes, int64.

    Args:
        running, going: who ran before the attempt, and who has not arrived after it.
        moved: who was accepted.
        tried, own: length and error ratio of the attempt.
        room: next step over the smallest one that the time dtype resolves.
        unsolved: whose implicit stages were not solved, None for explicit methods.
        exhausted: whose attempts are used up.
        dt_min: smallest step allowed.
        adaptive, joint: whether steps change; whether all rows share one.
    """
    refused = running & ~moved
    gone = going & (room < 0.5)  # half of it is one number of the time dtype
    code = torch.full_like(refused, int(Status.TIME_RESOLUTION), dtype=torch.int64)
    if dt_min is not None:
        at_min = refused & (tried <= dt_min)
        gone, code = gone | at_min, torch.where(at_min, int(Status.REACHED_DT_MIN), code)
    if not adaptive:
        gone = gone | refused  # a fixed step that failed would fail again
    code = torch.where(refused & ~own.isfinite(), int(Status.NON_FINITE), code)
    if unsolved is not None:
        code = torch.where(refused & unsolved, int(Status.NOT_CONVERGED), code)
    if joint:  # only who stood in the way of the others has to go
        guilty = refused & ~(own <= 1)
        gone = gone & (guilty | ~guilty.any())
    exhausted = exhausted & going
    code = torch.where(exhausted & ~gone, int(Status.REACHED_MAX_STEPS), code)
    return gone | exhausted, code


def limiting_component(weighted: Tensor) -> Tensor:
    """Return the component with the largest share of the error, `(B,)` int64; -1 if D is 0."""
    if not weighted.shape[1]:
        return torch.full(weighted.shape[:1], -1, dtype=torch.int64, device=weighted.device)
    return weighted.abs().nan_to_num(nan=torch.inf).argmax(dim=1)
