"""Reads the arguments of a solve: each checked once, with an error that names it."""

import operator
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, SupportsIndex, cast

import torch
from torch import Tensor

from solver import catalogue
from solver.adjoints.base import Adjoint
from solver.controllers.base import Controller
from solver.controllers.fixed import Fixed
from solver.controllers.pid import PID
from solver.errors import InvalidArgument, InvalidType
from solver.hooks import Hook
from solver.methods.base import Method
from solver.norms import Tolerance
from solver.problem import StateLayout, real_dtype
from solver.statistics.base import Statistic
from solver.times import Times


def read_method(method: str | Method) -> Method:
    """Return the method named or given."""
    if isinstance(method, str):
        return _method_named(method)
    if isinstance(method, type) and issubclass(method, Method) and hasattr(method, "name"):
        return method()
    if not isinstance(method, Method):
        raise InvalidType(
            f"method is a {type(method).__name__}: must be a Method, or one of "
            f"{', '.join(catalogue.methods())}"
        )
    return method


# Settings objects are frozen, so solves may share those that are looked up by name.
_method_named = cache(catalogue.method_by_name)
_adjoint_named = cache(catalogue.adjoint_by_name)
_controller_named = cache(catalogue.controller_by_name)
_default_controller = cache(lambda adaptive: PID() if adaptive else Fixed())


def read_controller(
    controller: str | Controller[Any] | None, method: Method, dt0: Any
) -> Controller[Any]:
    """Return the controller named or given, or the one that suits the method."""
    if controller is None:
        control: Controller[Any] = _default_controller(method.error_order is not None)
    elif isinstance(controller, str):
        control = _controller_named(controller)
    elif isinstance(controller, type) and issubclass(controller, Controller):
        control = controller()
    elif isinstance(controller, Controller):
        control = controller
    else:
        raise InvalidType(
            f"controller is a {type(controller).__name__}: must be a name or a Controller"
        )
    if control.adaptive and method.error_order is None:
        raise InvalidArgument(
            f"controller is {control.name!r}, but method {method.name!r} has no error estimate: "
            'use controller="fixed" with dt0, or a method with an estimate'
        )
    if not control.adaptive and dt0 is None:
        raise InvalidArgument("dt0 is missing: fixed steps need their size")
    return control


def read_adjoint(adjoint: str | Adjoint) -> Adjoint:
    """Return the gradient mode named or given."""
    if isinstance(adjoint, str):
        return _adjoint_named(adjoint)
    if isinstance(adjoint, type) and issubclass(adjoint, Adjoint):
        return adjoint()
    if not isinstance(adjoint, Adjoint):
        raise InvalidType(f"adjoint is a {type(adjoint).__name__}: must be a name or an Adjoint")
    return adjoint


