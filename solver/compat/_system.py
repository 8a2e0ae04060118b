"""What torchdiffeq's functions are given, checked: one system of any shape, in the user's time."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from solver.compat._norms import PartNorm, Shapes, flat_norm, rms, split

CALLBACKS = ("callback_step", "callback_accept_step", "callback_reject_step")


@dataclass(eq=False)
class System:
    """An initial value problem whose state is a tensor of any shape, or a tuple of tensors.

    A tuple is one flat tensor in here. Time runs from `t[0]` to `t[-1]`, up or down.
    """

    func: Callable[..., Any]
    y0: Tensor
    shapes: Shapes | None  # of the parts of a tuple; None for a tensor
    t: Tensor  # (T,)
    rtol: Any  # float, or tensor that broadcasts to the state
    atol: Any
    norm: Callable[[Tensor], Any]  # of flat states
    options: dict[str, Any]  # what the method is given, without the norm
    callbacks: dict[str, Callable[..., Any]]

    @property
    def real(self) -> torch.dtype:
        """Dtype of real parts of the state, and of the times `func` gets."""
        dtype = self.y0.dtype
        return dtype.to_real() if dtype.is_complex else dtype

    @property
    def sign(self) -> float:
        """1, or -1 if time runs down."""
        return -1.0 if len(self.t) > 1 and bool(self.t[0] > self.t[1]) else 1.0

    def slope(self, t: Tensor, y: Tensor) -> Tensor:
        """Evaluate the vector field in states as the solver has them."""
        if self.shapes is None:
            slope = self.func(t, y)
            return slope if slope.shape == y.shape else slope.reshape(y.shape)
        parts = self.func(t, split(y, self.shapes))
        return torch.cat([part.reshape(-1) for part in parts])

    def time(self, t: float | Tensor) -> Tensor:
        """Return a time as `func` gets it."""
        if isinstance(t, Tensor):
            return t.to(self.real)
        return torch.tensor(t, dtype=self.real, device=self.y0.device)

    def tell(self, name: str, t: Any, y: Tensor, dt: Any) -> None:
        """Call a callback of the user."""
        callback = self.callbacks.get(name)
        if callback is None:
            return
        like = {"dtype": torch.float64, "device": self.y0.device}
        if not isinstance(t, Tensor):
            t, dt = torch.tensor(t, **like), torch.tensor(dt, **like)
        callback(t, y if self.shapes is None else split(y, self.shapes), dt)

    def given_back(self, states: Tensor) -> Any:
        """Return `(T, ...)` states as the user has them."""
        return states if self.shapes is None else split(states, self.shapes)


def read_system(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    rtol: Any,
    atol: Any,
    method: str,
    options: dict[str, Any] | None,
    supported: Iterable[str],
) -> System:
    """Check the arguments of a solve.

    Args:
        supported: names of the callbacks that the method calls.

    Raises:
        AssertionError, TypeError, ValueError: what torchdiffeq raises for the same mistake.
    """
    shapes = None
    if not isinstance(y0, Tensor):
        assert isinstance(y0, tuple), f"y0 is a {type(y0).__name__}: must be a Tensor or a tuple"
        shapes = [part.shape for part in y0]
        rtol, atol = (
            _of_parts(name, tol, shapes) for name, tol in (("rtol", rtol), ("atol", atol))
        )
        y0 = torch.cat([part.reshape(-1) for part in y0])
    check_times(t)
    if not (y0.is_floating_point() or y0.is_complex()):
        raise TypeError(f"`y0` must be a floating point Tensor but is a {y0.type()}")
    for name, tol in (("rtol", rtol), ("atol", atol)):
        if isinstance(tol, Tensor):
            assert not tol.requires_grad, f"{name} cannot require gradient"
    if t.device != y0.device:
        warnings.warn("t is not on the same device as y0. Coercing to y0.device.", stacklevel=3)
        t = t.to(y0.device)
    options = dict(options or {})
    norm = options.pop("norm", None)
    if norm is None:
        norm = rms if shapes is None else PartNorm()
    callbacks = {
        name: getattr(func, name) for name in CALLBACKS if callable(getattr(func, name, None))
    }
    useless = callbacks.keys() - set(supported)
    if useless:
        warnings.warn(f"Solver '{method}' does not support callbacks {useless}", stacklevel=3)
    rtol, atol = (_number(tol, y0) for tol in (rtol, atol))
    return System(func, y0, shapes, t, rtol, atol, flat_norm(norm, shapes), options, callbacks)


def check_times(t: Any) -> None:
    """Check the times of a solve.

    Raises:
        AssertionError, TypeError: they are no 1-D float tensor that runs strictly up or down.
    """
    assert isinstance(t, Tensor), f"t is a {type(t).__name__}: must be a torch.Tensor"
    if not t.is_floating_point():
        raise TypeError(f"`t` must be a floating point Tensor but is a {t.type()}")
    assert t.ndim == 1, f"t has shape {tuple(t.shape)}: must be one dimensional"
    steps = t.detach().diff()
    assert bool((steps > 0).all()) or bool((steps < 0).all()), (
        "t must be strictly increasing or decreasing"
    )


def use(method: str, options: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a method with its defaults; warn about others."""
    unused = {name: value for name, value in options.items() if name not in known}
    if unused:
        warnings.warn(f"{method}: Unexpected arguments {unused}", stacklevel=4)
    return known | {name: value for name, value in options.items() if name in known}


def _of_parts(name: str, tol: Any, shapes: Shapes) -> Any:
    if isinstance(tol, Tensor) and tol.ndim == 0:
        return tol
    try:
        parts = tuple(tol)
    except TypeError:
        return tol
    assert len(parts) == len(shapes), (
        f"{name} has {len(parts)} parts: must have one for each of the {len(shapes)} of y0"
    )
    return torch.cat([
        torch.as_tensor(part).expand(shape.numel())
        for part, shape in zip(parts, shapes, strict=True)
    ])  # fmt: skip


def _number(tol: Any, y0: Tensor) -> Any:
    """Return a tolerance as a float where it is one number."""
    if isinstance(tol, Tensor):
        return float(tol.detach()) if tol.ndim == 0 else tol.to(y0.device)
    return float(tol) if not hasattr(tol, "__len__") else torch.as_tensor(tol, device=y0.device)
