"""AdamW: moments of the gradient with decoupled weight decay."""

from collections.abc import Mapping
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from solver.optim import lists
from solver.optim.base import Batch, BatchedOptimizer, Params
from solver.optim.buckets import Run, Span, as_real, is_dense
from solver.optim.options import Check, plain, root
from solver.optim.summaries import quantiles, sample, share

FUSED_ON = {"cpu", "cuda", "mps", "xpu"}
FUSED_DTYPES = {torch.float32, torch.float64}


@final
class AdamW(BatchedOptimizer):
    """AdamW; state, keys and results are those of `torch.optim.AdamW`, checkpoints exchange.

        x <- x - lr weight_decay x
        m <- m + (1 - b1) (g - m),   v <- b2 v + (1 - b2) g^2
        x <- x - lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)

    `t` is counted for every parameter by itself: one whose gradient is missing does not age. Uses
    torch's fused kernel for float32, float64 and complex tensors, and float32 arithmetic and
    state for half precision.

    Loshchilov & Hutter (2019), Decoupled Weight Decay Regularization, ICLR.

    Args:
        params: tensors, `(name, tensor)` pairs, or groups of them with options of their own.
        lr: step size, a number or a 0-d tensor.
        betas: decay of the two averages, in [0, 1).
        eps: added to the denominator.
        weight_decay: decoupled, multiplied by `lr`.
        foreach, capturable: see `BatchedOptimizer`.
        maximize: move uphill.

    Raises:
        InvalidArgument: an option is not allowed; the message names it.
    """

    counters: ClassVar[tuple[str, ...]] = ("step",)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        foreach: bool = True,
        maximize: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def state_keys(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the two moments."""
        return "exp_avg", "exp_avg_sq"

    def check_options(self, group: Mapping[str, Any]) -> None:
        """Check the step size, the averages and what a checkpoint of another optimizer brings."""
        check = Check(self, group)
        for name in ("lr", "eps", "weight_decay"):
            check.number(name)
        check.betas()
        for name in ("amsgrad", "differentiable"):
            check.absent(name)

    def flat(self, param: Tensor) -> bool:
        """Whether torch's fused kernel, which wants plain dense tensors, cannot be used."""
        fused = param.device.type in FUSED_ON and param.dtype.to_real() in FUSED_DTYPES
        return not (fused and is_dense(param))

    def update(self, batch: Batch, span: Span, run: Run) -> None:
        """Move one run, by the fused kernel or by flat operations."""
        group, bucket, grads = batch[:3]
        lr = plain(group["lr"], capturable=group["capturable"])
        b1, b2 = group["betas"]
        if not bucket.layout.flat:
            own = _aligned(batch, run.own(grads), run.params)
            try:
                _fused(group, lr, span, run, own)
            except (
                RuntimeError
            ):  # raised before the kernel starts, where gradients are negated views
                if not any(map(Tensor.is_neg, own)):
                    raise
                _fused(group, lr, span, run, [g.resolve_neg() for g in own])
            torch.autograd.graph.increment_version(run.params)  # which the kernel does not
            return
        m, v = "exp_avg", "exp_avg_sq"
        g = run.gather(grads).neg_() if group["maximize"] else run.read(grads)
        w = run.work
        t = bucket.count(span, "step")
        root_v = root(1 - b2**t)
        run.state[m].lerp_(g, 1 - b1)
        run.state[v].mul_(bucket.number(b2)).addcmul_(g, g, value=1 - b2)
        torch.sqrt(run.state[v], out=w).add_(group["eps"] * root_v)
        torch.div(run.state[m], w, out=w)
        self.decay(bucket, run.params, lr * group["weight_decay"])
        self.add(run.params, w, run.work_views, -lr * root_v / (1 - b1**t))

    def statistics(self) -> dict[str, Tensor]:
        """Return quantiles of the effective step size `lr / (sqrt(v / (1 - b2^t)) + eps)`, and the
        share of elements in which `eps` outweighs the root (`share_eps`).
        """
        steps, below = [], []
        for group, bucket, span in self.moved():
            entries = bucket.entries["exp_avg_sq"][span.first : span.last]
            v = sample([as_real(entry) for entry in entries])
            rms = (v / (1 - group["betas"][1] ** bucket.count(span, "step"))).sqrt()
            steps.append(group["lr"] / (rms + group["eps"]))
            below.append(rms < group["eps"])
        return quantiles("effective_step", steps) | share("share_eps", below)


def _fused(
    group: Mapping[str, Any], lr: float | Tensor, span: Span, run: Run, grads: list[Tensor]
) -> None:
    (b1, b2), views = group["betas"], run.state_views
    lists.fused_adamw_(
        run.params, grads, views["exp_avg"], views["exp_avg_sq"], [],
        [span.heads["step"]] * len(grads), lr=lr, beta1=b1, beta2=b2,
        weight_decay=group["weight_decay"], eps=group["eps"], amsgrad=False,
        maximize=group["maximize"],
    )  # fmt: skip


def _aligned(batch: Batch, grads: list[Tensor], params: list[Tensor]) -> list[Tensor]:
    """Return the gradients in the dtype and order of storage of `params`.

    The fused kernel walks through storage and would misread others (transposed, expanded, strided),
    and refuses other dtypes; they are rare and copied.
    """
    bucket = batch.bucket
    if batch.contiguous and bucket.contiguous and not bucket.any_grad_dtype:
        return grads
    return [
        g if g.stride() == p.stride() and g.dtype == p.dtype else torch.empty_like(p).copy_(g)
        for g, p in zip(grads, params, strict=True)
    ]
