"""When a problem starts, ends, jumps and is asked for outputs: checked, turned to run forward."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from solver.errors import InvalidArgument, InvalidType

SLACK_ULPS = 8  # how far a last output time may miss t1 by rounding


class Times(NamedTuple):
    """Times of a problem in the direction of integration, `tau = direction * t`."""

    t0: Tensor  # (B,) as given
    t1: Tensor  # (B,)
    start: Tensor  # (B,) direction * t0
    end: Tensor  # (B,) direction * t1, at or after start
    direction: Tensor | None  # (B,) +1 or -1, None if every row runs forward
    ts: Tensor  # (B, T) output times as given, NaN where a row has none
    outputs: Tensor | None  # (B, T) tau of outputs, ascending, +inf behind the last; None: end only
    columns: Tensor | None  # (B, T) column of `ts` each of `outputs` belongs to; None: its own
    stops: Tensor | None  # (B, K) tau of jumps strictly inside, ascending, +inf behind the last


def read_times(
    t_eval: Any,
    t0: Any,
    t1: Any,
    jump_t: Any,
    mask: Any,
    batch: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Times:
    """Check the times a user gave and lay them out per row.

    Raises:
        InvalidArgument: a shape does not fit the batch, a time is not finite or out of order, an
        output
            lies outside the span, or start or end is missing.
        InvalidType: something that is no number, list or tensor.
    """
    if t_eval is None and mask is None and jump_t is None and _plain_span(t0, t1):
        start = torch.full((batch,), t0, dtype=dtype, device=device)
        end = torch.full((batch,), t1, dtype=dtype, device=device)
        return Times(start, end, start, end, None, end[:, None], None, None, None)
    ts, slack = None, torch.finfo(dtype).eps
    if t_eval is not None:
        ts, slack = read_tensor("t_eval", t_eval, dtype, device)
        ts = read_grid("t_eval", ts, batch)
        if mask is not None:
            ts = torch.where(_read_mask(mask, ts), ts, torch.nan)
        if bool(ts.isinf().any()):
            raise InvalidArgument(
                "t_eval holds an infinite time: must be finite, or NaN for no output"
            )
    elif mask is not None:
        raise InvalidArgument("t_eval_mask is given without t_eval")
    start = _ends("t0", t0, ts, 0, batch, dtype, device)
    end = _ends("t1", t1, ts, -1, batch, dtype, device)
    _check_span(start, end)
    backward = end.detach() < start.detach()
    direction = None
    if bool(backward.any()):
        direction = torch.where(backward, -1.0, 1.0).to(dtype)
    outputs = columns = None
    if ts is not None:
        outputs, columns = _order_outputs(ts, start, end, direction, slack)
    return Times(
        t0=start,
        t1=end,
        start=_turned(start, direction),
        end=_turned(end, direction),
        direction=direction,
        ts=end[:, None] if ts is None else ts,
        outputs=outputs,
        columns=columns,
        stops=_stops(jump_t, start, end, direction, batch, dtype, device),
    )


def _plain_span(t0: Any, t1: Any) -> bool:
    """Whether all rows run forward between two numbers that every dtype holds."""
    return type(t0) in (int, float) and type(t1) in (int, float) and -1e30 < t0 <= t1 < 1e30


def _read_mask(mask: Any, ts: Tensor) -> Tensor:
    try:
        asked = torch.as_tensor(mask, device=ts.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidType(f"t_eval_mask is a {type(mask).__name__}: must be a tensor") from error
    if asked.dtype != torch.bool or asked.shape not in (ts.shape, ts.shape[1:]):
        raise InvalidArgument(
            f"t_eval_mask has shape {tuple(asked.shape)} and dtype {asked.dtype}: must be bool, "
            f"{tuple(ts.shape)}, True where a time is asked for"
        )
    return asked


def _check_span(t0: Tensor, t1: Tensor) -> None:
    endless = (t1 - t0).detach().isinf()
    if bool(endless.any()):
        row = int(endless.nonzero()[0])
        raise InvalidArgument(
            f"t0 = {t0[row].item()!r} and t1 = {t1[row].item()!r} of row {row} are further apart "
            f"than {t0.dtype} can tell: their difference must be finite"
        )


def _turned(t: Tensor, direction: Tensor | None) -> Tensor:
    if direction is None:
        return t
    return t * (direction if t.ndim == 1 else direction[:, None])


def read_tensor(
    name: str, value: Any, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, float]:
    """Return the value as an own tensor of the time dtype, and the rounding unit it came with."""
    given = _as_given(name, value, dtype)
    if given.is_complex() or given.dtype == torch.bool:
        raise InvalidType(f"{name} has dtype {given.dtype}: must be real")
    eps = torch.finfo(dtype).eps
    if given.is_floating_point():
        eps = max(eps, torch.finfo(given.dtype).eps)
    return given.to(dtype=dtype, device=device, copy=True), eps


def _as_given(name: str, value: Any, dtype: torch.dtype) -> Tensor:
    """Return tensors as they are, arrays in their dtype, lists (also of tensors) in `dtype`."""
    if isinstance(value, Tensor):
        return value
    try:
        if isinstance(value, list | tuple) and any(isinstance(part, Tensor) for part in value):
            return torch.stack([_as_given(name, part, dtype).to(dtype) for part in value])
        if hasattr(value, "__array__"):  # perhaps one that runs backwards in memory: copy it
            return torch.as_tensor(value.copy())  # pyright: ignore[reportAttributeAccessIssue]
        return torch.as_tensor(value, dtype=dtype)
    except (TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise InvalidType(
            f"{name} is a {type(value).__name__}: must be numbers or a tensor, rows of equal "
            "length padded with NaN"
        ) from error


def read_grid(name: str, times: Tensor, batch: int) -> Tensor:
    """Return `(T,)`, `(1, T)` or `(B, T)` times as `(B, T)`.

    Raises:
        InvalidArgument: the shape does not fit the batch.
    """
    if times.ndim == 1 or (times.ndim == 2 and times.shape[0] == 1):
        return times.expand(batch, -1)
    if times.ndim != 2 or times.shape[0] != batch:
        raise InvalidArgument(
            f"{name} has shape {tuple(times.shape)}: must be (T,) for all rows or ({batch}, T)"
        )
    return times


def _ends(
    name: str,
    value: Any,
    ts: Tensor | None,
    which: int,
    batch: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Return t0 or t1 as `(B,)`: given, or the first or last output of the row."""
    if value is None:
        if ts is None:
            raise InvalidArgument(
                f"{name} is missing: give t0 and t1, or t_eval with at least one time"
            )
        there = ~ts.detach().isnan()
        if ts.shape[1] == 0 or not bool(there.any(dim=1).all()):
            row = 0 if ts.shape[1] == 0 else int(there.any(dim=1).logical_not().nonzero()[0])
            if batch == 0:
                return torch.zeros(0, dtype=dtype, device=device)
            raise InvalidArgument(
                f"{name} is missing and t_eval has no time for row {row}: give {name}"
            )
        place = (
            there.int().argmax(dim=1)
            if which == 0
            else (ts.shape[1] - 1 - there.flip(1).int().argmax(dim=1))
        )
        return ts.gather(1, place[:, None])[:, 0]
    times, _ = read_tensor(name, value, dtype, device)
    if times.numel() == 1:
        times = times.reshape(1).expand(batch)
    elif times.numel() == batch and times.ndim <= 2 and times.shape[0] == batch:
        times = times.reshape(batch)
    else:
        raise InvalidArgument(
            f"{name} has shape {tuple(times.shape)}: must be a number or ({batch},)"
        )
    finite = times.detach().isfinite()
    if not bool(finite.all()):
        row = int(finite.logical_not().nonzero()[0])
        raise InvalidArgument(f"{name} is {times[row].item()} for row {row}: must be finite")
    return times


