"""Vector fields given as two parts, of which one is stiff."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from torch.utils import _pytree as pytree

from solver.errors import InvalidArgument, InvalidType


@final
@dataclass(frozen=True)
class Split:
    """The field `explicit + implicit`; additive methods solve equations for the latter alone.

    Args:
        explicit: `f(t, y)` or `f(t, y, args)`, the part that is not stiff.
        implicit: likewise, the stiff one.

    Raises:
        InvalidType: a part cannot be called.
    """

    explicit: Callable[..., Any]
    implicit: Callable[..., Any]

    def __post_init__(self) -> None:
        """Check the parts."""
        for name in ("explicit", "implicit"):
            part = getattr(self, name)
            if not callable(part):
                raise InvalidType(
                    f"the {name} part of f is a {type(part).__name__}: must be callable as f(t, y)"
                )

    def __call__(self, *arguments: Any) -> Any:
        """Return the sum of the parts."""
        one, other = self.explicit(*arguments), self.implicit(*arguments)
        return pytree.tree_map(lambda a, b: a + b, one, other)


def read_field(f: Any) -> Callable[..., Any]:
    """Return the vector field given, `(explicit, implicit)` as one.

    Raises:
        InvalidType, InvalidArgument: it cannot be called, or has not two parts.
    """
    if isinstance(f, tuple | list):
        if len(f) != 2:
            raise InvalidArgument(f"f has {len(f)} parts: must be (explicit, implicit)")
        return Split(*f)
    if not callable(f):
        raise InvalidType(f"f is a {type(f).__name__}: must be callable as f(t, y)")
    return f
