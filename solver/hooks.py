"""What a solve tells while it runs: frozen records, and the hook that receives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from solver.solution import Solution
    from solver.stability import Rational
    from solver.statistics.base import Statistic


@dataclass(frozen=True, eq=False)
class SolveInfo:
    """What is known of a solve before its first step; compared by identity.

    Every later record of the solve carries this object, so a hook can tell interleaved solves
    apart.
    """

    batch: int  # B, number of instances
    dim: int  # D, components of one flattened instance
    dtype: str  # of the state, such as "float32"
    time_dtype: str
    device: str
    method: str
    method_order: int
    error_order: int | None
    controller: str
    controller_settings: Mapping[str, Any]
    adjoint: str
    engine: str
    stepping: str
    t0: Tensor  # (B,)
    t1: Tensor  # (B,)
    rtol: Tensor  # scalar, (B, 1), (D,) or (B, D)
    atol: Tensor
    max_steps: int | Tensor
    y0: Tensor  # (B, D), flattened, detached
    statistics: Sequence["Statistic"] = ()  # those in StepBlock.columns, in order
    backward_of: "SolveInfo | None" = None  # the solve this one takes the gradient of
    stability: "Rational | None" = None  # the method's stability function, see `stability.py`
    compile_seconds: float = 0.0  # spent on native code for this solve
    dt_min: Tensor | None = None  # bounds of the step, scalar or (B,)
    dt_max: Tensor | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StepBlock:
    """`n` consecutive step attempts of the whole batch of one solve.

    Tensors are detached and on the device of the solve; the solver does not write to them again,
    so a hook may keep them, and copies to the host only when it must.
    """

    solve: SolveInfo
    first: int  # attempt number of row 0, counted from 0 within this solve
    t: Tensor  # (n, B) time at the start of the attempt
    dt: Tensor  # (n, B) signed size tried
    error_ratio: Tensor  # (n, B) at most 1 is within tolerance; 0 for fixed steps
    accepted: Tensor  # (n, B) bool
    running: Tensor  # (n, B) bool, instances that took part
    columns: Mapping[str, Tensor] = field(default_factory=dict)  # (n, B) each, one a statistic
    y: Tensor | None = None  # (n, B, D) state after the attempt, if a hook has `wants_states`


@dataclass(frozen=True, slots=True, eq=False)
class SolveEnd:
    """How a solve ended. `solution` is None when it was broken off by an exception."""

    solve: SolveInfo
    solution: "Solution | None"
    wall_seconds: float
    error: str | None = None  # type and text of the exception that broke it off


@dataclass(frozen=True, slots=True, eq=False)
class BackwardInfo:
    """What one backward pass through a solve kept and cost.

    Bytes of parameters themselves are counted nowhere. `predicted_bytes` is what the memory law of
    the mode says of `checkpoint_bytes + graph_bytes + gradient_bytes`, from the bytes of one
    evaluation's graph. Graphs are measured where a hook has `wants_memory`, which costs time.
    """

    solve: SolveInfo
    n_steps: int  # accepted steps gone back, of the row that has most; 0 where not known
    n_f_calls: int  # evaluations of the vector field during backward, each for all rows
    n_vjps: int  # vector-Jacobian products of the vector field; 0 where not known
    checkpoint_bytes: int  # states, times and slopes kept from forward to backward
    graph_bytes: int | None  # most that autograd's graphs kept at once; None if not measured
    gradient_bytes: int  # sums of the parameters' gradients, and a fresh set of them
    predicted_bytes: int | None
    allocated_bytes: int | None  # most allocated over the start of the pass, CUDA only
    seconds: float


class Hook:
    """Observes solves: override what you need, the rest does nothing.

    A hook never changes a solve. One that raises an `Exception` is reported by one warning and
    switched
    off for the rest of that solve; `KeyboardInterrupt` and other `BaseException`s pass through, so
    a caller can stop a solve from here.
    """

    block_size: int = (
        1  # attempts gathered before `on_steps` is called; the smallest asked for wins
    )
    statistics: "Sequence[Statistic | str]" = ()  # further columns this hook wants
    wants_states: bool = False  # ask for StepBlock.y
    wants_memory: bool = True  # ask for graph_bytes and predicted_bytes of BackwardInfo

    def on_solve_start(self, info: SolveInfo) -> None:
        """Before the first evaluation of the vector field."""

    def on_steps(self, steps: StepBlock) -> None:
        """After each block of attempts."""

    def on_solve_end(self, end: SolveEnd) -> None:
        """After the last attempt, also when the solve was broken off."""

    def on_compile(self, info: SolveInfo) -> None:
        """Before native code is made for a solve, which takes seconds; `on_solve_start` follows."""

    def on_progress(self, done: int, total: int) -> None:
        """After each slice of a batch solved with `batch_size`: rows done, rows in all."""

    def on_backward(self, info: BackwardInfo) -> None:
        """After each backward pass through a solve."""
