"""Ali-G: Polyak's step size for models that can fit every sample."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, final

import torch
from torch import Tensor

from solver.errors import InvalidArgument
from solver.optim import lists
from solver.optim.base import Batch, BatchedOptimizer, Closure, Params
from solver.optim.buckets import Run, Span
from solver.optim.options import Check

Number = float | Tensor


@final
class AliG(BatchedOptimizer):
    """Ali-G: SGD whose step size comes from the loss, clipped at `max_lr`.

        eta = min(max(loss - f_star, 0) / (|g|^2 + eps), max_lr),    |g|^2 over all groups
        momentum 0:         x <- x - eta g
        momentum mu:        v <- mu v - eta g,   x <- x - eta g + mu v
        adjusted_momentum:  v <- mu v - g,       x <- x - eta g + eta mu v

    then `projection_fn()`. For losses that can come near `f_star` on every batch; a regularisation
    must be a constraint (see `L2Ball`), no weight decay and no schedule: `max_lr` is all there
    is to tune, with 0.1 and 1 to start from. Where eta stays at `max_lr` it is just SGD; where
    the data is noisy and the loss settles above `f_star`, another optimizer does better.

    Berrada, Zisserman & Kumar (2020), Training Neural Networks for and by Interpolation, ICML.

    Args:
        params: tensors, `(name, tensor)` pairs, or groups of them with options of their own.
        max_lr: largest step size; None for no limit.
        momentum: mu, in [0, 1).
        adjusted_momentum: keep the momentum free of step sizes.
        projection_fn: called without arguments once at construction and after each step, to put
            the parameters back where they must be. Kept in copies and pickles, not in the
            `state_dict`.
        eps: added to the squared norm.
        f_star: lower bound of the loss.
        foreach, capturable: see `BatchedOptimizer`.

    Raises:
        InvalidArgument: an option is not allowed; the message names it.
    """

    projection_fn: Callable[[], object] | None = None

    def __init__(
        self,
        params: Params,
        max_lr: float | None = None,
        momentum: float = 0.0,
        *,
        adjusted_momentum: bool = False,
        projection_fn: Callable[[], object] | None = None,
        eps: float = 1e-5,
        f_star: float = 0.0,
        foreach: bool = True,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "max_lr": max_lr, "momentum": momentum, "adjusted_momentum": adjusted_momentum,
            "eps": eps, "f_star": f_star, "foreach": foreach, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)
        self._steps: dict[int, Number] = {}
        self._unclipped: Number | None = None
        self.projection_fn = projection_fn
        if projection_fn is not None:
            with torch.no_grad():
                projection_fn()

    def state_keys(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the momentum buffer, if there is one."""
        return ("momentum_buffer",) if group["momentum"] else ()

    def check_options(self, group: Mapping[str, Any]) -> None:
        """Check the limit, the momentum and the bounds."""
        check = Check(self, group)
        if group["max_lr"] is not None:
            check.number("max_lr")
        check.number("momentum", 0.0, 1.0, below=True)
        check.number("eps")
        check.number("f_star", -torch.inf)

    @torch.no_grad()
    def step(self, closure: Closure | None = None, *, loss: Any = None) -> Any:
        """Take one step.

        Args:
            closure: computes gradients and returns the loss; or
            loss: the loss that the present gradients belong to, a number or a 0-d tensor.

        Returns:
            the loss.

        Raises:
            InvalidArgument: there is no loss, or it is NaN (looked at on the CPU only: an
                accelerator's NaN loss moves nothing).
        """
        if loss is None and closure is not None:
            loss = self.evaluate(closure)
        if loss is None:
            raise InvalidArgument(
                "AliG.step() needs the loss: pass a closure that returns it, or loss="
            )
        value = loss.detach() if isinstance(loss, Tensor) else float(loss)
        if isinstance(value, Tensor) and value.numel() != 1:
            raise InvalidArgument(f"loss has {value.numel()} elements: must be a single number")
        capturable = any(group["capturable"] for group in self.param_groups)
        if capturable:
            value = torch.as_tensor(value)
        elif isinstance(value, Tensor) and value.device.type == "cpu":
            value = float(value)
        if isinstance(value, float) and value != value:
            raise InvalidArgument("loss is NaN: nothing was moved")
        batches = self.collect()
        self._choose_steps(batches, value)
        self.move(batches)
        if self.projection_fn is not None:
            self.projection_fn()
        return loss

    def _choose_steps(self, batches: list[Batch], loss: Number) -> None:
        """Set eta of every group: numbers on the CPU, 0-d tensors elsewhere."""
        parts = [_squared_norms(batch) for batch in batches]
        sums = [x for part in parts for x in part]
        options = self.param_groups[0]
        gap = loss - options["f_star"]
        if isinstance(gap, Tensor) or any(x.device.type != "cpu" for x in sums):
            device = sums[0].device if sums else None
            gap = torch.as_tensor(gap, device=device).reshape(()).clamp(min=0)
            zero = torch.zeros((), device=device)
            squared = torch.stack([x.to(zero) for x in sums]).sum() if sums else zero
            eta = torch.nan_to_num(gap / (squared + options["eps"]))
            self._steps = {
                id(g): eta if g["max_lr"] is None else eta.clamp(max=g["max_lr"])
                for g in self.param_groups
            }
        else:
            below = sum(float(x) for x in sums) + options["eps"]
            eta = max(gap, 0.0) / below if below else 0.0
            self._steps = {
                id(g): eta if g["max_lr"] is None else min(eta, g["max_lr"])
                for g in self.param_groups
            }
        self._unclipped = eta

    def update(self, batch: Batch, span: Span, run: Run) -> None:
        """Move one run by the step chosen for its group."""
        group, bucket, grads = batch[:3]
        eta, mu = self._steps[id(group)], group["momentum"]
        if isinstance(eta, Tensor):
            eta = eta.to(bucket.device)
        elif not mu:
            lists.add_(run.params, run.own(grads), alpha=-eta)
            return
        g = run.gather(grads)
        if not mu:
            self.add(run.params, g, run.grad_views, -eta)
        elif group["adjusted_momentum"]:
            v = run.state["momentum_buffer"].mul_(mu).sub_(g)
            torch.sub(v * mu, g, out=g)
            self.add(run.params, g, run.grad_views, eta)
        else:
            g.mul_(-eta)
            v = run.state["momentum_buffer"].mul_(mu).add_(g)
            self.add(run.params, g.add_(v, alpha=mu), run.grad_views, 1.0)

    def statistics(self) -> dict[str, Tensor]:
        """Return the last step size (`step`, the largest of the groups), `step_unclipped`, and
        whether `max_lr` has clipped it anywhere (`clipped`, 0 or 1).
        """
        if self._unclipped is None:
            return {}
        whole = torch.as_tensor(self._unclipped)
        taken = torch.stack([torch.as_tensor(x).to(whole.device) for x in self._steps.values()])
        clipped = (taken < whole).any().to(taken.dtype)
        return {"step": taken.max(), "step_unclipped": whole, "clipped": clipped}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "projection_fn": self.projection_fn}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._steps, self._unclipped = {}, None


def _squared_norms(batch: Batch) -> list[Tensor]:
    """Return the squared norm of the gradients of each run, 0-d."""
    norms = []
    for span in batch.bucket.spans:
        for run in span.sums:
            run.grad.zero_()  # the padding too
            g = run.read(batch.grads)
            norms.append(torch.dot(g, g))
    return norms


@final
class L2Ball:
    """A `projection_fn`: scales all parameters together back to `|x| <= radius`.

    Args:
        params: tensors; the norm is that of all of them.
        radius: of the ball around 0.
    """

    def __init__(self, params: Iterable[Tensor], radius: float) -> None:
        if not radius > 0:
            raise InvalidArgument(f"L2Ball(radius={radius}): must be greater than 0")
        self.params, self.radius = list(params), radius

    def __call__(self) -> None:
        """Scale, where needed, without waiting for the device."""
        with torch.no_grad():
            norms = torch.stack([n.to(self.params[0].device) for n in self._norms()])
            factor = (self.radius / torch.linalg.vector_norm(norms)).clamp(max=1.0)
            for param in self.params:
                param.mul_(factor.to(param.device, param.dtype.to_real()))

    def _norms(self) -> list[Tensor]:
        return [torch.linalg.vector_norm(p.detach()).double() for p in self.params]