def _order_outputs(
    ts: Tensor, t0: Tensor, t1: Tensor, direction: Tensor | None, slack: float
) -> tuple[Tensor, Tensor | None]:
    """Check that outputs follow the direction of time inside the span; move them to the front.

    Outputs that miss an end of the span by rounding are put on it.
    """
    missing = ts.detach().isnan()
    tau, columns = _turned(ts, direction), None
    if bool(missing.any()):
        columns = missing.int().argsort(dim=1, stable=True)
        tau = tau.gather(1, columns)
        tau = torch.where(missing.gather(1, columns), torch.inf, tau)
    bare = tau.detach()
    back = bare[:, 1:] < bare[:, :-1]
    if bool(back.any()):
        row, place = (int(i) for i in back.nonzero()[0])
        place = place + 1
        late, early = (
            float(ts[row, i if columns is None else columns[row, i]]) for i in (place, place - 1)
        )
        where = place if columns is None else int(columns[row, place])
        raise InvalidArgument(
            f"t_eval[{where}] of row {row} runs backwards ({late!r} after {early!r}): "
            "must be sorted in the direction of t0 -> t1"
        )
    start, end = _turned(t0, direction)[:, None], _turned(t1, direction)[:, None]
    tau, outside = put_inside(tau, start, end, slack)
    if bool(outside.any()):
        row, place = (int(i) for i in outside.nonzero()[0])
        where = place if columns is None else int(columns[row, place])
        raise InvalidArgument(
            f"t_eval[{where}] of row {row} is {ts[row, where].item()!r}: must lie between "
            f"t0 = {t0[row].item()!r} and t1 = {t1[row].item()!r}"
        )
    return tau, columns


def put_inside(tau: Tensor, start: Tensor, end: Tensor, slack: float) -> tuple[Tensor, Tensor]:
    """Put times that miss an end of the span by rounding on it; say which lie farther outside.

    Args:
        tau: times in the direction of integration, `(B, T)`; those not finite are left alone.
        start, end: of the span, `(B, 1)`.
        slack: rounding unit of the times as they were given.
    """
    bare, finite = tau.detach(), tau.detach().isfinite()
    room = SLACK_ULPS * slack * torch.maximum(start.detach().abs(), end.detach().abs())
    outside = ((bare < start.detach() - room) | (bare > end.detach() + room)) & finite
    tau = torch.where((bare > end.detach()) & finite, end, tau)
    return torch.where((bare < start.detach()) & finite, start, tau), outside


def _stops(
    jump_t: Any,
    t0: Tensor,
    t1: Tensor,
    direction: Tensor | None,
    batch: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor | None:
    """Return the jumps strictly inside each row's span, ascending, +inf behind the last."""
    if jump_t is None:
        return None
    jumps, _ = read_tensor("jump_t", jump_t, dtype, device)
    if jumps.ndim == 0:
        jumps = jumps[None]
    tau = _turned(read_grid("jump_t", jumps.detach(), batch), direction)
    start, end = _turned(t0, direction).detach()[:, None], _turned(t1, direction).detach()[:, None]
    inside = (tau > start) & (tau < end)
    tau = torch.where(inside, tau, torch.inf).sort(dim=1).values
    return tau if bool(inside.any()) else None
