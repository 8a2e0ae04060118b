"""What gradient modes that solve without autograd's graph share in dealing with it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import torch
from torch import Tensor

from solver.errors import InvalidArgument
from solver.loop import Problem


def detached(problem: Problem) -> Problem:
    """Return the problem out of autograd's graph."""
    times = problem.times
    bare = times._replace(
        t0=times.t0.detach(),
        t1=times.t1.detach(),
        start=times.start.detach(),
        end=times.end.detach(),
        outputs=None if times.outputs is None else times.outputs.detach(),
        ts=times.ts.detach(),
    )
    slope = None if problem.slope0 is None else problem.slope0.detach()
    return replace(problem, y0=problem.y0.detach(), times=bare, slope0=slope, params=())


def check_events(problem: Problem, mode: str) -> None:
    """Refuse events that change states, which modes that go back without a graph do not follow.

    Raises:
        InvalidArgument: there is one.
    """
    if problem.events is not None and problem.events.applies:
        raise InvalidArgument(
            f"adjoint is {mode!r} and an event has `apply`: gradients through changes of the state "
            'need adjoint="backprop" or "checkpoint_steps"; events without `apply` are allowed'
        )


class OnlyOnce(torch.autograd.Function):
    """A gradient that must not be differentiated again, as it is a constant to autograd."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *made_of: Tensor | None) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        raise RuntimeError(
            'this adjoint cannot be differentiated twice: use adjoint="backprop" or '
            '"checkpoint_steps" for second derivatives'
        )


def graph_is_kept() -> bool:
    """Return whether the backward pass under way was asked to `retain_graph`."""
    return torch._C._autograd._get_current_graph_task_keep_graph()  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]


@final
class Unchanged:
    """Notices when constants of a vector field are changed between forward and backward.

    Autograd sees to what requires grad. What changed during the solve is the field's own business,
    as counters and running means are.

    Args:
        problem: about to be solved.
    """

    def __init__(self, problem: Problem):
        """Note how the constants are."""
        seen = {id(tensor): tensor for tensor in problem.field.constants()}
        self._kept = [
            (tensor, tensor._version)
            for tensor in seen.values()
            if not (tensor.requires_grad or tensor.is_inference())
        ]

    def solved(self) -> None:
        """Leave out what was changed during the solve."""
        self._kept = [(tensor, version) for tensor, version in self._kept
                      if tensor._version == version]  # fmt: skip

    def check(self) -> None:
        """Refuse to go on if a constant was changed.

        Raises:
            RuntimeError: one was changed in place.
        """
        for tensor, version in self._kept:
            if tensor._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: a buffer, frozen parameter or argument of f of shape "
                    f"{tuple(tensor.shape)} was changed after the solve, so its steps cannot be "
                    "taken again"
                )


def leaf(tensor: Tensor) -> Tensor:
    """Return a tensor to differentiate by."""
    return tensor.detach().requires_grad_()


def zero_if_none(gradients: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    """Return gradients, zeros for those that autograd found to be independent."""
    return [
        torch.zeros_like(shape) if gradient is None else gradient
        for gradient, shape in zip(gradients, like, strict=True)
    ]
