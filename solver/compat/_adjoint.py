"""The continuous adjoint of one system, solved from output to output, as torchdiffeq has it."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from solver.adjoints.graph import graph_is_kept
from solver.compat._norms import PartNorm, rms, split
from solver.compat._system import CALLBACKS, System

Solve = Callable[..., Any]


class Augmented:
    """What is solved backward: the state, its cotangent, and those of time and parameters."""

    def __init__(self, system: System, params: Sequence[Tensor], time: bool, func: Any):
        """Take over the callbacks for the backward solve.

        Args:
            system: the forward problem.
            params: tensors that gradients are wanted for.
            time: whether the derivative by time is wanted.
            func: what the user gave, which may have callbacks.
        """
        self._system, self._params, self._time = system, tuple(params), time
        self._zeros: dict[int, Tensor] = {}  # for what has no part in the field; never written to
        for name in CALLBACKS:
            callback = getattr(func, f"{name}_adjoint", None)
            if callback is not None:
                setattr(self, name, callback)

    def __call__(self, t: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the slopes of all parts."""
        y, cotangent = state[1], state[2]
        with torch.enable_grad():
            y = y.detach().requires_grad_(True)
            t = t.detach().requires_grad_(self._time)
            slope = self._system.slope(t, y)
            wanted = (y, *((t,) if self._time else ()), *self._params)
            found: Sequence[Tensor | None] = (None,) * len(wanted)
            if slope.requires_grad:
                found = torch.autograd.grad(slope, wanted, -cotangent, allow_unused=True)
        by_y, *rest = (
            self._nothing(i, wanted[i]) if by is None else by for i, by in enumerate(found)
        )
        by_t = rest.pop(0) if self._time else self._nothing(-1, t)
        return (by_t, slope.detach(), by_y, *rest)

    def _nothing(self, place: int, like: Tensor) -> Tensor:
        if place not in self._zeros:
            self._zeros[place] = torch.zeros_like(like)
        return self._zeros[place]


class AdjointMethod(torch.autograd.Function):
    """States of a solve without a graph; backward solves the adjoint equation."""

    @staticmethod
    def forward(
        ctx: Any,
        solve: Solve,
        backward_solve: Solve,
        system: System,
        func: Any,
        adjoint_options: dict[str, Any],
        event: Any,
        y0: Tensor,
        t: Tensor,
        *params: Tensor,
    ) -> Any:
        """Solve."""
        ctx.backward_solve, ctx.system, ctx.func = backward_solve, system, func
        ctx.adjoint_options, ctx.event = adjoint_options, event is not None
        with torch.no_grad():
            if event is None:
                states = solve(system)
                ctx.save_for_backward(t, states, *params)
                return states
            event_t, states = solve(system, event)
            ctx.save_for_backward(t, states, *params, event_t)
        return event_t, states

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Go back from output to output; the state is set to that of the solve at each."""
        given, states, *params = ctx.saved_tensors
        t, at = given, gradients[-1]
        if ctx.event:  # as if to the event's time, whose own derivative is linked up elsewhere
            event_t = params.pop()
            t = torch.cat([t[:1], event_t.reshape(1).to(t)])
        if at is None:
            at = torch.zeros_like(states)
        wants_time = ctx.needs_input_grad[7]
        system = ctx.system
        if system is None:
            raise RuntimeError("this solve was freed by an earlier backward pass: retain_graph?")
        augmented = Augmented(system, params, wants_time, ctx.func)
        by_times: list[Tensor] = []
        with torch.no_grad():
            by_t = torch.zeros((), dtype=states.dtype, device=states.device)
            parts = [by_t, states[-1], at[-1].clone(), *(torch.zeros_like(p) for p in params)]
            for i in range(len(t) - 1, 0, -1):
                if wants_time:
                    slope = system.slope(system.time(t[i]), states[i])
                    moved = (slope.conj() * at[i]).real.sum()
                    parts[0] = parts[0] - moved
                    by_times.append(moved.to(t))
                span = torch.stack([t[i], t[i - 1]])
                found = ctx.backward_solve(augmented, tuple(parts), span, ctx.adjoint_options)
                parts = [part[1] for part in found]
                parts[1] = states[i - 1]
                parts[2] = parts[2] + at[i - 1]
            by_t = None
            if wants_time:
                first = parts[0].real.to(t).reshape(1)
                by_t = torch.cat([first, *(each.reshape(1) for each in reversed(by_times))])
                if ctx.event:
                    by_t = torch.cat([first, torch.zeros_like(given[1:])])
        if not graph_is_kept():  # a result kept by the field itself must not keep both alive
            ctx.system = ctx.func = ctx.backward_solve = None
        return (None, None, None, None, None, None, parts[2], by_t, *parts[3:])


def find_parameters(func: nn.Module) -> list[Tensor]:
    """Return the parameters of a module, also of a replica made by `DataParallel`."""
    if not getattr(func, "_is_replica", False):
        return list(func.parameters())
    return [
        value
        for module in func.modules()
        for value in module.__dict__.values()
        if isinstance(value, Tensor) and value.requires_grad
    ]


def read_parameters(func: Any, params: Any, adjoint_options: dict[str, Any]) -> tuple[Tensor, ...]:
    """Return the parameters that gradients are wanted for.

    Raises:
        ValueError: none are given, and `func` is no module.
    """
    if params is None:
        if not isinstance(func, nn.Module):
            raise ValueError(
                "func must be an instance of nn.Module to specify the adjoint parameters; "
                "alternatively they can be specified explicitly via the `adjoint_params` argument. "
                "If there are no parameters then it is allowable to set `adjoint_params=()`."
            )
        params = find_parameters(func)
    params = tuple(params)
    wanted = tuple(param for param in params if param.requires_grad)
    if len(wanted) != len(params) and callable(adjoint_options.get("norm")):
        warnings.warn(
            "An adjoint parameter was passed without requiring gradient. For efficiency this will "
            "be excluded from the adjoint pass, and will not appear as a tensor in the adjoint "
            "norm.",
            stacklevel=3,
        )
    return wanted


def adjoint_norm(chosen: Any, system: System, state_norm: Any) -> Callable[..., Any]:
    """Return the norm of the backward solve, of tuples (t, y, cotangent of y, *parameters').

    Args:
        chosen: what the user asks for: None, "seminorm" or a function.
        system: the forward problem.
        state_norm: the user's own norm of states, None if there is none.
    """
    shapes = system.shapes
    if chosen is None or chosen == "seminorm":
        count = None if chosen is None else 3
        if state_norm is None:
            splits = {} if shapes is None else {1: shapes, 2: shapes}
            return PartNorm(count, splits)

        def mixed(parts: tuple[Tensor, ...]) -> Tensor:
            norms = [parts[0].abs(), system.norm(parts[1]), system.norm(parts[2])]
            norms += [] if count else [rms(part) for part in parts[3:]]
            return torch.stack([torch.as_tensor(norm) for norm in norms]).amax()

        return mixed
    if shapes is None:
        return chosen

    def split_up(parts: tuple[Tensor, ...]) -> Any:
        t, y, cotangent, *rest = parts
        return chosen((t, *split(y, shapes), *split(cotangent, shapes), *rest))

    return split_up
