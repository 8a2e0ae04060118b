"""What each figure must hold, whatever it shows: budgets, units, both themes, empty frames."""

import base64
import importlib
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

import app.figures
from app.figures import style
from app.figures.active_rows import active_rows_figure
from app.figures.answer import answer_figure
from app.figures.comparison import comparison_bars_figure, comparison_scatter_figure
from app.figures.controller_shares import controller_shares_figure
from app.figures.counts_histogram import counts_histogram_figure
from app.figures.dt_quantiles import dt_quantiles_figure
from app.figures.error_ratio import error_ratio_figure
from app.figures.gain_map import gain_map_figure
from app.figures.gradient_cost import gradient_cost_figure
from app.figures.gradient_errors import group_errors_figure, row_errors_figure
from app.figures.gradient_sweep import gradient_sweep_figure
from app.figures.instance_ranking import instance_ranking_figure
from app.figures.limiter import limiter_ribbon_figure, limiter_shares_figure
from app.figures.memory_timeline import memory_timeline_figure
from app.figures.phase_portrait import phase_portrait_figure
from app.figures.rank_seconds import rank_seconds_figure
from app.figures.raster import raster_figure
from app.figures.runs_compared import (
    path_difference_figure,
    paths_figure,
    trainings_figure,
    work_difference_figure,
    work_over_time_figure,
)
from app.figures.sample_history import sample_history_figure
from app.figures.scalars import scalars_figure
from app.figures.solve_costs import solve_costs_figure
from app.figures.stability_region import stability_region_figure, stiffness_figure
from app.figures.step_size import step_size_figure
from app.figures.training_memory import training_memory_figure
from app.figures.training_optimizer import training_optimizer_figure
from app.figures.training_overview import training_overview_figure
from app.figures.training_seconds import training_seconds_figure
from app.figures.trajectories import components_figure, trajectories_figure
from app.figures.tuning_real import replay_check_figure, tuning_pareto_figure
from app.figures.work_precision import work_precision_figure
from app.figures.worst_component import worst_component_figure
from app.theme import DARK, LIGHT, Theme
from inspector.queries import Raster

SIZES = {"small": 40, "large": 20_000}


def shares_of(n: int) -> pd.DataFrame:
    attempt = np.arange(min(n, 100))
    return pd.DataFrame(
        {"attempt": attempt, "accuracy": 0.75, "dt_max": 0.25 * (attempt % 2), "end of span": 0.0}
    )


def paired_of(n: int) -> pd.DataFrame:
    row = np.arange(n)
    return pd.DataFrame({"instance": row, "a": 100 + row % 90, "b": 100 + row * 31 % 120})


def differences_of(n: int) -> pd.DataFrame:
    names = ["attempts", "refused", "evaluations"][:n]
    values = {"a": [100.0, 20.0, 700.0], "b": [90.0, 30.0, 700.0], "percent": [-10.0, 50.0, 0.0]}
    return pd.DataFrame({"quantity": names} | {k: v[: len(names)] for k, v in values.items()})


def scalars_of(n: int) -> pd.DataFrame:
    value = np.exp(-np.arange(n) / max(n, 1))
    value[5:8] = np.nan
    value[20:21] = np.inf
    return pd.DataFrame({"iteration": np.arange(n), "value": value})


def solves_of(n: int) -> pd.DataFrame:
    solve = np.arange(n)
    return pd.DataFrame(
        {"solve": solve, "n_attempts": 200 + solve % 50, "n_failed": solve % 9 == 1}
    )


