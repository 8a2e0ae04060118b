"""Lion: the sign of an interpolated momentum."""

import math
from collections.abc import Mapping
from typing import Any, Literal, final

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from solver.errors import InvalidArgument
from solver.optim.base import Batch, BatchedOptimizer, Params
from solver.optim.buckets import Run, Span, as_real
from solver.optim.options import Check, plain
from solver.optim.summaries import sample, share


@final
class Lion(BatchedOptimizer):
    """Lion: every element moves by exactly `lr`, in the direction of a sign.

        x <- x - lr weight_decay x
        x <- x - lr sign(b1 m + (1 - b1) g),   then   m <- b2 m + (1 - b2) g

    Because no step becomes small by itself, `lr` must: see `lion_schedule`. Against AdamW take
    `lr` 3 to 10 times smaller and `weight_decay` as much larger (their product stays), batches of
    64 or more, and betas (0.95, 0.98) where training is unstable. For a complex parameter the
    sign is taken of real and imaginary part.

    Chen et al. (2023), Symbolic Discovery of Optimization Algorithms, NeurIPS, algorithm 2.

    Args:
        params: tensors, `(name, tensor)` pairs, or groups of them with options of their own.
        lr: size of every step, a number or a 0-d tensor; a schedule may take it to 0.
        betas: weights of the momentum in the update, and of its own past; in [0, 1).
        weight_decay: decoupled, multiplied by the current `lr`.
        foreach, capturable: see `BatchedOptimizer`.
        maximize: move uphill.

    Raises:
        InvalidArgument: an option is not allowed; the message names it.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        foreach: bool = True,
        maximize: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def state_keys(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the momentum."""
        return ("exp_avg",)

    def check_options(self, group: Mapping[str, Any]) -> None:
        """Check the step size, the averages and the decay."""
        check = Check(self, group)
        check.number("lr")
        check.number("weight_decay")
        check.betas()

    def update(self, batch: Batch, span: Span, run: Run) -> None:
        """Move one run."""
        group, bucket, grads = batch[:3]
        lr = plain(group["lr"], capturable=group["capturable"])
        b1, b2 = group["betas"]
        g = run.gather(grads).neg_() if group["maximize"] else run.read(grads)
        u, m = run.work, run.state["exp_avg"]
        torch.mul(m, bucket.number(b1), out=u).add_(g, alpha=1 - b1).sign_()
        m.lerp_(g, 1 - b2)
        self.decay(bucket, run.params, lr * group["weight_decay"])
        self.add(run.params, u, run.work_views, -lr)

    def statistics(self) -> dict[str, Tensor]:
        """Return the effective step and the shares of elements whose signs agree.

        `effective_step` is the largest `lr`. `sign_agreement`: the update has the sign of the
        gradient; `sign_momentum`: the gradient has the sign of the momentum before it. Near one
        half is noise: lower `lr`. Needs the gradients of the last step, so call it before
        `zero_grad`.
        """
        agree, steady = [], []
        rates = [torch.as_tensor(group["lr"]) for group in self.param_groups]
        for group, bucket, span in self.moved():
            b1, b2 = group["betas"]
            for i in range(span.first, span.last):
                grad = bucket.params[i].grad
                if grad is None:
                    continue
                g = as_real(grad.detach().resolve_conj()).to(bucket.math_dtype)
                g = sample([-g if group["maximize"] else g])
                after = sample([as_real(bucket.entries["exp_avg"][i])])
                before = after if b2 == 0 else (after - (1 - b2) * g) / b2
                agree.append((b1 * before + (1 - b1) * g).sign() == g.sign())
                steady.append(before.sign() == g.sign())
        found = share("sign_agreement", agree) | share("sign_momentum", steady)
        if self.moved():
            found["effective_step"] = torch.stack([r.to(rates[0].device) for r in rates]).max()
        return found


@final
class WarmUpAndDecay:
    """Factor of a learning rate by step: up from 0, then down to `floor`."""

    def __init__(self, total: int, warmup: int, shape: str, floor: float) -> None:
        self.total, self.warmup, self.shape, self.floor = total, warmup, shape, floor

    def __call__(self, step: int) -> float:
        """Return the factor of step `step`, counted from 0."""
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        x = min(1.0, (step - self.warmup) / (self.total - self.warmup))
        left = (1 + math.cos(math.pi * x)) / 2 if self.shape == "cosine" else 1 - x
        return self.floor + (1 - self.floor) * left


def lion_schedule(
    optimizer: Optimizer,
    total_steps: int,
    *,
    warmup_steps: int = 0,
    shape: Literal["cosine", "linear"] = "cosine",
    floor: float = 0.0,
) -> LambdaLR:
    """Return the schedule Lion needs: warm-up, then a decay of `lr` to (almost) nothing.

    Call its `step()` after each step of the optimizer; saved and loaded with `state_dict`.

    Args:
        optimizer: any; its present `lr` is the peak.
        total_steps: after which `floor` is reached.
        warmup_steps: in which `lr` rises linearly.
        shape: of the decay.
        floor: the last `lr` as a share of the peak.

    Raises:
        InvalidArgument: the steps do not fit into each other, or the shape is unknown.
    """
    if not 0 <= warmup_steps < total_steps:
        raise InvalidArgument(
            f"warmup_steps={warmup_steps}: must be at least 0 and less than "
            f"total_steps={total_steps}"
        )
    if shape not in ("cosine", "linear"):
        raise InvalidArgument(f"shape={shape!r}: must be 'cosine' or 'linear'")
    if not 0 <= floor <= 1:
        raise InvalidArgument(f"floor={floor}: must be between 0 and 1")
    return LambdaLR(optimizer, WarmUpAndDecay(total_steps, warmup_steps, shape, floor))
