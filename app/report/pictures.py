"""The figures of a report: of one solve, of its slowest row, of a training."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from app import run_facts, training_words
from app.figures.active_rows import active_rows_figure
from app.figures.controller_shares import controller_shares_figure
from app.figures.counts_histogram import counts_histogram_figure
from app.figures.dt_quantiles import dt_quantiles_figure
from app.figures.error_ratio import error_ratio_figure
from app.figures.limiter import limiter_shares_figure
from app.figures.raster import raster_figure
from app.figures.scalars import scalars_figure
from app.figures.solve_costs import solve_costs_figure
from app.figures.stability_region import stability_region_figure
from app.figures.step_size import step_size_figure
from app.figures.training_memory import training_memory_figure
from app.figures.training_optimizer import training_optimizer_figure
from app.figures.training_overview import training_overview_figure
from app.figures.training_seconds import training_seconds_figure
from app.figures.trajectories import is_component, trajectories_figure
from app.frames import floats, ints, only, where
from app.report.parts import Figures, Html, joined, section, tag

if TYPE_CHECKING:
    from inspector.run import Run

Described = Mapping[str, Any]

ROWS, COLS = 160, 400  # cells of the raster
MOST_STEPS = 4_000  # of the row looked at
MOST_SCALARS = 6
FEWEST = 2  # iterations that make a training


def grid(*parts: Html) -> Html:
    """Return figures side by side where there is room."""
    return tag("div", *parts, class_="figures") if any(parts) else Html("")


def of_all_solves(run: "Run", solve: int, figures: Figures) -> Html:
    """Return what every solve cost, if there are several."""
    if run.n_solves < 2:
        return Html("")
    table = run.solve_table()
    return grid(
        figures.add(
            "Did solving get harder?",
            f"attempts of each solve; {solve} is looked into below",
            f"Attempts of {len(table)} solves.",
            lambda colours: solve_costs_figure(table, colours, selected=solve),
            wide=True,
        )
    )


def of_a_solve(run: "Run", solve: int, instances: pd.DataFrame, figures: Figures) -> Html:
    """Return the raster, how steps spread, and what limited them."""
    from inspector import queries, stiffness

    found = queries.raster(run, solve, "dt", rows=ROWS, cols=COLS, order="attempts")
    quantiles = queries.dt_quantiles(run, solve)
    active = only(quantiles, "attempt", "active")
    shares = stiffness.limited_shares(run, solve)
    batch = len(instances)
    return section(
        "What the steps did",
        grid(
            figures.add(
                "Which rows step small, and when?",
                "step size of every attempt; rows with most attempts on top",
                f"Step sizes of {batch} rows over their attempts.",
                lambda colours: raster_figure(found, colours, title="|dt|, time"),
                wide=True,
            ),
            figures.add(
                "How large were the steps?",
                "|dt| of the rows still solving, time",
                "Quantiles of the step size over the attempts.",
                lambda colours: dt_quantiles_figure(quantiles, colours),
            ),
            figures.add(
                "How many rows were still solving?",
                "rows",
                f"Rows solving at each attempt, of {batch}.",
                lambda colours: active_rows_figure(active, colours, batch=batch),
            ),
            figures.add(
                "What limited the steps?",
                "% of the rows still solving",
                "Share of what limited the steps, over the attempts.",
                lambda colours: limiter_shares_figure(shares, colours),
            ),
            figures.add(
                "How evenly was the work spread?",
                "attempts of a row",
                f"Histogram of the attempts of {batch} rows.",
                lambda colours: counts_histogram_figure(instances, colours),
            ),
        ),
    )


def of_a_row(
    run: "Run", solve: int, row: int, described: Described | None, figures: Figures
) -> Html:
    """Return steps, error ratios and controller of a row, and where its steps are stable."""
    steps = run.steps(solve, row)
    if steps.empty:
        return Html("")
    said = f"all its {len(steps):,} attempts"
    if len(steps) > MOST_STEPS:
        said, steps = f"the first {MOST_STEPS:,} of {len(steps):,} attempts", steps[:MOST_STEPS]
    steady = run_facts.steady_ratio(run.settings(solve), described)
    parts = [
        figures.add(
            "How large were its steps, and where was one refused?",
            "|dt|, time",
            f"Step sizes of row {row} over time.",
            lambda colours: step_size_figure(steps, colours),
            wide=True,
        ),
        figures.add(
            "How close to the tolerance was it?",
            "error / tolerance; above 1 is refused",
            f"Error ratios of row {row} over time.",
            lambda colours: error_ratio_figure(steps, colours, steady=steady),
            wide=True,
        ),
    ]
    if "share_p" in steps or "factor" in steps:
        parts.append(
            figures.add(
                "What did the controller ask for?",
                "log10 of each part of the factor; above 0 asks for a larger step",
                f"P, I and D part of the step-size factor of row {row}.",
                lambda colours: controller_shares_figure(steps, colours),
                wide=True,
            )
        )
    parts += _stability(run, solve, row, steps, figures)
    parts += _states(run, solve, row, described, figures)
    return section(
        f"Row {row}, the slowest",
        tag("p", f"The row with the most attempts; {said} are drawn.", class_="muted"),
        grid(*parts),
    )


def _stability(
    run: "Run", solve: int, row: int, steps: pd.DataFrame, figures: Figures
) -> list[Html]:
    """Return the region of the method with the row's steps, where how stiff it is was recorded."""
    from inspector.diagnosis import Case

    if "stiffness" not in steps or not np.isfinite(floats(steps, "stiffness")).any():
        return []
    case = Case(run, solve)
    function = case.stability
    return [
        figures.add(
            "Do its steps stay where the method is stable?",
            "h λ of accepted steps over |R(z)| ≤ 1",
            f"Stability region of {case.method} with the steps of row {row}.",
            lambda colours: stability_region_figure(function, steps, colours),
        )
    ]


