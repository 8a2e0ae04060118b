"""What statistics of optimizers are computed with: 0-d tensors, nothing waits for the device."""

import torch
from torch import Tensor

SAMPLE = 1 << 20  # elements that enter a quantile, at most about


def sample(tensors: list[Tensor]) -> Tensor:
    """Return the elements of all tensors in one, thinned evenly to about `SAMPLE` of them."""
    every = max(1, sum(t.numel() for t in tensors) // SAMPLE)
    return torch.cat([t.reshape(-1)[::every] for t in tensors])


def quantiles(name: str, values: list[Tensor]) -> dict[str, Tensor]:
    """Return the 5 %, 50 % and 95 % quantiles of all elements, none where there are none."""
    values = [v for v in values if v.numel()]
    if not values:
        return {}
    together = torch.cat([v.to(values[0].device, torch.float32) for v in values])
    low, mid, high = (together.quantile(q) for q in (0.05, 0.5, 0.95))
    return {f"{name}_q05": low, f"{name}_median": mid, f"{name}_q95": high}


def share(name: str, values: list[Tensor]) -> dict[str, Tensor]:
    """Return the share of True in all elements, nothing where there are none."""
    values = [v for v in values if v.numel()]
    if not values:
        return {}
    device = values[0].device
    hits = torch.stack([v.sum().to(device) for v in values]).sum()
    return {name: hits / sum(v.numel() for v in values)}
