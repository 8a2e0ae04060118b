"""What limits a recorded solve, how sure that is, and what to change.

`diagnose(run)` asks every rule. A rule is a function that looks at a `Case`, one a file in this
folder; users add theirs by decorating a function of their own::

    from inspector.diagnosis import Case, Finding, rule

    @rule("slow_rows", title="A row takes more than a thousand attempts")
    def look(case: Case):
        slow = [row for row, steps in enumerate(case.n_steps) if steps > 1000]
        if slow:
            yield Finding(
                evidence=f"{len(slow)} rows took more than 1000 attempts",
                certainty="measured", advice="Loosen rtol.", rows=tuple(slow),
                change={"rtol": 10 * case.rtol},
            )
"""

from inspector.diagnosis.base import Certainty, Diagnosis, Finding, Rule, rule, rules
from inspector.diagnosis.case import Case
from inspector.diagnosis.report import diagnose

__all__ = ["Case", "Certainty", "Diagnosis", "Finding", "Rule", "diagnose", "rule", "rules"]
