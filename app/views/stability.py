"""Stability: is it accuracy or the method's stability that limits the steps, and in which rows?"""

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, session, theme, workers
from app.cached import ask
from app.components import row_picker, run_header
from app.components.chart import draw, pair, plain
from app.controls.numbers import short
from app.figures.limiter import limiter_shares_figure
from app.figures.stability_region import stability_region_figure, stiffness_figure
from app.frames import floats, ints
from inspector.stability import limit

if TYPE_CHECKING:
    from inspector.run import Run

SHOWN = 3  # rows drawn beside the one picked
MOMENTS = 24


def page() -> None:
    """Draw the page; it follows a run that still grows."""
    run = run_header.opened()
    run_header.follow(run)
    place = run_header.draw_header(run)
    one_solve(run)
    run_header.banners(run, place)


def one_solve(run: "Run") -> None:
    """Draw a solve: shares, region with the steps of chosen rows, stiffness over time, ranking."""
    from inspector import stiffness
    from inspector.diagnosis import Case

    solve = run_header.solve_picker(run)
    if solve is None or run_header.too_large(run, solve):
        return
    instances = ask(type(run).instances, run, solve)
    if instances.empty or not floats(instances, "n_steps").any():
        st.info("No row has taken a step yet.", icon=":material/hourglass_top:")
        return
    ranked = ask(stiffness.ranking, run, solve)
    if ranked.empty:
        st.info(
            "How stiff the field is was not recorded. Record the statistics `stiffness` and "
            '`stiffness_real`, which `Inspector(statistics="all")` does.',
            icon=":material/visibility_off:",
        )
        return
    row = row_picker.pick(instances)
    rows = list(dict.fromkeys([row, *ints(ranked, "instance")[:SHOWN].tolist()]))
    case = Case(run, solve)
    function, method = case.stability, case.method
    reach = float("inf") if function is None else limit(function)
    sentence(ranked, reach, method)
    steps = ask(type(run).steps, run, solve, tuple(rows))
    colours = theme.current()
    exact = exact_spectrum(run, solve, row)
    left, right = pair("region")
    with left:
        draw(
            stability_region_figure(function, steps, colours, spectrum=exact),
            key="region",
            question="Do the steps stay where the method is stable?",
            unit="h λ of accepted steps over |R(z)| ≤ 1",
            alt=f"Stability region of {method} with the steps of rows {rows}.",
            data=steps,
            help="Each point is the step size times the largest eigenvalue of df/dy, estimated "
            "from the slopes of the step. Points at the edge of the shaded region are limited by "
            "stability.",
        )
    with right:
        shares = ask(stiffness.limited_shares, run, solve)
        draw(
            limiter_shares_figure(shares, colours),
            key="limited",
            question="Stability or accuracy?",
            unit="% of the attempts",
            alt=shares_alt(shares),
            data=shares,
        )
    draw(
        stiffness_figure(steps, colours, reach=reach, rows=rows),
        key="stiffness",
        question="How stiff was it, and when?",
        unit="step size times spectral radius",
        alt=f"Stiffness of rows {rows} over time.",
        data=steps,
    )
    table(ranked, solve)


def sentence(ranked: pd.DataFrame, reach: float, method: str) -> None:
    """Say in one sentence what limited the rows."""
    share, steps = floats(ranked, "stability_share"), floats(ranked, "n_steps")
    overall = float((share * steps).sum() / steps.sum())
    struck = int((share > 0.25).sum())
    largest = float(np.nanmax(floats(ranked, "stiffness_median")))
    if not np.isfinite(reach):
        told = (
            f"{method} has no limit on the negative real axis: its steps are limited by accuracy, "
            f"at a median step times eigenvalue of up to {short(largest)}."
        )
    elif struck:
        told = (
            f"{method} is stable up to {short(reach)}: stability limited "
            f"{explain.percent(overall)} of all attempts, in {struck} of {len(ranked)} rows more "
            "than a quarter. An implicit method would take larger steps there."
        )
    else:
        told = (
            f"{method} is stable up to {short(reach)} and hardly ever there: accuracy limits the "
            f"steps. The stiffest row has a median of {short(largest)}."
        )
    with st.container(border=True, key="stability_sentence"):
        st.markdown(f"**{plain(told)}**")


