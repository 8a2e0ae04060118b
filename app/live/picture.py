"""The live raster: rows x attempts, with pickers of value and order."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import streamlit as st

from app import session
from app.components.raster import Pick, raster
from app.live.charts import colour_codes

if TYPE_CHECKING:
    import pandas as pd

    from inspector.queries import Order
    from inspector.run import Run

ORDERS = {
    "index": "batch order",
    "attempts": "most attempts first",
    "finish": "last to finish first",
}
WORDS = {
    "dt": "step size",
    "error_ratio": "error ratio",
    "accepted": "accepted / refused",
    "limiter": "what limited the step",
    "limiting_component": "worst component",
    "factor": "step factor",
    "share_p": "P share",
    "share_i": "I share",
    "share_d": "D share",
    "clamped": "factor cut off",
}
QUESTIONS = {
    "dt": "Which rows step small, and when?",
    "error_ratio": "Where is the error close to the tolerance, where above it?",
    "accepted": "Where are steps refused?",
    "limiter": "What set the size of each step?",
    "limiting_component": "Which component carries the error?",
    "factor": "Where does the controller shorten steps, where lengthen?",
    "clamped": "Where was the controller's factor cut off?",
}
ROWS, COLS = 256, 480  # cells sent at most


def values_offered(run: "Run") -> list[str]:
    """Return the columns a raster can show, in a fixed order."""
    known = [name for name in WORDS if name in run.columns]
    others = [
        n for n in run.columns if n not in WORDS and n not in ("solve", "attempt", "instance", "t")
    ]
    return known + others


def pickers(run: "Run", *, solves: bool = True) -> "tuple[str, Order]":
    """Draw the pickers of value and row order (and of the solve, if `solves`); return the two."""
    offered = {name: WORDS.get(name, name.replace("_", " ")) for name in values_offered(run)}
    for key, titles in (("metric", offered), ("order", ORDERS)):
        session.accept(key, titles)
        session.check(key, lambda name, titles=titles: name in titles, next(iter(titles)))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        value = st.selectbox(
            "Colour shows",
            list(offered),
            format_func=lambda name: str(offered.get(name, name)),
            width=220,
            **session.keep("metric", "url"),
        )
        order = st.selectbox(
            "Rows in",
            list(ORDERS),
            format_func=lambda name: str(ORDERS.get(name, name)),
            width=220,
            **session.keep("order", "url"),
        )
        if solves and run.n_solves > 1:
            last = run.n_solves - 1
            session.check("solve", lambda n: isinstance(n, int) and 0 <= n <= last, 0)
            st.number_input(
                "Solve", 0, last, 0, width=110, help=f"This run has {last + 1} solves.",
                **session.keep("solve", "url"),
            )  # fmt: skip
    return value or "dt", cast("Order", order or "index")


def question(value: str) -> str:
    """Return the question the raster answers for a value."""
    return QUESTIONS.get(value) or f"How does the {WORDS.get(value, value)} differ between rows?"


def look_of(value: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a value is coloured: scale, ends, unit, or a colour for each code."""
    labels = {int(code): word for code, word in (about.get("labels") or {}).items()}
    if labels:
        return {"categories": colour_codes(labels, value), "label": WORDS.get(value, value)}
    label, unit = WORDS.get(value, value.replace("_", " ")), str(about.get("unit") or "")
    if value == "error_ratio":
        return {
            "label": label,
            "unit": "1 = tolerance",
            "log": True,
            "scale": "puor",
            "low": 1e-2,
            "high": 1e2,
        }
    if value == "factor":
        return {"label": label, "log": True, "scale": "puor", "low": 0.1, "high": 10.0}
    if value.startswith("share_"):
        return {"label": label, "unit": "log10", "scale": "puor", "low": -0.5, "high": 0.5}
    return {"label": label, "unit": unit, "log": value == "dt"}


def show(
    run: "Run",
    solve: int,
    value: str,
    order: "Order",
    picked: list[int],
    *,
    ghost: "pd.DataFrame | None" = None,
    x_max: int | None = None,
    on_pick: Callable[[], None] = lambda: None,
) -> Pick | None:
    """Draw the raster of one solve.

    Args:
        picked: rows to mark.
        ghost: `attempt, active` of the run compared with.
        x_max: right end of the attempt axis.
        on_pick: called before the page is drawn again with a new pick.
    """
    from inspector import queries

    cells = queries.raster(run, solve, value, rows=ROWS, cols=COLS, order=order)
    taken = queries.raster(run, solve, "accepted", rows=ROWS, cols=COLS, order=order)
    refused = taken.values == 0
    shown = (
        codes(cells.values, run.columns[value])
        if run.columns[value].get("labels")
        else cells.values
    )
    look = look_of(value, run.columns[value])
    line = None
    if ghost is not None and len(ghost):
        line = (ghost["attempt"].to_numpy(), ghost["active"].to_numpy())
    event = raster(
        shown,
        key="live_raster",
        rows=cells.instances,
        edges=cells.attempt_edges,
        refused=refused,
        picked=picked,
        active=active_rows(run, solve, cells.attempt_edges),
        ghost=line,
        x_max=x_max,
        height=400,
        alt=f"{question(value)} Raster of {len(cells.instances)} rows over "
        f"{int(cells.attempt_edges[-1]) if len(cells.attempt_edges) else 0} attempts.",
        on_pick=on_pick,
        **look,
    )
    if cells.pooled:
        kept = "smallest" if value in ("dt", "accepted") else "largest"
        st.caption(
            "Too much for one cell each: a cell stands for several attempts or rows and shows the "
            f"{kept} value among them; it is hatched if one of them was refused."
        )
    return event


def codes(values: Any, about: Mapping[str, Any]) -> Any:
    """Return the place of each code among the labels, NaN kept."""
    places = {code: place for place, code in enumerate(sorted(int(c) for c in about["labels"]))}
    found = np.full(np.shape(values), np.nan, np.float32)
    for code, place in places.items():
        found[np.asarray(values) == code] = place
    return found


def active_rows(run: "Run", solve: int, edges: Any) -> Any:
    """Return how many rows took part in the first attempt of each column."""
    from inspector import queries

    quantiles = queries.dt_quantiles(run, solve)
    starts = np.asarray(edges)[:-1]
    if quantiles.empty:
        return np.zeros(len(starts))
    return np.interp(starts, quantiles["attempt"], quantiles["active"])


def table(run: "Run", solve: int, value: str, order: Any) -> "pd.DataFrame":
    """Return what the raster shows, a line a row and a column for the attempts of a cell."""
    import pandas as pd

    from inspector import queries

    found = queries.raster(run, solve, value, rows=ROWS, cols=COLS, order=order)
    made = pd.DataFrame(found.values, columns=[f"{int(e)}" for e in found.attempt_edges[:-1]])
    made.insert(0, "row", found.instances)
    return made
