"""Native code that took longer to make than it ran."""

from collections.abc import Iterator

from inspector.diagnosis.base import Finding, rule
from inspector.diagnosis.case import Case
from inspector.store.files import number

LOST = 0.5  # seconds
TIMES = 2.0  # as long as all solves with it


@rule("compiling", title="Compiling took longer than solving", whole_run=True)
def look(case: Case) -> Iterator[Finding]:
    """Compare seconds of compiling with seconds of solving, over the whole run."""
    compiled = solved = 0.0
    for one in range(case.run.n_solves):
        state = case.run.solve_state(one)
        compiled += max(number(state.start.get("compile_seconds", 0.0)), 0.0)
        took = number((state.end or {}).get("seconds"))
        solved += took if took == took else 0.0
    solved = max(solved - compiled, 0.0)  # a solve's seconds hold what it waited for the compiler
    if not compiled > max(LOST, TIMES * solved):
        return
    count = case.run.n_solves
    ran = "the solve that ran it" if count == 1 else f"the {count} solves that ran it"
    yield Finding(
        evidence=f"{compiled:.1f} s went into native code, {solved:.2f} s into {ran}",
        certainty="measured",
        advice='Use engine="auto", which compiles beside solves once they have cost enough, or '
        'engine="plain". Kernels are kept on disk: the next process finds this one.',
        numbers={"compile_seconds": compiled, "seconds": solved},
        change={"engine": "plain"},
        weight=compiled / (compiled + solved),
    )
