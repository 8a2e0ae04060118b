"""Jacobians of the vector field, row by row: by autograd, by a user's function, by differences."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from solver.errors import InvalidArgument
from solver.problem import Field

FEW = 12  # components up to which one product after the other is faster than all in one


class Linearised(NamedTuple):
    """The vector field at one place, to first order."""

    slope: Tensor  # (B, D)
    by_state: Tensor  # (B, D, D), [b, i, j] = d f_i / d y_j
    by_time: Tensor | None  # (B, D), if asked for


class RealField:
    """The vector field on real states: complex ones as pairs of real numbers.

    A field that is not holomorphic has no complex Jacobian, but always one of its real and
    imaginary parts.
    """

    def __init__(self, field: Field, like: Tensor):
        """Wrap `field` for states like `like (B, D)`."""
        self.field, self.complex = field, like.is_complex()

    def __call__(self, t: Tensor, y: Tensor) -> Tensor:
        """Evaluate at real states."""
        return self.real(self.field(t, self.back(y)))

    def real(self, y: Tensor) -> Tensor:
        """Turn states `(..., D)` into real ones, `(..., 2 D)` if they are complex."""
        return torch.view_as_real(y).flatten(-2) if self.complex else y

    def back(self, y: Tensor) -> Tensor:
        """Undo `real`."""
        return torch.view_as_complex(y.unflatten(-1, (-1, 2)).contiguous()) if self.complex else y


class Jacobian:
    """Evaluates the field together with its derivatives, one call of the field for all rows.

    Rows do not depend on each other, so the cotangent `e_i` in every row at once gives row i of
    every Jacobian: D products for the whole batch. What autograd cannot follow is differenced.

    Args:
        field: the vector field on real states.
        given: the user's `jacobian(t, y)` or `jacobian(t, y, args)`, `(B, D, D)`, or None.
    """

    def __init__(self, field: RealField, given: Callable[..., Any] | None):
        """Keep both."""
        if given is not None and field.complex:
            raise InvalidArgument(
                "jacobian is given and y0 is complex: must be None then, as the Jacobian is taken "
                "of real and imaginary parts"
            )
        self._field, self._given = field, given
        self._in_one = True  # whether all products can be taken in one

    def at(self, t: Tensor, y: Tensor, *, graph: bool = False, time: bool = False) -> Linearised:
        """Evaluate at `t (B,)`, `y (B, D)`.

        Args:
            t, y: where.
            graph: whether the result is to be part of autograd's graph.
            time: whether the derivative by time is wanted.
        """
        # Hooks of a checkpoint would have the whole step made again for the products taken here.
        hooks = torch.autograd.graph.saved_tensors_hooks(_same, _same)
        with torch.inference_mode(False), torch.enable_grad(), hooks:
            state = y.view_as(y) if graph and y.requires_grad else _leaf(y)
            at = t.view_as(t) if graph and t.requires_grad else (_leaf(t) if time else t)
            if time and state.grad_fn is not None and state.shape[1]:
                # As deep in the graph as the state: from a leaf, autograd would look for paths
                # through all the steps before, once for every component.
                never = torch.zeros_like(at, dtype=torch.bool)
                at = torch.where(never, state[:, 0].to(at.dtype), at)
            try:
                slope = self._field(at, state)
            except RuntimeError as error:
                if "nference tensor" not in str(error):
                    raise
                with torch.no_grad():  # weights made in inference mode take no part in autograd
                    slope = self._field(at, state)
            by_state, by_time = self._differentiate(slope, at, state, graph=graph, time=time)
        if graph:
            return Linearised(slope, by_state, by_time)
        return Linearised(slope.detach(), by_state.detach(), _detached(by_time))

    def of(self, slope: Tensor, t: Tensor, state: Tensor) -> Tensor:
        """Return the Jacobian `(B, D, D)` of a slope evaluated at `state`, out of the graph.

        Args:
            slope: what the field gave, `(B, D)`, with its graph back to `state`.
            t, state: where it was evaluated.
        """
        return self._differentiate(slope, t, state, graph=False, time=False, keep=True)[0].detach()

    def _differentiate(
        self,
        slope: Tensor,
        t: Tensor,
        state: Tensor,
        *,
        graph: bool,
        time: bool,
        keep: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        inputs = [] if self._given is not None else [state]
        if time:
            inputs.append(t)
        found: list[Tensor | None] = [None] * len(inputs)
        if inputs and slope.requires_grad:
            found = self._products(slope, inputs, graph=graph, keep=keep or graph)
        elif inputs:  # a field that does not depend on the state, or that autograd cannot follow
            return self._differences(slope.detach(), t.detach(), state.detach(), time=time)
        by_time = found.pop() if time else None
        if time:
            by_time = torch.zeros_like(state) if by_time is None else by_time.to(state.dtype)
        by_state = found.pop() if found else self._users(t, state)
        if by_state is None:
            by_state = state.new_zeros((*state.shape, state.shape[1]))
        return by_state, by_time

    def _products(
        self, slope: Tensor, inputs: list[Tensor], *, graph: bool, keep: bool
    ) -> list[Tensor | None]:
        """Return the derivatives of `slope (B, D)`, `(B, D, D)` and `(B, D)`, None where zero."""
        batch, dim = slope.shape
        if dim > FEW and self._in_one:
            units = torch.eye(dim, dtype=slope.dtype, device=slope.device)
            each = units[:, None, :].expand(dim, batch, dim)
            try:
                got = torch.autograd.grad(
                    slope, inputs, each, retain_graph=True, create_graph=graph, allow_unused=True,
                    is_grads_batched=True,
                )  # fmt: skip
                return [None if g is None else g.transpose(0, 1) for g in got]
            except RuntimeError:  # a backward that cannot be batched
                self._in_one = False
        parts: list[tuple[Tensor | None, ...]] = []
        for i in range(dim):
            unit = torch.zeros_like(slope)
            unit[:, i] = 1.0
            parts.append(
                torch.autograd.grad(
                    slope, inputs, unit, retain_graph=keep or i < dim - 1, create_graph=graph,
                    allow_unused=True,
                )
            )  # fmt: skip
        joined: list[Tensor | None] = []
        for column, like in zip(zip(*parts, strict=True), inputs, strict=True):
            if all(part is None for part in column):
                joined.append(None)
                continue
            rows = [torch.zeros_like(like) if part is None else part for part in column]
            joined.append(torch.stack(rows, dim=1))
        return joined

    def _differences(
        self, slope: Tensor, t: Tensor, state: Tensor, *, time: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return one-sided differences; each column costs one more evaluation."""
        root = torch.finfo(state.dtype).eps ** 0.5
        size = root * torch.maximum(state.abs(), 1e-3 * state.abs().amax(1, keepdim=True) + root)
        by_state = None if self._given is None else self._users(t, state)
        if by_state is None:
            columns = []
            for j in range(state.shape[1]):
                moved = state.clone()
                moved[:, j] += size[:, j]
                step = (moved[:, j] - state[:, j])[:, None]
                columns.append((self._field(t, moved) - slope) / step)
            by_state = (
                torch.stack(columns, dim=2) if columns else state.new_zeros((*state.shape, 0))
            )
        if not time:
            return by_state, None
        later = t + root * (t.abs() + root)
        step = (later - t).to(state.dtype)[:, None]
        return by_state, (self._field(later, state) - slope) / step

    def _users(self, t: Tensor, state: Tensor) -> Tensor | None:
        if self._given is None:
            return None
        field = self._field.field
        matrix = field.evaluate(self._given, t, state)
        wanted = (*state.shape, state.shape[1])
        if not isinstance(matrix, Tensor) or tuple(matrix.shape) != wanted:
            got = tuple(matrix.shape) if isinstance(matrix, Tensor) else type(matrix).__name__
            raise InvalidArgument(f"jacobian returned {got}: must be a tensor of shape {wanted}")
        return field.forward_in_time(matrix.to(state.dtype))


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _leaf(tensor: Tensor) -> Tensor:
    """Return a tensor to differentiate by, even one made in inference mode."""
    bare = tensor.detach()
    return (bare.clone() if bare.is_inference() else bare).requires_grad_()


def _detached(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()
