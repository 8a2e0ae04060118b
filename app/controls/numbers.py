"""Numbers as people read them, and the stops of a logarithmic slider."""

import math
from collections.abc import Iterable
from typing import Any

MANTISSAS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)


def short(value: object) -> str:
    """Return a number with three digits, `1e-6` for powers of ten; other things as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "none" if value is None else str(value)
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e5):
        return f"{int(value)}"
    if not math.isfinite(value):
        return str(value)
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def log_stops(low: float, high: float, extra: Iterable[float | None] = ()) -> list[float]:
    """Return rounded values from `low` to `high`, six a decade, both ends and `extra` among them.

    Raises:
        ValueError: `low` is not positive or `high` is not above it.
    """
    if not 0 < low < high:
        raise ValueError(f"low={low!r}, high={high!r}: must be positive and in this order")
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    stops = {float(f"{m}e{e}") for e in decades for m in MANTISSAS}
    stops |= {float(low), float(high)} | {float(value) for value in extra if value is not None}
    return sorted(stop for stop in stops if low <= stop <= high)


def power_stops(low: float, high: float, mantissas: tuple[float, ...] = (1.0,)) -> list[float]:
    """Return `m * 10^e` within `[low, high]`, largest first: the stops of a tolerance."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    stops = {float(f"{m}e{e}") for e in decades for m in mantissas}
    return sorted((s for s in stops if low * 0.999 <= s <= high * 1.001), reverse=True)


def is_range(ends: Any, low: float, high: float) -> bool:
    """Whether a held value can be the two ends of a slider from `low` to `high`."""
    pair = isinstance(ends, tuple) and len(ends) == 2
    return pair and all(isinstance(end, int | float) and low <= end <= high for end in ends)
