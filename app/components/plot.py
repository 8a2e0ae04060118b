"""A small chart on a canvas that changes in place: lines, bands, shares and points."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike, NDArray
from streamlit.components.v2 import component

from app import theme
from app.components.payload import pack, script

NAME = "stepscope_plot"
HTML = """<div class="plot"><canvas tabindex="0" role="application"></canvas>
<div class="readout" role="status" aria-live="polite"></div></div>"""
CSS = """
.plot canvas { width: 100%; display: block; outline-offset: 2px; border-radius: 4px; }
.plot canvas:focus-visible { outline: 2px solid var(--st-primary-color); }
.readout { font: 12px var(--st-font); color: var(--st-text-color); min-height: 18px;
  padding-left: 58px; font-variant-numeric: tabular-nums; opacity: 0.85; }
"""

Colour = str | dict[str, str]
Shape = Literal["line", "box", "cross", "dot"]


def themed(name: str, position: int | None = None) -> dict[str, str]:
    """Return a theme's colour by name for both modes; `position` picks one of `highlights`."""
    found = {}
    for mode, colours in theme.THEMES.items():
        value = getattr(colours, name)
        found[mode] = value if position is None else value[position % len(value)]
    return found


@dataclass
class Plot:
    """What a chart shows. Add layers from back to front, then `show` it.

    Args:
        x, y: axis titles with their unit.
        log_y: logarithmic y axis; values that are not positive leave a gap.
        percent: y is a share in [0, 1], labelled in percent.
        whole_x: only whole numbers on the x axis (attempts).
        x_range, y_range: ends in data units, from the data if None.
    """

    x: str
    y: str
    log_y: bool = False
    percent: bool = False
    whole_x: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    layers: list[dict[str, Any]] = field(default_factory=list)
    legend: list[dict[str, Any]] = field(default_factory=list)
    read: list[dict[str, Any]] = field(default_factory=list)
    arrays: list[NDArray[np.float32]] = field(default_factory=list)
    xs: list[float] = field(default_factory=list)
    ys: list[float] = field(default_factory=list)

    def _add(self, values: ArrayLike) -> int:
        self.arrays.append(np.asarray(values, dtype=np.float32).ravel())
        return len(self.arrays) - 1

    def _span(self, x: ArrayLike, *ys: ArrayLike) -> None:
        for values, ends in ((x, self.xs), *((y, self.ys) for y in ys)):
            array = np.asarray(values, dtype=np.float64).ravel()
            keep = np.isfinite(array)
            if self.log_y and ends is self.ys:
                keep &= array > 0
            if keep.any():
                ends.extend([float(array[keep].min()), float(array[keep].max())])

    def _name(
        self, label: str, colour: Colour, shape: Shape, dash: list[int] | None = None
    ) -> None:
        if label:
            self.legend.append({"label": label, "color": colour, "shape": shape, "dash": dash})

    def line(
        self,
        x: ArrayLike,
        y: ArrayLike,
        colour: Colour,
        label: str = "",
        *,
        dash: list[int] | None = None,
        width: float = 1.6,
        read: str = "",
    ) -> None:
        """Add a line `(n,)` over `x (n,)`; NaN leaves a gap. `read` names it in the readout."""
        self._span(x, y)
        at_x, at_y = self._add(x), self._add(y)
        self.layers.append(
            {"kind": "line", "x": at_x, "y": at_y, "color": colour, "width": width, "dash": dash}
        )
        self._name(label, colour, "line", dash)
        if read:
            self.read.append({"label": read, "x": at_x, "y": at_y})

    def band(
        self, x: ArrayLike, low: ArrayLike, high: ArrayLike, colour: Colour, label: str = ""
    ) -> None:
        """Add a filled band between `low (n,)` and `high (n,)`."""
        self._span(x, low, high)
        self.layers.append(
            {
                "kind": "band",
                "x": self._add(x),
                "low": self._add(low),
                "high": self._add(high),
                "color": colour,
            }
        )
        self._name(label, colour, "box")

    def bars(
        self, edges: ArrayLike, low: ArrayLike, high: ArrayLike, colour: Colour, label: str = ""
    ) -> None:
        """Add boxes from `low (n,)` to `high (n,)` over `edges (n + 1,)`: one part of a stack."""
        self._span(edges, low, high)
        at = self._add(edges)
        self.layers.append(
            {
                "kind": "bars",
                "x": at,
                "low": self._add(low),
                "high": self._add(high),
                "color": colour,
            }
        )
        self._name(label, colour, "box")
        if label:
            share = np.asarray(high, np.float32) - np.asarray(low, np.float32)
            self.read.append({"label": label, "x": at, "y": self._add(share)})

    def points(
        self, x: ArrayLike, y: ArrayLike, colour: Colour, shape: Shape, label: str = ""
    ) -> None:
        """Add markers at `x (n,)`, `y (n,)`."""
        self._span(x, y)
        self.layers.append(
            {
                "kind": "points",
                "x": self._add(x),
                "y": self._add(y),
                "color": colour,
                "shape": shape,
            }
        )
        self._name(label, colour, shape)

    def level(
        self, at: float, colour: Colour, label: str = "", dash: list[int] | None = None
    ) -> None:
        """Add a horizontal line at a fixed height."""
        self._span([], [at])
        self.layers.append(
            {"kind": "level", "at": at, "color": colour, "width": 1.2, "dash": dash, "x": 0}
        )
        self._name(label, colour, "line", dash)

    def encode(self, *, height: int, alt: str) -> bytes:
        """Return what is sent to the canvas."""
        return pack(
            {
                "x": {
                    "label": self.x,
                    "short": self.x.split(" (")[0],
                    "range": self._ends(self.xs, self.x_range, log=False, pad=0.0),
                    "whole": self.whole_x,
                },
                "y": {
                    "label": self.y,
                    "range": self._ends(self.ys, self.y_range, log=self.log_y, pad=0.04),
                    "log": self.log_y,
                    "percent": self.percent,
                },
                "layers": self.layers,
                "legend": self.legend,
                "read": self.read[:8],
                "hint": "",
                "height": height,
                "alt": alt,
                "palettes": theme.palettes(),
            },
            [*self.arrays, np.zeros(1, np.float32)],
        )

    @staticmethod
    def _ends(
        seen: list[float], asked: tuple[float, float] | None, *, log: bool, pad: float
    ) -> list[float]:
        low, high = asked or (
            (min(seen), max(seen)) if seen else (1.0, 10.0) if log else (0.0, 1.0)
        )
        if log:
            low, high = float(np.log10(low)), float(np.log10(high))
        if not high > low:
            low, high = low - 0.5, high + 0.5
        room = 0.0 if asked else pad * (high - low)
        return [low - room, high + room]

    def show(self, *, key: str, height: int = 230, alt: str = "") -> None:
        """Draw the chart; the same `key` changes it in place."""
        _component()(data=self.encode(height=height, alt=alt), key=key, height="content")


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    return component(NAME, html=HTML, css=CSS, js=script("plot"))
