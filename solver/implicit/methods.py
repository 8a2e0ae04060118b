"""Families of implicit methods; a member is its numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from solver.errors import InvalidArgument, InvalidType
from solver.implicit.collocation import CollocationStepper, CollocationTableau
from solver.implicit.dirk import DirkStepper
from solver.implicit.imex import ImexStepper
from solver.implicit.jacobian import JacobianSetup
from solver.implicit.rosenbrock import RosenbrockStepper, RosenbrockTableau
from solver.implicit.structure import Structure
from solver.methods.base import Method
from solver.methods.tableau import ButcherTableau
from solver.norms import Tolerance
from solver.problem import Field
from solver.split import Split


@dataclass(frozen=True)
class ImplicitMethod(Method):
    """Base of methods that solve equations in every step.

    Args:
        jacobian: `jacobian(t, y)`, or `jacobian(t, y, args)` where the field takes args, that
            returns df/dy, `(B, D, D)` over flattened states, `[b, i, j] = d f_i / d y_j`; with a
            banded structure also `(B, W, D)`, `[b, k, i] = d f_i / d y_(i + k - lower)`. None
            lets autograd work it out.
        structure: where the Jacobian has entries, `Banded(lower, upper)`, `diagonal()` or
            `Pattern(mask)`: fewer products make it, and a band is solved as one. None: anywhere.
        linear: how linear systems are solved: "lu" makes the Jacobian and factors it, "gmres" needs
            its products with vectors only; "auto" makes no full matrix of more than 512
            components of which nothing is declared: it looks for a band, or takes the latter.

    Raises:
        InvalidType: `jacobian` cannot be called, or `structure` is none.
        InvalidArgument: `linear` is none of these.
    """

    jacobian: Callable[..., Any] | None = None
    structure: Structure | None = None
    linear: Literal["auto", "lu", "gmres"] = "auto"

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.jacobian is not None and not callable(self.jacobian):
            raise InvalidType(
                f"jacobian is a {type(self.jacobian).__name__}: must be callable as "
                "jacobian(t, y), or None"
            )
        if self.structure is not None and not isinstance(self.structure, Structure):
            raise InvalidType(
                f"structure is a {type(self.structure).__name__}: must be Banded(lower, upper), "
                "diagonal(), Pattern(mask) or None"
            )
        if self.linear not in ("auto", "lu", "gmres"):
            raise InvalidArgument(f"linear is {self.linear!r}: must be 'auto', 'lu' or 'gmres'")

    @property
    def setup(self) -> JacobianSetup:
        """What is said of the Jacobian."""
        return JacobianSetup(self.jacobian, self.structure, self.linear)


@dataclass(frozen=True)
class DiagonallyImplicit(ImplicitMethod):
    """Base of methods with an explicit first stage and one number on the diagonal."""

    tableau: ClassVar[ButcherTableau]
    # Of the same nodes and weights, for the explicit part of a field given as two; None: both
    # parts are taken together.
    partner: ClassVar[ButcherTableau | None] = None
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
        split = field.function
        if self.partner is not None and isinstance(split, Split):
            return ImexStepper(
                self.tableau,
                self.partner,
                split,
                field,
                like,
                time_dtype,
                graph=graph,
                tolerance=tolerance,
                exact=exact,
                setup=self.setup,
            )
        return DirkStepper(
            self.tableau,
            field,
            like,
            time_dtype,
            graph=graph,
            tolerance=tolerance,
            exact=exact,
            setup=self.setup,
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
            exact=exact,
            setup=self.setup,
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
            setup=self.setup,
        )
