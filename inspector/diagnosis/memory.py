"""Memory that another way to the gradient would not need."""

from collections.abc import Iterator

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case
from inspector.store.files import number

TIMES = 3.0
FEWEST = 1_000_000  # bytes


@rule("memory", title="Another gradient mode would need far less memory")
def look(case: Case) -> Iterator[Finding]:
    """Compare what autograd's graph kept with what the symplectic adjoint would."""
    mode = str(case.start.get("adjoint") or "")
    passes = case.run.solve_state(case.solve).backward
    kept = max((number(each.get("graph_bytes")) for each in passes), default=float("nan"))
    if mode not in ("backprop", "aca", "interpolated") or not kept > FEWEST:
        return
    size = 8 if str(case.start.get("dtype")) == "float64" else 4
    steps = float(case.each["n_accepted"].max(initial=0))
    # A state, a time and a size for each step, and the graph of one step at a time.
    needed = case.batch * steps * (case.dim + 2) * size + kept / max(steps, 1)
    if kept < TIMES * needed:
        return
    yield Finding(
        evidence=f"The graph of this solve held {kept / 1e6:.1f} MB for its {steps:.0f} steps; "
        f"states and one step at a time come to about {needed / 1e6:.1f} MB",
        certainty="likely",
        advice='Use adjoint="symplectic": the same gradient to rounding, a step at a time, for '
        "about one evaluation more a stage.",
        numbers={"bytes": kept, "needed": needed},
        change={"adjoint": "symplectic", **_gradient(case)},
        weight=min(0.6, 0.2 * kept / needed / TIMES),
    )


def _gradient(case: Case) -> dict[str, str]:
    return {"gradient": "symplectic"} if case.spec.get("gradient") else {}
