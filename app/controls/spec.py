"""The settings of a solve: widgets drawn from the description, and the spec they add up to."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import describe, session
from app.controls import setting as one
from app.controls.numbers import is_range, log_stops, power_stops, short
from app.equations.about import DRAFT
from app.equations.system import is_equations

Described = Mapping[str, Any]
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
RATES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
STEPPINGS = {"independent": "every row its own step", "joint": "one step for all rows"}
ENGINES = {
    "auto": "plain loop, native code where it pays",
    "plain": "plain loop, attempt by attempt",
    "compiled": "native code, block by block",
}
FIXED_STEPS = 400  # of a fixed-step solve that was given no step size
NO_SPREAD = "none (all rows alike)"


def by_name(family: list[dict[str, Any]], name: str | None) -> dict[str, Any]:
    """Return the member of that name, else the first."""
    return next((member for member in family if member["name"] == name), family[0])


def settings_panel(described: Described, *, disabled: bool = False) -> dict[str, Any]:
    """Draw every setting of a solve into the current container and return the spec."""
    problem = problem_section(described, disabled)
    values = {"problem": problem["name"]} | batch_section(problem, described, disabled)
    values |= gradient_section(problem, described, disabled)
    method = method_section(problem, described, disabled)
    controller = controller_section(described, method, disabled)
    values |= {"method": method["name"], "controller": controller}
    values |= tolerance_section(problem, disabled)
    values |= detail_section(problem, described, disabled)
    about = by_name(described["controllers"], controller["name"])
    if not about["adaptive"] and not values["dt0"]:
        values["dt0"] = abs(values["t1"] - problem["t0"]) / FIXED_STEPS
    values |= pace_section()
    values["problem"] = problem.get("spec_name", problem["name"])
    return values | {"adjoint": "backprop", "statistics": "all", "parent": None}


def names(family: list[dict[str, Any]]) -> dict[str, str]:
    """Return name -> title."""
    return {member["name"]: member.get("title") or member["name"] for member in family}


def choose(label: str, key: str, titles: Mapping[str, str], start: str, **more: Any) -> str:
    """Draw a picker over names, shown by title, kept in the query string."""
    options = list(titles)
    start = start if start in options else options[0]
    session.accept(key, titles)
    session.check(key, lambda name: name in options, start)
    chosen = st.selectbox(
        label,
        options,
        index=options.index(start),
        format_func=lambda name: titles.get(name, name),
        **session.keep(key, "url"),
        **more,
    )
    return chosen or start


def problem_section(described: Described, disabled: bool) -> dict[str, Any]:
    """Draw problem, preset and its parameters."""
    problems = described["problems"]
    own = [p["name"] for p in problems if ".py:" in p.get("spec_name", "")]
    start = own[0] if own else "van_der_pol"
    name = choose(
        "Problem", "problem", names(problems), start, disabled=disabled,
        on_change=lambda: forget(by_name(problems, session.get("problem"))),
    )  # fmt: skip
    problem = by_name(problems, name)
    presets = {"": "as it comes"} | {p["name"]: p["title"] for p in problem["presets"]}
    if len(presets) > 1:
        key = f"preset_{name}"
        st.selectbox(
            "Preset",
            list(presets),
            format_func=lambda preset: presets.get(preset, preset),
            on_change=apply_preset,
            args=(problem, key),
            disabled=disabled,
            **session.keep(key),
        )
    return problem


def gradient_section(
    problem: Mapping[str, Any], described: Described, disabled: bool
) -> dict[str, Any]:
    """Draw how a problem with a loss is differentiated; nothing for the others."""
    if problem.get("loss") is None:
        return {"gradient": None}
    modes = {"": "none, solve only"} | names(described["adjoints"])
    chosen = choose("Gradient of the loss", "gradient", modes, "", disabled=disabled)
    return {"gradient": chosen or None}


def apply_preset(problem: Mapping[str, Any], key: str) -> None:
    """Set the widgets to a preset's spec; the empty preset puts the problem's own values back."""
    chosen = session.get(key)
    preset = next((p for p in problem["presets"] if p["name"] == chosen), None)
    forget(problem)
    if preset is not None:
        put_spec(problem, preset["spec"])


def forget(problem: Mapping[str, Any]) -> None:
    """Put a problem's own values back."""
    for key, start in starts(problem).items():
        session.put(key, start)


