"""Parts of the Tuner page: what is searched, and what was found."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, session, theme
from app.components.chart import draw, heading, pair
from app.controls.numbers import power_stops, short
from app.controls.spec import choose, names, nearest
from app.explore.studies import Described, problem_section
from app.figures.gain_map import VALUES, gain_map_figure
from app.figures.tuning_real import COSTS, replay_check_figure, tuning_pareto_figure
from app.frames import floats, where
from app.live.state import Shown
from inspector.studies import Study, pareto, tuning_table

STEPS = [round(-1.0 + 0.1 * i, 1) for i in range(31)]
SOURCES = {"recorded": "recorded", "preset": "preset", "grid": "grid", "search": "search"}
REPLAY_HELP = (
    "Every recorded error ratio tells how the error grows with the step at its place, as "
    "C(t) dt^(order + 1); where an explicit method is held back by stability, the growth of the "
    "fast part is followed too, from the eigenvalues of the Jacobian. Other gains are stepped "
    "through that model: an estimate, checked below by real solves."
)


def setup(described: Described, shown: Shown) -> dict[str, Any]:
    """Draw the settings into the current container and return the spec they add up to."""
    spec: dict[str, Any] = {"kind": "tune"}
    spec |= problem_section(described, "tune", shown)
    about = spec.pop("about")
    adaptive = [m for m in described["methods"] if m["adaptive"]]
    recorded = bool(session.get("tune.from_run")) and "method" in spec
    if recorded and shown.spec.get("kind") is None and shown.has_steps:
        spec |= {"run": shown.id, "solve": shown.solve}
        controller = shown.spec.get("controller")
        st.caption(f"Replays what it recorded, {spec['method']} at rtol {short(spec.get('rtol'))}.")
        spec |= {"controller": controller} if controller else {}
        if spec["method"] not in {m["name"] for m in adaptive}:
            spec["refused"] = "The run shown took equal steps: there is nothing to control."
        if (controller or {}).get("name") == "fixed":
            spec["refused"] = "The run shown had no controller to tune."
    else:
        spec["method"] = choose("Method", "tune.method", names(adaptive), about["method"])
        stops = sorted({*power_stops(1e-12, 0.1), nearest(float(about["rtol"]))}, reverse=True)
        spec["rtol"] = st.selectbox(
            "rtol",
            stops,
            stops.index(nearest(float(about["rtol"]))),
            format_func=short,
            help="atol changes in proportion.",
            **session.keep(f"tune.{about['name']}.rtol"),
        )
        spec.pop("atol", None)
    return spec | gains(described) | further(adaptive, spec)


def gains(described: Described) -> dict[str, Any]:
    """Draw the ranges of the gains."""
    low, high = st.select_slider(
        "P gain from, to", STEPS, (-0.3, 0.7), format_func=short, **session.keep("tune.kp")
    )
    least, most = st.select_slider(
        "I gain from, to",
        [v for v in STEPS if v > 0],
        (0.1, 1.0),
        format_func=short,
        **session.keep("tune.ki"),
    )
    spec: dict[str, Any] = {
        "kp": [v for v in STEPS if low <= v <= high],
        "ki": [v for v in STEPS if least <= v <= most],
    }
    with st.expander("D gain, safety, limiter"):
        spec["kd"] = st.slider("D gain", -0.3, 0.3, 0.0, 0.01, **session.keep("tune.kd"))
        equal = st.toggle(
            "Same aim for all gains",
            True,
            help="Safety 0.9^ki: all then meet the same error in a steady state, so that fewer "
            "attempts are skill and not less accuracy.",
            **session.keep("tune.equal"),
        )
        spec["safety"] = "equal"
        if not equal:
            spec["safety"] = st.slider(
                "Safety", 0.5, 0.99, 0.9, 0.01, **session.keep("tune.safety")
            )
        limiters = {"clamp": "cut off", "smooth": "bend"}
        spec["limiter"] = choose("Too large factors", "tune.limiter", limiters, "clamp")
    return spec


def further(adaptive: list[dict[str, Any]], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Draw what is done beyond the grid."""
    found: dict[str, Any] = {}
    with st.expander("Search, real solves"):
        found["search"] = st.toggle(
            "Search P, I and D together",
            True,
            help="Differential evolution on the replay.",
            **session.keep("tune.search"),
        )
        found["verify"] = int(
            st.number_input("Best solved for real", 1, 50, 8, **session.keep("tune.verify"))
        )
        offered = [m["name"] for m in adaptive if m["name"] != spec.get("method")]
        key = "tune.methods"
        session.check(key, lambda held: set(held or ()) <= set(offered), [])
        also = st.multiselect(
            "Also with these methods", offered, placeholder="none", **session.keep(key)
        )
        tolerances = st.multiselect(
            "Also at these tolerances",
            power_stops(1e-12, 0.1),
            format_func=short,
            placeholder="none",
            **session.keep("tune.rtols"),
        )
        own = [spec["method"], *also]
        found["methods"] = own if also else None
        found["rtols"] = [spec["rtol"], *tolerances] if tolerances and spec.get("rtol") else None
        found["jobs"] = int(
            st.number_input(
                "Processes",
                1,
                64,
                2,
                help="Real solves at the same time.",
                **session.keep("tune.jobs"),
            )
        )
    return found


