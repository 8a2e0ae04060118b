"""What optimizers and models can tell about a step, read where they take it."""

import weakref
from collections.abc import Callable, Mapping
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from inspector.iterations import Values, numbers

SAMPLE = 1 << 22  # parameters of which the update is measured, all if there are no more
MOST_GROUPS = 8  # parameter groups, and parts of a model, that are told of by themselves


@final
class OptimizerWatch:
    """Tells norms of gradient and parameters, learning rates, the size of the update, statistics.

    Works by the step hooks every torch optimizer has; they are no part of its state, so copies and
    checkpoints of the optimizer know nothing of it.

    Args:
        optimizer: held weakly.
        suffix: put behind every name.
        every: step in which the update and the optimizer's own statistics are measured, the first
            one included; they cost a copy of the parameters and a pass over the state.
        before: called when gradients are there.
        after: called with what the step told.
        names: parameter -> its name in a watched model, to be named when its gradient breaks.
        event: called with kind and text of what happens rarely.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        suffix: str,
        every: int,
        before: Callable[[], None],
        after: Callable[[Values], None],
        names: Callable[[Tensor], str],
        event: Callable[[str, str], None],
    ) -> None:
        self._optimizer = weakref.ref(optimizer)
        self._suffix, self._every, self._count = suffix, every, 0
        self._tell_before, self._tell_after = before, after
        self._names, self._event = names, event
        self._old: list[tuple[Tensor, Tensor]] = []  # parameter, some of its elements before
        self._broken = False
        self._handles = [
            optimizer.register_step_pre_hook(self._before),
            optimizer.register_step_post_hook(self._after),
        ]

    def of(self, optimizer: object) -> bool:
        """Whether this is the watch of that optimizer."""
        return self._optimizer() is optimizer

    def close(self) -> None:
        """Leave the optimizer as it was."""
        for handle in self._handles:
            handle.remove()
        self._old = []

    def _before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self._guard(self._look_before, optimizer)

    def _after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self._guard(self._look_after, optimizer)

    def _guard(self, look: Callable[[Optimizer], None], optimizer: Optimizer) -> None:
        """Look at a step; what goes wrong is told once and must not end a training."""
        if self._broken:
            return
        try:
            with torch.no_grad():
                look(optimizer)
        except Exception as error:
            self._broken = True
            self._old = []
            self._event("watch", f"the optimizer is no longer watched: {error}")

    def _look_before(self, optimizer: Optimizer) -> None:
        self._tell_before()
        if self._count % self._every == 0:
            params = _params(optimizer)
            every = max(1, sum(p.numel() for p in params) // SAMPLE)
            self._old = [(p, _thinned(p, every).clone()) for p in params]

    def _look_after(self, optimizer: Optimizer) -> None:
        params = _params(optimizer)
        grads = [_dense(p.grad) for p in params if p.grad is not None]
        found: dict[str, Any] = {}
        if grads:
            found["grad_norm"] = nn.utils.get_total_norm(grads)
            if grads[0].device.type == "cpu" and not bool(found["grad_norm"].isfinite()):
                self._name_the_broken(params)
        for i, group in enumerate(optimizer.param_groups[:MOST_GROUPS]):
            if "lr" in group:
                found["lr" if i == 0 else f"lr_{i}"] = group["lr"]
        if self._count % self._every == 0:
            found |= self._update()
            tell: Any = getattr(optimizer, "statistics", None)
            if callable(tell):
                told: Any = tell()
                found |= {f"optim_{name}": value for name, value in told.items()}
        self._count += 1
        self._tell_after(numbers({name + self._suffix: value for name, value in found.items()}))

    def _update(self) -> Mapping[str, Tensor]:
        """Return the norm of the parameters before the step and how much of it the step moved."""
        old, self._old = self._old, []
        if not old:
            return {}
        every = max(1, sum(p.numel() for p, _ in old) // SAMPLE)
        before = [each for _, each in old]
        moved = [_thinned(p, every) - b for p, b in old]
        norm = nn.utils.get_total_norm(before)
        size = nn.utils.get_total_norm(moved)
        return {"param_norm": norm, "update_ratio": size / norm}

    def _name_the_broken(self, params: list[Tensor]) -> None:
        for p in params:
            if p.grad is not None and not bool(_dense(p.grad).isfinite().all()):
                name = self._names(p) or f"a parameter of shape {tuple(p.shape)}"
                self._event("non_finite", f"the gradient of {name} is not finite")
                return


@final
class ModelWatch:
    """Tells the norm of the gradients of each part of a model; puts nothing on the model.

    Args:
        model: held weakly.
        every: iteration that is looked at, the first one included.
    """

    def __init__(self, model: nn.Module, every: int) -> None:
        model = getattr(model, "_orig_mod", model)  # of what `torch.compile` made
        self._model = weakref.ref(model)
        self._seen: int | None = -1
        self._every, self._count = every, 0

    def is_due(self, iteration: int | None) -> bool:
        """Whether this is a new iteration and its turn; without iterations each call is one."""
        if iteration is not None and iteration == self._seen:
            return False
        self._seen = iteration
        self._count += 1
        return (self._count - 1) % self._every == 0

    def of(self, model: object) -> bool:
        """Whether this is the watch of that model."""
        return self._model() is getattr(model, "_orig_mod", model)

    def name(self, parameter: Tensor) -> str:
        """Return the name of a parameter, empty if the model does not have it."""
        model = self._model()
        named = () if model is None else model.named_parameters()
        return next((name for name, p in named if p is parameter), "")

    @torch.no_grad()
    def gradients(self) -> Values:
        """Return `grad_norm/<part>` of at most `MOST_GROUPS` parts, whose gradients are there."""
        model = self._model()
        parts: dict[str, list[Tensor]] = {}
        for name, p in () if model is None else model.named_parameters():
            if p.grad is not None:
                short = name.removeprefix("module.").removeprefix("_orig_mod.")
                parts.setdefault(_part(short), []).append(_dense(p.grad))
        shown = list(parts.items())[:MOST_GROUPS]
        return numbers({f"grad_norm/{n}": nn.utils.get_total_norm(g) for n, g in shown})


def _part(name: str) -> str:
    """Return the first two names of a parameter's path without its own: `net.0` of `net.0.bias`."""
    path = name.split(".")
    return ".".join(path[: max(1, min(len(path) - 1, 2))])


def _params(optimizer: Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _dense(grad: Tensor) -> Tensor:
    return grad.coalesce().values() if grad.layout != torch.strided else grad


def _thinned(p: Tensor, every: int) -> Tensor:
    return p.detach().reshape(-1)[::every]
