"""AdaHessian: moments preconditioned by an estimate of the Hessian's diagonal."""

from collections.abc import Mapping
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from solver.errors import InvalidArgument, SolverError
from solver.optim.base import Batch, BatchedOptimizer, Closure, Params
from solver.optim.buckets import Run, Span, as_real
from solver.optim.options import Check, plain
from solver.optim.summaries import quantiles, sample, share


class MissingGraph(SolverError, RuntimeError):
    """A gradient cannot be differentiated, so that the curvature would silently count as zero."""


@final
class AdaHessian(BatchedOptimizer):
    """AdaHessian; the diagonal of the Hessian comes from random signs `v` (Hutchinson).

        d = |mean over samples of v * (H v)|, averaged over space;   D <- b2 D + (1 - b2) d^2
        m <- m + (1 - b1) (g - m),   x <- x - lr weight_decay x
        x <- x - lr m / (1 - b1^t) / ((D / (1 - b2^r))^(hessian_power / 2) + eps)

    `t` counts the steps of a parameter, `r` the refreshes of its `D`. The loss needs a graph in
    every `update_each`-th step: `loss.backward(create_graph=opt.needs_graph)`. Through a solver
    that means an adjoint that can be differentiated again, such as `adjoint="backprop"`. A
    parameter whose first gradient comes between two refreshes waits for the next. After each
    step `p.grad` is detached, which frees the graph.

    Yao et al. (2021), ADAHESSIAN: An Adaptive Second Order Optimizer for Machine Learning, AAAI,
    algorithm 1.

    Args:
        params: tensors, `(name, tensor)` pairs, or groups of them with options of their own.
        lr: step size, a number or a 0-d tensor.
        betas: decay of the averages of gradient and squared diagonal, in [0, 1).
        eps: added to the denominator.
        weight_decay: decoupled, multiplied by `lr`.
        hessian_power: in [0, 1]; 0 is SGD with momentum.
        update_each: steps from one refresh to the next; the same in all groups.
        n_samples: sign vectors in each refresh; the same in all groups.
        spatial_average: True: over the kernel of 4-D tensors; an int: besides, over blocks of that
            length in the last dimension of 2-D and 3-D ones; False: not at all.
        seed: of the signs; they depend on it and on the number of the refresh alone.
        foreach: see `BatchedOptimizer`.
        maximize: move uphill.

    Raises:
        InvalidArgument: an option is not allowed; the message names it.
    """

    counters: ClassVar[tuple[str, ...]] = ("step", "hessian_step")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.15,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-4,
        weight_decay: float = 0.0,
        *,
        hessian_power: float = 1.0,
        update_each: int = 1,
        n_samples: int = 1,
        spatial_average: bool | int = True,
        seed: int = 0,
        foreach: bool = True,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "hessian_power": hessian_power, "update_each": update_each, "n_samples": n_samples,
            "spatial_average": spatial_average, "seed": seed,
            "foreach": foreach, "maximize": maximize, "capturable": False,
        }  # fmt: skip
        super().__init__(params, defaults)

    def state_keys(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the averages of the gradient and of the squared diagonal."""
        return "exp_avg", "exp_hessian_diag_sq"

    def check_options(self, group: Mapping[str, Any]) -> None:
        """Check numbers, and that what belongs to the whole optimizer is the same everywhere."""
        check = Check(self, group)
        for name in ("lr", "eps", "weight_decay"):
            check.number(name)
        check.number("hessian_power", 0.0, 1.0)
        check.betas()
        check.count("update_each")
        check.count("n_samples")
        if not isinstance(group["spatial_average"], bool):
            check.count("spatial_average")
        for name in ("update_each", "n_samples", "seed"):
            if group[name] != self.param_groups[0][name]:
                raise InvalidArgument(
                    f"AdaHessian({name}={group[name]}) in a group: must be as in the first group, "
                    f"{self.param_groups[0][name]}"
                )

    @property
    def needs_graph(self) -> bool:
        """Whether the next step refreshes the diagonal: `backward(create_graph=needs_graph)`."""
        return self._clock["steps"] % self.param_groups[0]["update_each"] == 0

    @property
    def _clock(self) -> dict[str, int]:
        return self.shared.setdefault("probe", {"steps": 0, "refreshes": 0})

    @torch.no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        """Take one step and return what `closure` (called with gradients enabled) returns.

        Raises:
            MissingGraph: a refresh is due and a gradient has no graph; nothing was moved.
            InvalidArgument: a gradient is sparse.
        """
        loss = super().step(closure)
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None and param.grad.requires_grad:
                    param.grad = param.grad.detach()
        return loss

    def move(self, batches: list[Batch]) -> None:
        """Refresh the diagonal where it is due, update every run, and count."""
        due = self.needs_graph
        diagonals = self._diagonals(batches) if due else [[] for _ in batches]
        for batch, diagonal in zip(batches, diagonals, strict=True):
            b2, bucket = batch.group["betas"][1], batch.bucket
            decay = bucket.number(b2)
            for span in bucket.spans:
                if due:
                    bucket.tick(span, "hessian_step")
                    for run in span.runs:
                        d = run.read(diagonal)
                        run.state["exp_hessian_diag_sq"].mul_(decay).addcmul_(d, d, value=1 - b2)
                elif not span.counts["hessian_step"]:
                    continue  # no curvature yet
                bucket.tick(span, "step")
                for run in span.runs:
                    self.update(batch, span, run)
        if any(batch.bucket.spans for batch in batches):  # a step without gradients is none
            self._clock["steps"] += 1
            self._clock["refreshes"] += due

    def update(self, batch: Batch, span: Span, run: Run) -> None:
        """Move one run; its diagonal has been refreshed."""
        group, bucket, grads = batch[:3]
        lr = plain(group["lr"], capturable=False)
        b1, b2 = group["betas"]
        g = run.gather(grads).neg_() if group["maximize"] else run.read(grads)
        w = run.work
        run.state["exp_avg"].lerp_(g, 1 - b1)
        torch.div(run.state["exp_hessian_diag_sq"], 1 - b2 ** span.counts["hessian_step"], out=w)
        w.pow_(group["hessian_power"] / 2).add_(group["eps"])
        torch.div(run.state["exp_avg"], w, out=w)
        self.decay(bucket, run.params, lr * group["weight_decay"])
        self.add(run.params, w, run.work_views, -lr / (1 - b1 ** span.counts["step"]))

    def _diagonals(self, batches: list[Batch]) -> list[list[Any]]:
        """Return |diagonal of the Hessian| as real tensors, one for each member that moves.

        Raises:
            MissingGraph: a gradient has no graph, or does not lead back to its parameter.
        """
        places = [
            (b, i)
            for b, batch in enumerate(batches)
            for i, grad in enumerate(batch.grads)
            if grad is not None
        ]
        params = [batches[b].bucket.params[i] for b, i in places]
        grads = []
        for param in params:
            if param.grad is None or param.grad.grad_fn is None:
                raise self._missing_graph(param, "has a gradient without a graph")
            grads.append(param.grad)
        count = self.param_groups[0]["n_samples"]
        generators: dict[torch.device, torch.Generator] = {}
        means = [torch.zeros_like(as_real(p)) for p in params]
        for s in range(count if params else 0):
            signs = [self._signs(p, generators) for p in params]
            products = torch.autograd.grad(
                grads, params, signs, retain_graph=s + 1 < count, allow_unused=True
            )
            for param, mean, v, hv in zip(params, means, signs, products, strict=True):
                if hv is None:
                    raise self._missing_graph(param, "cannot be reached from the gradients")
                mean.addcmul_(as_real(v), as_real(hv.resolve_conj()), value=1 / count)
        found: list[list[Any]] = [[None] * len(batch.grads) for batch in batches]
        for (b, i), param, mean in zip(places, params, means, strict=True):
            average = batches[b].group["spatial_average"]
            diagonal = averaged(mean.abs(), average, is_complex=param.is_complex())
            found[b][i] = diagonal.contiguous()
        return found

    def _signs(self, param: Tensor, generators: dict[torch.device, torch.Generator]) -> Tensor:
        """Return +1 and -1 at random, shaped like `param` (both parts of a complex one)."""
        if param.device not in generators:
            seed, refresh = self.param_groups[0]["seed"], self._clock["refreshes"]
            mixed = (seed * 0x9E3779B97F4A7C15 + refresh * 0xBF58476D1CE4E5B9 + 1) % 2**63
            generators[param.device] = torch.Generator(param.device).manual_seed(mixed)
        real = as_real(param)
        coin = torch.empty(real.shape, dtype=real.dtype, device=real.device)
        signs = coin.bernoulli_(0.5, generator=generators[param.device]).mul_(2).sub_(1)
        return torch.view_as_complex(signs) if param.is_complex() else signs

    def _missing_graph(self, param: Tensor, what: str) -> MissingGraph:
        label = next(
            self.label(index, i)
            for index, group in enumerate(self.param_groups)
            for i, p in enumerate(group["params"])
            if p is param
        )
        return MissingGraph(
            f"{label} {what}, so its curvature is unknown: call "
            "loss.backward(create_graph=opt.needs_graph), and through a solver use an adjoint that "
            "can be differentiated twice, such as adjoint='backprop'"
        )

    def statistics(self) -> dict[str, Tensor]:
        """Return quantiles of |diagonal of the Hessian| (`hessian_...`) and of the effective step
        `lr / (|diagonal|^hessian_power + eps)`, the share of elements with a diagonal below `eps`
        (`share_flat`), and the steps since the last refresh (`probe_age`).
        """
        diagonals, steps, below = [], [], []
        for group, bucket, span in self.moved():
            if not span.counts["hessian_step"]:
                continue
            entries = bucket.entries["exp_hessian_diag_sq"][span.first : span.last]
            squared = sample([as_real(e) for e in entries])
            d = (squared / (1 - group["betas"][1] ** span.counts["hessian_step"])).sqrt()
            diagonals.append(d)
            steps.append(group["lr"] / (d ** group["hessian_power"] + group["eps"]))
            below.append(d < group["eps"])
        found = quantiles("hessian", diagonals) | quantiles("effective_step", steps)
        if diagonals:
            age = (self._clock["steps"] - 1) % self.param_groups[0]["update_each"]
            found["probe_age"] = torch.tensor(age)
        return found | share("share_flat", below)


def averaged(d: Tensor, how: bool | int, *, is_complex: bool = False) -> Tensor:
    """Return the diagonal averaged over space, in its own shape.

    Args:
        d: as a real tensor: parts of a complex parameter are in the last dimension, and averaged
            each by itself.
        how: as `AdaHessian(spatial_average=...)`.
    """
    if is_complex:
        return torch.stack([averaged(part, how) for part in d.unbind(-1)], dim=-1)
    if how is False or not d.numel():
        return d
    if d.dim() == 4:
        return d.mean((-2, -1), keepdim=True).expand_as(d)
    if how is True or d.dim() not in (2, 3):
        return d
    blocks = [b.mean(-1, keepdim=True).expand_as(b) for b in d.split(how, dim=-1)]
    return torch.cat(blocks, dim=-1)
