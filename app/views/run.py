"""Run: what happened in this solve, which rows failed, and what limited the steps?"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, session, theme
from app.cached import ask
from app.components import diagnosis, run_header, run_overview, run_records
from app.components.chart import draw, pair
from app.figures.active_rows import active_rows_figure
from app.figures.counts_histogram import counts_histogram_figure
from app.figures.dt_quantiles import dt_quantiles_figure
from app.figures.limiter import limiter_shares_figure
from app.figures.solve_costs import solve_costs_figure
from app.frames import floats, only

if TYPE_CHECKING:
    from inspector.run import Run


def page() -> None:
    """Draw the page; it follows a run that still grows."""
    run = run_header.opened()
    run_header.follow(run)
    place = run_header.draw_header(run)
    if run.n_solves > 1:
        all_solves(run)
    solve = run_header.solve_picker(run)
    if solve is not None:
        one_solve(run, solve)
    run_records.scalars(run)
    run_records.events(run)
    run_records.downloads(run, solve)
    run_header.banners(run, place)


def all_solves(run: "Run") -> None:
    """Draw the cost of every solve; a click picks one."""
    table = ask(type(run).solve_table, run)
    failed = int((floats(table, "n_failed") > 0).sum())
    shown = session.int_param("solve", 0, run.n_solves - 1, 0)
    draw(
        solve_costs_figure(table, theme.current(), selected=shown),
        key="solve_costs",
        question="Did solving get harder?",
        unit="attempts of each solve",
        alt=f"Attempts of {len(table)} solves, {failed} of them with failed rows.",
        data=table,
        help="Click a point to look into that solve.",
        on_pick=lambda point: session.put("solve", int(point["x"])),
    )


def one_solve(run: "Run", solve: int) -> None:
    """Draw one solve: tiles, raster, how steps spread, what limited them, which rows failed."""
    from inspector import queries, stiffness

    run_overview.settings(run, solve)
    run_overview.again(run)
    run_overview.tiles(ask(queries.tiles, run, solve), run.solve_state(solve).batch)
    if run_header.too_large(run, solve):
        return
    instances = ask(type(run).instances, run, solve)
    if instances.empty:
        st.info(
            "The solve has begun; its first step is not recorded yet.",
            icon=":material/hourglass_top:",
        )
        return
    run_overview.failed_rows(run, solve)
    diagnosis.panel(run, solve, live=run.live)
    row = run_overview.raster_of(run, solve, instances)
    colours = theme.current()
    quantiles = ask(queries.dt_quantiles, run, solve)
    left, right = pair("ribbons")
    with left:
        draw(
            dt_quantiles_figure(quantiles, colours),
            key="dt_quantiles",
            question="How large were the steps?",
            unit="|dt| of the rows still solving, time",
            alt=quantiles_alt(quantiles),
            data=quantiles,
        )
    with right:
        batch = len(instances)
        active = only(quantiles, "attempt", "active")
        draw(
            active_rows_figure(active, colours, batch=batch),
            key="active_rows",
            question="How many rows were still solving?",
            unit="rows",
            alt=f"Rows solving at each attempt, of {batch}.",
            data=active,
            help="Rows that are finished are evaluated along with the others: that is the waste.",
        )
    left, right = pair("spread")
    with left:
        shares = ask(stiffness.limited_shares, run, solve)
        draw(
            limiter_shares_figure(shares, colours),
            key="limiter_shares",
            question="What limited the steps?",
            unit="% of the rows still solving",
            alt=limiter_alt(shares),
            data=shares,
        )
    with right:
        draw(
            counts_histogram_figure(instances, colours),
            key="counts",
            question="How evenly was the work spread?",
            unit="attempts of a row",
            alt=f"Histogram of the attempts of {batch} rows.",
            data=instances,
        )
    run_overview.trajectories(run, solve, row, instances)


def quantiles_alt(quantiles: pd.DataFrame) -> str:
    """Say in one sentence what the ribbon of step sizes shows."""
    if quantiles.empty:
        return "No step is recorded yet."
    low, high = np.nanmin(floats(quantiles, "q05")), np.nanmax(floats(quantiles, "q95"))
    middle = np.nanmedian(floats(quantiles, "q50"))
    return f"Step sizes from {low:.2g} to {high:.2g}, median {middle:.2g}."


def limiter_alt(shares: pd.DataFrame) -> str:
    """Say in one sentence what limited the steps of the batch."""
    causes: Any = (
        shares.drop(columns="attempt", errors="ignore").mean().sort_values(ascending=False)
    )
    causes = causes[causes > 0]
    if not len(causes):
        return "What limited the steps was not recorded."
    said = [
        f"{explain.LIMITS.get(str(name), str(name))} {explain.percent(float(share))}"
        for name, share in causes.items()
    ]
    return "Steps were limited by " + ", ".join(said) + "."


page()
