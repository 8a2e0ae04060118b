"""The exact spectrum of the Jacobian, for a few moments: it costs D products with it, and more."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from solver.errors import InvalidArgument

MOST = 2048  # components of one state; a matrix of their square is made for each


def spectrum(f: Callable[..., Any], t: Tensor, y: Tensor, args: Any = None) -> Tensor:
    """Return the eigenvalues of df/dy at given states, the largest first.

    Args:
        f: vector field `f(t, y)`, or `f(t, y, args)` if `args` are given, `(B,), (B, D) -> (B, D)`;
            each row on its own.
        t: times `(B,)`.
        y: real states `(B, D)`.
        args: handed on, one entry for each row.

    Returns:
        `(B, D)` complex, units 1 / time; NaN in rows whose Jacobian is not finite.

    Raises:
        InvalidArgument: the states have another shape, are not real, or are too large.
    """
    if y.ndim != 2 or y.is_complex():
        raise InvalidArgument(f"y has shape {tuple(y.shape)}, {y.dtype}: must be (B, D) and real")
    if y.shape[1] > MOST:
        raise InvalidArgument(f"y has {y.shape[1]} components: must be at most {MOST}")
    if t.shape != y.shape[:1]:
        raise InvalidArgument(f"t has shape {tuple(t.shape)}: must be ({len(y)},)")
    with torch.enable_grad():
        at = y.detach().requires_grad_()
        slope = f(t, at) if args is None else f(t, at, args)
        rows = []
        for d in range(y.shape[1]):
            (row,) = torch.autograd.grad(
                slope[:, d].sum(), at, retain_graph=True, allow_unused=True
            )
            rows.append(torch.zeros_like(at) if row is None else row)
    jacobian = torch.stack(rows, dim=1).double() if rows else y.new_zeros(*y.shape, 0).double()
    bad = ~jacobian.isfinite().all(dim=2).all(dim=1)
    values = torch.linalg.eigvals(jacobian.masked_fill(bad[:, None, None], 0.0))
    values = values.masked_fill(bad[:, None], complex(float("nan"), float("nan")))
    order = values.abs().argsort(dim=1, descending=True, stable=True)
    return values.gather(1, order)
