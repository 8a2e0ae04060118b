"""What can go wrong, as exceptions.

SolverError
+-- InvalidArgument (ValueError)   a value that is not allowed, named with what is
|   +-- UnknownMethod              no method, controller, ... of that name
|   +-- UnknownController
|   +-- UnknownStatistic
|   +-- UnknownAdjoint
|   +-- UnknownEngine
+-- InvalidType (TypeError)        something of the wrong kind, such as a list for a tensor
+-- UnseenTensor (RuntimeError)    f uses a tensor that no gradient would be returned for
+-- SolveFailed (RuntimeError)     a solve ended early and the caller asked to be told
"""

import difflib
from collections.abc import Iterable
from typing import Self


class SolverError(Exception):
    """Base of every exception this package raises on purpose."""


class InvalidArgument(SolverError, ValueError):
    """An argument has a value that is not allowed; the message names it and says what is."""


class InvalidType(SolverError, TypeError):
    """An argument is of a kind that is not allowed; the message names it and says what is."""


class UnseenTensor(SolverError, RuntimeError):
    """The vector field uses a tensor that requires grad and was not found nor given."""


class SolveFailed(SolverError, RuntimeError):
    """A solve ended before its last time; the message says where and why."""


class UnknownName(InvalidArgument):
    """A name that is in no catalogue."""

    kind = "name"

    @classmethod
    def among(cls, name: object, known: Iterable[str]) -> Self:
        """Return the error for `name`, with the nearest of the `known` names and all of them."""
        names = sorted(known)
        near = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return cls(f"unknown {cls.kind} {name!r}: {hint}known are {', '.join(names) or 'none'}")


class UnknownMethod(UnknownName):
    """No method of that name."""

    kind = "method"


class UnknownController(UnknownName):
    """No controller, nor preset of one, of that name."""

    kind = "controller"


class UnknownStatistic(UnknownName):
    """No statistic of that name."""

    kind = "statistic"


class UnknownAdjoint(UnknownName):
    """No adjoint of that name."""

    kind = "adjoint"


class UnknownEngine(UnknownName):
    """No engine of that name."""

    kind = "engine"
