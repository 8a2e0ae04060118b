"""Norms of states that are one tensor or a tuple of them, as torchdiffeq has them."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Shapes = Sequence[torch.Size]


def split(flat: Tensor, shapes: Shapes) -> tuple[Tensor, ...]:
    """Return the parts of `(*lead, N)`, each `(*lead, *shape)`."""
    lead = flat.shape[:-1]
    if not flat.requires_grad:  # else parts could not be written to one by one
        pieces = flat.split([shape.numel() for shape in shapes], dim=-1)
        return tuple(
            piece.view((*lead, *shape)) for piece, shape in zip(pieces, shapes, strict=True)
        )
    parts, at = [], 0
    for shape in shapes:
        size = shape.numel()
        parts.append(flat[..., at : at + size].view((*lead, *shape)))
        at += size
    return tuple(parts)


def rms(x: Tensor) -> Tensor:
    """Root mean square of all components, a real scalar."""
    return torch.linalg.vector_norm(x) * (1.0 / math.sqrt(max(x.numel(), 1)))


class PartNorm:
    """The largest root mean square of the parts of a state.

    Args:
        count: how many parts count; None for all.
        splits: shapes into which parts are to be split further, for the parts at some places.
    """

    def __init__(self, count: int | None = None, splits: dict[int, Shapes] | None = None):
        """Keep which parts count."""
        self._count, self._splits = count, splits or {}
        self._sizes: list[int] = []
        self._scale: Tensor | None = None

    def __call__(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the norm of a tuple of tensors."""
        pieces: list[Tensor] = []
        for i, part in enumerate(parts[: self._count]):
            shapes = self._splits.get(i)
            pieces += [part] if shapes is None else split(part, shapes)
        pieces = [piece for piece in pieces if piece.numel()]
        if not pieces:
            return parts[0].new_zeros(()).abs() if parts else torch.zeros(())
        return torch.stack([rms(piece) for piece in pieces]).amax()

    def flat(self, x: Tensor, shapes: Shapes) -> Tensor:
        """Return the norm of a state whose parts lie one after the other in `x (N,)`."""
        if not self._sizes:
            for i, shape in enumerate(shapes[: self._count]):
                self._sizes += [each.numel() for each in self._splits.get(i, (shape,))]
            scale = [1.0 / math.sqrt(max(size, 1)) for size in self._sizes]
            self._scale = torch.tensor(scale, dtype=x.abs().dtype, device=x.device)
        assert self._scale is not None
        pieces = x[: sum(self._sizes)].split(self._sizes)
        norms = torch.stack(tuple(torch._foreach_norm(pieces)))  # pyright: ignore[reportPrivateImportUsage, reportPrivateUsage]
        return (norms * self._scale).amax()


def flat_norm(norm: Callable[..., Any], shapes: Shapes | None) -> Callable[[Tensor], Any]:
    """Return a norm of flat states, from one that takes states as the user has them."""
    if shapes is None:
        return norm
    if isinstance(norm, PartNorm):
        return lambda x: norm.flat(x, shapes)
    return lambda x: norm(split(x, shapes))
