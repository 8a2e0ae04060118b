"""What a run says of its own settings: names, differences from the defaults, parameters."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from app import describe
from app.equations import about as equations
from app.equations.system import is_equations

SOLVER_DEFAULTS: Mapping[str, Any] = {
    "method": "tsit5",
    "controller": "pid",
    "rtol": 1e-4,
    "atol": 1e-6,
    "dt0": None,
    "dt_min": None,
    "dt_max": None,
    "max_steps": 100_000,
    "stepping": "independent",
    "engine": "plain",
    "adjoint": "backprop",
    "dtype": "float64",
}
"""Defaults of `solve_ivp`, in the order in which settings are shown."""

MEASURED = frozenset(
    (
        *("instance", "n_steps", "n_accepted", "n_rejected", "accept_share", "n_f_evals"),
        *("dt_min", "dt_median", "dt_max", "max_error_ratio", "t0", "t1", "t_reached"),
        *("status", "status_name", "component", "message"),
    )
)
"""Columns of `Run.instances` that are no parameter."""


def member(described: Mapping[str, Any] | None, family: str, name: Any) -> dict[str, Any]:
    """Return the description of a problem, method or controller; empty if it is not known here."""
    members = (described or {}).get(family, [])
    if family == "problems" and is_equations(name):
        return equations.described(name)
    return next((m for m in members if m["name"] == name), {})


def settings_of(start: Mapping[str, Any], spec: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings of a solve, flat and in reading order, a controller's as `pid.kp`.

    Args:
        start: what `Run.settings` gives.
        spec: of the run, for what a solve itself does not know (`dt0`, `dt_min`, `dt_max`).
    """
    known = dict(spec or {}) | dict(start)
    found = {name: known[name] for name in SOLVER_DEFAULTS if name in known}
    controller = found.get("controller")
    if isinstance(controller, Mapping):
        found["controller"] = controller.get("name")
    gains = start.get("controller_settings")
    if isinstance(gains, Mapping):
        kind = found.get("controller")
        found |= {f"{kind}.{name}": value for name, value in gains.items() if name != "name"}
    return {name: value for name, value in found.items() if not isinstance(value, list | dict)}


def changed_first(
    settings: Mapping[str, Any], described: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into those that differ from their defaults and those that do not.

    A setting whose default is not known here counts as changed.
    """
    defaults = dict(SOLVER_DEFAULTS)
    name = settings.get("controller")
    for setting in member(described, "controllers", name).get("settings", []):
        defaults[f"{name}.{setting['name']}"] = setting["default"]
    changed, same = {}, {}
    for key, value in settings.items():
        (same if key in defaults and defaults[key] == value else changed)[key] = value
    return changed, same


def parameters_of(instances: pd.DataFrame) -> list[str]:
    """Return the columns of an instance table that are parameters of the rows."""
    return [str(column) for column in instances.columns if column not in MEASURED]


def component_names(described: Mapping[str, Any] | None, problem: Any, dim: int) -> Sequence[str]:
    """Return the names of the components: the problem's if they fit, else `y0, y1, ...`."""
    names = member(described, "problems", problem).get("components", [])
    return list(names) if len(names) == dim else [f"y{i}" for i in range(dim)]


def title_of(described: Mapping[str, Any] | None, run_id: str, problem: Any) -> str:
    """Return what a run is called on top of a page."""
    return str(member(described, "problems", problem).get("title") or problem or run_id)


def steady_ratio(start: Mapping[str, Any], described: Mapping[str, Any] | None) -> float | None:
    """Return the error ratio at which the controller of a solve leaves its step as it is."""
    controller = member(described, "controllers", start.get("controller"))
    values = {s["name"]: s["default"] for s in controller.get("settings", [])}
    values |= dict(start.get("controller_settings") or {})
    try:
        return describe.steady_error_ratio(controller, values, start.get("error_order"))
    except (KeyError, TypeError, ZeroDivisionError):
        return None
