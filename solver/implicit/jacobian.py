"""Jacobians of the vector field, row by row: by autograd, by a user's function, by differences."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from solver.errors import InvalidArgument
from solver.implicit.krylov import Accuracy, Products
from solver.implicit.linear import Matrix
from solver.implicit.structure import Banded, Full, Structure
from solver.norms import Tolerance
from solver.problem import Field

FEW = 2  # products up to which one after the other is faster than all in one
BANDS = (1, 2, 4, 8, 16, 32)  # half widths that are tried
LARGE = 512  # components from which "auto" makes no matrix


@dataclass(frozen=True)
class JacobianSetup:
    """What a user says of the Jacobian, see `solver.implicit.methods.ImplicitMethod`."""

    jacobian: Callable[..., Any] | None = None
    structure: Structure | None = None
    linear: Literal["auto", "lu", "gmres"] = "auto"


class Linearised(NamedTuple):
    """The vector field at one place, to first order."""

    slope: Tensor  # (B, D)
    by_state: Matrix
    by_time: Tensor | None  # (B, D), if asked for


class RealField:
    """The vector field on real states: complex ones as pairs of real numbers.

    A field that is not holomorphic has no complex Jacobian, but always one of its real and
    imaginary parts.
    """

    def __init__(self, field: Field, like: Tensor):
        """Wrap `field` for states like `like (B, D)`."""
        self.field, self.complex = field, like.is_complex()
        self.dim = like.shape[1] * (2 if self.complex else 1)  # of the real states

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

    Rows do not depend on each other, so the same cotangent in every row at once gives a part of
    every Jacobian: a product for each component, or for each colour of a declared structure. What
    autograd cannot follow is differenced.

    Args:
        field: the vector field on real states.
        setup: what the user says of the Jacobian.
        tolerance: of the solve.
    """

    def __init__(self, field: RealField, setup: JacobianSetup, tolerance: Tolerance):
        """Keep them."""
        if setup.jacobian is not None and field.complex:
            raise InvalidArgument(
                "jacobian is given and y0 is complex: must be None then, as the Jacobian is taken "
                "of real and imaginary parts"
            )
        structure = setup.structure or Full()
        self.structure = structure.paired() if field.complex else structure
        self._field, self._given, self._tolerance = field, setup.jacobian, tolerance
        declared = setup.structure is not None or setup.jacobian is not None
        large = field.dim > LARGE and not declared
        self.products = setup.linear == "gmres" or (setup.linear == "auto" and large)
        # How well systems are solved where only products are known, and who counts them.
        self.accuracy, self.spent = Accuracy(1e-3, 0.0), _nobody
        self.structure.check(field.dim)
        self._colours = {
            "row": self.structure.row_colours(field.dim),
            "column": self.structure.column_colours(field.dim),
        }
        # Whether the entries may turn out to lie in a band, which is then solved as one.
        self._guesses = large and setup.linear == "auto"
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
            at = t.view_as(t) if graph and t.requires_grad else t
            if time and not (graph and state.shape[1]):
                at = _leaf(t)
            elif time:
                # As deep in the graph as the state, and no leaf: from one, autograd would look for
                # paths through all the steps before, once for every component.
                never = torch.zeros_like(at, dtype=torch.bool)
                at = torch.where(never, state[:, 0].to(at.dtype), at)
            try:
                slope = self._field(at, state)
            except RuntimeError as error:
                if "nference tensor" not in str(error):
                    raise
                with torch.no_grad():  # weights made in inference mode take no part in autograd
                    slope = self._field(at, state)
            if self._guesses and slope.requires_grad:
                self._look_for_band(slope, at, state)
            if self.products:
                by_state = self._free(at, state, graph=graph)
                by_time = self._by_time(slope, at, state, graph=graph) if time else None
            else:
                by_state, by_time = self._differentiate(slope, at, state, graph=graph, time=time)
        if graph:
            return Linearised(slope, by_state, by_time)
        return Linearised(slope.detach(), by_state.detached(), _detached(by_time))

    def _look_for_band(self, slope: Tensor, t: Tensor, state: Tensor) -> None:
        """Find out whether all entries lie near the diagonal, by a product with random numbers."""
        generator = torch.Generator().manual_seed(len(BANDS))
        v = torch.randn(state.shape[1], generator=generator, dtype=torch.float64)
        v = v.to(state.device, state.dtype).expand_as(state)
        wanted = self._free(t, state, graph=False).times(v)
        rounding = torch.finfo(state.dtype).eps ** 0.5 * wanted.abs().amax(dim=1, keepdim=True)
        known = isinstance(self.structure, Banded)
        for structure in [self.structure] if known else [Banded(w, w) for w in BANDS]:
            self._take(structure)
            (sums,) = self._products(slope, [state], graph=False, keep=True)
            found = None if sums is None else structure.from_rows(sums).times(v)
            near = found is None or (found - wanted).abs() <= rounding
            if found is None or bool(torch.as_tensor(near).all()):
                self.products = False
                return
        self._take(Full())
        self.products, self._guesses = True, False

    def _take(self, structure: Structure) -> None:
        """Take entries to lie where `structure` says."""
        if structure == self.structure:
            return
        self.structure = structure
        self._colours = {
            "row": structure.row_colours(self._field.dim),
            "column": structure.column_colours(self._field.dim),
        }

    def _free(self, t: Tensor, state: Tensor, *, graph: bool) -> Products:
        """Return the Jacobian as products with vectors."""
        if not graph:
            t, state = t.detach(), state.detach()
        size = self._field.back(state.detach()).abs()
        scale = self._tolerance.scale(size)
        if self._field.complex:
            scale = scale.repeat_interleave(2, dim=1)
        return Products(self._field, t, state, scale, self.accuracy, self.spent)

    def _by_time(self, slope: Tensor, t: Tensor, state: Tensor, *, graph: bool) -> Tensor:
        """Return the derivative by time `(B, D)`, by differences where autograd sees none."""
        if slope.requires_grad:
            found = self._time_products(slope, t, graph=graph)
            return torch.zeros_like(state) if found is None else found.to(state.dtype)
        return self._differenced_by_time(slope.detach(), t.detach(), state.detach())

    def _differenced_by_time(self, slope: Tensor, t: Tensor, state: Tensor) -> Tensor:
        root = torch.finfo(state.dtype).eps ** 0.5
        later = t + root * (t.abs() + root)
        step = (later - t).to(state.dtype)[:, None]
        return (self._field(later, state) - slope) / step

    def of(self, slope: Tensor, t: Tensor, state: Tensor) -> Matrix:
        """Return the Jacobian of a slope evaluated at `state`, out of the graph.

        Args:
            slope: what the field gave, `(B, D)`, with its graph back to `state`.
            t, state: where it was evaluated.
        """
        if self.products:
            return self._free(t, state, graph=False)
        found = self._differentiate(slope, t, state, graph=False, time=False, keep=True)[0]
        return found.detached()

    def _differentiate(
        self,
        slope: Tensor,
        t: Tensor,
        state: Tensor,
        *,
        graph: bool,
        time: bool,
        keep: bool = False,
    ) -> tuple[Matrix, Tensor | None]:
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
        if self._given is not None:
            return self._users(t, state), by_time
        by_state = found.pop() if found else None
        if by_state is None:  # followed by the time alone, or not by the state at all
            detached = slope.detach(), t.detach(), state.detach()
            return self._differences(*detached, time=False)[0], by_time
        return self.structure.from_rows(by_state), by_time

    def _count(self, kind: str) -> int:
        """Return how many colours rows or columns have."""
        colours = self._colours[kind]
        return int(colours.max()) + 1 if len(colours) else 0

    def _units(self, kind: str, like: Tensor) -> Tensor:
        """Return a vector for each colour, 1 in its components, `(C, D)`."""
        count = self._count(kind)
        units = torch.zeros((count, like.shape[1]), dtype=like.dtype)
        units[self._colours[kind], torch.arange(like.shape[1])] = 1.0
        return units.to(like.device)

    def _products(
        self, slope: Tensor, inputs: list[Tensor], *, graph: bool, keep: bool
    ) -> list[Tensor | None]:
        """Return the derivatives of `slope (B, D)`, summed over the components of each colour.

        `(C, B, D)` by the state, and `(B, D)` by the time, None where zero.
        """
        batch, dim = slope.shape
        with_time = inputs[-1].ndim == 1
        if with_time and self._structured:  # every component has a time derivative of its own
            by_time = self._time_products(slope, inputs[-1], graph=graph)
            rest = self._products(slope, inputs[:-1], graph=graph, keep=keep) if inputs[1:] else []
            return [*rest, by_time]
        units = self._units("row", slope)
        count = len(units)
        if count > FEW and self._in_one:
            each = units[:, None, :].expand(count, batch, dim)
            try:
                got = torch.autograd.grad(
                    slope, inputs, each, retain_graph=True, create_graph=graph, allow_unused=True,
                    is_grads_batched=True,
                )  # fmt: skip
                return [_by_rows(g) for g in got]
            except RuntimeError:  # a backward that cannot be batched
                self._in_one = False
        parts: list[tuple[Tensor | None, ...]] = []
        for i, unit in enumerate(units):
            parts.append(
                torch.autograd.grad(
                    slope, inputs, unit.expand(batch, dim), retain_graph=keep or i < count - 1,
                    create_graph=graph, allow_unused=True,
                )
            )  # fmt: skip
        joined: list[Tensor | None] = []
        for column, like in zip(zip(*parts, strict=True), inputs, strict=True):
            if all(part is None for part in column):
                joined.append(None)
                continue
            rows = [torch.zeros_like(like) if part is None else part for part in column]
            joined.append(_by_rows(torch.stack(rows)))
        return joined

    @property
    def _structured(self) -> bool:
        """Whether components share colours."""
        return not isinstance(self.structure, Full)

    def _time_products(self, slope: Tensor, t: Tensor, *, graph: bool) -> Tensor | None:
        """Return the derivative by time, `(B, D)`: twice backward is once forward."""
        w = torch.zeros_like(slope, requires_grad=True)
        (back,) = torch.autograd.grad(
            slope, t, w, create_graph=True, retain_graph=True, allow_unused=True
        )
        if back is None or not back.requires_grad:
            return None
        ones = torch.ones_like(back)
        (got,) = torch.autograd.grad(back, w, ones, create_graph=graph, retain_graph=True)
        return got

    def _differences(
        self, slope: Tensor, t: Tensor, state: Tensor, *, time: bool
    ) -> tuple[Matrix, Tensor | None]:
        """Return one-sided differences; each colour of columns costs one more evaluation."""
        if self._given is not None:
            by_state = self._users(t, state)
        else:
            root = torch.finfo(state.dtype).eps ** 0.5
            largest = 1e-3 * state.abs().amax(1, keepdim=True) if state.shape[1] else 0.0
            size = root * torch.clamp_min(torch.maximum(state.abs(), largest + 0 * state), root)
            columns = []
            for unit in self._units("column", state):
                moved = state + size * unit
                step = torch.where(unit > 0, moved - state, 1.0)
                difference = self._field(t, moved) - slope
                columns.append((difference, step))
            by_state = self._from_columns(columns, state)
        return by_state, self._differenced_by_time(slope, t, state) if time else None

    def _from_columns(self, columns: list[tuple[Tensor, Tensor]], state: Tensor) -> Matrix:
        """Return the matrix from differences `(B, D)` and the steps of their components."""
        structure = self.structure
        if not columns:
            return structure.from_columns(state.new_zeros((0, *state.shape)))
        sums = structure.from_columns(torch.stack([difference for difference, _ in columns]))
        steps = torch.stack([step for _, step in columns])
        steps = steps.gather(0, self._colours["column"].to(state.device).expand_as(state)[None])[0]
        return sums.by_columns(1 / steps)

    def _users(self, t: Tensor, state: Tensor) -> Matrix:
        assert self._given is not None
        field = self._field.field
        matrix = field.evaluate(self._given, t, state)
        batch, dim = state.shape
        allowed = [(batch, dim, dim)]
        if isinstance(self.structure, Banded):
            allowed.append((batch, self.structure.width, dim))
        if not isinstance(matrix, Tensor) or tuple(matrix.shape) not in allowed:
            got = tuple(matrix.shape) if isinstance(matrix, Tensor) else type(matrix).__name__
            wanted = " or ".join(map(str, allowed))
            raise InvalidArgument(f"jacobian returned {got}: must be a tensor of shape {wanted}")
        matrix = field.forward_in_time(matrix.to(state.dtype))
        return self.structure.from_dense(matrix)


def _by_rows(gradient: Tensor | None) -> Tensor | None:
    """Return `(C, B, D)` as it is, and the derivative by time `(C, B)` as `(B, C)`."""
    return gradient if gradient is None or gradient.ndim == 3 else gradient.t()


def _nobody(rows: Tensor) -> None:
    """Count nothing."""


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _leaf(tensor: Tensor) -> Tensor:
    """Return a tensor to differentiate by, even one made in inference mode."""
    bare = tensor.detach()
    return (bare.clone() if bare.is_inference() else bare).requires_grad_()


def _detached(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()