def read_params(params: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the listed tensors, each once."""
    unique: dict[int, Tensor] = {}
    for each in (params,) if isinstance(params, Tensor) else params:
        if not isinstance(each, Tensor):
            raise InvalidType(f"params holds a {type(each).__name__}: must be tensors")
        unique[id(each)] = each
    return tuple(unique.values())


def read_tolerance(rtol: Any, atol: Any, layout: StateLayout) -> Tolerance:
    """Return the tolerances, each a number or a tensor that broadcasts to `(B, D)`."""
    real = real_dtype(layout.dtype)
    if type(rtol) is float and type(atol) is float and 1e-30 < rtol < 1e30 and 1e-30 < atol < 1e30:
        return Tolerance(rtol, atol)  # what most solves have needs no tensors to be checked
    r, a = (_one_tolerance(n, v, layout, real) for n, v in (("rtol", rtol), ("atol", atol)))
    total = torch.as_tensor(r) + torch.as_tensor(a)
    if bool((total == 0).any()):
        raise InvalidArgument("rtol and atol are both 0: one of them must be positive")
    return Tolerance(r, a)


def _one_tolerance(
    name: str, value: Any, layout: StateLayout, dtype: torch.dtype
) -> float | Tensor:
    batch, dim = layout.batch, layout.dim
    if isinstance(value, bool | str):
        raise InvalidType(f"{name} is a {type(value).__name__}: must be a number or a tensor")
    try:
        tensor = torch.as_tensor(value, dtype=dtype, device=layout.device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidType(f"{name} = {value!r}: must be a number or a tensor") from error
    wrong = ~(tensor.isfinite() & (tensor >= 0))
    if bool(wrong.any()):
        worst = tensor[wrong].flatten()[0].item()
        raise InvalidArgument(f"{name} is {worst!r}: must be finite and not negative")
    if tensor.ndim == 0:
        return tensor.item()
    shapes = {
        (dim,): (dim,),
        (batch, dim): (batch, dim),
        (batch, 1): (batch, 1),
        (1, dim): (1, dim),
    }
    if layout.single:
        shape = tuple(layout.shapes[0])
        shapes |= {shape: (dim,), (batch, *shape): (batch, dim)}
    if (batch,) not in shapes:
        shapes[(batch,)] = (batch, 1)
    target = shapes.get(tuple(tensor.shape))
    if target is None:
        raise InvalidArgument(
            f"{name} has shape {tuple(tensor.shape)}: must be a number, ({dim},) per component, "
            f"({batch}, 1) per row or ({batch}, {dim})"
        )
    return tensor.reshape(target)


def read_step(
    name: str, value: Any, batch: int, times: Times, *, zero: bool, expand: bool = False
) -> Any:
    """Return a step size or bound: None, a number, or `(B,)`; positive whichever way time runs."""
    if value is None:
        return None
    try:
        size = torch.as_tensor(value, dtype=times.t0.dtype, device=times.t0.device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidType(
            f"{name} is a {type(value).__name__}: must be a number or a tensor"
        ) from error
    if name == "dt0" and times.direction is not None and bool((size < 0).any()):
        size = size.abs()  # a signed first step of a row that runs backward
    wrong = ~((size >= 0 if zero else size > 0) & ~size.isnan())
    if name == "dt0":
        wrong = wrong | size.isinf()
    if bool(wrong.any()):
        bound = "not negative" if zero else "positive"
        raise InvalidArgument(f"{name} is {size[wrong].flatten()[0].item()!r}: must be {bound}")
    if size.numel() == 1 and not (size.ndim and batch == 1):
        size = size.reshape(())
        return size.expand(batch) if expand else size.item()
    if tuple(size.shape) not in ((batch,), (batch, 1)):
        raise InvalidArgument(
            f"{name} has shape {tuple(size.shape)}: must be a number or ({batch},)"
        )
    return size.reshape(batch)


def read_max_steps(value: object, batch: int, device: torch.device) -> int | Tensor:
    """Return the attempts allowed, a number or `(B,)`."""
    if not isinstance(value, bool | Tensor) and hasattr(value, "__index__"):
        value = operator.index(cast(SupportsIndex, value))
        if value < 1:
            raise InvalidArgument(f"max_steps is {value}: must be at least 1")
        return value
    if (
        not isinstance(value, Tensor)
        or value.is_floating_point()
        or value.is_complex()
        or value.dtype == torch.bool
    ):
        raise InvalidType(f"max_steps is {value!r}: must be a whole number or a tensor of them")
    if value.numel() not in (1, batch):
        raise InvalidArgument(
            f"max_steps has shape {tuple(value.shape)}: must be a number or ({batch},)"
        )
    if bool((value < 1).any()):
        raise InvalidArgument(f"max_steps is {int(value.min())}: must be at least 1")
    return value.to(device).reshape(-1).expand(batch)


def read_stepping(stepping: str, times: Times) -> bool:
    """Whether the batch has one step size, which needs one span."""
    if stepping not in ("independent", "joint"):
        raise InvalidArgument(f'stepping is {stepping!r}: must be "independent" or "joint"')
    if stepping == "independent":
        return False
    if times.stops is not None:
        raise InvalidArgument('stepping is "joint": jump_t needs stepping="independent"')
    for name, ends in (("t0", times.t0), ("t1", times.t1)):
        if bool((ends.detach() != ends.detach()[:1]).any()):
            raise InvalidArgument(f'stepping is "joint": all rows need the same {name}')
    return True


def read_hooks(hooks: Sequence[Hook]) -> list[Hook]:
    """Return the hooks without repeats.

    Raises:
        InvalidType: something is no Hook.
    """
    if isinstance(hooks, Hook):
        hooks = (hooks,)
    if not isinstance(hooks, Iterable):
        raise InvalidType(f"hooks is {hooks!r}: must be a sequence of solver.Hook objects")
    unique: list[Hook] = []
    for hook in hooks:
        if not isinstance(hook, Hook):
            raise InvalidType(f"hooks holds a {type(hook).__name__}: must be solver.Hook objects")
        if not any(hook is other for other in unique):
            unique.append(hook)
    return unique


def read_statistics(
    statistics: Sequence[str | Statistic], hooks: Sequence[Hook]
) -> tuple[Statistic, ...]:
    """Return the statistics asked for by the caller and by hooks, each once."""
    found: dict[str, Statistic] = {}
    asked = (statistics, *(hook.statistics for hook in hooks))
    for each in chain.from_iterable(map(_several, asked)):
        if isinstance(each, str):
            statistic = _statistic(each)
        elif isinstance(each, Statistic):
            statistic = each
        else:
            raise InvalidType(
                f"statistics holds a {type(each).__name__}: must be names or Statistic objects"
            )
        found.setdefault(statistic.name, statistic)
    return tuple(found.values())


@lru_cache
def _statistic(name: str) -> Statistic:
    """Return the statistic of that name; the same one each time, since none has a state."""
    return catalogue.statistic_by_name(name)


def _several(statistics: str | Statistic | Sequence[str | Statistic]) -> Iterable[str | Statistic]:
    """Return one or several statistics as several."""
    if isinstance(statistics, str | Statistic):
        return (statistics,)
    if not isinstance(statistics, Iterable):
        raise InvalidType(f"statistics is {statistics!r}: must be names or Statistic objects")
    return statistics


def check_step_bounds(dt_min: Tensor | float | None, dt_max: Tensor | float | None) -> None:
    """Refuse a smallest step above the largest."""
    if dt_min is None or dt_max is None:
        return
    low, high = torch.as_tensor(dt_min), torch.as_tensor(dt_max)
    if bool((low > high).any()):
        raise InvalidArgument(
            f"dt_min is {low.max().item()!r} and dt_max {high.min().item()!r}: "
            "dt_min must not be above dt_max"
        )
