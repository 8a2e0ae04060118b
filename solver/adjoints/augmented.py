"""The differential equation of the continuous adjoint: states and cotangents, backward in time."""

from collections.abc import Callable, Iterator
from typing import Any, final

import torch
from torch import Tensor

from solver.adjoints.graph import leaf
from solver.adjoints.parameters import VectorJacobian
from solver.dense import horner
from solver.problem import Field

CHECK_EVERY = 4  # evaluations between looks for tensors that no gradient is returned for


@final
class AugmentedField:
    """`y' = f`, `a' = -(df/dy)^T a`, `g' = -(df/dtheta)^T a`, run from late to early times.

    Runs forward in `s`, with `tau = anchor - scale * s`. Laid out as rows of `(y, a, g)`: one row
    for each instance, or a single one for the whole batch.

    Args:
        field: of the solve, `(B,), (B, D) -> (B, D)`.
        like: a state, `(B, D)`.
        params: what `g` belongs to.
        joint: one row for the whole batch.
        integrals: integrate `g` as part of the state; without, see `quadrature`.
        states: gives `y` at `tau (B,)` if it is known; it is no part of the state then.
    """

    def __init__(
        self,
        field: Field,
        like: Tensor,
        params: VectorJacobian,
        *,
        joint: bool,
        integrals: bool,
        states: Callable[[Tensor], Tensor] | None,
    ):
        """Start with `tau = -s`."""
        self._field, self._shape, self._dtype = field, like.shape, like.dtype
        self._state = VectorJacobian.over(params.params, [False] * len(params.params))
        self._params, self._joint, self._states = params, joint, states
        wanted = zip(params.params, params.wanted, strict=True)
        self._wanted = {i: p for i, (p, want) in enumerate(wanted) if want}
        self._integrals = integrals and bool(self._wanted)
        self.anchor, self.scale = torch.zeros(()), torch.ones(())
        self.calls = 0

    @property
    def n_vjps(self) -> int:
        """Vector-Jacobian products made so far."""
        return self._state.count + self._params.count

    def pack(self, y: Tensor, a: Tensor, g: Tensor | None) -> Tensor:
        """Return states, cotangents `(B, D)` and integrals as rows."""
        parts = [a] if self._states else [y, a]
        if self._joint:
            parts = [part.reshape(1, -1) for part in parts]
        if self._integrals:
            if g is None:
                size = sum(p.numel() for p in self._wanted.values())
                g = a.new_zeros((1 if self._joint else len(a), size))
            parts.append(g.to(self._dtype))
        return torch.cat(parts, dim=1)

    def unpack(self, tau: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Undo `pack`; states that are known are looked up at `tau (B,)`."""
        size = self._shape[1] * (self._shape[0] if self._joint else 1)
        if self._states:
            a, g = z[:, :size], z[:, size:]
            y = self._states(tau)
        else:
            y, a, g = z[:, :size], z[:, size : 2 * size], z[:, 2 * size :]
        return y.reshape(self._shape), a.reshape(self._shape), g if self._integrals else None

    def tau(self, s: Tensor) -> Tensor:
        """Return the time of every instance, `(B,)`."""
        return self.anchor - self.scale * s

    def __call__(self, s: Tensor, z: Tensor) -> Tensor:
        """Evaluate all rows."""
        tau = self.tau(s).expand(self._shape[0])
        y, a, _ = self.unpack(tau, z)
        scale = self.scale.to(a.real.dtype).reshape(-1, 1)
        self.calls += 1
        y = leaf(y)
        with torch.enable_grad():
            slope = self._field(tau, y)
        if self.calls % CHECK_EVERY == 1:
            self._state.check(slope, [y])
        g = None
        if not self._integrals:
            (found,) = self._state([slope], [y], [scale * a])
            at_y = torch.zeros_like(a) if found is None else found
        elif self._joint:
            at_y, g = self._with_integrals(slope, y, scale * a)
        else:
            # One product a row: vectorised ones would go past hooks and past f's own autograd.
            self._params.retain = True
            alone = [self._with_integrals(slope, y, each) for each in _row_by_row(a)]
            at_y = torch.stack([by_y[i] for i, (by_y, _) in enumerate(alone)])
            g = torch.cat([by_params for _, by_params in alone])
        return self.pack(-scale * slope.detach(), at_y, g)

    def _with_integrals(self, slope: Tensor, y: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
        """Return products with the Jacobians by state `(B, D)` and by parameters `(1, P)`."""
        (at_y,), at_params = self._params.apart([slope], [y], [cotangent])
        parts = {i: torch.zeros_like(p, dtype=self._dtype) for i, p in self._wanted.items()}
        for i, gradient in at_params:
            parts[i] = parts[i] + gradient
        at_y = torch.zeros_like(cotangent) if at_y is None else at_y
        return at_y, torch.cat([part.reshape(1, -1) for part in parts.values()], dim=1)

    def add_integrals(self, g: Tensor | None) -> None:
        """Add the integrals at the end of a solve to the parameters' gradients."""
        if g is None:
            return
        parts = g.sum(dim=0).split([p.numel() for p in self._wanted.values()])
        for i, part in zip(self._wanted, parts, strict=True):
            total = self._params.totals[i]
            assert total is not None
            part = part.reshape(total.shape)
            total.add_(part if total.is_complex() or not part.is_complex() else part.real)

    def quadrature(self, order: int) -> "ParameterQuadrature | None":
        """Return what integrates the parameters' gradients beside the solve, if that is needed."""
        if self._integrals or not self._wanted:
            return None
        return ParameterQuadrature(self, self._field, self._params, order)

    def close(self) -> None:
        """Take hooks off the parameters."""
        self._state.close()


@final
class ParameterQuadrature:
    """Integrates parameters' gradients over accepted steps by Gauss's rule on dense output.

    They take no part in the control of errors, and no attempt that is refused costs anything.
    Sees steps as a keeper of dense output does.
    """

    def __init__(self, field: AugmentedField, inner: Field, params: VectorJacobian, order: int):
        """Take as many nodes as keep the order of the method."""
        self._augmented, self._field, self._params = field, inner, params
        self._nodes, self._weights = _gauss(order // 2 + 1)

    def add(self, t: Tensor, dt: Tensor, moved: Tensor, y: Tensor, polynomial: Tensor) -> None:
        """Add the integral over one attempt, of the rows that `moved (B,)`."""
        augmented = self._augmented
        length = torch.where(moved, dt, 0.0)
        for node, weight in zip(self._nodes, self._weights, strict=True):
            tau = augmented.tau(t + node * dt)
            z = horner(y, polynomial, torch.full_like(dt, node))
            state, cotangent, _ = augmented.unpack(tau, z)
            scaled = weight * (length * augmented.scale).to(cotangent.real.dtype).reshape(-1, 1)
            with torch.enable_grad():
                slope = self._field(tau.expand(len(state)), state)
            if slope.requires_grad:
                self._params([slope], [], [scaled * cotangent])


def _gauss(n: int) -> tuple[list[float], list[float]]:
    """Return nodes and weights of Gauss-Legendre quadrature on 0 to 1, Golub & Welsch (1969)."""
    k = torch.arange(1, n, dtype=torch.float64)
    off = k / (4 * k * k - 1).sqrt()
    values, vectors = torch.linalg.eigh(torch.diag(off, 1) + torch.diag(off, -1))
    return ((values + 1) / 2).tolist(), (vectors[0] ** 2).tolist()


def _row_by_row(a: Tensor) -> Iterator[Tensor]:
    """Yield the tensor with all rows but one zero."""
    for i in range(len(a)):
        alone = torch.zeros_like(a)
        alone[i] = a[i]
        yield alone


def as_field(field: AugmentedField) -> Any:
    """Return the field for a `Problem`, of which only the call is used."""
    return field