def iterations_of(n: int, ranks: int = 1) -> pd.DataFrame:
    at = np.arange(n)
    loss = np.exp(-at / max(n, 1) * 5)
    loss[3:5] = np.nan
    table = pd.DataFrame({"iteration": at, "loss": loss, "solve": at, "rank": at % ranks})
    table["test"] = np.where(at % 10 == 0, loss * 1.1, np.nan)
    table["non_finite"] = np.where((at == 3) | (at == 4), 1, 0)
    for name, factor in {"q05": 0.8, "q25": 0.9, "median": 1, "q75": 1.2, "q95": 1.5}.items():
        table[f"forward_steps_{name}"] = factor * (20 + at % 13)
    table["forward_steps_max"] = 40 + at * 31 % 57
    table["forward_nfe_median"] = 6 * table["forward_steps_median"] + 2
    table["backward_nfe_median"] = 2 * table["forward_nfe_median"]
    table["backward_pass_calls"] = 3 * table["forward_nfe_median"]
    table["forward_steps"], table["forward_refused"] = 1000.0, at % 90
    table["forward_failed"] = (at % 50 == 7).astype(int)
    table["seconds"], table["forward_seconds"] = 0.1 + 0.01 * (at % 7), 0.03
    table["f_seconds"], table["backward_seconds"] = 0.02, 0.05
    for name in ("checkpoint_bytes", "graph_bytes", "gradient_bytes", "allocated_bytes"):
        table[name] = 1e6 + at
    for name in ("grad_norm", "grad_norm/layers.0", "lr", "update_ratio", "optim_share_eps"):
        table[name] = 0.1 + (at % 11) / 11
    return table


