"""Instances: why is this row slow?"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from app import explain
from app.cached import ask
from app.components import row_charts, row_picker, row_sentence, run_header
from app.components.chart import draw, plain
from app.controls.numbers import short
from app.figures.instance_ranking import MOST_BARS, instance_ranking_figure
from app.frames import floats
from app.theme import current

if TYPE_CHECKING:
    from inspector.run import Run


def page() -> None:
    """Draw the page; it follows a run that still grows."""
    run = run_header.opened()
    run_header.follow(run)
    place = run_header.draw_header(run)
    picked_row(run)
    run_header.banners(run, place)


def picked_row(run: "Run") -> None:
    """Draw the pickers of solve and row, and everything about the row."""
    solve = run_header.solve_picker(run)
    if solve is None:
        return
    if run_header.too_large(run, solve):
        return
    instances = ask(type(run).instances, run, solve)
    if instances.empty or not floats(instances, "n_steps").any():
        st.info(
            "No row has taken a step yet. The page fills as soon as the first is recorded."
            if run.live
            else "No step of this solve was recorded.",
            icon=":material/hourglass_top:",
        )
        return
    row = row_picker.pick(instances)
    with st.sidebar:
        row_picker.ranking(instances, row)
    one_row(run, solve, row, instances)


def one_row(run: "Run", solve: int, row: int, instances: pd.DataFrame) -> None:
    """Say what dominated a row, and show it."""
    if row not in set(instances["instance"]):
        st.info(
            f"Row {row} was not recorded: this run kept {len(instances)} rows of the batch.",
            icon=":material/filter_alt:",
        )
        return
    steps, labels = row_sentence.steps_of(run, solve, row)
    names = row_sentence.names_of(run, solve)
    sentence = row_sentence.sentence_of(run, solve, row, instances)
    with st.container(border=True, key="row_sentence", gap="xsmall"):
        st.markdown(f"**{plain(sentence)}**")
        against_the_batch(row, instances)
    ranking_chart(instances, row)
    if steps.empty:
        st.info("This row has not taken a step.", icon=":material/hourglass_empty:")
        return
    row_charts.draw_all(run, solve, row, steps, instances, labels=labels, names=names)


def against_the_batch(row: int, instances: pd.DataFrame) -> None:
    """Draw the numbers of a row, each with its ratio to the batch median."""
    instances = instances.assign(refused=1 - floats(instances, "accept_share"))
    cells: list[tuple[str, str, Any]] = [
        ("Attempts", "n_steps", explain.count),
        ("Refused", "refused", explain.percent),
        ("Median step", "dt_median", short),
        ("Smallest step", "dt_min", short),
        ("Largest error ratio", "max_error_ratio", short),
    ]
    with st.container(horizontal=True):
        for name, key, show in cells:
            own, ratio = explain.against_median(instances, row, key)
            beside = f"{explain.times(ratio)} the median" if np.isfinite(ratio) else None
            st.metric(
                name,
                show(own) if np.isfinite(own) else explain.NOTHING,
                delta=beside if len(instances) > 1 else None,
                delta_color="off",
                delta_arrow="off",
            )


def ranking_chart(instances: pd.DataFrame, row: int) -> None:
    """Draw what every row cost; a click picks one."""
    if len(instances) < 3:
        return
    few = len(instances) <= MOST_BARS
    draw(
        instance_ranking_figure(instances, current(), selected=row),
        key="ranking_chart",
        question="Is this row unusual?",
        unit="attempts of every row, most first",
        alt=f"Attempts of {len(instances)} rows, most first; row {row} is marked.",
        data=instances,
        help="Click a bar to look into that row." if few else "Click the curve to pick a row.",
        on_pick=lambda point: row_picker.go(int(np.ravel(point["customdata"])[0])),
    )


page()
