"""Every step the same size."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from solver.controllers.base import Controller, Proposal


@final
@dataclass(frozen=True, kw_only=True)
class Fixed(Controller[tuple[()]]):
    """Takes every step whose result is finite and never changes the size."""

    name: ClassVar[str] = "fixed"
    title: ClassVar[str] = "Fixed step"
    adaptive: ClassVar[bool] = False
    steady: ClassVar[Mapping[str, Any]] = {"kind": "fixed"}

    def init(self, like: Tensor) -> tuple[()]:
        """Return the empty history."""
        return ()

    def propose(self, ratio: Tensor, error_order: int, history: tuple[()]) -> Proposal[tuple[()]]:
        """Accept whatever is finite, with factor 1."""
        return Proposal(accept=ratio < inf, factor=torch.ones_like(ratio), history=history)

    def shares(self, ratio: Tensor, error_order: int, history: tuple[()]) -> Mapping[str, Tensor]:
        """Return zeros: no part changes the step."""
        zero = torch.zeros_like(ratio)
        return {"p": zero, "i": zero, "d": zero}

    def unlimited_factor(self, ratio: Tensor, error_order: int, history: tuple[()]) -> Tensor:
        """Return 1, `(B,)`."""
        return torch.ones_like(ratio)

    def steady_error_ratio(self, error_order: int) -> float:
        """Return 1: the size stays as it is at every error."""
        return 1.0
