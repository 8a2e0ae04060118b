"""Parts of the Training page: numbers, sessions and ranks, hard samples, the solve picked."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from app import explain, session, theme
from app.cached import ask
from app.components import diagnosis, run_header, run_overview
from app.components.chart import draw, heading, pair
from app.figures.rank_seconds import rank_seconds_figure
from app.figures.sample_history import sample_history_figure
from app.frames import floats, where
from app.training_words import column, ends

if TYPE_CHECKING:
    from inspector.run import Run

MOST_SAMPLES = 100  # lines of the table
MARKS = {"finished": "\u2713 ", "running": "\u25b6 ", "failed": "\u2717 ", "cancelled": "\u25a0 "}


def tiles(table: pd.DataFrame, ranks: pd.DataFrame) -> None:
    """Draw where the training stands."""
    loss = column(table, "loss")
    finite = loss[np.isfinite(loss)]
    nfe_first, nfe_last = ends(column(table, "forward_nfe_median"))
    steps, refused = column(table, "forward_steps"), column(table, "forward_refused")
    share = np.nansum(refused) / np.nansum(steps) if np.nansum(steps) else float("nan")
    seconds = column(table, "seconds")
    cells: list[tuple[str, str, str | None]] = [
        ("Iterations", explain.count(len(table)), None),
        ("Loss", f"{finite[-1]:.4g}" if len(finite) else "\u2013",
         f"best {finite.min():.4g}" if len(finite) else None),
        ("Evaluations of a row", explain.count(nfe_last) if nfe_last == nfe_last else "\u2013",
         f"{nfe_last / nfe_first:.2g}\u00d7 the first" if nfe_first > 0 else None),
        ("Refused", explain.percent(share), None),
        ("Per iteration", explain.duration(float(np.nanmedian(seconds)))
         if np.isfinite(seconds).any() else "\u2013", None),
        ("Processes", explain.count(ranks["rank"].nunique()), None),
    ]  # fmt: skip
    with st.container(horizontal=True, key="training_tiles"):
        for label, value, delta in cells:
            st.metric(label, value, delta, delta_color="off", delta_arrow="off", border=True)


def sessions(ranks: pd.DataFrame, table: pd.DataFrame) -> list[float]:
    """Say how often the training was resumed, and where; return those iterations."""
    starts: list[float] = []
    for number in sorted(set(ranks["session"]))[1:]:
        before, mine = (where(ranks, ranks["session"] == n) for n in (number - 1, number))
        gap = float(floats(mine, "started").min()) - float(floats(before, "last_sign").max())
        began = where(table, table["session"] == number)
        if began.empty:
            continue
        at = float(floats(began, "iteration").min())
        starts.append(at)
        kept = where(table, (table["session"] < number) & (table["iteration"] >= at))
        words = f"Resumed at iteration {at:.0f}"
        if np.isfinite(gap) and gap >= 0:
            words += f" after a pause of {explain.duration(gap)}"
        elif np.isfinite(gap):
            words += " while another process was still recording into this run"
        if len(kept):
            words += f"; {explain.count(len(kept))} iterations done before are drawn dotted"
        st.caption(f":material/restart_alt: {words}.")
    return starts


def ranks_part(ranks: pd.DataFrame, table: pd.DataFrame) -> None:
    """Draw how the processes compare, if there are several."""
    last = where(ranks, ranks["session"] == ranks["session"].max())
    if last["rank"].nunique() < 2:
        return
    st.header("Processes", anchor=False)
    lost = where(last, last["status"] == "interrupted")
    for line in lost.to_dict("records"):
        st.warning(
            f"Rank {line['rank']} is gone without a word since iteration "
            f"{line['last_iteration']}. What it had written is here; the others are not harmed.",
            icon=":material/power_off:",
        )
    left, right = pair("ranks")
    with left:
        draw(
            rank_seconds_figure(table, theme.current()),
            key="rank_seconds",
            question="Which rank do the others wait for?",
            unit="seconds in forward solves",
            alt=f"Seconds in forward solves of {last['rank'].nunique()} ranks.",
            data=lambda: table[["iteration", "rank", "forward_seconds"]],
        )
    with right:
        heading("How far did each come?", f"{len(last)} processes", data=ranks, key="ranks_all")
        shown = pd.DataFrame(
            {
                "rank": last["rank"].to_numpy(),
                "state": [MARKS.get(str(s), "\u26a0 ") + str(s) for s in last["status"]],
                "iteration": last["last_iteration"].to_numpy(),
                "forward s": floats(last, "forward_seconds"),
                "slowest": 100 * floats(last, "slowest_share"),
                "machine": last["host"].to_numpy(),
                "last sign": [moment(at) for at in floats(last, "last_sign")],
            }
        )
        st.dataframe(
            shown,
            key="ranks_table",
            hide_index=True,
            height=min(38 + 35 * len(shown), 260),
            column_config={
                "forward s": st.column_config.NumberColumn("forward s", format="%.3f"),
                "slowest": st.column_config.NumberColumn(
                    "slowest",
                    format="%.0f %%",
                    help="Of the iterations that all ranks did, in how many its solves took "
                    "longest.",
                ),
                "last sign": st.column_config.DatetimeColumn("last sign", format="D MMM HH:mm:ss"),
            },
        )


def moment(at: float) -> datetime | None:
    """Return a time; None where it is not known."""
    return datetime.fromtimestamp(at) if np.isfinite(at) and at > 0 else None


def samples(run: "Run") -> None:
    """Draw the leaderboard of hard samples, and how they went."""
    from inspector.samples import hard_samples, visits

    st.header("Hard samples", anchor=False)
    ranked = ask(hard_samples, run, MOST_SAMPLES)
    if ranked.empty:
        st.caption(
            "Which samples are hard is known if iterations name them: "
            "`inspector.iteration(step, sample_ids=ids)`."
        )
        return
    seen = ask(visits, run)
    left, right = pair("samples")
    with left:
        heading(
            "Which samples are hardest?",
            f"of {explain.count(seen['sample'].nunique())}, by attempts of their last visit",
            data=ranked,
            key="samples_all",
        )
        shown = ranked[
            ["sample", "visits", "steps_first", "steps_last", "steps_max", "refused", "failed"]
        ]
        shown = shown.assign(sample=[str(one) for one in shown["sample"]])
        event: Any = st.dataframe(
            shown,
            key="samples_table",
            hide_index=True,
            height=300,
            on_select="rerun",
            selection_mode="single-row",
            column_config={
                "steps_first": st.column_config.NumberColumn("first", help="attempts"),
                "steps_last": st.column_config.NumberColumn("last", help="attempts"),
                "steps_max": st.column_config.NumberColumn("most", help="attempts"),
            },
        )
        at = session.line_picked("sample", shown["sample"].tolist(), event["selection"]["rows"])
        if at is not None:
            line = ranked.iloc[at]
            st.page_link(
                "views/instances.py",
                label=f"Its last solve: row {line['instance']} of solve {line['solve']}",
                icon=":material/table_rows:",
                query_params={
                    "run": run.id, "solve": str(line["solve"]), "inst": str(line["instance"]),
                },
            )  # fmt: skip
    with right:
        first = [] if at is None else [ranked["sample"].iloc[at]]
        chosen = [*dict.fromkeys([*first, *ranked["sample"].tolist()])]
        draw(
            sample_history_figure(seen, theme.current(), chosen=chosen),
            key="sample_history",
            question="Do hard samples stay hard?",
            unit="attempts at each visit",
            alt=f"Attempts of the hardest of {seen['sample'].nunique()} samples, visit by visit.",
            data=seen,
        )


def take_point(point: dict[str, Any]) -> None:
    """Show the solve of an iteration that was clicked."""
    solve = point.get("customdata")
    solve = solve[0] if isinstance(solve, list) else solve
    if isinstance(solve, int | float) and solve == solve and solve >= 0:
        session.put("solve", int(solve))


def one_solve(run: "Run") -> None:
    """Draw the raster of the solve that is picked, and what the rules find in it."""
    if run.n_solves == 0:
        return
    st.header("One solve", anchor=False)
    st.caption("Click an iteration above, or name a solve: every row against its attempts.")
    solve = run_header.solve_picker(run)
    if solve is None or run_header.too_large(run, solve):
        return
    settings = run.settings(solve)
    at, forward = settings.get("iteration"), settings.get("backward_of")
    facts = [] if at is None else [f"iteration {at}"]
    facts.append("forward" if forward is None else f"backward of solve {forward}")
    facts.append(f"{settings.get('method')}, {settings.get('adjoint')}")
    st.caption(" \u00b7 ".join(facts))
    thinned = run.solve_state(solve).thinned
    instances = ask(type(run).instances, run, solve)
    if thinned and (instances.empty or not np.isfinite(floats(instances, "dt_max")).any()):
        st.info(
            f"The {explain.count(thinned)} steps of this solve were let go, as `every` or a budget "
            "asked for. Its counts are in the pictures above.",
            icon=":material/compress:",
        )
        return
    if instances.empty:
        st.info("No step of this solve is recorded.", icon=":material/hourglass_empty:")
        return
    run_overview.raster_of(run, solve, instances)
    diagnosis.panel(run, solve, live=run.live)
