"""One setting, as `describe_settings` tells it, as one widget."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import session
from app.controls.numbers import log_stops, short

PRETTY = {
    "kp": "P gain",
    "ki": "I gain",
    "kd": "D gain",
    "safety": "Safety",
    "shrink": "Smallest factor",
    "grow": "Largest factor",
    "never_shrink_on_accept": "Never shrink on acceptance",
    "no_growth_after_reject": "No growth after a refusal",
}


def title(name: str) -> str:
    """Return what a person reads for a setting's name."""
    return PRETTY.get(name) or name.replace("_", " ").capitalize()


def label_of(setting: Mapping[str, Any]) -> str:
    """Return a setting's label; one-letter and Greek names stay as the equations have them."""
    name = str(setting["name"])
    if name in PRETTY or len(name) > 6 or "_" in name:
        return title(name)
    return name


def allowed(setting: Mapping[str, Any], value: Any) -> bool:
    """Whether a value (from a link, a preset or an older version) may go into the widget."""
    if setting["type"] == "choice":
        return value in setting["choices"]
    if setting["type"] == "bool":
        return isinstance(value, bool)
    if setting["type"] in ("float", "int"):
        if value is None:
            return bool(setting.get("optional"))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        low, high = setting.get("low"), setting.get("high")
        return (low is None or value >= low) and (high is None or value <= high)
    return True


def cast(setting: Mapping[str, Any], value: Any) -> Any:
    """Return a number as the type its widget has."""
    if value is None or isinstance(value, bool):
        return value
    if setting["type"] == "float":
        return float(value)
    return int(value) if setting["type"] == "int" else value


def draw(setting: Mapping[str, Any], key: str, *, disabled: bool = False) -> Any:
    """Draw the widget of one setting and return its value.

    The value sits in the session under `key` and in the query string. Bounds make it a slider, a
    logarithmic scale one with rounded stops; numbers without bounds are typed.
    """
    kind = setting["type"]
    start = cast(setting, setting["default"])
    held = session.default(key, start)
    if not allowed(setting, held):
        session.put(key, start)
        held = start
    shared: dict[str, Any] = {
        "label": label_of(setting),
        "help": setting.get("help") or None,
        "disabled": disabled,
        **session.keep(key, "url"),
    }
    low, high = setting.get("low"), setting.get("high")
    if kind == "bool":
        return st.toggle(**shared)
    if kind == "choice":
        return st.selectbox(options=setting["choices"], **shared)
    if kind in ("float", "int") and low is not None and high is not None:
        if setting.get("optional"):
            return st.number_input(
                min_value=cast(setting, low), max_value=cast(setting, high), **shared
            )
        if kind == "float" and setting.get("scale") == "log" and low > 0:
            stops = log_stops(low, high, (start, held))
            return st.select_slider(options=stops, format_func=short, **shared)
        step = setting.get("step") or (nice_step(low, high) if kind == "float" else 1)
        style = {} if kind == "int" else {"format": "%.3g"}
        return st.slider(
            min_value=cast(setting, low),
            max_value=cast(setting, high),
            step=cast(setting, step),
            **style,
            **shared,
        )
    if kind in ("float", "int"):
        return st.number_input(format="%d" if kind == "int" else "%.6g", **shared)
    return st.text_input(**shared)


def nice_step(low: float, high: float) -> float:
    """Return a power of ten that divides the range into at least 100 steps."""
    step = 10.0
    while (high - low) / step < 100:
        step /= 10
    return step