def show(study: Study, run: str, spec: Mapping[str, Any]) -> None:
    """Draw everything there is so far."""
    table = tuning_table(study.entries())
    model = next((e for e in study.entries() if e.get("phase") == "model"), {})
    if table.empty:
        st.skeleton(height=420)
        return
    method, rtol = model.get("method"), model.get("rtol")
    real = where(table, ((table["phase"] == "real") & (table["failed"] == 0)).to_numpy())
    here = where(real, (real["method"] == method).to_numpy() & (floats(real, "rtol") == rtol))
    here = here.sort_values(["attempts", "refused"], kind="stable")
    tiles(here, model)
    chosen = choice(pd.concat([here, real]).drop_duplicates("label"), run)
    label = str(chosen["label"]) if chosen is not None else ""
    left, right = pair("tuner_maps")
    with left:
        value = choose("Estimate shown", "tune_value", VALUES, "attempts")
        title = str(chosen["title"]) if chosen is not None else ""
        draw(
            gain_map_figure(table, theme.current(), value=value, picked=title),
            key="gain_map",
            question="Which gains need the fewest attempts?",
            unit="an estimate, by replay",
            alt=f"{VALUES[value]} over P and I gain; presets and the best gains are marked.",
            data=where(table, (table["phase"] == "replay").to_numpy()),
            help=REPLAY_HELP,
        )
    with right:
        cost = choose("Cost shown", "tune_cost", COSTS, "attempts")
        front = real.iloc[pareto(floats(real, cost), floats(real, "end_error"))]
        draw(
            tuning_pareto_figure(real, front, theme.current(), cost=cost, picked=label),
            key="tuning_pareto",
            question="What do they really take and reach?",
            unit="real solves",
            alt=f"Error at the end against {COSTS[cost]} of controllers solved for real.",
            data=real,
        )
    draw(
        replay_check_figure(here, theme.current()),
        key="replay_check",
        question="Was the estimate right?",
        unit="replay against real solves",
        alt="Attempts by replay against attempts of real solves, with 10 % to both sides.",
        data=here,
        help=REPLAY_HELP,
    )
    said = f"Model: {model.get('model', '?')}, {model.get('rows', '?')} rows replayed"
    limited = model.get("limited")
    if isinstance(limited, float) and limited > 0:
        said += f"; stability limited {explain.percent(limited)} of the recorded attempts"
    st.caption(said + ".")
    numbers(real)
    failures(table)


