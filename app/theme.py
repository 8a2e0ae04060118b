"""Colours of both themes, for the canvas components and the configuration.

Every pair that carries meaning differs in lightness and shape too; neighbours stay apart for
deutan, protan and tritan sight, with at least 3:1 contrast on their background.
"""

from dataclasses import asdict, dataclass
from typing import Literal

Mode = Literal["light", "dark"]


@dataclass(frozen=True)
class Theme:
    """Colours (CSS hex) of one theme."""

    mode: Mode
    background: str
    panel: str  # cards, sidebar
    text: str
    muted: str  # axis text, captions
    grid: str  # lines of a plot's grid, card borders
    primary: str  # buttons, links, the picked row
    accepted: str
    refused: str  # also drawn as another marker or hatched: never colour alone
    median: str
    band_outer: str  # 5 to 95 %
    band_inner: str  # 25 to 75 %
    ghost: str  # the run compared with, drawn dashed
    nothing: str  # raster cells without an attempt
    highlights: tuple[str, str, str, str, str, str]  # picked rows; not blue first: bands are blue
    p: str
    i: str
    d: str
    limiters: dict[str, str]  # word of the limiter statistic -> colour


LIGHT = Theme(
    mode="light",
    background="#ffffff",
    panel="#f6f7f9",
    text="#1c2330",
    muted="#5b6472",
    grid="#dfe3e9",
    primary="#0b62a4",
    accepted="#0072b2",
    refused="#d55e00",
    median="#0b3c66",
    band_outer="#cfe3f1",
    band_inner="#8fc0e0",
    ghost="#7a8290",
    nothing="#eceff3",
    highlights=("#a6447f", "#00795c", "#806600", "#0072b2", "#d55e00", "#3d4452"),
    p="#0072b2",
    i="#a6447f",
    d="#806600",
    limiters={
        "accuracy": "#0072b2",
        "dt_min": "#d55e00",
        "dt_max": "#00795c",
        "end of span": "#9aa3b0",
        "event": "#a6447f",
        "jump": "#806600",
        "non-finite": "#7a1f1f",
        "first step": "#5b6472",
        "Newton": "#5a3d9a",
        "stability": "#c2185b",
    },
)

DARK = Theme(
    mode="dark",
    background="#0e1117",
    panel="#161b24",
    text="#e8ebf0",
    muted="#9aa4b2",
    grid="#2a313d",
    primary="#56b4e9",
    accepted="#56b4e9",
    refused="#e69f00",
    median="#d6ecfa",
    band_outer="#17374b",
    band_inner="#2b6a92",
    ghost="#8791a0",
    nothing="#1b212b",
    highlights=("#e08bc0", "#3fcba0", "#f0e442", "#56b4e9", "#e69f00", "#c9d0da"),
    p="#56b4e9",
    i="#e08bc0",
    d="#f0e442",
    limiters={
        "accuracy": "#56b4e9",
        "dt_min": "#e69f00",
        "dt_max": "#3fcba0",
        "end of span": "#5f6978",
        "event": "#e08bc0",
        "jump": "#f0e442",
        "non-finite": "#ff8a80",
        "first step": "#8791a0",
        "Newton": "#b39ddb",
        "stability": "#ff7fa8",
    },
)

THEMES: dict[Mode, Theme] = {"light": LIGHT, "dark": DARK}

CIVIDIS = (
    "#00224e", "#00306f", "#2a3f6d", "#434e6c", "#575d6d", "#6a6c71", "#7d7c78", "#918c78",
    "#a69d75", "#bcaf6f", "#d3c164", "#ebd457", "#fee838",
)  # fmt: skip
INFERNO = (
    "#000004", "#140b34", "#390963", "#5f136e", "#85216b", "#a92e5e", "#cb4149", "#e65d2f",
    "#f78410", "#fcae12", "#f5db4c", "#fcffa4",
)  # fmt: skip
PUOR = (
    "#2d004b", "#542788", "#8073ac", "#b2abd2", "#d8daeb", "#f7f7f7", "#fee0b6", "#fdb863",
    "#e08214", "#b35806", "#7f3b08",
)  # fmt: skip
SCALES: dict[str, tuple[str, ...]] = {"cividis": CIVIDIS, "inferno": INFERNO, "puor": PUOR}
"""Colour scales from low to high; cividis by default, puor around zero (high is orange)."""


def current() -> Theme:
    """Return the theme this viewer sees; light where the browser has not said."""
    import streamlit as st  # figures read the colours above without Streamlit

    try:
        kind = st.context.theme.type
    except (AttributeError, RuntimeError):  # no browser: bare import, tests
        kind = None
    return DARK if kind == "dark" else LIGHT


def palettes() -> dict[str, dict[str, object]]:
    """Return both themes as plain JSON values, for the canvas components."""
    return {mode: asdict(theme) for mode, theme in THEMES.items()}
