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
    if setting.get("label"):
        return str(setting["label"])
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
    session.check(key, lambda value: allowed(setting, value), start)
    shared: dict[str, Any] = {
        "label": label_of(setting),
        "help": setting.get("help") or None,
        "disabled": disabled,
        **session.keep(key, "url"),
    }
    low, high = setting.get("low"), setting.get("high")
    if kind == "bool":
        return st.toggle(value=bool(start), **shared)
    if kind == "choice":
        options = list(setting["choices"])
        return st.selectbox(options=options, index=options.index(start), **shared)
    if kind in ("float", "int") and low is not None and high is not None:
        low, high = cast(setting, low), cast(setting, high)
        if setting.get("optional"):
            return st.number_input(min_value=low, max_value=high, value=start, **shared)
        if kind == "float" and setting.get("scale") == "log" and low > 0:
            stops = log_stops(low, high, (start, *session.numbers(key)))
            return st.select_slider(options=stops, value=start, format_func=short, **shared)
        step = setting.get("step") or (nice_step(low, high) if kind == "float" else 1)
        style = {} if kind == "int" else {"format": "%.3g"}
        step = cast(setting, step)
        return st.slider(min_value=low, max_value=high, value=start, step=step, **style, **shared)
    if kind in ("float", "int"):
        style = "%d" if kind == "int" else "%.6g"
        return st.number_input(value=start, format=style, **shared)
    return st.text_input(value=str(start or ""), **shared)


def nice_step(low: float, high: float) -> float:
    """Return a power of ten that divides the range into at least 100 steps."""
    step = 10.0
    while (high - low) / step < 100:
        step /= 10
    return step
