"""What figures of gradient modes share: one look for each mode, and how zero errors are drawn."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.figures.style import DASHES
from app.theme import Theme

SYMBOLS: Final = (
    *("circle", "diamond", "square", "triangle-up", "cross", "star"),
    *("triangle-down", "hexagon", "x", "pentagon", "bowtie", "hourglass"),
)
FLOOR: Final = 1e-17  # where an error of exactly 0 is drawn


class Look(NamedTuple):
    """How one mode is drawn everywhere."""

    colour: str
    symbol: str
    dash: str


def looks(modes: Iterable[str], colours: Theme) -> dict[str, Look]:
    """Return the look of each mode; colour and shape both tell them apart."""
    found: dict[str, Look] = {}
    hues = colours.highlights
    for mode in modes:
        if mode not in found:
            i = len(found)
            dash = DASHES[i // len(hues) % len(DASHES)]
            found[mode] = Look(hues[i % len(hues)], SYMBOLS[i % len(SYMBOLS)], dash)
    return found


def height_for(modes: int, plot: int = 230) -> int:
    """Return the height of a chart in a narrow column, px: room for the plot below its legend."""
    return plot + 24 + 20 * -(-modes // 2)


def drawn_errors(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return errors as a log axis takes them: 0 at the floor, what is not finite left out."""
    return np.where(np.isfinite(errors), np.maximum(np.abs(errors), FLOOR), np.nan)


def error_axis(*errors: NDArray[np.float64]) -> dict[str, Any]:
    """Return what the axis of errors needs to show all of them, with a tick for 0 if there is
    one."""
    values = np.concatenate([*errors, np.array([])])
    values = values[np.isfinite(values)]
    if not len(values):
        return {}
    low, high = np.log10(values.min()), np.log10(values.max())
    room = max(0.06 * (high - low), 0.4)
    first, last = int(np.ceil(low - room)), int(np.floor(high + room))
    step = max(1, -(-(last - first) // 5))
    ticks = list(range(first, last + 1, step))
    words = [f"10<sup>{tick}</sup>" for tick in ticks]
    if values.min() <= FLOOR:
        floor = round(np.log10(FLOOR))
        kept = [(t, w) for t, w in zip(ticks, words, strict=True) if t > floor + step / 2]
        ticks, words = [floor, *(t for t, _ in kept)], ["0", *(w for _, w in kept)]
    return {
        "range": [low - room, high + room],
        "tickmode": "array",
        "tickvals": [10.0**tick for tick in ticks],
        "ticktext": words,
    }
