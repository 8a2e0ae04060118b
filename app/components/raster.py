"""Rows x attempts as coloured cells on a canvas that changes in place; picked by click or key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike, NDArray
from streamlit.components.v2 import component

from app import theme
from app.components.payload import pack, script

NAME = "stepscope_raster"
HTML = """<div class="raster"><canvas tabindex="0" role="application"></canvas>
<div class="readout" role="status" aria-live="polite"></div></div>"""
CSS = """
.raster canvas { width: 100%; display: block; outline-offset: 2px; border-radius: 4px;
  cursor: crosshair; }
.raster canvas:focus-visible { outline: 2px solid var(--st-primary-color); }
.readout { font: 13px var(--st-font); color: var(--st-text-color); min-height: 20px;
  padding: 2px 0 0 52px; font-variant-numeric: tabular-nums; opacity: 0.85; }
"""
HINT = "Point at a cell, or press Tab and use the arrow keys; Enter or a click picks its row."
FINE_CELLS = 40_000  # above, values travel in 7 instead of 15 bits


@dataclass(frozen=True)
class Pick:
    """A cell someone chose."""

    row: int  # position in the raster, from the top
    instance: int  # row of the batch
    attempt: int  # first attempt of the cell


def raster(
    values: ArrayLike, *, key: str, on_pick: Callable[[], None] = lambda: None, **look: Any
) -> Pick | None:
    """Draw the raster and return the cell picked since the last run of the script.

    Args:
        values: `(r, c)`, NaN where nothing ran.
        key: identity of the component; the same key changes the picture in place.
        on_pick: called before the script runs again with a pick; it finds it in the session state
            under `key` as `["pick"]` (`row`, `col`, `instance`, `attempt`).
        look: what `encode` takes.
    """
    data = encode(values, **look)
    result = _component()(data=data, key=key, on_pick_change=on_pick, height="content")
    event = getattr(result, "pick", None)
    if not event:
        return None
    return Pick(int(event["row"]), int(event["instance"]), int(event["attempt"]))


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    return component(NAME, html=HTML, css=CSS, js=script("raster"))


def encode(
    values: ArrayLike,
    *,
    rows: ArrayLike | None = None,
    edges: ArrayLike | None = None,
    refused: ArrayLike | None = None,
    label: str = "value",
    unit: str = "",
    log: bool = False,
    scale: str = "cividis",
    low: float | None = None,
    high: float | None = None,
    categories: Sequence[Mapping[str, Any]] | None = None,
    picked: Sequence[int] = (),
    active: ArrayLike | None = None,
    ghost: tuple[ArrayLike, ArrayLike] | None = None,
    x_max: int | None = None,
    height: int = 360,
    alt: str = "",
) -> bytes:
    """Return what `raster` sends: head, cells, edges, active rows, ghost.

    Args:
        values: `(r, c)`, NaN where nothing ran; codes `0, 1, ...` if `categories` is given.
        rows: instance shown in each row, `(r,)`; 0, 1, ... if None.
        edges: attempt at which each column begins, and the end, `(c + 1,)`; 0, 1, ... if None.
        refused: `(r, c)` bool, cells to hatch; None for none.
        label, unit: what the colour means.
        log: colour by log10 of the value.
        scale: a name in `theme.SCALES`.
        low, high: its ends in the value's unit, else from the data.
        categories: `{"label", "color": {"light", "dark"}}` for each code.
        picked: instances to mark, at most six, in the order of the theme's highlights.
        active: rows running in each column, `(c,)`, drawn as a strip below.
        ghost: attempts and active rows of the run compared with, a dashed line in the strip.
        x_max: right end of the attempt axis; the last edge if None.
        height: px, legend and axes included.
        alt: what the picture shows, for those who cannot see it.
    """
    cells = np.atleast_2d(np.asarray(values, dtype=np.float32))
    n_rows, cols = cells.shape
    names = np.arange(n_rows) if rows is None else np.asarray(rows)
    ends = np.arange(cols + 1) if edges is None else np.asarray(edges)
    marks = np.zeros(cells.shape, bool) if refused is None else np.asarray(refused, dtype=bool)
    if log and not categories:
        with np.errstate(divide="ignore", invalid="ignore"):
            cells = np.log10(np.abs(cells))
        low = None if low is None else float(np.log10(low))
        high = None if high is None else float(np.log10(high))
    bits = 16 if cells.size <= FINE_CELLS else 8
    codes, low, high = quantise(cells, bits, low, high, codes=categories is not None, log=log)
    codes |= (marks & ~np.isnan(np.asarray(values, dtype=np.float32)).reshape(cells.shape)).astype(
        codes.dtype
    ) << (bits - 1)
    where = {int(name): place for place, name in enumerate(names.tolist())}
    head = {
        "n_rows": n_rows,
        "cols": cols,
        "rows": names.tolist(),
        "row_label": "row of the batch",
        "bits": bits,
        "low": low,
        "high": high,
        "log": log,
        "label": label,
        "unit": unit,
        "scale": list(theme.SCALES[scale]),
        "categories": list(categories) if categories else None,
        "marks": refused is not None,
        "hatch": "#1c2330" if scale == "puor" or categories else "#d55e00",
        "picked": [
            {"row": where[instance], "color": {m: t.highlights[k] for m, t in theme.THEMES.items()}}
            for k, instance in enumerate(picked[:6])
            if instance in where
        ],
        "strip": None,
        "x_max": int(ends[-1] if x_max is None else max(x_max, ends[-1])) if len(ends) else 1,
        "height": height,
        "alt": alt or f"{label}: {n_rows} rows by {int(ends[-1]) if len(ends) else 0} attempts",
        "hint": HINT,
        "palettes": theme.palettes(),
    }
    strip = np.zeros(0, np.float32) if active is None else np.asarray(active, dtype=np.float32)
    if active is not None:
        head["strip"] = {"label": "active rows", "max": n_rows}
        strip = np.nan_to_num(strip[:cols])
    line = np.zeros(0, np.float32)
    if ghost is not None:
        line = np.concatenate([np.asarray(part, dtype=np.float32) for part in ghost])
    return pack(head, [codes, ends.astype(np.float32), strip, np.nan_to_num(line)])


def quantise(
    cells: NDArray[np.float32],
    bits: int,
    low: float | None,
    high: float | None,
    *,
    codes: bool = False,
    log: bool = False,
) -> tuple[NDArray[Any], float, float]:
    """Turn values into codes of `bits - 1` bits, the largest meaning nothing, and both ends.

    Ends not given are those of the finite values, moved out to halves of a decade where `log`, so
    that colours stay as they are while a run grows.
    """
    kind = np.uint16 if bits == 16 else np.uint8
    nothing = (1 << (bits - 1)) - 1
    finite = np.isfinite(cells)
    some = cells[finite] if finite.any() else np.zeros(1, np.float32)
    if codes:
        out = np.where(finite, np.nan_to_num(cells), nothing).astype(kind)
        return out, 0.0, 1.0
    if low is None:
        low = float(np.floor(some.min() * 2) / 2 if log else some.min())
    if high is None:
        high = float(np.ceil(some.max() * 2) / 2 if log else some.max())
    if not high > low:
        low, high = (low - 0.5, low + 0.5) if low or log else (0.0, 1.0)
    with np.errstate(invalid="ignore"):
        unit = np.clip((cells - low) / (high - low), 0.0, 1.0)
    unit = np.where(np.isnan(cells), 0.0, np.nan_to_num(unit))
    out = np.rint(unit * (nothing - 1)).astype(kind)
    out[np.isnan(cells)] = nothing
    return out, float(low), float(high)
