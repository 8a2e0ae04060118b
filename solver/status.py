"""How one instance of a batch ended."""

from enum import IntEnum


class Status(IntEnum):
    """End of one instance; SUCCESS and EVENT are ends it was meant to have, all others failures."""

    SUCCESS = 0
    NON_FINITE_START = 1
    REACHED_DT_MIN = 2
    REACHED_MAX_STEPS = 3
    NON_FINITE = 4
    TIME_RESOLUTION = 5
    INTERRUPTED = 6
    EVENT = 7  # a terminal event ended it
    NOT_CONVERGED = 8

    @property
    def failed(self) -> bool:
        """Whether this is an end that the instance was not meant to have."""
        return self not in (Status.SUCCESS, Status.EVENT)

    @property
    def cure(self) -> str:
        """What a user can do about it, one sentence."""
        return _CURES[self]


_CURES = {
    Status.SUCCESS: "",
    Status.NON_FINITE_START: (
        "y0 or the vector field at t0 is not finite there; check the initial state and its domain."
    ),
    Status.REACHED_DT_MIN: "Lower dt_min, loosen rtol/atol, or use a method for stiff problems.",
    Status.REACHED_MAX_STEPS: "Raise max_steps, loosen rtol/atol, or use a method for stiff "
    "problems.",
    Status.NON_FINITE: (
        "The vector field or the state is NaN or infinite however small the step: the solution "
        "blows up or leaves the domain of the field."
    ),
    Status.TIME_RESOLUTION: (
        "The step fell below what the time dtype resolves: the solution has a singularity, or time "
        "needs float64 (time_dtype) or a start nearer to zero."
    ),
    Status.NOT_CONVERGED: (
        "Newton's iteration finds no solution of the step's equations however small the step: the "
        "field may jump or not be differentiable there, or `jacobian` be wrong; try a Rosenbrock "
        "method, or an explicit one."
    ),
    Status.EVENT: "",
    Status.INTERRUPTED: "The solve was broken off before this instance was done.",
}
