"""The first step size of every instance."""

import torch
from torch import Tensor

from solver.norms import Tolerance, power, rms_norm
from solver.problem import Field


def initial_step(
    field: Field, t0: Tensor, span: Tensor, y0: Tensor, f0: Tensor, order: int, tolerance: Tolerance
) -> Tensor:
    """Guess a first step size per instance from one more evaluation of the vector field.

    Hairer, Norsett & Wanner I (2nd ed.), section II.4, "starting step size", every norm per row
    and the probe kept inside the span.

    Args:
        field: vector field in the direction of integration.
        t0, span: start and length of the span, `(B,)`, not negative, in the time dtype.
        y0, f0: state and vector field at `t0`, `(B, D)`.
        order: order of the error estimate plus one, the `k` of the controller.

    Returns:
        `(B,)` step in the time dtype, at most `span`; finite.
    """
    scale = tolerance.scale(y0.abs())
    # A component whose scale vanishes (zero state, zero atol) says nothing about the step.
    blind = scale <= torch.finfo(scale.dtype).tiny
    d0 = rms_norm((y0 / scale).masked_fill(blind, 0))
    d1 = rms_norm((f0 / scale).masked_fill(blind, 0))
    tiny = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = torch.where(tiny, torch.full_like(d0, 1e-6), 0.01 * d0 / d1).to(t0.dtype)
    h0 = torch.minimum(h0.nan_to_num(nan=1e-6), span)
    probe = field(t0 + h0, y0 + h0.to(scale.dtype)[:, None] * f0)
    d2 = rms_norm(((probe - f0) / scale).masked_fill(blind, 0)).to(t0.dtype) / h0
    slope = torch.maximum(d1.to(t0.dtype), d2)
    h1 = power(0.01 / slope, 1.0 / order)
    h1 = torch.where(slope <= 1e-15, (h0 * 1e-3).clamp_min(1e-6), h1)
    h = torch.minimum(100 * h0, h1.nan_to_num(nan=0.0, posinf=0.0))
    return torch.minimum(torch.where(h > 0, h, h0 * 1e-3), span)