def starts(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values a problem brings, by key of their widgets."""
    name, spread = problem["name"], problem.get("spread")
    values = {
        "batch": int(problem["batch"]),
        "method": problem["method"],
        "rtol": nearest(float(problem["rtol"])),
        "atol": nearest(float(problem["atol"]), low=1e-15),
        f"{name}.t1": float(problem["t1"]),
        f"{name}.spread": spread["parameter"] if spread else NO_SPREAD,
        "dt0": None,
        "dt_min": None,
        "dt_max": None,
    }
    if spread:
        values[f"{name}.{spread['parameter']}.range"] = (
            float(spread["low"]),
            float(spread["high"]),
        )
    for setting in problem["parameters"]:
        values[f"{name}.{setting['name']}"] = one.cast(setting, setting["default"])
    return values


def put_spec(problem: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    """Set the widgets' values from a full or partial spec."""
    name = problem["name"]
    session.put("problem", name)
    if name == DRAFT and is_equations(spec.get("problem")):
        session.put("equations", spec["problem"])
    for parameter, value in (spec.get("parameters") or {}).items():
        session.put(f"{name}.{parameter}", value)
    if "spread" in spec:
        spread = spec["spread"]
        session.put(f"{name}.spread", spread["parameter"] if spread else NO_SPREAD)
        if spread:
            ends = (float(spread["low"]), float(spread["high"]))
            session.put(f"{name}.{spread['parameter']}.range", ends)
    if "gradient" in spec:
        session.put("gradient", spec["gradient"] or "")
    for key in ("batch", "method", "dtype", "stepping", "engine", "seed", "max_steps", "n_eval"):
        if spec.get(key) is not None:
            session.put(key, spec[key])
    for key in ("rtol", "atol"):
        if spec.get(key) is not None:
            session.put(key, float(spec[key]))
    for key in ("dt0", "dt_min", "dt_max"):
        if key in spec:
            session.put(key, spec[key])
    if spec.get("t1") is not None:
        session.put(f"{name}.t1", float(spec["t1"]))
    controller = spec.get("controller")
    if isinstance(controller, str):
        controller = {"name": controller}
    if controller:
        session.put("controller", controller["name"])
        for key, value in controller.items():
            if key != "name":
                session.put(f"{controller['name']}.{key}", value)


def batch_section(problem: dict[str, Any], described: Described, disabled: bool) -> dict[str, Any]:
    """Draw batch size, what differs between rows, and the parameters all rows share."""
    name, wanted = problem["name"], problem.get("spread") or {}
    low, high = described["limits"]["batch"]
    sizes = sorted({*BATCHES, int(problem["batch"]), *map(int, session.numbers("batch"))})
    batch = st.select_slider(
        "Rows (batch)",
        [size for size in sizes if low <= size <= high],
        int(problem["batch"]),
        help="How many instances are solved at once, each with its own step size.",
        disabled=disabled,
        **session.keep("batch", "url"),
    )
    parameters = {setting["name"]: setting for setting in problem["parameters"]}
    choices = [c for c in problem.get("spread_choices", []) if c in parameters]
    spread: dict[str, Any] | None = None
    if choices:
        titles = {NO_SPREAD: NO_SPREAD} | {c: one.label_of(parameters[c]) for c in choices}
        start = wanted.get("parameter", NO_SPREAD)
        chosen = choose("Rows differ in", f"{name}.spread", titles, start, disabled=disabled)
        if chosen != NO_SPREAD:
            spread = range_of(name, parameters[chosen], wanted, disabled)
    values = {}
    rest = [p for p in parameters if not spread or p != spread["parameter"]]
    if rest:
        with st.expander("Parameters", expanded=len(rest) <= 2):
            for parameter in rest:
                key = f"{name}.{parameter}"
                values[parameter] = one.draw(parameters[parameter], key, disabled=disabled)
    return {"parameters": values, "spread": spread, "batch": int(batch)}


def range_of(
    problem: str, setting: dict[str, Any], wanted: Mapping[str, Any], disabled: bool
) -> dict[str, Any]:
    """Draw both ends of the spread of one parameter."""
    low, high = float(setting["low"]), float(setting["high"])
    is_wanted = wanted.get("parameter") == setting["name"]
    scale = wanted.get("scale", "linear") if is_wanted else setting["scale"]
    start = (float(wanted["low"]), float(wanted["high"])) if is_wanted else (low, high)
    if scale == "log" and high <= 0:
        scale = "linear"
    if scale == "log" and low <= 0:  # a logarithmic slider has to begin somewhere
        low = min(start[0], high * 1e-4) if start[0] > 0 else high * 1e-4
        start = (max(start[0], low), start[1])
    key = f"{problem}.{setting['name']}.range"
    label = f"{one.label_of(setting)} from, to"
    note = f"Spaced evenly {'in log ' if scale == 'log' else ''}over the rows."
    shared: dict[str, Any] = {"help": note, "disabled": disabled, **session.keep(key, "url")}
    session.check(key, lambda ends: is_range(ends, low, high), start)
    if scale == "log":
        stops = log_stops(low, high, (*start, *session.numbers(key)))
        ends = st.select_slider(label, stops, start, format_func=short, **shared)
    else:
        step = one.nice_step(low, high)
        ends = st.slider(label, low, high, start, step=step, format="%.4g", **shared)
    return {"parameter": setting["name"], "low": ends[0], "high": ends[1], "scale": scale}


def method_section(problem: dict[str, Any], described: Described, disabled: bool) -> dict[str, Any]:
    """Draw the method picker with a line that says what it costs."""
    methods = described["methods"]
    method = by_name(
        methods, choose("Method", "method", names(methods), problem["method"], disabled=disabled)
    )
    facts = [f"order {method['order']}", f"{method['stages']} stages"]
    facts += ["last stage reused"] if method["fsal"] else []
    facts += [] if method["adaptive"] else ["no error estimate: fixed steps"]
    st.caption(" · ".join(facts), help=method.get("source") or None)
    return method


def controller_section(
    described: Described, method: Mapping[str, Any], disabled: bool
) -> dict[str, Any]:
    """Draw controller, preset and gains, with the steady error ratio they imply."""
    family = [c for c in described["controllers"] if method["adaptive"] or not c["adaptive"]]
    start = "pid" if method["adaptive"] else family[0]["name"]
    controller = by_name(
        family, choose("Controller", "controller", names(family), start, disabled=disabled)
    )
    name = controller["name"]
    presets = {"": "own values"} | {p["name"]: p["name"] for p in controller["presets"]}
    if len(presets) > 1:
        key = f"controller_preset_{name}"
        st.selectbox(
            "Published gains",
            list(presets),
            on_change=apply_gains,
            args=(controller, key),
            format_func=lambda preset: presets.get(preset, preset),
            help="Sets the sliders below to a published set.",
            disabled=disabled,
            **session.keep(key),
        )
    gains = [s for s in controller["settings"] if is_gain(s)]
    values = {"name": name}
    for setting in gains:
        values[setting["name"]] = one.draw(setting, f"{name}.{setting['name']}", disabled=disabled)
    steady_line(controller, defaults(controller) | values, method)
    rest = [s for s in controller["settings"] if not is_gain(s)]
    if rest:
        with st.expander("Limits of the step factor" if gains else "Settings", expanded=not gains):
            for setting in rest:
                key = f"{name}.{setting['name']}"
                values[setting["name"]] = one.draw(setting, key, disabled=disabled)
    return values


def is_gain(setting: Mapping[str, Any]) -> bool:
    """Whether a controller's setting is shown at once, not folded away."""
    return setting["name"] in ("filter", "b", "kp", "ki", "kd", "alpha", "beta", "safety")


def defaults(member: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default of every setting."""
    return {setting["name"]: setting["default"] for setting in member["settings"]}


def apply_gains(controller: Mapping[str, Any], key: str) -> None:
    """Set a controller's widgets to a published set, everything else to its default."""
    chosen = session.get(key)
    preset = next((p for p in controller["presets"] if p["name"] == chosen), None)
    for name, value in (defaults(controller) | (preset["values"] if preset else {})).items():
        session.put(f"{controller['name']}.{name}", value)


def steady_line(
    controller: Mapping[str, Any], values: Mapping[str, Any], method: Mapping[str, Any]
) -> None:
    """Say which error ratio the gains settle at, so that only equal errors are compared."""
    ratio = describe.steady_error_ratio(controller, values, method.get("error_order"))
    if ratio is None:
        return
    st.markdown(
        f"Steady error ratio **{ratio:.2f}**",
        help="These gains keep the step size as it is when the estimated error is this part of the "
        "tolerance: safety^(k / I gain), k = error order + 1. Compare step counts only between "
        "settings with the same value; a lower one buys accuracy with more steps.",
    )


def tolerance_section(problem: Mapping[str, Any], disabled: bool) -> dict[str, Any]:
    """Draw relative and absolute tolerance."""
    left, right = st.columns(2)
    values = {}
    for column, key, low in ((left, "rtol", 1e-13), (right, "atol", 1e-15)):
        start = nearest(float(problem[key]), low=low)
        stops = sorted({*power_stops(low, 0.1), start, *session.numbers(key)}, reverse=True)
        help_text = {
            "rtol": "Error allowed per step, relative to the state.",
            "atol": "Error allowed per step where the state is near 0.",
        }[key]
        values[key] = column.selectbox(
            key, stops, stops.index(start), format_func=short, help=help_text, disabled=disabled,
            **session.keep(key, "url"),
        )  # fmt: skip
    return values


def nearest(value: float, low: float = 1e-13) -> float:
    """Return a value as the tolerance picker has it: powers of ten exactly, others as they are."""
    return next((s for s in power_stops(low, 0.1) if abs(s / value - 1) < 1e-9), value)


def detail_section(problem: dict[str, Any], described: Described, disabled: bool) -> dict[str, Any]:
    """Draw what is rarely changed: time span, step limits, dtype, stepping, engine, seed."""
    limits, values = described["limits"], {}

    def number(label: str, key: str, start: Any, **more: Any) -> Any:
        kept = session.keep(key, "url")
        return st.number_input(label, value=start, disabled=disabled, **kept, **more)

    with st.expander("Time span and step limits"):
        low, high = limits["n_eval"]
        values["t1"] = number(
            "End of the span, t1", f"{problem['name']}.t1", float(problem["t1"]), format="%.6g"
        )
        values["n_eval"] = number("Outputs per row", "n_eval", 200, min_value=low, max_value=high)
        for key, label in (
            ("dt0", "First step"),
            ("dt_min", "Smallest step"),
            ("dt_max", "Largest step"),
        ):
            start = None
            values[key] = number(
                label, key, start, min_value=0.0, format="%.3g",
                placeholder="the solver chooses" if key == "dt0" else "no limit",
            ) or None  # fmt: skip
        low, high = limits["max_steps"]
        values["max_steps"] = number(
            "Most attempts per row", "max_steps", 100_000, min_value=low, max_value=high
        )
    with st.expander("Number type, stepping, engine, seed"):
        dtypes: dict[str, str] = {name: name for name in limits["dtypes"]}
        values["dtype"] = choose("Number type", "dtype", dtypes, "float64", disabled=disabled)
        steppings: dict[str, str] = {n: str(STEPPINGS.get(n, n)) for n in limits["steppings"]}
        values["stepping"] = choose(
            "Stepping", "stepping", steppings, "independent", disabled=disabled
        )
        engines: dict[str, str] = {n: str(ENGINES.get(n, n)) for n in limits["engines"]}
        values["engine"] = choose("Engine", "engine", engines, "auto", disabled=disabled)
        low, high = limits["seed"]
        values["seed"] = number("Seed", "seed", 0, min_value=low, max_value=high)
    return values


def pace_section() -> dict[str, Any]:
    """Draw slow motion and keep-running; both also act on a run that is under way."""
    slow = st.toggle(
        "Slow motion",
        help="Waits between attempts so that you can watch. Also acts on the run under way.",
        **session.keep("slow", "url"),
    )
    rate = None
    if slow:
        rate = st.select_slider("Attempts per second", RATES, 20, **session.keep("rate", "url"))
    keep = st.toggle(
        "Keep running without a viewer",
        help="Otherwise a run stops by itself 60 s after the last tab that shows it was closed.",
        **session.keep("keep_running"),
    )
    return {"attempts_per_second": rate, "keep_running": bool(keep)}
