"""A Lightning training is recorded by one callback; a stand-in for its trainer calls it."""

import sys
import types

import pytest
import torch
from torch import nn

from inspector import Inspector, open_run
from inspector.adapters import lightning
from inspector.samples import hard_samples
from solver import solve_ivp

T = torch.linspace(0, 1, 3, dtype=torch.float64)


class Callback:
    """What Lightning's own base class has for hooks that nobody overrides."""


class Trainer:
    """Calls a callback as Lightning's loop does."""

    def __init__(self, callback, optimizer):
        self.callback, self.optimizers = callback, [optimizer]
        self.current_epoch, self.callback_metrics = 0, {}

    def fit(self, net, inspector, batches, fails_at=None):
        call = self.callback
        call.on_train_start(self, net)
        for self.current_epoch in (0, 1):
            for i, (x, ids) in enumerate(batches):
                call.on_train_batch_start(self, net, (x, ids), i)
                if fails_at == (self.current_epoch, i):
                    call.on_exception(self, net, RuntimeError("no more"))
                    return
                sol = solve_ivp(lambda t, y: net(y), x, T, hooks=[inspector])
                loss = sol.ys.square().mean()
                self.callback_metrics = {"half": loss.detach() / 2, "curve": torch.ones(3)}
                self.optimizers[0].zero_grad()
                loss.backward()
                self.optimizers[0].step()
                call.on_train_batch_end(self, net, {"loss": loss.detach()}, (x, ids), i)
        call.on_train_end(self, net)


@pytest.fixture(params=lightning.PACKAGES)
def package(request, monkeypatch):
    for name in (*lightning.PACKAGES, "lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    if "." in request.param:
        monkeypatch.setitem(sys.modules, "lightning", types.ModuleType("lightning"))
    module = types.ModuleType(request.param)
    module.Callback = Callback  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, request.param, module)


def trained(path, **more):
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = [(torch.randn(4, 2), torch.arange(4) + 4 * i) for i in range(3)]
    with Inspector(path) as inspector:
        callback = inspector.lightning(lambda batch: batch[1])
        assert isinstance(callback, Callback)
        Trainer(callback, optimizer).fit(net, inspector, batches, **more)
    assert not optimizer._optimizer_step_pre_hooks
    return open_run(path)


def test_batches_are_iterations_with_loss_epoch_samples_and_costs(tmp_path, package):
    run = trained(tmp_path / "run")
    table = run.iterations()
    assert table["iteration"].tolist() == list(range(6))
    assert table["epoch"].tolist() == [0, 0, 0, 1, 1, 1]
    assert table["half"].tolist() == pytest.approx((table["loss"] / 2).tolist())
    assert table[["loss", "grad_norm", "forward_nfe"]].notna().all(axis=None)
    assert "curve" not in table
    assert hard_samples(run)["visits"].tolist() == [2] * 12
    assert run.verify() == []


def test_an_exception_is_written_down(tmp_path, package):
    run = trained(tmp_path / "run", fails_at=(1, 0))
    assert "RuntimeError: no more" in run.events()["text"].tolist()
    assert len(run.solve_table()) == 3


def test_without_lightning_the_message_says_what_to_install(tmp_path, monkeypatch):
    for name in (*lightning.PACKAGES, "lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with (
        Inspector(tmp_path / "run") as inspector,
        pytest.raises(ModuleNotFoundError, match="pip install lightning"),
    ):
        inspector.lightning()
