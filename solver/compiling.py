"""Makes native code of a solve before it is needed."""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from solver.arguments import read_hooks
from solver.errors import InvalidArgument
from solver.hooks import Hook
from solver.solve import solve_ivp


class _StandIn(Hook):
    """Asks for what another hook asks for, and takes nothing."""

    def __init__(self, hook: Hook):
        self.statistics, self.wants_states = hook.statistics, hook.wants_states


def compile(
    f: Callable[..., Any],
    y0: Any,
    t_eval: Any = None,
    *,
    hooks: Sequence[Hook] = (),
    max_steps: int | Tensor = 100_000,
    **options: Any,
) -> float:
    """Make the native code that `solve_ivp` with these arguments and `engine="compiled"` runs.

    Solves with `engine="auto"` take it from then on, too. Other start values, times, tolerances,
    gains, parameters of networks and batch sizes need no other code.

    Args:
        f, y0, t_eval, options: as for `solve_ivp`; one attempt is made from `y0`.
        hooks: those of the solves to come, since what they want recorded is part of the code;
            nothing is recorded now.
        max_steps: as for `solve_ivp`.

    Returns:
        Seconds it took; next to none if the code was there.

    Raises:
        InvalidArgument: there is no such code; says why. What `solve_ivp` raises.
    """
    began = time.perf_counter()
    once = torch.ones_like(max_steps) if isinstance(max_steps, Tensor) else 1
    given: dict[str, Any] = {**options, "engine": "compiled"}
    seen = [_StandIn(hook) for hook in read_hooks(hooks)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        solution = solve_ivp(f, y0, t_eval, hooks=seen, max_steps=once, **given)
    if solution.stats.engine != "compiled":
        reasons = [
            str(each.message) for each in said if "is not possible here" in str(each.message)
        ]
        why = reasons[-1].partition("runs instead: ")[2] if reasons else "unknown"
        raise InvalidArgument(f"f has no compiled form: {why}")
    return time.perf_counter() - began
