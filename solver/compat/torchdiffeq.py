"""A drop-in for torchdiffeq 0.2.5: `import solver.compat.torchdiffeq as torchdiffeq`.

Chen, https://github.com/rtqichen/torchdiffeq. The same functions with the same options, defaults
and choice of steps; beside its methods those on a fixed grid that are implicit. `solve_ivp` has
what this interface cannot say: times, tolerances, events and ends of single rows, and records.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from solver.compat import _adaptive, _drive, _fixed, _scipy
from solver.compat._adams import Adams
from solver.compat._adjoint import AdjointMethod, adjoint_norm, read_parameters
from solver.compat._fixed import EXPLICIT, ExplicitGrid, FixedGrid
from solver.compat._implicit import IMPLICIT, ImplicitGrid
from solver.compat._system import System, check_times, read_system
from solver.compat._tableaus import ADAPTIVE

__all__ = ["SOLVERS", "odeint", "odeint_adjoint", "odeint_dense", "odeint_event"]

__version__ = "0.2.5"  # of what this stands in for

_GRIDS: dict[str, type[FixedGrid]] = {
    **dict.fromkeys(EXPLICIT, ExplicitGrid),
    **dict.fromkeys(("explicit_adams", "implicit_adams", "fixed_adams", "adams"), Adams),
    **dict.fromkeys(IMPLICIT, ImplicitGrid),
}
SOLVERS: tuple[str, ...] = (*ADAPTIVE, *_GRIDS, "scipy_solver")
Options = dict[str, Any] | None
Event = Callable[[Tensor, Tensor], Tensor]


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Tensor,
    *,
    rtol: Any = 1e-7,
    atol: Any = 1e-9,
    method: str | None = None,
    options: Options = None,
    event_fn: Callable[..., Tensor] | None = None,
) -> Any:
    """Solve dy/dt = func(t, y) from `y(t[0]) = y0`, as one system; autograd follows every step.

    Args:
        func: vector field, of a scalar time and a state like `y0`.
        y0: tensor of any shape, or a tuple of such; real or complex.
        t: `(T,)` times, strictly increasing or decreasing.
        rtol, atol: tolerances; for a tuple also one for each part.
        method: one of `SOLVERS`; None for "dopri5".
        options: of the method.
        event_fn: stop where it, or any part of what it returns, becomes zero; then `t` is `(2,)`
            and only says whence and which way.

    Returns:
        States `(T, ...)`; with `event_fn` the time of the event and the states at both ends.

    Raises:
        AssertionError: arguments that do not fit, or a step that became too small.
        ValueError: an unknown method, or options that exclude each other.
        TypeError: times or states that are no floats.
    """
    name, system, event = _read(func, y0, t, rtol, atol, method, options, event_fn)
    if event is None:
        return system.given_back(_solve(name, system))
    event_t, states = _solve_until(name, system, event)
    return event_t.to(system.t), system.given_back(states)


def odeint_adjoint(
    func: Callable[..., Any],
    y0: Any,
    t: Tensor,
    *,
    rtol: Any = 1e-7,
    atol: Any = 1e-9,
    method: str | None = None,
    options: Options = None,
    event_fn: Callable[..., Tensor] | None = None,
    adjoint_rtol: Any = None,
    adjoint_atol: Any = None,
    adjoint_method: str | None = None,
    adjoint_options: Options = None,
    adjoint_params: Any = None,
) -> Any:
    """Solve as `odeint` does, with gradients by a second solve backward in time.

    Args:
        func: as for `odeint`; a module, or `adjoint_params` is needed.
        y0, t, rtol, atol, method, options, event_fn: as for `odeint`.
        adjoint_rtol, adjoint_atol, adjoint_method: of the backward solve; those of the solve.
        adjoint_options: of the backward solve; those of the solve, but for its norm, which may be
            "seminorm" or a function of (t, y, cotangent of y, *those of parameters).
        adjoint_params: tensors that gradients are wanted for besides `y0` and `t`.

    Raises:
        ValueError: parameters or options of the backward solve are missing.
        AssertionError, TypeError: as for `odeint`.
    """
    if adjoint_method not in (None, method) and options is not None and adjoint_options is None:
        raise ValueError(
            "If `adjoint_method != method` then we cannot infer `adjoint_options` from `options`. "
            "So as `options` has been passed then `adjoint_options` must be passed as well."
        )
    backward = dict(options or {}) if adjoint_options is None else dict(adjoint_options)
    if adjoint_options is None:
        backward.pop("norm", None)
    params = read_parameters(func, adjoint_params, backward)
    name, system, event = _read(func, y0, t, rtol, atol, method, options, event_fn)
    own_norm = None if options is None else options.get("norm")
    backward["norm"] = adjoint_norm(backward.get("norm"), system, own_norm)
    rtol = rtol if adjoint_rtol is None else adjoint_rtol
    atol = atol if adjoint_atol is None else adjoint_atol
    backward_name = name if adjoint_method is None else adjoint_method

    def solve(system: System, *event: Event) -> Any:
        return _solve_until(name, system, *event) if event else _solve(name, system)

    def solve_back(augmented: Any, state: Any, span: Tensor, options: Options) -> Any:
        return odeint(
            augmented, state, span, rtol=rtol, atol=atol, method=backward_name, options=options
        )

    found = AdjointMethod.apply(
        solve, solve_back, system, func, backward, event, system.y0, system.t, *params
    )
    if event is None:
        return system.given_back(found)
    event_t, states = found
    return event_t.to(system.t), system.given_back(states)


def odeint_event(
    func: Callable[..., Any],
    y0: Any,
    t0: Tensor,
    *,
    event_fn: Callable[..., Tensor],
    reverse_time: bool = False,
    odeint_interface: Callable[..., Any] = odeint,
    **kwargs: Any,
) -> Any:
    """Solve until `event_fn` becomes zero; time and state of the event have their gradients.

    Args:
        func, y0: as for `odeint`.
        t0: start, a tensor.
        event_fn: of time and state; also what its own tensors are gets gradients.
        reverse_time: whether to go back in time.
        odeint_interface: `odeint` or `odeint_adjoint`.
        kwargs: for that.

    Returns:
        The time of the event, and the states at both ends.
    """
    start = t0.reshape(-1)
    t = torch.cat([start, start.detach() + (-1.0 if reverse_time else 1.0)])
    event_t, solution = odeint_interface(func, y0, t, event_fn=event_fn, **kwargs)
    event_t = event_t.detach()
    parts = (solution,) if isinstance(solution, Tensor) else solution
    single = isinstance(solution, Tensor)
    last = [part[-1] for part in parts]
    if not torch.is_grad_enabled():
        return event_t, solution
    signs = _signs(event_fn, t[0].detach(), y0)
    real = last[0].dtype.to_real() if last[0].is_complex() else last[0].dtype
    at = event_t.to(real)

    def value_of(time: Tensor, states: list[Tensor]) -> Tensor:
        return torch.min(event_fn(time, states[0] if single else tuple(states)) * signs)

    bare = [state.detach().requires_grad_() for state in last]
    moment = at.detach().requires_grad_()
    with torch.no_grad():
        slopes = func(at, bare[0].detach() if single else tuple(b.detach() for b in bare))
        slopes = [slopes] if single else list(slopes)
    with torch.enable_grad():
        value = value_of(moment, bare)
        found: Any = (None,) * (len(bare) + 1)
        if value.requires_grad:
            found = torch.autograd.grad(value, (moment, *bare), allow_unused=True)
    rate = at.new_zeros(()) if found[0] is None else found[0]
    for by, slope in zip(found[1:], slopes, strict=True):
        if by is not None:
            rate = rate + (by.conj() * slope).real.sum().to(rate.dtype)
    value = value_of(at, last)
    shift = -(value - value.detach()) / (rate + 1e-12)
    ends = [
        state + shift.to(state.dtype) * slope for state, slope in zip(last, slopes, strict=True)
    ]
    parts = tuple(torch.cat([p[:-1], end[None]]) for p, end in zip(parts, ends, strict=True))
    return event_t + shift.to(event_t), parts[0] if single else parts


def odeint_dense(
    func: Callable[..., Any],
    y0: Tensor,
    t0: Any,
    t1: Any,
    *,
    rtol: Any = 1e-7,
    atol: Any = 1e-9,
    method: str | None = None,
    options: Options = None,
) -> Callable[[Any], Tensor]:
    """Solve from `t0` to `t1` and return the solution as a function of time.

    The function takes a time, or a tensor of times of any shape `(*shape)`, and returns
    `(*shape, *y0.shape)`.

    Raises:
        AssertionError: `y0` is no tensor, or the method is not adaptive.
    """
    assert isinstance(y0, Tensor), f"y0 is a {type(y0).__name__}: must be a Tensor"
    name = "dopri5" if method is None else method
    assert name in ADAPTIVE, f"method is {name!r}: must be one of {', '.join(ADAPTIVE)}"
    like = t0 if isinstance(t0, Tensor) else y0.abs()
    t = torch.stack([torch.as_tensor(end).detach().to(like).reshape(()) for end in (t0, t1)])
    _, system, _ = _read(func, y0, t, rtol, atol, name, options, None)
    return _drive.dense(name, system)


def _read(
    func: Any, y0: Any, t: Any, rtol: Any, atol: Any, method: str | None, options: Options,
    event_fn: Any,
) -> tuple[str, System, Event | None]:  # fmt: skip
    """Check everything; return the method's name, the problem and what ends it."""
    name = "dopri5" if method is None else method
    if name not in SOLVERS:
        names = '", "'.join(SOLVERS)
        raise ValueError(f'Invalid method "{name}". Must be one of {{"{names}"}}.')
    if event_fn is not None:
        check_times(t)
        if len(t) != 2:
            raise ValueError(
                f"We require len(t) == 2 when in event handling mode, but got len(t)={len(t)}."
            )
    supported = () if name == "scipy_solver" else _fixed.SUPPORTED
    supported = _adaptive.SUPPORTED if name in ADAPTIVE else supported
    system = read_system(func, y0, t, rtol, atol, name, options, supported)
    if event_fn is None:
        return name, system, None
    signs = _signs(event_fn, t[0].detach(), y0)

    def event(time: Tensor, y: Tensor) -> Tensor:
        return torch.min(event_fn(time, system.given_back(y)) * signs)

    return name, system, event


def _signs(event_fn: Any, t0: Tensor, y0: Any) -> Tensor:
    """Return the signs of all parts of an event at the start, so that all may begin positive."""
    with torch.no_grad():
        return torch.sign(event_fn(t0, y0))


def _solve(name: str, system: System) -> Tensor:
    if name in ADAPTIVE:
        return _drive.integrate(name, system)
    return _scipy.integrate(system) if name == "scipy_solver" else _grid(name, system).integrate()


def _solve_until(name: str, system: System, event: Event) -> tuple[Tensor, Tensor]:
    if name in ADAPTIVE:
        return _drive.until_event(name, system, event)
    assert name != "scipy_solver", "scipy_solver has no events here: use an adaptive method"
    return _grid(name, system).until_event(event)


def _grid(name: str, system: System) -> FixedGrid:
    return _GRIDS[name](name, system)
