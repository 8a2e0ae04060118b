"""Families of implicit methods; a member is its numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from solver.errors import InvalidType
from solver.implicit.collocation import CollocationStepper, CollocationTableau
from solver.implicit.dirk import DirkStepper
from solver.implicit.rosenbrock import RosenbrockStepper, RosenbrockTableau
from solver.methods.base import Method
from solver.methods.tableau import ButcherTableau
from solver.norms import Tolerance
from solver.problem import Field


@dataclass(frozen=True)
class ImplicitMethod(Method):
    """Base of methods that solve equations in every step.

    Args:
        jacobian: `jacobian(t, y)`, or `jacobian(t, y, args)` where the field takes args, that
            returns df/dy, `(B, D, D)` over flattened states, `[b, i, j] = d f_i / d y_j`. None
            lets autograd work it out.

    Raises:
        InvalidType: `jacobian` cannot be called.
    """

    jacobian: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        """Check the setting."""
        if self.jacobian is not None and not callable(self.jacobian):
            raise InvalidType(
                f"jacobian is a {type(self.jacobian).__name__}: must be callable as "
                "jacobian(t, y), or None"
            )


@dataclass(frozen=True)
class DiagonallyImplicit(ImplicitMethod):
    """Base of methods with an explicit first stage and one number on the diagonal."""

    tableau: ClassVar[ButcherTableau]
    filtered: ClassVar[bool] = False  # whether the error estimate needs damping

    @property
    def order(self) -> int:
        """Order of the step."""
        return self.tableau.order

    @property
    def error_order(self) -> int | None:
        """Order of the error estimate, None for a method of fixed steps."""
        return self.tableau.error_order

    @property
    def dense_order(self) -> int:
        """Order of the dense output."""
        return self.tableau.interpolant_order

    def stepper(
        self,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None = None,
        exact: bool = True,
    ) -> DirkStepper:
        """Make the working state of one solve."""
        return DirkStepper(
            self.tableau,
            field,
            like,
            time_dtype,
            graph=graph,
            tolerance=tolerance,
            exact=exact,
            jacobian=self.jacobian,
            filtered=self.filtered,
        )


@dataclass(frozen=True)
class Rosenbrock(ImplicitMethod):
    """Base of Rosenbrock methods: no iteration, a new Jacobian in every step."""

    numbers: ClassVar[RosenbrockTableau]

    @property
    def order(self) -> int:
        """Order of the step."""
        return self.numbers.order

    @property
    def error_order(self) -> int | None:
        """Order of the error estimate."""
        return self.numbers.error_order

    @property
    def dense_order(self) -> int:
        """Order of the dense output."""
        return self.numbers.dense_order

    def stepper(
        self,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None = None,
        exact: bool = True,
    ) -> RosenbrockStepper:
        """Make the working state of one solve."""
        return RosenbrockStepper(
            self.numbers,
            field,
            like,
            time_dtype,
            graph=graph,
            tolerance=tolerance,
            jacobian=self.jacobian,
        )


@dataclass(frozen=True)
class Collocation(ImplicitMethod):
    """Base of fully implicit collocation methods."""

    numbers: ClassVar[CollocationTableau]

    @property
    def order(self) -> int:
        """Order of the step."""
        return self.numbers.order

    @property
    def error_order(self) -> int | None:
        """Order of the error estimate, None for a method of fixed steps."""
        return self.numbers.error_order

    @property
    def dense_order(self) -> int:
        """Order of the dense output, one more than that of the stages."""
        return len(self.numbers.c) + 1

    def stepper(
        self,
        field: Field,
        like: Tensor,
        time_dtype: torch.dtype,
        *,
        graph: bool,
        tolerance: Tolerance | None = None,
        exact: bool = True,
    ) -> CollocationStepper:
        """Make the working state of one solve."""
        return CollocationStepper(
            self.numbers,
            field,
            like,
            time_dtype,
            graph=graph,
            tolerance=tolerance,
            exact=exact,
            jacobian=self.jacobian,
        )
