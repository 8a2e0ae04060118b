"""Norms of the error of a step, one number for each instance, and powers of them."""

import math

import torch
from torch import Tensor


def rms_norm(x: Tensor) -> Tensor:
    """Root mean square over components: `(B, D)` real or complex -> `(B,)` real; 0 for D = 0."""
    return torch.linalg.vector_norm(x, dim=-1) * (1.0 / math.sqrt(max(x.shape[-1], 1)))


def power(base: Tensor, exponent: float) -> Tensor:
    """Return `base ** exponent`, the same wherever in a tensor a number stands.

    `torch.pow` rounds the last numbers of a tensor differently from those before, and a step-size
    sequence amplifies such differences, so that a row would depend on who stands beside it.
    """
    return (base.log() * exponent).exp()


class Tolerance:
    """Absolute and relative tolerance, and the error ratio they define.

    Args:
        rtol, atol: float, or tensor that broadcasts to `(B, D)`, not negative.
    """

    def __init__(self, rtol: float | Tensor, atol: float | Tensor):
        """Note whether a scale can be zero, which costs one more operation per step."""
        self.rtol, self.atol = rtol, atol
        smallest = atol.min().item() if isinstance(atol, Tensor) and atol.numel() else atol
        self.may_vanish = not isinstance(smallest, Tensor) and smallest == 0

    def scale(self, magnitude: Tensor) -> Tensor:
        """Return `atol + rtol * magnitude`, `(B, D)`, kept above zero."""
        scale = (magnitude * self.rtol).add_(self.atol)
        return scale.clamp_min_(torch.finfo(scale.dtype).tiny) if self.may_vanish else scale

    def weighted(self, error: Tensor, y: Tensor, y1: Tensor) -> Tensor:
        """Return `error / (atol + rtol * max(|y|, |y1|))`, `(B, D)`.

        NaN where `y1` is not finite: an infinite scale must not make an error look small.
        """
        magnitude = torch.maximum(y.abs(), y1.abs())
        weighted = error / self.scale(magnitude)
        return weighted.add_(magnitude, alpha=0.0)
