"""What dominated a row, in one sentence, with stability told apart from accuracy."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from app import explain, run_facts
from app.cached import ask
from app.components.run_header import described
from app.controls.numbers import short
from app.frames import floats, where

if TYPE_CHECKING:
    from inspector.run import Run


def steps_of(run: "Run", solve: int, row: int) -> tuple[pd.DataFrame, Mapping[int, str]]:
    """Return all attempts of a row, and what the codes of their `limiter` mean."""
    from inspector import stiffness

    steps = ask(type(run).steps, run, solve, row)
    labels = dict(run.columns.get("limiter", {}).get("labels") or {})
    if "limiter" not in steps:
        return steps, labels
    held = ask(stiffness.held_by_stability, run, solve, row)
    code = max(labels, default=0) + 1
    codes = np.where(held, code, steps["limiter"].to_numpy(dtype=np.int64))
    return steps.assign(limiter=codes), labels | {code: "stability"}


def names_of(run: "Run", solve: int) -> list[str]:
    """Return the names of the components of a solve."""
    dim = int(run.settings(solve).get("dim") or 0)
    return list(run_facts.component_names(described(), (run.spec or {}).get("problem"), dim))


def sentence_of(run: "Run", solve: int, row: int, instances: pd.DataFrame) -> str:
    """Return the sentence.

    Args:
        instances: of the solve, as `Run.instances` gives them.
    """
    steps, labels = steps_of(run, solve, row)
    return explain.row_in_words(
        row,
        instances,
        steps,
        labels,
        parameter=parameter_of(instances, row),
        components=names_of(run, solve),
    )


def parameter_of(instances: pd.DataFrame, row: int) -> str | None:
    """Return what sets a row apart, such as `mu = 50`; None if no parameter is recorded."""
    line = where(instances, instances["instance"] == row)
    parts = [
        f"{name} = {short(float(floats(line, name)[0]))}"
        for name in run_facts.parameters_of(instances)
    ]
    return ", ".join(parts[:3]) or None
