"""The Training page: loss above cost, resumes, ranks, hard samples, steps that were let go."""

import base64
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from inspector.schema import Column
from inspector.store.budget import Budget
from inspector.store.writer import RunWriter
from inspector.synthetic import ArrayBlock


def write_training(path: Path, iterations, *, rank=0, world=1, batch=6, budget=None, finish=True):
    """Write what a training writes, without a solver: the cost of a row grows with its number."""
    writer = RunWriter(path, rank=rank, world_size=world, budget=budget, spec={"problem": "flow"})
    writer.event("optimizer", "AdamW")
    for step in iterations:
        settings = {"batch": batch, "dim": 2, "method": "tsit5", "adjoint": "symplectic"}
        settings |= {"t0": 0.0, "t1": 1.0, "iteration": step, "unit": f"iteration {step}"}
        number = writer.start_solve(
            lambda settings=settings: settings, (Column("factor", "f4", "", "factor"),)
        )
        ids = [(step * 3 + row) % 10 for row in range(batch)]
        writer.line("solves", lambda n=number, ids=ids: {"kind": "samples", "solve": n, "ids": ids})
        steps = np.array(ids) + 4 + step
        attempts = int(steps.max())
        running = np.arange(attempts)[:, None] < steps
        grids = {name: np.full(running.shape, 0.1) for name in ("t", "dt", "factor")}
        grids["error_ratio"] = np.full(running.shape, 0.5, "f4")
        grids["accepted"] = np.ones(running.shape, "u1")
        writer.steps(number, ArrayBlock(0, running, grids))
        rows = {"n_steps": steps, "n_accepted": steps - 1, "n_rejected": steps * 0 + 1}
        rows |= {"n_f_evals": 6 * steps + 2, "status": (steps > 99).astype(int)}
        rows |= {"t_reached": np.ones(batch), "component": -np.ones(batch, int)}
        ranked = np.sort(steps)
        spread = [int(ranked[round(q * (batch - 1))]) for q in (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)]
        end = {"seconds": 0.02, "n_attempts": attempts, "n_f_calls": 6 * attempts, "n_failed": 0}
        end["totals"] = {name: int(rows[name].sum()) for name in list(rows)[:4]}
        end["quantiles"] = {"n_steps": spread, "n_f_evals": [6 * value + 2 for value in spread]}
        writer.end_solve(number, lambda told=(end, rows): told)
        told = {"kind": "backward", "solve": number, "seconds": 0.03, "n_f_calls": 80}
        writer.line("solves", lambda told=told: told | {"checkpoint_bytes": 5000})
        values = {"seconds": 0.1, "forward_seconds": 0.02 * (1 + rank), "f_seconds": 0.015}
        values |= {"backward_seconds": 0.05, "grad_norm": 1.0, "lr": 1e-3, "update_ratio": 1e-2}
        about = {"iteration": step, "time": 1e9 + step, "solves": [number, number + 1]}
        writer.line("iterations", lambda told=about | {"values": values}: told)
        writer.scalars(step, {"loss": float("nan") if step == 3 else 1 / (step + 1)})
    writer.flush()
    if finish:
        writer.close()
    return writer


@pytest.fixture(scope="module")
def trainings(tmp_path_factory):
    """A folder of trainings: resumed, of two ranks, thinned, and a run that is none."""
    root = tmp_path_factory.mktemp("trainings")
    write_training(root / "resumed", range(20))
    write_training(root / "resumed", range(15, 30))
    write_training(root / "ranks", range(12), world=2)
    write_training(root / "ranks", range(8), rank=1, world=2, finish=False).close("interrupted")
    write_training(root / "thinned", range(40), budget=Budget(300, None))
    writer = RunWriter(root / "plain")
    writer.start_solve(lambda: {"batch": 2, "dim": 1, "t0": 0.0, "t1": 1.0})
    writer.close()
    return root


def figure(app, key: str) -> dict:
    """Return the figure of a chart as JSON."""
    found = [p.proto for p in app.get("plotly_chart") if key in p.proto.id]
    assert found, key
    return json.loads(found[0].spec)


def trace(spec: dict, name: str) -> np.ndarray:
    """Return the heights of a trace."""
    one = next(t for t in spec["data"] if t["name"] == name)
    packed = one["y"]
    if isinstance(packed, dict):
        return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])
    return np.array(packed, float)


def texts(app) -> str:
    kinds = (app.markdown, app.caption, app.warning, app.error, app.info)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def test_loss_stands_above_the_cost_of_the_solves(open_view, trainings):
    app = open_view("training", trainings, run="ranks")
    spec = figure(app, "overview")
    names = [one["name"] for one in spec["data"]]
    assert {"loss", "median row", "slowest row", "5 to 95 % of rows", "refused"} <= set(names)
    assert len(trace(spec, "loss")) == 12
    assert np.isnan(trace(spec, "loss")[3])
    assert "not finite (1)" in names
    domains = [spec["layout"][f"yaxis{n}"]["domain"] for n in ("", 2, 3, 4)]
    assert all(above[0] > below[1] for above, below in pairwise(domains))
    assert trace(spec, "slowest row").max() == 8 + 4 + 11