def _states(
    run: "Run", solve: int, row: int, described: Described | None, figures: Figures
) -> list[Html]:
    """Return recorded trajectories, of the first component."""
    states = run.states(solve)
    columns = [column for column in states.columns if is_component(column)]
    if states.empty or not columns:
        return []
    rows = list(dict.fromkeys(ints(states, "instance").tolist()))
    chosen = [row, *rows][:6] if row in rows else rows[:6]
    problem = (run.spec or {}).get("problem")
    name = run_facts.component_names(described, problem, len(columns))[0]
    return [
        figures.add(
            "Where did the solution go?",
            f"{name} over time",
            f"{name} over time for {len(rows)} rows.",
            lambda colours: trajectories_figure(
                states, colours, component=columns[0], rows=list(dict.fromkeys(chosen)), name=name
            ),
        )
    ]


def is_training(table: pd.DataFrame) -> bool:
    """Tell whether iterations have more to show than what was logged in them."""
    name = "forward_nfe_median"
    told = name in table and np.isfinite(floats(table, name)).any()
    return bool(len(table) >= FEWEST and told)


def of_a_training(run: "Run", figures: Figures) -> Html:
    """Return the curves of a training; nothing of a run that is none."""
    table = run.iterations()
    if not is_training(table):
        return Html("")
    lines = training_words.merged(where(table, table["current"]))
    return section(
        "The training",
        *(tag("p", alert.text, class_="warning") for alert in training_words.alerts(lines)[:4]),
        grid(
            figures.add(
                "How does the loss fall, and what does the solver cost meanwhile?",
                "over iterations",
                f"Loss and cost of the solver over {len(lines)} iterations.",
                lambda colours: training_overview_figure(lines, colours),
                wide=True,
            ),
            figures.add(
                "Where does the time go?",
                "seconds of an iteration",
                "Seconds of each iteration in the field, the solver, backward and the rest.",
                lambda colours: training_seconds_figure(lines, colours),
            ),
            figures.add(
                "How much memory does a gradient take?",
                "kept from forward to backward",
                "Memory of checkpoints, graphs and gradients in each iteration.",
                lambda colours: training_memory_figure(lines, colours),
            ),
            figures.add(
                "How does the optimizer step?",
                "over iterations",
                "Norm of the gradient, learning rate and update over the iterations.",
                lambda colours: training_optimizer_figure(lines, colours),
                wide=True,
            ),
        ),
    )


def of_logged_numbers(run: "Run", figures: Figures) -> Html:
    """Return what a script logged, where it is no training with a section of its own."""
    logged = run.scalars()
    if logged.empty or is_training(run.iterations()):
        return Html("")
    names = list(dict.fromkeys(logged["name"]))
    parts = []
    for name in names[:MOST_SCALARS]:
        part = where(logged, logged["name"] == name)
        parts.append(
            figures.add(
                str(name),
                "over iterations",
                f"{name} over {len(part)} iterations.",
                lambda colours, part=part, name=name: scalars_figure(part, colours, name=str(name)),
            )
        )
    more = len(names) - MOST_SCALARS
    left_out = f"{more} further logged numbers are left out." if more > 0 else ""
    return section("Logged numbers", joined(grid(*parts), tag("p", left_out) if left_out else ""))
