"""Options of a parameter group: checked when they are set, read without waiting for a device."""

import math
from collections.abc import Mapping
from typing import Any, final

from torch import Tensor
from torch.optim import Optimizer

from solver.errors import InvalidArgument, InvalidType


@final
class Check:
    """Checks the options of one group and names the optimizer and the option that is wrong."""

    def __init__(self, optimizer: Optimizer, group: Mapping[str, Any]) -> None:
        self.owner, self.group = type(optimizer).__name__, group

    def number(
        self,
        name: str,
        low: float = 0.0,
        high: float = math.inf,
        *,
        below: bool = False,
        value: Any = None,
    ) -> None:
        """Check a finite number between `low` and `high` (`below`: and less than `high`)."""
        value = self.group[name] if value is None else value
        if isinstance(value, Tensor):
            if value.numel() != 1:
                raise InvalidArgument(f"{self.owner}({name}): a tensor must have one element")
            if value.device.type != "cpu":
                return  # looking at it would wait for the device
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidType(f"{self.owner}({name}={value!r}): must be a number")
        if not (low <= value <= high and math.isfinite(value)) or (below and value == high):
            upper = "" if high == math.inf else f" and {'less than' if below else 'at most'} {high}"
            raise InvalidArgument(f"{self.owner}({name}={value}): must be at least {low}{upper}")

    def count(self, name: str) -> None:
        """Check a whole number, at least 1."""
        value = self.group[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidArgument(
                f"{self.owner}({name}={value!r}): must be a whole number, at least 1"
            )

    def absent(self, name: str) -> None:
        """Refuse an option of another optimizer that would be silently ignored."""
        if self.group.get(name):
            raise InvalidArgument(f"{self.owner} has no {name}, which the loaded group asks for")

    def betas(self) -> None:
        """Check two numbers in [0, 1)."""
        betas = self.group["betas"]
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise InvalidArgument(f"{self.owner}(betas={betas!r}): must be two numbers in [0, 1)")
        for beta in betas:
            self.number("betas", 0.0, 1.0, below=True, value=beta)


def plain(value: float | Tensor, *, capturable: bool) -> float | Tensor:
    """Return an option as a number, unless it is a tensor that must stay one.

    Those are tensors on an accelerator (reading one would wait for it) and all where a step is to
    be captured.
    """
    if isinstance(value, Tensor) and not capturable and value.device.type == "cpu":
        return float(value)
    return value


def root(value: float | Tensor) -> Any:
    """Return the square root of a number or a tensor."""
    return value.sqrt() if isinstance(value, Tensor) else math.sqrt(value)