def test_a_resume_is_said_and_what_it_replaced_is_drawn_apart(open_view, trainings):
    app = open_view("training", trainings, run="resumed")
    assert "Resumed at iteration 15" in texts(app)
    assert "5 iterations done before are drawn dotted" in texts(app)
    spec = figure(app, "overview")
    assert len(trace(spec, "loss")) == 30
    assert len(trace(spec, "replaced by a resume")) == 5
    assert spec["layout"]["shapes"]


def test_what_went_wrong_is_said_first(open_view, trainings):
    app = open_view("training", trainings, run="resumed")
    assert "not finite in 1 iterations, first in iteration 3" in texts(app)
    assert any("the evaluations it took at first" in warning.value for warning in app.warning)


def test_ranks_are_compared_and_a_lost_one_is_named(open_view, trainings):
    app = open_view("training", trainings, run="ranks")
    assert "Rank 1 is gone without a word since iteration 7" in texts(app)
    table = next(d.value for d in app.dataframe if "slowest" in d.value)
    assert table["rank"].tolist() == [0, 1]
    assert table["iteration"].tolist() == [11, 7]
    assert table["slowest"].tolist() == [0, 100]
    assert len(trace(figure(app, "rank_seconds"), "rank 1")) == 8


def test_hard_samples_lead_the_board(open_view, trainings):
    app = open_view("training", trainings, run="ranks")
    table = next(d.value for d in app.dataframe if "steps_last" in d.value)
    assert table["steps_last"].is_monotonic_decreasing
    names = [one["name"] for one in figure(app, "sample_history")["data"]]
    assert f"sample {table['sample'].iloc[0]}" in names


def test_a_solve_whose_steps_were_let_go_says_so(open_view, trainings):
    app = open_view("training", trainings, run="thinned", solve=1)
    assert "steps of this solve were let go" in texts(app)
    assert "a budget asked for. Counts, times" in texts(app)
    app = open_view("training", trainings, run="thinned", solve=39)
    assert "steps of this solve were let go" not in texts(app)
    assert "iteration 39" in texts(app)


def test_another_training_is_drawn_behind(open_view, trainings):
    app = open_view("training", trainings, run="resumed", cmp="thinned")
    assert len(trace(figure(app, "overview"), "thinned")) == 40
    app.selectbox(key="cmp").set_value("").run()
    assert "thinned" not in [one["name"] for one in figure(app, "overview")["data"]]


def test_a_run_that_is_no_training_says_what_to_do(open_view, trainings):
    app = open_view("training", trainings, run="plain")
    assert app.subheader[0].value == "This run is no training"
    assert "insp.iteration" in app.code[0].value


def test_a_live_training_shows_what_is_there(open_view, tmp_path):
    writer = write_training(tmp_path / "now", range(5), finish=False)
    app = open_view("training", tmp_path, run="now")
    assert len(trace(figure(app, "overview"), "loss")) == 5
    writer.close()


def test_a_training_is_started_with_the_settings_on_the_left(open_view, trainings, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "app.workers.Workers.start", lambda self, spec, viewer="": asked.append(spec)
    )
    app = open_view("training", trainings, run="resumed")
    labels = {box.label: box for box in app.selectbox}
    assert {"Problem", "Optimizer", "Gradient", "Method", "Controller"} <= set(labels)
    assert "Lorenz" not in str(labels["Problem"].options)
    labels["Problem"].set_value("digits_classifier").run()
    next(box for box in app.number_input if box.label == "Iterations").set_value(7)
    next(box for box in app.selectbox if box.label == "Optimizer").set_value("lion")
    next(button for button in app.button if button.key == "do_train").click().run()
    (spec,) = asked
    assert spec["kind"] == "training"
    assert (spec["problem"], spec["iterations"], spec["optimizer"]) == (
        "digits_classifier",
        7,
        "lion",
    )
    assert spec["schedule"] == "cosine"
    from app.trainer import read_plan

    assert read_plan(spec).problem.name == "digits_classifier"
    cancel = next(button for button in app.button if button.key == "do_cancel_training")
    assert cancel.disabled


def test_the_rules_judge_the_training_and_the_solve_that_is_picked(open_view, tmp_path):
    write_training(tmp_path / "runs" / "growing", range(40))
    app = open_view("training", tmp_path / "runs", run="growing", solve="3")
    text = " ".join(str(part.value) for part in app.markdown)
    assert "Solves become dearer in the course of the training" in text
