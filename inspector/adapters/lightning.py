"""A callback for Lightning: its batches are iterations, its optimizers and module are watched."""

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from inspector.training import TrainingRecorder

PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # the second one is its older name


def callback(inspector: "TrainingRecorder", sample_ids: Callable[[Any], Any] | None = None) -> Any:
    """Return a Lightning callback: `Trainer(callbacks=[callback(inspector)])`.

    Solves are recorded by `hooks=[inspector]` where the module solves. Training batches are told
    as iterations, with their loss and whatever the module logs as one number; validation is left
    alone. What is in a checkpoint stays the same.

    Args:
        inspector: what records.
        sample_ids: makes the sample of each row from a batch; None where that is not known.

    Raises:
        ModuleNotFoundError: Lightning is not installed.
    """
    package = _loaded()

    class Recording(package.Callback):
        """Tells the recorder where the training stands."""

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            """Watch what learns."""
            inspector.watch(pl_module, *trainer.optimizers)

        def on_train_batch_start(
            self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
        ) -> None:
            """Begin an iteration."""
            ids = None if sample_ids is None else sample_ids(batch)
            inspector.iteration(sample_ids=ids, epoch=trainer.current_epoch)

        def on_train_batch_end(
            self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            """Log what the iteration came to."""
            inspector.log(**_numbers(trainer.callback_metrics) | _loss(outputs))

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            """Say why the training ended."""
            inspector.event("failed", f"{type(exception).__name__}: {exception}")

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            """Leave the module and its optimizers as they were."""
            inspector.unwatch()

    return Recording()


def _loaded() -> Any:
    for name in PACKAGES:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
    raise ModuleNotFoundError("Lightning is not installed: pip install lightning")


def _loss(outputs: Any) -> dict[str, Any]:
    loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
    return {"loss": loss} if isinstance(loss, Tensor) and loss.numel() == 1 else {}


def _numbers(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {n: v for n, v in metrics.items() if not isinstance(v, Tensor) or v.numel() == 1}
