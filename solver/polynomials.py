"""Polynomials in theta, the part of a step that is done, without a constant term."""

import torch
from torch import Tensor


def hermite(change: Tensor, h_start: Tensor, h_end: Tensor) -> Tensor:
    """Return the cubic through two states and their slopes, `(3, B, D)`.

    Args:
        change: what the second state has more than the first, `(B, D)`.
        h_start, h_end: the slopes times the size of the step, `(B, D)`.
    """
    square = 3 * change - 2 * h_start - h_end
    return torch.stack([h_start, square, h_start + h_end - 2 * change])
