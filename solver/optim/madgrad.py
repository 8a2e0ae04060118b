"""MADGRAD: dual averaging with a cube root and momentum."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from solver.errors import InvalidArgument
from solver.optim import lists
from solver.optim.base import Batch, BatchedOptimizer, Params
from solver.optim.buckets import Run, Span
from solver.optim.options import Check, plain
from solver.optim.summaries import quantiles, sample

CUBE_ROOT = 1 / 3


@final
class MADGRAD(BatchedOptimizer):
    """MADGRAD; keys of the state are those of the package `madgrad`, checkpoints exchange.

        gamma = lr + eps (0 if lr is 0),   lam = gamma sqrt(k + 1),   c = 1 - momentum
        nu <- nu + lam g^2,   s <- s + lam g,   z = x0 - s / (nu^(1/3) + eps)
        x <- (1 - c) x + c z

    `k` counts the steps of the optimizer, for all parameters alike; the start `x0` and the whole
    sum `s` stay for ever. Without momentum `x0` is not stored but found again in each step, and
    sparse gradients (COO) are allowed: only the rows they name are touched, with the result of
    the dense step. State and arithmetic of half precision are float32.

    Defazio & Jelassi (2021), Adaptivity without Compromise: A Momentumized, Adaptive, Dual
    Averaged Gradient Method for Stochastic Optimization, algorithm 1.

    Args:
        params: real tensors, `(name, tensor)` pairs, or groups of them with options of their own.
        lr: step size, a number or a 0-d tensor.
        momentum: in [0, 1).
        weight_decay: added to the gradient as `weight_decay x`.
        eps: added to the denominator and to `lr`; where it is 0, an element that never had a
            gradient stays.
        decouple_decay: subtract `gamma weight_decay x` from the result instead.
        foreach, capturable: see `BatchedOptimizer`.
        maximize: move uphill.

    Raises:
        InvalidArgument: an option is not allowed, or a parameter is complex.
    """

    accepts_sparse: ClassVar[bool] = True
    accepts_complex: ClassVar[bool] = False

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        eps: float = 1e-6,
        *,
        decouple_decay: bool = False,
        foreach: bool = True,
        maximize: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr, "momentum": momentum, "weight_decay": weight_decay, "eps": eps,
            "decouple_decay": decouple_decay,
            "foreach": foreach, "maximize": maximize, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    _k: int | Tensor = 0  # as the last step found it
    _one = torch.ones((), dtype=torch.long)

    def state_keys(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the two sums and, with momentum, the start."""
        sums = "grad_sum_sq", "s"
        return (*sums, "x0") if group["momentum"] else sums

    def check_options(self, group: Mapping[str, Any]) -> None:
        """Check the step size, the momentum and the decay."""
        check = Check(self, group)
        for name in ("lr", "weight_decay", "eps"):
            check.number(name)
        check.number("momentum", 0.0, 1.0, below=True)

    def begin(
        self,
        group: Mapping[str, Any],
        key: str,
        view: Tensor,
        param: Tensor,
        state: Mapping[str, Any],
    ) -> None:
        """Remember where a parameter starts; with sums from before, find it again."""
        if key == "x0":
            view.copy_(param)
            view += state["s"] / _denominator(state["grad_sum_sq"], group["eps"] or None)

    def move(self, batches: list[Batch]) -> None:
        """Update all dense gradients, then the rows of sparse ones, then count the step."""
        k, captured = self._counter()
        self._k = k[0].clone() if captured else int(k)
        super().move(batches)
        for batch in batches:
            for member, grad in batch.sparse:
                self._update_rows(batch, member, grad)
        k.add_(self._one)

    def update(self, batch: Batch, span: Span, run: Run) -> None:
        """Move one run."""
        group, bucket, grads = batch[:3]
        decay, momentum, decouple = (
            group["weight_decay"], group["momentum"], group["decouple_decay"],
        )  # fmt: skip
        gamma, lam = self._weights(group, bucket.device)
        eps = bucket.number(group["eps"]) if group["eps"] else None
        coupled = decay and not decouple
        written_to = group["maximize"] or coupled or not momentum
        g = run.gather(grads) if written_to else run.read(grads)
        w, nu, s = run.work, run.state["grad_sum_sq"], run.state["s"]
        if group["maximize"]:
            g.neg_()
        if coupled:
            lists.add_(run.grad_views, run.params, alpha=decay)
        if not momentum:  # x0 - x, before s and nu change
            torch.div(s, _denominator(nu, eps, out=w), out=w)
        if isinstance(lam, Tensor):
            weighted = g * lam
            nu.addcmul_(weighted, g)
            s.add_(weighted)
        else:
            nu.addcmul_(g, g, value=lam)
            s.add_(g, alpha=lam)
        if not momentum:
            w.addcdiv_(s, _denominator(nu, eps, out=g), value=-1)
        else:
            _denominator(nu, eps, out=w)
            torch.addcdiv(run.state["x0"], s, w, value=-1, out=w)  # z
            if not decouple and not bucket.narrow:
                self.blend(run.params, run.work_views, 1 - momentum)
                return
            lists.sub_(run.work_views, run.params)  # z - x
        if decouple:
            self.decay(bucket, run.params, gamma * decay)
        self.add(run.params, w, run.work_views, 1 - momentum)

    def _update_rows(self, batch: Batch, member: int, grad: Tensor) -> None:
        """Take the step for the entries that a sparse gradient names."""
        group, bucket = batch.group, batch.bucket
        _, lam = self._weights(group, bucket.device)
        eps = group["eps"] or None
        grad = grad.coalesce()
        rows = tuple(grad.indices())
        x = bucket.params[member]
        all_nu, all_s = (bucket.entries[key][member] for key in ("grad_sum_sq", "s"))
        g = grad.values().to(bucket.math_dtype)
        g = -g if group["maximize"] else g
        nu, s = all_nu[rows], all_s[rows]
        x0 = x[rows] + s / _denominator(nu, eps)
        nu, s = nu + lam * g * g, s + lam * g
        all_nu[rows], all_s[rows] = nu, s
        x[rows] = (x0 - s / _denominator(nu, eps)).to(x.dtype)

    def _check_sparse(
        self, group: dict[str, Any], index: int, sparse: list[int], grads: list[Any]
    ) -> None:
        super()._check_sparse(group, index, sparse, grads)
        for name in ("momentum", "weight_decay"):
            if group[name]:
                raise InvalidArgument(
                    f"the gradient of {self.label(index, sparse[0])} is sparse: MADGRAD needs "
                    f"{name}=0 for it, this group has {name}={group[name]}"
                )

    def _counter(self) -> tuple[Tensor, bool]:
        """Return the count of steps, `(1,)`, and whether it must stay on the device."""
        k = self.shared.get("k")
        captured = True in [group["capturable"] for group in self.param_groups]
        if not captured and k is not None and k.is_cpu:
            return k, False
        device = torch.device("cpu")
        if captured:
            device = next(p.device for group in self.param_groups for p in group["params"])
        if k is None:
            k = self.shared["k"] = torch.zeros(1, dtype=torch.long, device=device)
        elif k.device != device:
            k = self.shared["k"] = k.to(device)
        return k, captured

    def _weights(
        self, group: Mapping[str, Any], device: torch.device
    ) -> tuple[float | Tensor, float | Tensor]:
        """Return gamma and lambda of the present, or last, step."""
        lr, k = plain(group["lr"], capturable=group["capturable"]), self._k
        if isinstance(lr, Tensor):
            gamma = torch.where(lr == 0, lr, lr + group["eps"])
        else:
            gamma = lr + group["eps"] if lr else 0.0
        if isinstance(k, Tensor):
            return gamma, gamma * (k.to(device) + 1).sqrt()
        return gamma, gamma * math.sqrt(k + 1)

    def statistics(self) -> dict[str, Tensor]:
        """Return quantiles of the effective step `lam / (nu^(1/3) + eps)`, and how far the
        parameters are from their start (`distance_from_start`).

        Where the effective step shrinks, new data hardly counts.
        """
        steps, squares = [], []
        for group, bucket, span in self.moved():
            part = slice(span.first, span.last)
            _, lam = self._weights(group, bucket.device)
            eps = group["eps"] or None
            nu, s = (bucket.entries[key][part] for key in ("grad_sum_sq", "s"))
            steps.append(lam / _denominator(sample(nu), eps))
            if group["momentum"]:
                pairs = zip(bucket.params[part], bucket.entries["x0"][part], strict=True)
                squares += [(x.detach() - x0).square().sum() for x, x0 in pairs]
            else:
                roots = [_denominator(n, eps) for n in nu]
                squares += [(a / b).square().sum() for a, b in zip(s, roots, strict=True)]
        found = quantiles("effective_step", steps)
        if squares:
            together = torch.stack([x.to(squares[0].device, squares[0].dtype) for x in squares])
            found["distance_from_start"] = together.sum().sqrt()
        return found


def _denominator(nu: Tensor, eps: float | Tensor | None, out: Tensor | None = None) -> Tensor:
    """Return `nu^(1/3) + eps`, infinite where that is 0: no gradient yet, so no step."""
    result = torch.pow(nu, CUBE_ROOT, out=out)
    return result.masked_fill_(result == 0, torch.inf) if eps is None else result.add_(eps)
