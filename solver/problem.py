"""An initial value problem as the loop sees it: flat states, every row running forward in its own
time."""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from solver.captured import captured_tensors
from solver.errors import InvalidArgument, InvalidType

COMPUTE_DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
HALF_DTYPES = (torch.float16, torch.bfloat16)


def real_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of the real part: float32 for complex64."""
    return dtype.to_real() if dtype.is_complex else dtype


class StateLayout:
    """How a user's state, a tensor `(B, ...)` or a pytree of them, lies in a flat `(B, D)` tensor.

    Half precision states are computed in float32 and handed to the vector field and back in their
    own dtype; whole numbers become the default float dtype.

    Raises:
        InvalidType, InvalidArgument: `y0` has no batch axis, unequal batches, or an odd dtype.
    """

    def __init__(self, y0: Any):
        """Read shapes and dtypes off the initial state."""
        leaves, self.tree = pytree.tree_flatten(y0)
        if not leaves:
            raise InvalidArgument(
                "y0 holds no tensor: must be a tensor (B, ...) or a pytree of them"
            )
        leaves = [self._as_float(leaf) for leaf in leaves]
        self.shapes = [leaf.shape[1:] for leaf in leaves]
        self.dtypes = [leaf.dtype for leaf in leaves]
        self.device, self.batch = leaves[0].device, leaves[0].shape[0]
        for leaf in leaves[1:]:
            if leaf.shape[0] != self.batch:
                raise InvalidArgument(
                    f"y0 has leaves with {self.batch} and {leaf.shape[0]} rows: all need the same "
                    "batch size"
                )
            if leaf.device != self.device:
                raise InvalidArgument(
                    f"y0 has leaves on {self.device} and {leaf.device}: must be one device"
                )
        wide = [torch.float32 if dtype in HALF_DTYPES else dtype for dtype in self.dtypes]
        self.dtype = wide[0]
        for dtype in wide[1:]:
            self.dtype = torch.promote_types(self.dtype, dtype)
        self.sizes = [shape.numel() for shape in self.shapes]
        self.dim = sum(self.sizes)
        self.single = isinstance(y0, Tensor)
        # Nothing to convert: the field may be called with the flat state itself.
        self.plain = self.single and leaves[0].ndim == 2 and self.dtypes[0] == self.dtype
        # A copy: what the caller does to y0 later must not reach the solution, nor the other way.
        y0_flat = self._join(leaves, (self.batch,))
        self.y0 = y0_flat.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def _as_float(leaf: Any) -> Tensor:
        if not isinstance(leaf, Tensor):
            raise InvalidType(
                f"y0 holds a {type(leaf).__name__}: must be a tensor (B, ...) or a pytree of such "
                "tensors"
            )
        if leaf.layout != torch.strided:
            raise InvalidType(f"y0 has layout {leaf.layout}: must be a dense tensor")
        if leaf.ndim == 0:
            raise InvalidArgument(
                "y0 has shape (): needs a batch axis, such as y0[None] for one instance"
            )
        if leaf.dtype in (*COMPUTE_DTYPES, *HALF_DTYPES):
            return leaf
        if leaf.is_floating_point() or leaf.is_complex() or leaf.dtype == torch.bool:
            raise InvalidType(f"y0 has dtype {leaf.dtype}: must be float16 to float64 or complex")
        return leaf.to(torch.get_default_dtype())

    def _join(self, leaves: Sequence[Tensor], lead: tuple[int, ...]) -> Tensor:
        flat = [
            leaf.reshape(*lead, size).to(self.dtype)
            for leaf, size in zip(leaves, self.sizes, strict=True)
        ]
        return flat[0] if len(flat) == 1 else torch.cat(flat, dim=-1)

    def unflatten(self, y: Tensor) -> Any:
        """Turn `(*lead, D)` into the user's structure with leaves `(*lead, ...)` in their own
        dtypes."""
        lead, leaves, at = y.shape[:-1], [], 0
        for shape, dtype, size in zip(self.shapes, self.dtypes, self.sizes, strict=True):
            part = y[..., at : at + size].reshape(lead + shape)
            if dtype != part.dtype:
                part = (
                    part.real.to(dtype)
                    if part.is_complex() and not dtype.is_complex
                    else part.to(dtype)
                )
            leaves.append(part)
            at += size
        return leaves[0] if self.single else pytree.tree_unflatten(leaves, self.tree)

    def flatten_slope(self, slope: Any) -> Tensor:
        """Turn what the vector field returned into `(B, D)`.

        Raises:
            InvalidType, InvalidArgument: it is no tensor, or structure, shape, dtype or device
            differ.
        """
        leaves, tree = ([slope], None) if self.single else pytree.tree_flatten(slope)
        if not self.single and tree != self.tree:
            raise InvalidArgument(
                f"f returned the structure {tree}: must be that of y0, {self.tree}"
            )
        for leaf, shape, dtype in zip(leaves, self.shapes, self.dtypes, strict=True):
            if not isinstance(leaf, Tensor):
                raise InvalidType(f"f returned a {type(leaf).__name__}: must be a tensor like y")
            if leaf.shape != (self.batch, *shape):
                raise InvalidArgument(
                    f"f returned shape {tuple(leaf.shape)}: must be {(self.batch, *shape)}, the "
                    "shape of y"
                )
            if leaf.device != self.device:
                raise InvalidArgument(
                    f"f returned a tensor on {leaf.device}: must be on {self.device} like y0"
                )
            if leaf.is_complex() and not dtype.is_complex:
                raise InvalidType(f"f returned {leaf.dtype} for a {dtype} state: make y0 complex")
        return self._join(leaves, (self.batch,))


class Field:
    """The vector field as the loop calls it, `(tau (B,), y (B, D)) -> dy/dtau (B, D)`.

    Time runs forward in every row here: `tau = direction * t`, exact, so rows may run either way.
    Counts its calls. A user's field that writes into its arguments gets copies from then on, and
    one that writes every result into the same tensor has them copied.
    """

    def __init__(
        self, f: Callable[..., Any], layout: StateLayout, direction: Tensor | None, args: Any
    ):
        """Wrap `f`; `direction (B,)` is +1 or -1, or None if every row runs forward."""
        self.function, self.layout, self.args, self._plain = f, layout, args, layout.plain
        self.direction = direction
        self.column = None if direction is None else direction.to(real_dtype(layout.dtype))[:, None]
        self._copies = False  # whether f is known to write into its arguments
        # The first result, its version and call number; None once it is known that results last.
        self._result: tuple[Tensor, int, int] | None = None
        self._narrow_time: torch.dtype | None = None
        self._checked = False
        self.calls = 0
        self.seconds = 0.0  # spent in f

    def __call__(self, tau: Tensor, y: Tensor) -> Tensor:
        """Evaluate once for all rows; the result has the dtype of the flat state."""
        t = tau if self.direction is None else tau * self.direction
        if self._narrow_time is not None:
            t = t.to(self._narrow_time)
        self.calls += 1
        if not self._checked:
            slope = self._first_call(t, y)
        elif self._copies:
            slope = self.call(t.clone(), y.clone())
        else:
            before = y._version + t._version
            slope = self.call(t, y)
            if y._version + t._version != before:
                raise InvalidArgument("f changed its argument in place, but only in a later call")
        like = type(slope) is Tensor and slope.shape == y.shape and slope.dtype == y.dtype
        if not (like and self._plain):
            slope = self.layout.flatten_slope(slope)
        if self._result is not None:
            slope = self._own(slope)
        return slope if self.column is None else slope * self.column

    def part(self, f: Callable[..., Any]) -> "Field":
        """Return a part of this field, whose calls count as calls of this."""
        return _Part(self, f)

    def resume(self, other: "Field") -> None:
        """Take over what is known of how the user's function treats what it is given."""
        self._copies, self._checked = other._copies, other._checked
        self._narrow_time = other._narrow_time
        if other._result is not None:  # results may be written to again
            empty = torch.empty(0)
            self._result = empty, empty._version - 1, 0

    def meet(self, tau: Tensor, y: Tensor) -> None:
        """Evaluate once if that was not done yet: checks the result, finds which time `f` takes."""
        if not self._checked:
            with torch.no_grad():
                self(tau, y)

    def _first_call(self, t: Tensor, y: Tensor) -> Any:
        """Call with copies, to learn whether `f` writes into them and which time `f` takes."""
        time, flat = t.clone(), y.clone()
        inference = flat.is_inference()
        before = 0 if inference else flat._version + time._version
        try:
            slope = self.call(time, flat)
        except RuntimeError as error:
            # A network in float32 cannot take float64 times: give it the state's dtype instead.
            narrow = real_dtype(self.layout.dtypes[0])
            if t.dtype == narrow or "dtype" not in str(error):
                raise
            self._narrow_time = narrow
            self.calls += 1
            time, flat = t.to(narrow), y.clone()
            before = 0 if inference else flat._version + time._version
            slope = self.call(time, flat)
        self._copies = inference or flat._version + time._version != before
        self._checked = True
        flat_slope = self.layout.flatten_slope(slope)
        if not flat_slope.is_inference():
            self._result = flat_slope, flat_slope._version, self.calls
        return slope

    def _own(self, slope: Tensor) -> Tensor:
        """Return a copy of `slope` if `f` may write into it in its next call.

        The second call tells: either the first result has changed by then, or `f` makes new ones.
        """
        assert self._result is not None
        result, version, made_by = self._result
        if self.calls > made_by and result._version == version:
            self._result = None
            return slope
        return slope.clone()

    def call(self, t: Tensor, flat: Tensor) -> Any:
        """Call the user's function at `t (B,)` and the flat state; return what it returns."""
        state = flat if self._plain else self.layout.unflatten(flat)
        began = perf_counter()
        slope = self.function(t, state) if self.args is None else self.function(t, state, self.args)
        self.seconds += perf_counter() - began
        return slope

    def arguments(self, tau: Tensor, y: Tensor) -> tuple[Any, ...]:
        """Return what the user's functions are called with: t, the state, and `args` if given."""
        t = tau if self.direction is None else tau * self.direction
        if self._narrow_time is not None:
            t = t.to(self._narrow_time)
        state = y if self._plain else self.layout.unflatten(y)
        return (t, state) if self.args is None else (t, state, self.args)

    def evaluate(self, g: Callable[..., Any], tau: Tensor, y: Tensor) -> Any:
        """Call another function of the user's, `g(t, y)` or `g(t, y, args)`, as the field is."""
        t = tau if self.direction is None else tau * self.direction
        state = y if self._plain else self.layout.unflatten(y)
        return g(t, state) if self.args is None else g(t, state, self.args)

    def forward_in_time(self, derivative: Tensor) -> Tensor:
        """Turn what belongs to dy/dt, `(B, ...)`, into what belongs to dy/dtau."""
        if self.column is None:
            return derivative
        return derivative * self.column.reshape(-1, *[1] * (derivative.ndim - 1))

    def captured(self) -> Iterator[Tensor]:
        """Yield the tensors that the vector field is seen to use besides its arguments."""
        return captured_tensors((self.function, self.args))

    def constants(self) -> Iterator[Tensor]:
        """Yield what must stay as it is until gradients are taken, though it has none itself.

        Frozen parameters and buffers of modules, and arguments.
        """
        yield from captured_tensors(self.function, of_modules_only=True)
        yield from captured_tensors(self.args)


class _Part(Field):
    """A part of another field."""

    def __init__(self, whole: Field, f: Callable[..., Any]):
        """Take over what the whole was made with."""
        super().__init__(f, whole.layout, whole.direction, whole.args)
        self._whole = whole

    def call(self, t: Tensor, flat: Tensor) -> Any:
        """Call the user's function, and count it in the whole as well."""
        self._whole.calls += 1
        before = self.seconds
        slope = super().call(t, flat)
        self._whole.seconds += self.seconds - before
        return slope