def tiles(here: pd.DataFrame, model: Mapping[str, Any]) -> None:
    """Draw recorded, best preset and best of all, and how far off replay was."""
    if here.empty:
        return
    recorded = where(here, (here["source"] == "recorded").to_numpy())
    presets = where(here, (here["source"] == "preset").to_numpy())
    cells: list[tuple[str, pd.DataFrame]] = [
        ("As recorded", recorded), ("Best preset", presets), ("Best of all", here)
    ]  # fmt: skip
    before = float(floats(recorded, "attempts")[0]) if len(recorded) else float("nan")
    with st.container(horizontal=True):
        for title, part in cells:
            if part.empty:
                continue
            line = part.iloc[0]
            count = float(line["attempts"])
            change = f"{100 * (count / before - 1):+.1f} %" if before and count != before else None
            st.metric(
                title,
                f"{explain.count(count)} attempts",
                change or str(line["title"]),
                delta_color="inverse" if change else "off",
                delta_arrow="auto" if change else "off",
                help=f"{line['title']}, {explain.count(float(line['refused']))} refused, error "
                f"{float(line['end_error']):.1e}.",
                border=True,
            )
        off = np.abs(floats(here, "estimate") / floats(here, "attempts") - 1)
        off = off[np.isfinite(off)]
        if len(off):
            st.metric(
                "Replay was off by",
                f"{100 * float(np.median(off)):.1f} %",
                f"at most {100 * float(off.max()):.1f} %",
                delta_color="off",
                delta_arrow="off",
                help=REPLAY_HELP,
                border=True,
            )


def choice(real: pd.DataFrame, run: str) -> pd.Series | None:
    """Draw the picker of one controller, best first, and the way to use it; returns its line."""
    if real.empty:
        return None
    ranked = real
    titles = {
        str(line["label"]): f"{line['title']} ({line['method']}, rtol {short(line['rtol'])}): "
        f"{explain.count(float(line['attempts']))} attempts"
        for _, line in ranked.iterrows()
    }
    session.check("tuned", lambda held: held in titles, next(iter(titles)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label = choose("Chosen", "tuned", titles, next(iter(titles)), width=420)
        st.page_link(
            "views/live.py",
            label="Use these in Live",
            icon=":material/tune:",
            query_params={"again": run, "setting": label},
            disabled=session.read_only(),
            help="Opens Live with this problem, method, tolerance and controller.",
        )
    chosen = ranked.loc[ranked["label"] == label].iloc[0]
    gains = [f"{n} {short(chosen[n])}" for n in ("kp", "ki", "kd", "safety")
             if chosen[n] == chosen[n]]  # fmt: skip
    st.caption(" \u00b7 ".join([str(chosen["name"]), *gains]))
    return chosen


def numbers(real: pd.DataFrame) -> None:
    """Draw the table of real solves."""
    if real.empty:
        return
    ranked = real.sort_values(["attempts", "refused"], kind="stable")
    heading("Which controllers were solved for real?", data=ranked, key="tuning_table")
    shown = ranked[["source", "title", "method", "rtol", "kp", "ki", "kd", "safety"]].copy()
    shown["estimate"] = ranked["estimate"].round()
    for name in ("attempts", "refused", "evaluations", "end_error", "seconds"):
        shown["error" if name == "end_error" else name] = ranked[name]
    number = st.column_config.NumberColumn
    config: Any = {n: number(format="%.3g") for n in ("rtol", "kp", "ki", "kd", "safety")}
    config |= {n: number(format="%d") for n in ("estimate", "attempts", "refused", "evaluations")}
    config |= {"error": number(format="%.1e"), "seconds": number(format="%.3f")}
    st.dataframe(
        shown, hide_index=True, column_config=config, key="tuning_numbers",
        alt="Gains, attempts and errors of each controller solved for real.",
    )  # fmt: skip


def failures(table: pd.DataFrame) -> None:
    """List real solves that lost rows, and gains whose replay did not end."""
    lost = where(table, ((table["phase"] == "real") & (table["failed"] > 0)).to_numpy())
    open_ended = (table["phase"] == "replay").to_numpy() & np.isnan(floats(table, "attempts"))
    if lost.empty and not open_ended.any():
        return
    with st.expander(f"{len(lost) + int(open_ended.sum())} did not get through",
                     icon=":material/block:"):  # fmt: skip
        for _, line in lost.iterrows():
            st.text(f"{line['title']}, {line['method']}: {line['failure']}")
        if open_ended.any():
            st.text(f"{int(open_ended.sum())} gains needed over four times the recorded attempts.")
