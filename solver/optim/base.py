"""What the optimizers share: who moves, which state goes with it, what may be asked of them."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from solver.errors import InvalidArgument, InvalidType
from solver.optim import lists
from solver.optim.buckets import Bucket, Layout, Run, Span, get_grad
from solver.optim.watched import WatchedDict

Params = Iterable[Any]
Closure = Callable[[], Any]


class Batch(NamedTuple):
    """The gradients of one bucket in one step.

    Args:
        grads: real tensors, one for each member; None where it has none, or a sparse one.
        sparse: (member, sparse gradient) of the others.
        contiguous: whether all gradients are.
    """

    group: dict[str, Any]
    bucket: Bucket
    grads: list[Any]
    sparse: list[tuple[int, Tensor]]
    contiguous: bool


@dataclass(slots=True)
class Plan:
    """How one parameter group is moved, as long as nothing about it changes."""

    params: list[Tensor]
    options: tuple[Any, ...]
    dense: list[bool]
    known: list[bool]
    buckets: list[Bucket]


class BatchedOptimizer(Optimizer, ABC):
    """An optimizer that moves many tensors at once and keeps their state together.

    Options live in `param_groups` and may be changed between steps, as may everything else:
    `p.data`, gradients that come and go, state entries, groups. `p.grad` is never changed. No
    step waits for an accelerator. An error leaves all parameters as they were.

    Every optimizer takes `foreach` (False: one tensor at a time, to the same bits) and `capturable`
    (counters and what is computed from them stay on the device, so that a step can be captured
    in a CUDA graph; `lr` may then be a tensor).
    """

    accepts_sparse: ClassVar[bool] = False
    accepts_complex: ClassVar[bool] = True
    counters: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self._plans: dict[int, Plan] = {}
        self._seen: list[Any] = []
        super().__init__(params, defaults)

    # What an optimizer says about itself.

    @abstractmethod
    def state_keys(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the state entries shaped like a parameter that `group` needs."""

    @abstractmethod
    def check_options(self, group: Mapping[str, Any]) -> None:
        """Raise InvalidArgument where an option of `group` is not allowed."""

    @abstractmethod
    def update(self, batch: Batch, span: Span, run: Run) -> None:
        """Move the parameters of `run` by one step."""

    @abstractmethod
    def statistics(self) -> dict[str, Tensor]:
        """Return what the last step can tell, as 0-d tensors on the device of the parameters.

        Pooled over all groups; empty before the first step. Costs nothing when not called.
        """

    def flat(self, param: Tensor) -> bool:
        """Whether the gradient of `param` is gathered before the update."""
        return True

    def begin(
        self,
        group: Mapping[str, Any],
        key: str,
        view: Tensor,
        param: Tensor,
        state: Mapping[str, Any],
    ) -> None:
        """Fill the new state entry `view` of `param`; it holds zeros."""

    # The step.

    def step(self, closure: Closure | None = None) -> Any:
        """Take one step and return what `closure` (called with gradients enabled) returns.

        Raises:
            InvalidArgument: a gradient is sparse and this optimizer, or its options, cannot.
        """
        before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)  # cheaper than `no_grad` around it
        try:
            loss = None if closure is None else self.evaluate(closure)
            self.move(self.collect())
        finally:
            torch.set_grad_enabled(before)
        return loss

    def evaluate(self, closure: Closure) -> Any:
        """Call `closure` with gradients enabled."""
        with torch.enable_grad():
            return closure()

    def move(self, batches: list[Batch]) -> None:
        """Update every run and count the step."""
        for batch in batches:
            for span in batch.bucket.spans:
                for name in batch.bucket.layout.counters:
                    batch.bucket.tick(span, name)
                for run in span.runs:
                    self.update(batch, span, run)

    def collect(self) -> list[Batch]:
        """Check all gradients, then return them bucket by bucket. Nothing has moved yet."""
        found = []
        for index, group in enumerate(self.param_groups):
            grads = list(map(get_grad, group["params"]))
            dense = [g is not None for g in grads]
            present = grads if all(dense) else [g for g in grads if g is not None]
            sparse: list[int] = []
            try:
                contiguous = all(map(Tensor.is_contiguous, present))
            except RuntimeError:  # not a question to ask a sparse tensor
                contiguous = False
            if not contiguous:
                sparse = [
                    i for i, g in enumerate(grads) if g is not None and g.layout != torch.strided
                ]
                if sparse:
                    self._check_sparse(group, index, sparse, grads)
                for i in sparse:
                    dense[i] = False
            found.append((index, group, grads, dense, sparse, contiguous))
        seen, values = self._seen, self.state.values()
        if len(seen) != len(values) or not all(map(is_, seen, values)):
            self._plans.clear()
        batches = []
        for index, group, grads, dense, sparse, contiguous in found:
            for bucket in self._plan(index, group, dense, sparse).buckets:
                complete = len(bucket.positions) == len(grads)
                own = grads if complete else [grads[i] for i in bucket.positions]
                rows = []
                if sparse:
                    rows = [(k, own[k]) for k, i in enumerate(bucket.positions) if i in sparse]
                    own = [
                        g if dense[i] else None for i, g in zip(bucket.positions, own, strict=True)
                    ]
                own = bucket.real_gradients(own, contiguous=contiguous)
                batches.append(Batch(group, bucket, own, rows, contiguous))
        return batches

    def _plan(
        self, index: int, group: dict[str, Any], dense: list[bool], sparse: list[int]
    ) -> Plan:
        """Return the plan of a group, made new or cut anew where something has changed."""
        options = self.state_keys(group), group["foreach"], group["capturable"]
        params, plan = group["params"], self._plans.get(index)
        if (
            plan is None
            or plan.options != options
            or len(plan.params) != len(params)
            or not all(map(is_, plan.params, params))
            or not all(map(Bucket.intact, plan.buckets))
        ):
            plan = None
        elif plan.dense == dense:
            for bucket in plan.buckets:
                if self.counters and bucket.counted_elsewhere():
                    bucket.cut([dense[i] for i in bucket.positions], reread=True)
        elif all(known or not now for known, now in zip(plan.known, dense, strict=True)):
            plan.dense = dense
            for bucket in plan.buckets:
                reread = group["capturable"] or bucket.counted_elsewhere()
                bucket.cut([dense[i] for i in bucket.positions], reread=reread)
        else:
            plan = None
        if plan is None or any(not plan.known[i] for i in sparse):
            plan = self._plans[index] = self._new_plan(group, options, dense, sparse)
            self._seen = list(self.state.values())
        return plan

    def _new_plan(
        self, group: dict[str, Any], options: tuple[Any, ...], dense: list[bool], sparse: list[int]
    ) -> Plan:
        """Sort the parameters that have, or had, a gradient into buckets."""
        params = group["params"]
        known = [
            now or i in sparse or (p in self.state and bool(self.state[p]))
            for i, (p, now) in enumerate(zip(params, dense, strict=True))
        ]
        members: dict[tuple[Any, ...], list[int]] = {}
        for i, param in enumerate(params):
            if known[i]:
                kind = (param.device, param.dtype, self.flat(param))
                members.setdefault(kind, []).append(i)
        buckets = []
        for (device, _, flat), positions in members.items():
            layout = Layout(
                keys=options[0],
                counters=self.counters,
                flat=flat,
                together=group["foreach"],
                counters_on_device=group["capturable"] or (not flat and device.type != "cpu"),
            )
            own = [params[i] for i in positions]
            states = [self.state[p] for p in own]
            bucket = Bucket(positions, own, states, layout, partial(self.begin, group))
            bucket.cut([dense[i] for i in positions], reread=True)
            buckets.append(bucket)
            self.state.update(zip(own, bucket.states, strict=True))
        return Plan(list(params), options, dense, known, buckets)

    def _check_sparse(
        self, group: dict[str, Any], index: int, sparse: list[int], grads: list[Any]
    ) -> None:
        for i in sparse:
            if not self.accepts_sparse or grads[i].layout != torch.sparse_coo:
                raise InvalidArgument(
                    f"the gradient of {self.label(index, i)} is {grads[i].layout}: "
                    f"{type(self).__name__} takes dense gradients only; sparse ones (COO) are for "
                    "MADGRAD with momentum=0 and weight_decay=0"
                )

    def label(self, group: int, position: int) -> str:
        """Return how messages name a parameter."""
        params = self.param_groups[group]
        names = params.get("param_names")
        name = f" {names[position]!r}" if names else ""
        shape = tuple(params["params"][position].shape)
        return f"parameter {position}{name} of group {group}, shape {shape},"

    # What updates are written with.

    def decay(self, bucket: Bucket, params: list[Tensor], amount: float | Tensor) -> None:
        """Shrink `params` to `1 - amount` of what they are."""
        if isinstance(amount, Tensor):
            lists.mul_(params, 1 - amount)
        elif amount:
            plain = bucket.narrow or bucket.device.type != "cpu"
            lists.mul_(params, 1 - amount if plain else bucket.number(1 - amount))

    def add(
        self, params: list[Tensor], flat: Tensor, views: list[Tensor], scale: float | Tensor
    ) -> None:
        """Add `scale` times the tensors `views` of the scratch `flat` to `params`."""
        if isinstance(scale, Tensor):
            flat.mul_(scale)
            lists.add_(params, views)
        elif len(params) == 1:
            params[0].add_(views[0], alpha=scale)
        else:
            lists.add_(params, views, alpha=scale)

    def blend(self, params: list[Tensor], views: list[Tensor], weight: float) -> None:
        """Move `params` by the part `weight` of the way to `views`."""
        if len(params) == 1:
            params[0].lerp_(views[0], weight)
        else:
            lists.lerp_(params, views, weight)

    def moved(self) -> list[tuple[dict[str, Any], Bucket, Span]]:
        """Return what took part in the last step."""
        return [
            (self.param_groups[index], bucket, span)
            for index, plan in self._plans.items()
            for bucket in plan.buckets
            for span in bucket.spans
        ]

    # Options, groups, saving and loading.

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; what it does not say is as in the defaults.

        Raises:
            InvalidArgument: an option is not allowed, or a parameter cannot be optimized.
        """
        super().add_param_group(param_group)
        try:
            group = self.param_groups[-1]
            self.check_options(group)
            if not self.accepts_complex and any(map(torch.is_complex, group["params"])):
                raise InvalidArgument(f"{type(self).__name__} takes real parameters only")
        except (InvalidArgument, InvalidType):
            self.param_groups.pop()
            raise

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` takes; the tensors are those in use, not copies."""
        found = super().state_dict()
        state = found["state"]
        plain = {k: dict(v) if isinstance(v, WatchedDict) else v for k, v in state.items()}
        return {**found, "state": plain}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned, or what older versions did; tensors are copied."""
        final_form: dict[str, Any] = {}
        handle = self.register_load_state_dict_pre_hook(lambda _, given: final_form.update(given))
        try:
            super().load_state_dict(state_dict)
        finally:
            handle.remove()
        # `torch.optim` casts to the dtype of the parameter, which loses what half precision has
        # in float32, and shares tensors that need no cast.
        saved = [i for group in final_form["param_groups"] for i in group["params"]]
        params = [p for group in self.param_groups for p in group["params"]]
        owners = dict(zip(saved, params, strict=True))
        for key, entries in final_form["state"].items():
            if key not in owners:
                self.shared[key] = copy.deepcopy(entries)
                continue
            param = owners[key]
            self.state[param] = {
                name: value.detach().to(param.device if value.dim() else value.device, copy=True)
                if isinstance(value, Tensor)
                else copy.deepcopy(value)
                for name, value in entries.items()
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._plans, self._seen = {}, []
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
            if group["foreach"] is None:  # as `torch.optim` saves it
                group["foreach"] = True
            self.check_options(group)

    @property
    def shared(self) -> dict[Any, Any]:
        """State that belongs to no parameter, by name."""
        return self.state