def visits_of(n: int) -> pd.DataFrame:
    at = np.arange(n)
    return pd.DataFrame({"sample": at % 20, "visit": at // 20, "n_steps": 10 + at * 7 % 23})


MODES = ["backprop", "aca", "symplectic", "symplectic:keep=graphs", "continuous", "joint", "own"]


def modes_of(n: int) -> pd.DataFrame:
    """Return what a comparison's table has: `MODES` at several tolerances."""
    count = len(MODES) if n else 0
    values = [10.0**-k for k in range(2, 6)]
    return pd.DataFrame(
        [
            (value, mode, 0.0 if i == 0 else 10.0 ** (i - 16) * value, 2.0**20 / (i + 1), 0.1 * i)
            for value in values
            for i, mode in enumerate(MODES[:count])
        ],
        columns=["value", "mode", "error", "peak_bytes", "seconds"],
    )


def group_errors_of(n: int) -> pd.DataFrame:
    table = modes_of(n)[["mode", "error"]].drop_duplicates("mode")
    return table.merge(pd.DataFrame({"group": [f"net.{i}" for i in range(min(n, 60))]}), "cross")


def row_errors_of(n: int) -> pd.DataFrame:
    table = modes_of(n)[["mode", "error"]].drop_duplicates("mode")
    rows = table.merge(pd.DataFrame({"instance": np.arange(min(n, 4096))}), "cross")
    rows["error"] *= 1 + rows["instance"] % 7
    return rows


def memory_of(n: int) -> pd.DataFrame:
    share = np.arange(min(n, 400)) / max(1, min(n, 400))
    frames = [
        pd.DataFrame(
            {"mode": mode, "seconds": share * (i + 1), "bytes": 1e6 * share / (i + 1),
             "phase": np.where(share < 0.4, "forward", "backward")}
        )
        for i, mode in enumerate(MODES)
    ]  # fmt: skip
    return pd.concat(frames)


Make = Callable[[SimpleNamespace, int, Theme], go.Figure]


def precision_of(n: int) -> pd.DataFrame:
    """Return what a study's table has: seven methods at `n` tolerances, at most 12."""
    tolerances = [10.0**-k for k in range(1, 1 + min(n, 12))]
    lines = [
        {
            "method": mode, "setting": f"rtol {rtol:g}", "solve": i, "failed": i % 2,
            "end_error": rtol * (i + 1), "end_error_low": rtol, "end_error_high": 30 * rtol,
            "n_f_evals": 40 * rtol**-0.2, "n_f_evals_low": 20, "n_f_evals_high": 1e5,
        }
        for i, mode in enumerate(MODES)
        for rtol in tolerances
    ]  # fmt: skip
    columns = ["method", "setting", "solve", "failed", "end_error", "n_f_evals"]
    return pd.DataFrame(lines) if lines else pd.DataFrame(columns=columns)


def tuning_of(n: int) -> pd.DataFrame:
    """Return what a search's table has: a grid of gains by replay, and real solves."""
    at = np.arange(min(n, 120))
    table = pd.DataFrame({"kp": 0.1 * (at % 10), "ki": 0.1 * (1 + at // 10), "kd": 0.0})
    table["attempts"] = 1000.0 + at * 37 % 400
    table["phase"], table["source"], table["title"] = "replay", "grid", "gains"
    real = table.head(40).assign(phase="real", source="preset", method="tsit5", rtol=1e-4)
    real["estimate"] = real["attempts"] * np.where(np.arange(len(real)) % 3, 1.01, 1.3)
    both = pd.concat([table, real, real.assign(phase="replay")], ignore_index=True)
    return both.assign(label="x", end_error=10.0 ** -(np.arange(len(both)) % 7))


def stiff_of(steps: pd.DataFrame) -> pd.DataFrame:
    """Return steps with what tells how stiff they were."""
    at = np.arange(len(steps))
    size = 3.3 + 0.4 * np.sin(at / 9)
    return steps.assign(stiffness=size, stiffness_real=-size * (at % 5 > 0), instance=at % 3)


R = ([1.0, 1.0, 0.5, 1 / 6, 1 / 24], [1.0])


def curves_of(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return a curve for each of seven runs."""
    t = np.linspace(0.0, 10.0, n)
    return {mode: (t, np.sin(t + i) + 2) for i, mode in enumerate(MODES)} if n else {}


def counts_of(n: int) -> dict[str, np.ndarray]:
    return {mode: 1.0 + np.arange(120) % (i + 3) for i, mode in enumerate(MODES)} if n else {}


def ratio_of(n: int) -> np.ndarray:
    return (np.arange(min(n, 256) * 120) % 7 - 3.0).reshape(-1, 120)


def real_of(n: int) -> pd.DataFrame:
    table = tuning_of(n)
    return table[table["phase"] == "real"]


def cloud_of(n: int) -> pd.DataFrame:
    at = np.arange(n)
    table = pd.DataFrame({"method": [MODES[i % 7] for i in at], "setting": "rtol", "instance": at})
    return table.assign(end_error=10.0 ** -(at % 9), n_f_evals=50.0 + at % 999)


def raster_of(n: int) -> Raster:
    rows, columns = min(n, 64), min(n, 200)
    values = np.logspace(-3, 0, max(rows * columns, 1), dtype=np.float32)[: rows * columns]
    return Raster(
        values=values.reshape(rows, columns),
        instances=np.arange(rows),
        attempt_edges=np.arange(columns + 1),
        unit="time",
        log=True,
        pooled=False,
    )


FIGURES: dict[str, Make] = {
    "raster": lambda f, n, c: raster_figure(raster_of(n), c, title="|dt|, time"),
    "step_size": lambda f, n, c: step_size_figure(f.steps(n), c, ghost=f.steps(n // 2)),
    "stability_region": lambda f, n, c: stability_region_figure(R, stiff_of(f.steps(n)), c),
    "stiffness": lambda f, n, c: stiffness_figure(stiff_of(f.steps(n)), c, reach=2.8, rows=(0, 1)),
    "step_size_by_attempt": lambda f, n, c: step_size_figure(f.steps(n), c, x="attempt"),
    "error_ratio": lambda f, n, c: error_ratio_figure(f.steps(n), c, steady=0.3),
    "dt_quantiles": lambda f, n, c: dt_quantiles_figure(f.quantiles(n), c, ghost=f.quantiles(n)),
    "active_rows": lambda f, n, c: active_rows_figure(
        f.quantiles(n), c, batch=64, ghost=f.quantiles(n)
    ),
    "trajectories": lambda f, n, c: (
        trajectories_figure(f.states(n // 20), c, rows=range(0, n // 20, 2))
        if n
        else trajectories_figure(pd.DataFrame(), c)
    ),
    "components": lambda f, n, c: components_figure(f.states(1, n, dim=9), c, names=["x"]),
    "phase_portrait": lambda f, n, c: phase_portrait_figure(
        f.states(n // 20) if n else pd.DataFrame(), c, rows=range(8)
    ),
    "controller_shares": lambda f, n, c: controller_shares_figure(f.steps(n), c),
    "controller_shares_by_attempt": lambda f, n, c: controller_shares_figure(
        f.steps(n), c, x="attempt"
    ),
    "limiter_ribbon": lambda f, n, c: limiter_ribbon_figure(f.steps(n), c, f.labels),
    "limiter_shares": lambda f, n, c: limiter_shares_figure(shares_of(n), c),
    "worst_component": lambda f, n, c: worst_component_figure(f.steps(n), c, names=["x", "y"]),
    "instance_ranking": lambda f, n, c: instance_ranking_figure(f.instances(n), c, selected=3),
    "counts_histogram": lambda f, n, c: counts_histogram_figure(f.instances(n), c),
    "comparison_bars": lambda f, n, c: comparison_bars_figure(differences_of(n), c),
    "comparison_scatter": lambda f, n, c: comparison_scatter_figure(paired_of(n), c),
    "scalars": lambda f, n, c: scalars_figure(scalars_of(n), c, name="loss", log=True),
    "gradient_cost": lambda f, n, c: gradient_cost_figure(
        modes_of(n).drop_duplicates("mode"), c, x="peak_bytes"
    ),
    "group_errors": lambda f, n, c: group_errors_figure(group_errors_of(n), c),
    "row_errors": lambda f, n, c: row_errors_figure(row_errors_of(n), c),
    "memory_timeline": lambda f, n, c: memory_timeline_figure(memory_of(n), c),
    "gradient_sweep": lambda f, n, c: gradient_sweep_figure(
        modes_of(n), c, sweep="rtol", y="error", selected=1e-3
    ),
    "solve_costs": lambda f, n, c: solve_costs_figure(solves_of(n), c, selected=2),
    "training_overview": lambda f, n, c: training_overview_figure(
        iterations_of(n),
        c,
        replaced=iterations_of(n // 2),
        ghost=iterations_of(n),
        resumed=[n / 2],
        selected=2,
    ),
    "training_seconds": lambda f, n, c: training_seconds_figure(iterations_of(n), c),
    "training_memory": lambda f, n, c: training_memory_figure(iterations_of(n), c),
    "training_optimizer": lambda f, n, c: training_optimizer_figure(iterations_of(n), c),
    "sample_history": lambda f, n, c: sample_history_figure(visits_of(n), c, chosen=[3, 4, 5]),
    "work_precision": lambda f, n, c: work_precision_figure(
        precision_of(n),
        c,
        x="n_f_evals",
        y="end_error",
        cloud=cloud_of(n),
        front=precision_of(n).head(9),
        doubt=1e-12,
    ),
    "answer": lambda f, n, c: answer_figure(
        f.steps(n), c, x="t", y="dt", kind="points", group="limiter"
    ),
    "answer_bars": lambda f, n, c: answer_figure(f.steps(n), c, x="t", y="dt", kind="bars"),
    "work_over_time": lambda f, n, c: work_over_time_figure(
        np.linspace(0, 5, 121), counts_of(n), c, rows=dict.fromkeys(MODES, 4)
    ),
    "work_difference": lambda f, n, c: work_difference_figure(
        np.linspace(0, 5, 121), np.arange(min(n, 256)), ratio_of(n), c, a="A", b="B"
    ),
    "paths": lambda f, n, c: paths_figure(curves_of(n), c, name="x"),
    "path_difference": lambda f, n, c: path_difference_figure(
        dict(list(curves_of(n).items())[1:]), c, name="x", baseline="A"
    ),
    "trainings": lambda f, n, c: trainings_figure(
        dict.fromkeys(MODES[:2], iterations_of(n)), c, column="loss", title="loss.", log=True
    ),
    "gain_map": lambda f, n, c: gain_map_figure(tuning_of(n), c, picked="gains"),
    "tuning_pareto": lambda f, n, c: tuning_pareto_figure(
        real_of(n), real_of(n).head(5), c, cost="attempts", picked="x"
    ),
    "replay_check": lambda f, n, c: replay_check_figure(real_of(n), c),
    "rank_seconds": lambda f, n, c: rank_seconds_figure(iterations_of(n, ranks=3), c),
}


def every() -> list[object]:
    return [pytest.param(make, id=name) for name, make in FIGURES.items()]


@pytest.mark.parametrize("make", every())
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_figure_stays_within_the_drawing_budget(make: Make, size: int, frames: SimpleNamespace):
    figure = make(frames, size, LIGHT)
    assert 0 < len(figure.data) <= style.MOST_TRACES
    assert sum(len(trace.x) for trace in figure.data) <= style.MOST_POINTS
    markers = sum(
        len(trace.x)
        for trace in figure.data
        if trace.type == "bar" or "markers" in (getattr(trace, "mode", "") or "")
    )
    assert markers <= style.MOST_MARKERS
    assert len(figure.to_json()) <= 500_000
    assert all(
        trace.type in ("scatter", "bar", "heatmap", "contour") for trace in figure.data
    )  # no WebGL contexts


@pytest.mark.parametrize("make", every())
def test_axes_are_named_and_every_trace_too(make: Make, frames: SimpleNamespace):
    figure = make(frames, 40, LIGHT)
    assert figure.layout.xaxis.title.text
    assert figure.layout.yaxis.title.text or figure.data[0].orientation == "h"
    assert all(trace.name for trace in figure.data)


@pytest.mark.parametrize("make", every())
def test_an_empty_frame_gives_the_designed_empty_figure(make: Make, frames: SimpleNamespace):
    figure = make(frames, 0, DARK)
    assert not figure.data
    assert figure.layout.xaxis.visible is False
    (note,) = figure.layout.annotations
    assert note.text.rstrip(")").endswith((".", "row", "limiter", "component", "share_d"))


@pytest.mark.parametrize("make", every())
def test_the_same_frame_gives_the_same_figure_in_both_themes_but_for_colour(
    make: Make, frames: SimpleNamespace
):
    light, again = make(frames, 300, LIGHT), make(frames, 300, LIGHT)
    dark = make(frames, 300, DARK)
    assert light.to_json() == again.to_json()
    assert light.to_json() != dark.to_json()
    for one, other in zip(light.data, dark.data, strict=True):
        assert one.name == other.name
        np.testing.assert_array_equal(one.y, other.y)


@pytest.mark.parametrize("make", every())
def test_numbers_travel_as_typed_arrays_and_never_as_long_text(make: Make, frames: SimpleNamespace):
    spec = json.loads(make(frames, 2_000, LIGHT).to_json())
    for trace in spec["data"]:
        for axis in ("x", "y"):
            values = trace[axis]
            assert isinstance(values, dict) or len(values) <= 8, (trace["name"], axis)
            if isinstance(values, dict):
                assert base64.b64decode(values["bdata"])


def test_every_figure_is_in_the_table_above_and_needs_no_streamlit():
    tested = {name for name in globals() if name.endswith("_figure")}
    for found in pkgutil.iter_modules(app.figures.__path__):
        module = importlib.import_module(f"app.figures.{found.name}")
        text = Path(str(module.__file__)).read_text("utf-8")
        assert "import streamlit" not in text
        assert "plotly.express" not in text
        own = {
            name
            for name, value in vars(module).items()
            if name.endswith("_figure") and getattr(value, "__module__", "") == module.__name__
        }
        missing = own - tested - {"new_figure", "empty_figure"}
        assert not missing, f"{missing} of {found.name} is not tested here"
