"""What a page needs to offer typed equations as a problem, beside those that came along."""

from functools import lru_cache
from typing import Any

from app.equations.latex import latex
from app.equations.system import Parameter, System, is_equations, read
from app.equations.tree import Refused

DRAFT = "equations"
"""Name of the problem that is typed right now."""
BATCH = 32  # rows, where something differs between them
RTOL, ATOL, METHOD = 1e-4, 1e-6, "tsit5"
UNTITLED = "Own equations"
TEMPLATE = """\
# Pendulum, driven
dangle = speed
dspeed = -sin(angle) - friction * speed + push * cos(2/3 * t)
friction = 0.5 in 0.1..1
push = 1.15 in 0..2
angle(0) = 0.5
speed(0) = 0
t = 0..60"""
"""What stands in the field until something else is typed."""


@lru_cache(maxsize=64)
def describe_text(text: str, name: str = DRAFT) -> dict[str, Any]:
    """Return the description of equations, as `SampleProblem.describe` gives it.

    Raises:
        Refused: the text is no system of equations.
    """
    return describe_system(read(text), name)


def title_of(problem: object) -> str:
    """Return what people call the problem of a spec: its name, or the title of equations."""
    if not is_equations(problem):
        return str(problem or "")
    try:
        return read(str(problem)).title or UNTITLED
    except Refused:
        return UNTITLED


def described(problem: object) -> dict[str, Any]:
    """Return the description of what a spec calls its problem, if these are equations."""
    if not is_equations(problem):
        return {}
    try:
        return describe_text(str(problem))
    except Refused:
        return {}


def describe_system(system: System, name: str = DRAFT) -> dict[str, Any]:
    """Return the description of a system; `spec_name`, its text, is what a spec calls it."""
    spread = spread_of(system)
    return {
        "name": name,
        "title": system.title or UNTITLED,
        "question": "",
        "latex": latex(system),
        "source": "typed equations",
        "parameters": [setting(parameter) for parameter in system.parameters],
        "spread": spread,
        "spread_choices": [parameter.name for parameter in system.parameters],
        "t0": system.t0,
        "t1": system.t1,
        "batch": BATCH if spread else 1,
        "dim": len(system.states),
        "components": list(system.states),
        "phase": [0, 1] if len(system.states) > 1 else None,
        "rtol": RTOL,
        "atol": ATOL,
        "method": METHOD,
        "presets": [],
        "loss": None,
        "spec_name": system.text,
    }


def spread_of(system: System) -> dict[str, Any] | None:
    """Return what differs between rows: the first number whose range the text says, if any."""
    first = next((p for p in system.parameters if p.ranged), None)
    if first is None:
        return None
    scale = "log" if first.log else "linear"
    return {"parameter": first.name, "low": first.low, "high": first.high, "scale": scale}


def setting(parameter: Parameter) -> dict[str, Any]:
    """Return a parameter as `describe_settings` tells those of other problems."""
    of = f"{parameter.start_of} at the start" if parameter.start_of else ""
    return {
        "name": parameter.name,
        "label": f"{parameter.start_of}(0)" if parameter.start_of else parameter.name,
        "type": "float",
        "default": parameter.value,
        "low": parameter.low,
        "high": parameter.high,
        "step": None,
        "scale": "log" if parameter.log else "linear",
        "choices": None,
        "help": of,
        "optional": False,
    }