def exact_spectrum(run: "Run", solve: int, row: int) -> pd.DataFrame | None:
    """Offer the exact spectrum along the picked row; return it times h once it is there."""
    key = f"_spectrum_{run.id}_{solve}_{row}"
    held = session.get(key)
    offered = held is None and not session.read_only() and bool(run.spec)
    if offered and st.button(
        "Exact spectrum",
        icon=":material/function:",
        key="do_spectrum",
        help=f"Works out all eigenvalues of df/dy at {MOMENTS} states of row {row}.",
    ):
        with st.spinner("Working out eigenvalues"):
            held = worked_out(run, solve, row)
        session.put(key, held)
        st.rerun()
    if isinstance(held, str):
        st.caption(plain(held))
        return None
    return held


def worked_out(run: "Run", solve: int, row: int) -> pd.DataFrame | str:
    """Let a process of its own work the eigenvalues out; a text if it cannot."""
    command = [sys.executable, "-m", "app.cli", "spectrum", str(run.path), "--json"]
    command += ["--solve", str(solve), "--row", str(row), "--moments", str(MOMENTS)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, cwd=workers.HOME, check=False
        )
        if done.returncode:
            return done.stderr.strip().splitlines()[-1].removeprefix("stepscope: ")
        found: Any = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return f"The eigenvalues could not be worked out: {type(error).__name__}."
    frame = pd.DataFrame(found, columns=["t", "h", "re", "im"])
    return pd.DataFrame(
        {
            "t": frame["t"],
            "real": frame["h"] * frame["re"],
            "imaginary": frame["h"] * frame["im"],
            "h": frame["h"],
        }
    )


def shares_alt(shares: pd.DataFrame) -> str:
    """Say in one sentence what limited the attempts."""
    means = shares.drop(columns="attempt").mean() if len(shares) else pd.Series(dtype="f8")
    told = [f"{name} {explain.percent(float(value))}" for name, value in means.items()]
    return ("Limited by " + ", ".join(told) if told else "What limited was not recorded") + "."


def table(ranked: pd.DataFrame, solve: int) -> None:
    """List the rows, the one that stability limits most first."""
    st.markdown("### Which rows are stiff? :gray[:small[the most limited by stability first]]")
    shown = pd.DataFrame(
        {
            "row": ranked["instance"],
            "limited by stability": 100 * ranked["stability_share"],
            "|h λ| median": ranked["stiffness_median"],
            "|h λ| high": ranked["stiffness_max"],
            "|λ| median": ranked["radius_median"],
            "|λ| high": ranked["radius_max"],
            "attempts": ranked["n_steps"],
        }
    )
    event: Any = st.dataframe(
        shown.head(1_000),
        key="stiff_rows",
        hide_index=True,
        height=min(38 + 35 * len(shown), 360),
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "limited by stability": st.column_config.ProgressColumn(
                format="%.0f %%", min_value=0, max_value=100, help="of its attempts"
            ),
            **{
                name: st.column_config.NumberColumn(format="%.3g", help=help)
                for name, help in (
                    ("|h λ| median", "step size times spectral radius"),
                    ("|h λ| high", "95 % of the attempts are below"),
                    ("|λ| median", "spectral radius of df/dy, 1 / time"),
                    ("|λ| high", "95 % of the attempts are below"),
                )
            },
        },
        alt="Rows ranked by the share of attempts that stability limited.",
    )
    rows = ints(shown, "row").tolist()
    at = session.line_picked("stiff", rows, event["selection"]["rows"])
    if at is not None:
        row = rows[at]
        st.page_link(
            "views/instances.py",
            label=f"Look into row {row}",
            icon=":material/troubleshoot:",
            query_params={"solve": str(solve), "inst": str(row)},
        )


page()
