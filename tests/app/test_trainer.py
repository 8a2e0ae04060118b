"""Sample problems with a loss are trained, recorded, cancelled and done again."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from app import cli, train_command, trainer, workers
from inspector import open_run
from inspector.samples import hard_samples
from solver.errors import InvalidArgument

HOME = Path(__file__).resolve().parents[2]
SMALL = {"kind": "training", "problem": "neural_spiral", "batch": 8, "pool": 32, "iterations": 6}


def test_training_makes_the_loss_smaller_and_records_every_iteration(tmp_path):
    told = []
    outcome = trainer.record_training(
        SMALL | {"iterations": 20}, tmp_path / "run", note="hm", about=lambda *at: told.append(at)
    )
    run = open_run(tmp_path / "run")
    table = run.iterations()
    assert run.status == "finished"
    assert table["loss"].tolist() == outcome.losses
    assert [loss for _, loss in told] == outcome.losses
    assert sum(outcome.losses[-5:]) < sum(outcome.losses[:5])
    assert table["forward_nfe"].notna().all()
    assert table["grad_norm"].notna().all()
    assert table["test"].dropna().tolist() == outcome.measures
    assert run.meta["tags"] == ["training"]
    assert hard_samples(run)["visits"].sum() == 20 * 8
    assert run.verify() == []


def test_a_training_can_be_done_again_from_its_run(tmp_path):
    first = trainer.record_training(SMALL | {"seed": 3}, tmp_path / "run")
    spec = json.loads((tmp_path / "run" / "run.json").read_text())["spec"]
    again = trainer.record_training(spec, tmp_path / "again")
    assert again.losses == first.losses


@pytest.mark.parametrize("optimizer", trainer.OPTIMIZERS)
def test_every_optimizer_trains(tmp_path, optimizer):
    adjoint = "backprop" if optimizer == "adahessian" else "symplectic"
    spec = SMALL | {"optimizer": optimizer, "adjoint": adjoint, "iterations": 3}
    outcome = trainer.train(trainer.read_plan(spec))
    assert len(set(outcome.losses)) == 3
    assert all(loss == loss for loss in outcome.losses)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"problem": "lorenz"}, "'lorenz' has no loss"),
        ({"optimizer": "magic"}, "optimizer 'magic': must be one of adamw"),
        ({"optimizer": "adahessian"}, "differentiates twice"),
        ({"iterations": -3}, "iterations=-3"),
        ({"dtype": "int8"}, "dtype 'int8'"),
        ({"parameters": {"hidden": 10**9}}, "hidden"),
        ({"adjoint": "nope"}, "nope"),
    ],
)
def test_a_wrong_entry_of_a_spec_is_named(tmp_path, entry, said):
    with pytest.raises(InvalidArgument, match=said):
        trainer.read_plan(SMALL | entry)


def test_a_training_that_fails_says_why(tmp_path):
    with pytest.raises(InvalidArgument):
        trainer.record_training(SMALL | {"optimizer": "magic"}, tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert run.status == "failed"
    assert "magic" in run.events()["text"][0]


def test_samples_are_taken_with_all_that_belongs_to_them():
    plan = trainer.read_plan(SMALL)
    data = plan.problem.draw(9, torch.Generator().manual_seed(0))
    ids = torch.tensor([4, 1])
    part = trainer.take(data, ids)
    assert torch.equal(part.y0, data.y0[ids])
    assert torch.equal(part.t_eval, data.t_eval[ids])
    assert torch.equal(part.target, data.target[ids])


def test_the_command_trains_once_and_lists(tmp_path, capsys):
    ask = ["train", "neural_spiral", "--runs", str(tmp_path), "--name", "mine", "--batch", "8"]
    ask += ["--pool", "16", "--iterations", "3", "--set", "hidden=8", "--lr", "0.01"]
    assert cli.main(ask) == 0
    assert cli.main([*ask, "--quiet"]) == 1  # the name is taken
    text = capsys.readouterr().out
    assert "iteration 0: loss" in text
    assert "3 iterations in" in text
    run = open_run(tmp_path / "mine")
    assert run.iterations()["iteration"].tolist() == [0, 1, 2]
    assert run.spec["parameters"] == {"hidden": 8}
    assert cli.main(["train"]) == 0
    assert "neural_spiral" in capsys.readouterr().out
    assert cli.main([*ask, "--set", "hidden"]) == 1


@pytest.mark.parametrize("name", ["../up", "a/b", "50 % / x=1", "..", "å…λ"])
def test_a_name_that_is_none_of_a_run_is_refused(tmp_path, capsys, name):
    runs = tmp_path / "runs"
    ask = ["train", "neural_spiral", "--runs", str(runs), "--iterations", "1", "--name", name]
    assert cli.main(ask) == 1
    assert repr(name) in capsys.readouterr().err
    assert cli.main(["experiment", "phases", "--runs", str(runs), "--prefix", "../up"]) == 1
    study = ["work-precision", "lotka_volterra", "--methods", "tsit5", "--rtols", "1e-3"]
    assert cli.main([*study, "--runs", str(runs), "--name", name]) == 1
    assert not runs.exists()
    spec = tmp_path / "spec.json"
    spec.write_text('{"problem": "lotka_volterra", "batch": 2, "t1": 0.1}')
    assert cli.main(["run", str(spec), "--runs", str(runs), "--name", name]) == 1
    spec.unlink()
    assert not runs.exists()
    assert list(tmp_path.iterdir()) == []


def test_the_app_starts_and_cancels_a_training(tmp_path):
    registry = workers.Workers(tmp_path)
    try:
        run_id = registry.start(SMALL | {"iterations": 100_000, "keep_running": True})
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            time.sleep(0.1)
            if (tmp_path / run_id / "iterations").is_dir():
                break
        registry.cancel(run_id)
        while time.monotonic() < deadline and registry.state(run_id) != "ended":
            time.sleep(0.05)
        assert registry.exit_of(run_id) is None
    finally:
        registry.close()
    run = open_run(tmp_path / run_id)
    assert run.status == "cancelled"
    assert len(run.iterations()) > 0


def test_several_processes_share_the_work_and_record_into_one_run(tmp_path):
    spec = SMALL | {"iterations": 3}
    assert train_command.launch(2, spec, tmp_path / "run", "shared") == 0
    run = open_run(tmp_path / "run")
    ranks = run.ranks()
    assert ranks["rank"].tolist() == [0, 1]
    assert ranks["status"].tolist() == ["finished"] * 2
    assert ranks["iterations"].tolist() == [3, 3]
    table = run.iterations()
    for _, both in table.groupby("iteration"):
        assert both["grad_norm"].nunique() == 1  # averaged over the processes
        assert both["rows"].tolist() == [4, 4]
    assert run.verify() == []


def test_the_trainer_needs_no_dashboard():
    code = "import sys, app.trainer; assert not {'streamlit', 'plotly', 'pandas'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], cwd=HOME, check=True, timeout=120)
